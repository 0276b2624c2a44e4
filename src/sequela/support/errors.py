"""The few exceptions that sequela raises on purpose.

Each message says what was given, what was expected, where, and what to do about it.
"""

__all__ = ["BudgetError", "InputError", "SequelaError"]


class SequelaError(Exception):
    """Base class of every error that sequela raises on purpose."""


class InputError(SequelaError, ValueError):
    """What was given cannot be used: wrong shape, value, label or option.

    It is a `ValueError`, so code written for scikit-learn or pandas catches it as usual.
    """


class BudgetError(SequelaError, RuntimeError):
    """The work or the memory that an answer needs is more than the budget allows."""
