"""Many independent pieces of one question: seeds, bootstraps, subsets of items, penalties, folds.

A `Plan` lists the pieces; `run` does them on threads, processes, a Dask cluster or as one task of
an array of jobs, and writes one record for each as it comes; `collect` reads what there is. Which
way it ran changes no number.
"""

from sequela.repeats.plan import Plan
from sequela.repeats.records import collect, missing
from sequela.repeats.running import RepeatsError, run

__all__ = ["Plan", "RepeatsError", "collect", "missing", "run"]
