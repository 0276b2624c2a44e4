"""Learn in which order items accumulate, from sets that were each seen once.

The names are declared once, in ``__init__.pyi``, and loaded when they are first used, so that
``import sequela`` stays fast. So is every room below: `data`, `likelihood`, `learning`,
`questions`, `plots`, `repeats` and `report` declare their public names in a stub of their own.
"""

import lazy_loader

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*__all__, "__version__"]
