"""What the commands do, for Python: fits that leave a folder, their repetition, demos, tables.

`run_fit` is ``sequela fit``: it reads a table, learns, and leaves a folder with the model, tables,
figures and a ``run.json``; `repeat_run` repeats it bit for bit. Names are loaded when they are
first used, so that the command line stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

_WHERE = {
    "Compilation": "sequela.report.compilation",
    "Demo": "sequela.report.demo",
    "Environment": "sequela.report.environment",
    "Execution": "sequela.report.fit_options",
    "FIGURES": "sequela.report.figures",
    "FigureOptions": "sequela.report.figures",
    "FitReport": "sequela.report.fit_run",
    "FitResult": "sequela.report.fit_run",
    "FitRunOptions": "sequela.report.fit_options",
    "KnownDemo": "sequela.report.known_demo",
    "OutputOptions": "sequela.report.fit_options",
    "RepeatTables": "sequela.report.repeated_fits",
    "RepeatsReport": "sequela.report.repeated_fits",
    "Run": "sequela.report.run",
    "compile_kernels": "sequela.report.compilation",
    "describe_environment": "sequela.report.environment",
    "describe_repeats": "sequela.report.repeated_fits",
    "draw_figure": "sequela.report.figures",
    "read_samples": "sequela.report.reading",
    "repeat_run": "sequela.report.fit_run",
    "run_demo": "sequela.report.demo",
    "run_fit": "sequela.report.fit_run",
    "run_known_demo": "sequela.report.known_demo",
    "write_fit": "sequela.report.fit_folder",
    "write_repeat_tables": "sequela.report.repeated_fits",
}

if TYPE_CHECKING:
    from sequela.report.compilation import Compilation, compile_kernels
    from sequela.report.demo import Demo, run_demo
    from sequela.report.environment import Environment, describe_environment
    from sequela.report.figures import FIGURES, FigureOptions, draw_figure
    from sequela.report.fit_folder import write_fit
    from sequela.report.fit_options import Execution, FitRunOptions, OutputOptions
    from sequela.report.fit_run import FitReport, FitResult, repeat_run, run_fit
    from sequela.report.known_demo import KnownDemo, run_known_demo
    from sequela.report.reading import read_samples
    from sequela.report.repeated_fits import (
        RepeatsReport,
        RepeatTables,
        describe_repeats,
        write_repeat_tables,
    )
    from sequela.report.run import Run

__all__ = [
    "FIGURES",
    "Compilation",
    "Demo",
    "Environment",
    "Execution",
    "FigureOptions",
    "FitReport",
    "FitResult",
    "FitRunOptions",
    "KnownDemo",
    "OutputOptions",
    "RepeatTables",
    "RepeatsReport",
    "Run",
    "compile_kernels",
    "describe_environment",
    "describe_repeats",
    "draw_figure",
    "read_samples",
    "repeat_run",
    "run_demo",
    "run_fit",
    "run_known_demo",
    "write_fit",
    "write_repeat_tables",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'sequela.report' has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
