"""Damage files of every kind at random, and check that the readers handle them correctly.

Run by hand: ``python -m verification.attack [rounds] [seed]`` (8 and 1 by default; some minutes).

Good files are made first: tables, MAF, tables of cBioPortal, Parquet, models, a checkpoint, a run,
a plan with records, a posterior. Generators damage them (`damage.py`). Further files with special
mistakes are written by hand (`by_hand.py`). The module `judges.py` checks what the readers do. For
every damaged file:

- only errors of sequela are raised, and they name the file or the field;
- the printed text has no control characters;
- a file that is certainly invalid is refused;
- a file that is unusual but valid is read;
- a stored file that is accepted gives the same numbers as before the damage.

It prints a table of the damaged files, and exits with 1 if a condition does not hold.
"""
