"""What an experiment of the paper consists of, and what may be set of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sequela.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pandas as pd

__all__ = ["SOLVERS", "Experiment", "Settings", "Tables", "Verdict"]

SOLVERS = ("ours", "adagrad", "both")
Tables = dict[str, "pd.DataFrame"]


@dataclass(frozen=True)
class Settings:
    """What a user may choose.

    Attributes
    ----------
    quick : bool
        A smaller version that takes a minute or two.
    repeats : int or None
        Repetitions; None: the paper's, or few if `quick`.
    solver : {"ours", "adagrad", "both"} or None
        What learns: the solver of this package, the paper's, or both side by side; None: both
        where the claim depends on it.
    solver_repeats : int or None
        Repetitions of the paper's solver where both run; it is some hundred times slower.
    data : Path or None
        The folder with the real and synthetic data.
    seed : int
        What everything random is derived from.
    """

    quick: bool = False
    repeats: int | None = None
    solver: str | None = None
    solver_repeats: int | None = None
    data: Path | None = None
    seed: int = 2021

    def __post_init__(self) -> None:
        if self.solver is not None and self.solver not in SOLVERS:
            raise InputError(
                f"solver is {self.solver!r}; expected one of {', '.join(map(repr, SOLVERS))}"
            )
        for name in ("repeats", "solver_repeats"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is {value!r}; expected at least 1")

    def repetitions(self, solver: str, full: int, quick: int, slow: tuple[int, int]) -> int:
        """Return how often `solver` ("ours" or "adagrad") repeats; 0 if it is not asked for.

        `full` and `quick` are the numbers without ``--repeats``; `slow` holds those of the paper's
        solver where it runs beside ours, in full and in quick form.
        """
        chosen = self.solver or "both"
        if chosen not in (solver, "both"):
            return 0
        if solver == "adagrad" and chosen == "both":
            if self.solver_repeats is not None:
                return self.solver_repeats
            beside = slow[1] if self.quick else slow[0]
            return beside if self.repeats is None else min(beside, self.repeats)
        return self.repeats or (quick if self.quick else full)


@dataclass(frozen=True)
class Verdict:
    """What became of the paper's claim.

    Attributes
    ----------
    holds : bool or None
        Whether it holds; None: this run cannot tell.
    text : str
        One or two sentences with the numbers.
    numbers : dict
        The same numbers for machines.
    """

    holds: bool | None
    text: str
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def word(self) -> str:
        """The verdict in one word or two."""
        return {True: "confirmed", False: "not confirmed", None: "open"}[self.holds]


@dataclass(frozen=True)
class Experiment:
    """One figure or table.

    Attributes
    ----------
    name, title, where : str
        As on the command line; what it shows; where in the paper.
    claim : str
        What the paper says.
    task : str
        The function of one repeat, "package.module:name".
    cases : function
        From settings to the cases of the task.
    tables : function
        From the collected results and the settings to tables by name; each becomes a CSV file.
    draw : function
        From the tables to a figure.
    judge : function
        From the tables to the verdict.
    repeats : int
        The paper's repetitions; 1 where there are none.
    data : tuple of str
        The files of the data folder that it needs.
    solvers : bool
        Whether ``--solver`` matters.
    differs : str
        Where our way differs from the paper's, and why.
    """

    name: str
    title: str
    where: str
    claim: str
    task: str
    cases: Callable[[Settings], list[dict[str, Any]]]
    tables: Callable[[pd.DataFrame, Settings], Tables]
    draw: Callable[[Mapping[str, pd.DataFrame]], Any]
    judge: Callable[[Mapping[str, pd.DataFrame]], Verdict]
    repeats: int = 1
    data: tuple[str, ...] = ()
    solvers: bool = False
    differs: str = ""
