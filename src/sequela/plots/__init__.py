"""Plot functions. Each of them draws on a matplotlib Axes, and returns the Axes.

The public names are declared in ``__init__.pyi`` and loaded when they are first used. The first
plot loads matplotlib.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
