"""Questions to a model: orders, times, next items, goodness of fit, and the posterior of times.

The public names are declared in ``__init__.pyi`` and loaded when they are first used.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
