"""Damage files of every kind at random, and check that the readers handle them correctly.

Run by hand: ``python -m verification.attack [rounds] [seed]`` (8 and 1 by default; some minutes).

The script first makes valid files: tables, MAF, tables of cBioPortal, Parquet, models, a
checkpoint, a run, a plan with records, and a posterior. Generators damage these files
(`damage.py`). More files were written by hand, with mistakes that generators do not make
(`by_hand.py`). The module `judges.py` checks what the readers do with each damaged file. It
requires that

- only errors of sequela are raised, and that they name the file or the field;
- the printed text has no control characters;
- a file that is certainly invalid is refused;
- a file that is unusual but valid is read;
- a damaged stored file that is accepted gives the same numbers as before the damage.

The script prints a table of the damaged files, and exits with 1 if one of these conditions is
violated.
"""
