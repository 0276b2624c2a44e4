"""A demo that needs no file of the user: fit the built-in samples and compute one order."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sequela.data.examples import example_path
from sequela.model import Model
from sequela.questions.order import order_probability
from sequela.report.fit_options import FitRunOptions, OutputOptions
from sequela.report.fit_run import FitReport, run_fit

if TYPE_CHECKING:
    import os

    from sequela.questions.precision import Estimate
    from sequela.report.fit_options import Execution

__all__ = ["Demo", "run_demo"]

# One of the pairs of alterations whose orders are shown in Fig. 3 of the paper.
_EARLY, _LATE = "EGFR(A)", "EGFR"
_PENALTY = 0.01
_SAMPLES = "samples.csv"


@dataclass(frozen=True)
class Demo:
    """The fit of the demo, and the order of two alterations in the learned and the true model.

    Attributes
    ----------
    fit : FitReport
        The fit of the built-in samples.
    first, then : str
        The two alterations.
    learned, true : Estimate
        The probability that `first` came before `then`, among samples with both. `learned` is the
        probability in the learned model. `true` is the probability in the model from which the
        samples were drawn.
    """

    fit: FitReport
    first: str
    then: str
    learned: Estimate
    true: Estimate

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as plain values for JSON."""
        asked = {
            name: {"probability": found.value, "se": found.se}
            for name, found in (("learned", self.learned), ("true", self.true))
        }
        return {
            "fit": self.fit.to_json(),
            "order": {"first": self.first, "then": self.then, **asked},
        }


def run_demo(
    folder: str | os.PathLike[str],
    *,
    seed: int = 1,
    output: OutputOptions | None = None,
    execution: Execution | None = None,
) -> Demo:
    """Learn from the built-in samples, write the folder of a fit, and compute one order.

    The folder also has a copy of the samples, ``samples.csv``.

    Parameters
    ----------
    folder : path
        The folder to make.
    seed : int
        Seed of all random numbers.
    output, execution : OutputOptions or None, Execution or None
        As in `run_fit`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as place:  # doctest: +SKIP
    ...     demo = run_demo(pathlib.Path(place, "demo"), output=OutputOptions(figures=()))
    >>> demo.learned.value > 0.5, sorted(demo.to_json()["order"])  # doctest: +SKIP
    (True, ['first', 'learned', 'then', 'true'])
    """
    options = FitRunOptions(penalty=_PENALTY, seed=seed)
    samples = example_path("samples.csv")
    fit = run_fit(samples, folder, options, output=output, execution=execution)
    # With this copy, users can try the commands that need the samples as DATA.
    shutil.copyfile(samples, fit.folder / _SAMPLES)
    fit = replace(fit, files=tuple(sorted((*fit.files, _SAMPLES))))
    true = Model.from_csv(example_path("theta.csv"))
    return Demo(
        fit=fit,
        first=_EARLY,
        then=_LATE,
        learned=order_probability(fit.model, _EARLY, _LATE, random_state=seed),
        true=order_probability(true, _EARLY, _LATE, random_state=seed),
    )
