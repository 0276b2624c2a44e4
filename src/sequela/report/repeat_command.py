"""The command that repeats a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sequela.report.run import Run

__all__ = ["repeat_command"]


def repeat_command(run: Run) -> str:
    """Return the command that repeats a run.

    The command contains names of files without their folders. For a fit, the user must run it in
    the folder of ``run.json``. For a posterior, the user must run it in the folder that has the
    data and the table of known orders.

    Examples
    --------
    >>> from sequela.report.run import Run
    >>> options = {"prior": {"kind": "normal", "scale": 2.0}, "draws": 50, "random_state": 1}
    >>> repeat_command(Run("posterior", options, {"path": "a b.csv", "sha256": ""}))
    "sequela posterior 'a b.csv' -o again --prior normal --scale 2 --draws 50 --seed 1"
    """
    if run.command != "posterior":
        return f"sequela {run.command} --repeat run.json -o again"
    options = run.options
    prior = options.get("prior") or {}
    scale = prior.get("scale")
    orders = options.get("orders")
    given = {
        "--prior": prior.get("kind"),
        "--scale": f"{scale:g}" if isinstance(scale, float | int) else None,
        "--most-frequent": options.get("most_frequent"),
        "--orders": None if orders is None else Path(orders).name,
        "--draws": options.get("draws"),
        "--chains": options.get("chains"),
        "--replicas": options.get("replicas"),
        "--seed": options.get("random_state"),
    }
    words = ["sequela", "posterior", Path(run.data["path"]).name, "-o", "again"]
    for name, value in given.items():
        if value is not None:
            words += [name, str(value)]
    return shlex.join(words)
