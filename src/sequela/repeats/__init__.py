"""Many independent repeats: seeds, bootstraps, subsets of items, penalties, folds.

A `Plan` lists the repeats. `run` runs them on threads, on processes, on a Dask cluster or as one
task of a job array, and writes a record of each repeat when it ends. `collect` reads the records.
The results do not depend on where the repeats run.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
