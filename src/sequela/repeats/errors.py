"""The error that is raised if some repeats of a run could not be completed."""

from __future__ import annotations

from sequela.support.errors import SequelaError

__all__ = ["RepeatsError"]


class RepeatsError(SequelaError, RuntimeError):
    """Some repeats of a run could not be completed.

    All other repeats are recorded. A new run computes only the missing repeats.

    Attributes
    ----------
    failures : dict of int to str
        The number of each repeat that failed at every attempt, and its last traceback.
    """

    def __init__(self, message: str, failures: dict[int, str] | None = None) -> None:
        super().__init__(message)
        self.failures = dict(failures or {})
