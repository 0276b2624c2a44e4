"""Run many independent computations, such as fits to bootstraps, folds or subsets of items.

Each computation is called a repeat, and a `Plan` lists the repeats. `run` runs them on threads, on
processes, on a Dask cluster, or in several tasks of a job array. It writes a record of each repeat
when the repeat ends. `collect` reads the records. The results do not depend on where the repeats
run.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
