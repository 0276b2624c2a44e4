"""Plots: each function draws on a matplotlib Axes, which it returns.

The public names are declared in ``__init__.pyi`` and loaded when they are first used. The first
plot loads matplotlib.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
