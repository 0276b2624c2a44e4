"""Fits with effects on the observation: their options, and orders that are not determined."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from sequela.learning.learner import Learner
from sequela.learning.observations import FAMILIES
from sequela.observation import ObservationEffects, parse_observation
from sequela.questions.order import order_matrix
from sequela.support.errors import InputError
from sequela.support.naming import argument

if TYPE_CHECKING:
    from sequela.data.dataset import Dataset
    from sequela.model import Model
    from sequela.report.fit_options import Execution, FitRunOptions

__all__ = [
    "EFFECTS",
    "PLAIN_WORDS",
    "check_effects_options",
    "check_observation",
    "compare_with_plain",
]

# The value of `FitRunOptions.observation` that learns effects on the observation.
EFFECTS = ObservationEffects.kind
PLAIN_WORDS = (
    "the data cannot distinguish effects on the observation from other interactions: for any such "
    "effects there is a model without them that gives every set the same probability. Only the "
    "symmetric penalty chooses between them, and this choice also determines the orders. In two "
    "cohorts with cell fractions, the orders of oMHN with this penalty disagreed with the cell "
    "fractions (AUC 0.33), and those of the model without effects agreed with them (AUC 0.70)"
)
_DRAWS = 20_000
# Pairs of this many of the most frequent items are compared, as in orders.csv.
_ITEMS = 20
_SHOWN = 3


def check_effects_options(options: FitRunOptions, execution: Execution) -> None:
    """Raise an error if an option is given that a fit with effects does not support.

    Examples
    --------
    >>> from sequela.report.fit_options import Execution, FitRunOptions
    >>> check_effects_options(FitRunOptions(observation="effects", cv=True), Execution())
    Traceback (most recent call last):
    sequela.support.errors.InputError: a fit with effects on the observation does not support cv ...
    """
    given = {
        "cv": options.cv,
        "starts": options.starts is not None and options.starts > 1,
        "times": options.times is not None,
        "fixed": options.fixed is not None,
        "solver": options.solver != "auto",
        "checkpoint": execution.checkpoint is not None,
    }
    refused = next((name for name, there in given.items() if there), None)
    if refused is not None:
        raise InputError(
            f"a fit with effects on the observation does not support {argument(refused)} yet; "
            "leave it out, or learn a model without effects"
        )


def check_observation(options: FitRunOptions, execution: Execution) -> None:
    """Raise an error if the observation is unknown, or does not support these options."""
    if options.observation == EFFECTS:
        check_effects_options(options, execution)
    elif options.observation is not None and options.observation not in FAMILIES:
        parse_observation(options.observation)


def compare_with_plain(model: Model, data: Dataset, threads: int | None) -> tuple[str, ...]:
    """Return notices: what the data cannot tell, and which orders a model without effects reverses.

    Parameters
    ----------
    model : Model
        A model with effects on the observation.
    data : Dataset
        The samples from which it was learned.
    threads : int or None
        Number of threads; the result does not depend on it.
    """
    seed = model.metadata["seed"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the plain model is only compared, and not a result
        plain = Learner(
            model.metadata["penalty"], random_state=seed, n_threads=threads, progress=False
        ).fit(data)
    top = list(data.most_frequent(min(_ITEMS, data.n_items)).items)
    if len(top) < 2:
        return (PLAIN_WORDS,)
    ours, theirs = (
        order_matrix(
            each, top, method="simulation", draws=_DRAWS, random_state=seed, n_threads=threads
        ).probability.to_numpy()
        for each in (model, plain.model_)
    )
    i, j = np.triu_indices(len(top), 1)
    known = np.isfinite(ours[i, j]) & np.isfinite(theirs[i, j])
    i, j = i[known], j[known]
    turned = np.flatnonzero((ours[i, j] > 0.5) != (theirs[i, j] > 0.5))
    said = (
        f"{turned.size} of {i.size} orders are the opposite in the model without effects "
        "(penalty and items are the same)"
    )
    if turned.size:
        gap = np.abs(ours[i, j] - theirs[i, j])[turned]
        far = turned[np.argsort(-gap, kind="stable")[:_SHOWN]]
        pairs = ", ".join(
            f"{top[i[k]]} before {top[j[k]]} ({ours[i[k], j[k]]:.2f} with effects, "
            f"{theirs[i[k], j[k]]:.2f} without)"
            for k in far
        )
        said += f": for example, {pairs}. The data cannot tell these orders"
    return (PLAIN_WORDS, said)
