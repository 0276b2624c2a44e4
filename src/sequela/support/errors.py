"""The few exceptions that sequela raises on purpose.

Each message says which value was given, what was expected, where, and what the user can do.
"""

__all__ = ["BudgetError", "InputError", "SequelaError"]


class SequelaError(Exception):
    """Base class of every error that sequela raises on purpose."""


class InputError(SequelaError, ValueError):
    """An input cannot be used: wrong shape, value, label or option.

    It is a `ValueError`, so code that catches errors of scikit-learn or pandas also catches it.
    """


class BudgetError(SequelaError, RuntimeError):
    """An answer needs more work or memory than the budget allows."""
