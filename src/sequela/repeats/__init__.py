"""Many independent repeats: seeds, bootstraps, subsets of items, penalties, folds.

A `Plan` lists the repeats. `run` does them on threads, on processes, on a Dask cluster or as one
task of a job array, and writes a record of each as it ends. `collect` reads the records. Where the
repeats run does not change the results.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
