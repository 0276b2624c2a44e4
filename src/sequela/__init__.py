"""Learn the order in which items accumulate, from sets that were each observed once.

The public names are declared in ``__init__.pyi`` and loaded when they are first used, so that
``import sequela`` stays fast. The subpackages `data`, `likelihood`, `learning`, `posteriors`,
`questions`, `plots`, `repeats` and `report` work the same way: each has its own ``__init__.pyi``.
"""

import lazy_loader

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*__all__, "__version__"]
