"""Does the model describe its data: see `sequela.learning.fit_check`, where fits use it too."""

from sequela.learning.fit_check import FitCheck, FitTest, check_fit

__all__ = ["FitCheck", "FitTest", "check_fit"]
