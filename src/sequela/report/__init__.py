"""The Python functions behind the commands: fits that write a folder, repeats, reports, demos.

`run_fit` is ``sequela fit``: it reads a table, learns a model, and writes a folder with the model,
tables, figures and a ``run.json``. `repeat_run` repeats the fit bit for bit. Names are declared in
``__init__.pyi`` and loaded when they are first used, so that the command line stays fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
