"""Many independent pieces of one question: seeds, bootstraps, subsets of items, penalties, folds.

A `Plan` lists the pieces; `run` does them on threads, processes, a Dask cluster or as one task of
an array of jobs, and writes one record for each as it comes; `collect` reads what there is. Which
way it ran changes no number.
"""

from sequela.repeats.errors import RepeatsError
from sequela.repeats.fit_results import fit_table, models, pair_orders, summarise
from sequela.repeats.fits import plan_fits
from sequela.repeats.plan import Plan
from sequela.repeats.records import collect, missing, read_plan
from sequela.repeats.running import run

__all__ = [
    "Plan",
    "RepeatsError",
    "collect",
    "fit_table",
    "missing",
    "models",
    "pair_orders",
    "plan_fits",
    "read_plan",
    "run",
    "summarise",
]
