"""What comes in: samples from tables, files and downloads, validated once."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
