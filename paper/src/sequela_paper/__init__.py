"""Reproduce every figure and table of the paper, with one command each.

Gotovos, Burkholz, Quackenbush and Jegelka, "Scaling up Continuous-Time Markov Chains Helps Resolve
Underspecification" (2021). The module of an experiment has a task, which does one repeat, and four
functions. These return the cases to run, the tables of their results, the figure, and the verdict
on the claim of the paper. Figure and verdict are made from the tables alone, so that both can be
made again from the files.

Attributes are loaded when they are first used, so that ``sequela --help`` stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sequela_paper.experiment import Experiment, Settings, Verdict
    from sequela_paper.registry import NAMES, find_experiment
    from sequela_paper.running import make

__all__ = ["NAMES", "Experiment", "Settings", "Verdict", "find_experiment", "make"]

_WHERE = {
    "Experiment": "sequela_paper.experiment",
    "Settings": "sequela_paper.experiment",
    "Verdict": "sequela_paper.experiment",
    "NAMES": "sequela_paper.registry",
    "find_experiment": "sequela_paper.registry",
    "make": "sequela_paper.running",
}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'sequela_paper' has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)
