"""The parts of an experiment of the paper, and its settings."""

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
    """The settings that a user may choose.

    Attributes
    ----------
    quick : bool
        Whether to run a smaller version, which takes a minute or two.
    repeats : int or None
        Number of repetitions. None means as many as in the paper, or a few if `quick`.
    solver : {"ours", "adagrad", "both"} or None
        The solver of this package ("ours"), the solver of the paper ("adagrad"), or both. None
        means both if the claim depends on the solver.
    solver_repeats : int or None
        Number of repetitions of the paper's solver if both solvers run. The paper's solver is about
        a hundred times slower.
    data : Path or None
        The folder with the real and synthetic data.
    seed : int
        The seed of all random numbers.
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
        """Return the number of repetitions of `solver` ("ours" or "adagrad"); 0 if not chosen.

        `full` and `quick` are the numbers for the full and the quick version, if the user does not
        give ``--repeats``. `slow` has the two numbers for the paper's solver if both solvers run.
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
    """Whether the claim of the paper is confirmed.

    Attributes
    ----------
    holds : bool or None
        Whether the claim is confirmed. None means that this run cannot decide it.
    text : str
        A few sentences with the numbers.
    numbers : dict
        The same numbers as values.
    """

    holds: bool | None
    text: str
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def word(self) -> str:
        """The verdict in one or two words."""
        return {True: "confirmed", False: "not confirmed", None: "open"}[self.holds]


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper.

    Attributes
    ----------
    name, title, where : str
        Name on the command line, title, and place in the paper.
    claim : str
        The claim of the paper.
    task : str
        The function that does one repeat, "package.module:name".
    cases : function
        Returns the cases of the task, given the settings.
    tables : function
        Returns tables by name, given the results and the settings; each becomes a CSV file.
    draw : function
        Returns the figure, given the tables.
    judge : function
        Returns the verdict, given the tables.
    repeats : int
        Number of repetitions in the paper; 1 if there are none.
    data : tuple of str
        The files of the data folder that are needed.
    solvers : bool
        Whether ``--solver`` has an effect.
    differs : str
        How our method differs from that of the paper, and why.
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
