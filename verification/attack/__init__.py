"""Bad input of every kind, made by generators, against what must hold for all of it.

Run by hand: ``python -m verification.attack [rounds] [seed]`` (8 and 1 if not said; some minutes).

Good files are made first: tables, MAF, tables of cBioPortal, Parquet, models, a checkpoint, a run,
a plan with records, a posterior. Generators damage them (`damage.py`), further files are wrong in
ways of their own (`by_hand.py`), and judges (`judges.py`) watch what the reader does.
For every damaged file:

- only errors of sequela are raised, which name the file or the field;
- what is printed has no control character, whatever the file holds;
- a file that is certainly wrong is refused;
- a file that is right, though unusual, is read;
- a stored file that is accepted gives the same numbers as before the damage.

It prints a table of what was tried and exits with 1 if anything did not hold.
"""
