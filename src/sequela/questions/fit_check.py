"""Test whether a model describes its data; see `sequela.learning.fit_check`."""

from sequela.learning.fit_check import FitCheck, FitTest, check_fit

__all__ = ["FitCheck", "FitTest", "check_fit"]
