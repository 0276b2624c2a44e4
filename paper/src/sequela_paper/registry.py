"""The experiments by name. The module of an experiment is imported when it is first used."""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING

from sequela.support.errors import InputError

if TYPE_CHECKING:
    from sequela_paper.experiment import Experiment

__all__ = ["NAMES", "find_experiment"]

# In the order of the paper.
_WHERE = {
    "fig1": "time_posteriors",
    "fig2": "recovery",
    "table1": "learning_times",
    "fig3": "gene_orders",
    "fig4": "same_distribution",
    "fig5": "constants",
    "fig6": "clock_variance",
    "fig7": "clock_variance",
    "fig8": "clock_variance",
    "fig9": "gradient_error",
    "fig10": "starts",
    "fig11": "block_structure",
}
NAMES = tuple(_WHERE)


def find_experiment(name: str) -> Experiment:
    """Return an experiment by its name; the error for an unknown name suggests the closest one."""
    if name not in _WHERE:
        close = difflib.get_close_matches(name, NAMES, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(
            f"there is no experiment {name!r}.{hint} Expected one of {', '.join(NAMES)}"
        )
    module = importlib.import_module(f"sequela_paper.{_WHERE[name]}")
    found: Experiment = module.EXPERIMENTS[name]
    return found
