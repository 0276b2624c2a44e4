"""The error of a run with repeats that are not done."""

from __future__ import annotations

from sequela.support.errors import SequelaError

__all__ = ["RepeatsError"]


class RepeatsError(SequelaError, RuntimeError):
    """The error if some repeats are not done. The others are recorded; a new run continues there.

    Attributes
    ----------
    failures : dict of int to str
        The traceback of each repeat that failed at every attempt.
    """

    def __init__(self, message: str, failures: dict[int, str] | None = None) -> None:
        super().__init__(message)
        self.failures = dict(failures or {})
