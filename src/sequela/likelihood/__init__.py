"""Likelihoods of sets and sequences under a model, with gradients (section 4 of the paper)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
