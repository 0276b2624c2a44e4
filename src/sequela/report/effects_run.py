"""Fits with effects on the observation: options, and orders that the data cannot tell."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from sequela.learning.learner import Learner
from sequela.learning.observations import FAMILIES, LEARNED_EFFECTS
from sequela.observation import Gamma, HeavyTailed, ObservationEffects, parse_observation
from sequela.questions.order import order_matrix
from sequela.support.errors import InputError
from sequela.support.naming import argument

if TYPE_CHECKING:
    from sequela.data.dataset import Dataset
    from sequela.learning.observation_effects import PenaltyKind
    from sequela.model import Model
    from sequela.observation import Observation
    from sequela.report.fit_options import Execution, FitRunOptions

__all__ = [
    "EFFECTS",
    "check_effects_options",
    "check_observation",
    "compare_with_plain",
    "name_of_observation",
    "plain_words",
    "usable_family",
]

# The values of `FitRunOptions.observation` with which a fit learns effects on the observation, and
# the kind of penalty that each value stands for.
EFFECTS: dict[str | None, PenaltyKind] = {
    ObservationEffects.kind: "symmetric",
    f"{ObservationEffects.kind}:l1": "l1",
}
_UNDETERMINED = (
    "the data cannot distinguish effects on the observation from other interactions: for "
    "every model with such "
    "effects there is a model without them that gives every set the same probability. Only the "
    "penalty chooses between these models, and this choice also determines the orders. "
)
_ABOUT_THE_PENALTY: dict[str, str] = {
    "symmetric": "In two cohorts with cell fractions, the orders of a model with effects and the "
    "symmetric penalty (oMHN of the package mhn) disagreed with the cell fractions (AUC 0.33; a "
    "random order has 0.5). The orders of a model without effects agreed with them (AUC 0.70)",
    "l1": "The L1 penalty of this fit chooses the model with the fewest and weakest interactions",
}
_DRAWS = 20_000
# Orders are compared for all pairs of at most this many items, the most frequent ones, as in
# orders.csv.
_ITEMS = 20
_SHOWN = 3


def plain_words(model: Model) -> str:
    """Return a text that says what the data cannot tell about a model with effects.

    Here, effects are effects of items on the observation.

    Examples
    --------
    >>> from sequela import Model
    >>> plain_words(Model([[0.0]], metadata={"penalty_kind": "l1"}))[-31:]
    'fewest and weakest interactions'
    """
    kind = str(model.metadata.get("penalty_kind"))
    about = _ABOUT_THE_PENALTY.get(kind, _ABOUT_THE_PENALTY["symmetric"])
    return f"{_UNDETERMINED}{about}"


def check_effects_options(options: FitRunOptions, execution: Execution) -> None:
    """Raise an error if an option is given that a fit with effects does not support.

    Examples
    --------
    >>> from sequela.report.fit_options import Execution, FitRunOptions
    >>> check_effects_options(FitRunOptions(observation="effects", cv=True), Execution())
    Traceback (most recent call last):
    sequela.support.errors.InputError: a fit with effects on the observation does not support cv ...
    """
    refused = _unsupported(options, execution)
    if refused is not None:
        raise InputError(
            f"a fit with effects on the observation does not support {argument(refused)} yet; "
            "do not use this option, or learn a model without effects"
        )


def _unsupported(options: FitRunOptions, execution: Execution) -> str | None:
    """Return a given option that a fit with effects does not support; None if there is none."""
    given = {
        "cv": options.cv,
        "starts": options.starts is not None and options.starts > 1,
        "times": options.times is not None,
        "fixed": options.fixed is not None,
        "solver": options.solver != "auto",
        "checkpoint": execution.checkpoint is not None,
    }
    return next((name for name, there in given.items() if there), None)


def usable_family(
    options: FitRunOptions, execution: Execution, *, timed: bool = False
) -> tuple[Observation | str, ...]:
    """Return the kinds of observation that are compared for the family in the options.

    Effects on the observation cannot be learned together with some options, or if samples have
    known times. In these cases, they are left out.

    Examples
    --------
    >>> from sequela.report.fit_options import Execution, FitRunOptions
    >>> usable_family(FitRunOptions(observation="any"), Execution())[-1]
    'effects'
    >>> usable_family(FitRunOptions(observation="any", cv=True), Execution())[-1]
    HeavyTailed(shape=5.0, rate=1.0)
    """
    kinds: tuple[Observation | str, ...] = FAMILIES[str(options.observation)]
    if not timed and _unsupported(options, execution) is None:
        return kinds
    return tuple(kind for kind in kinds if kind != LEARNED_EFFECTS)


def name_of_observation(observation: Observation) -> str:
    """Return the value of `FitRunOptions.observation` that stands for an observation.

    Examples
    --------
    >>> from sequela import Gamma
    >>> name_of_observation(Gamma(2.0)), name_of_observation(ObservationEffects([0.5]))
    ('gamma:2.0', 'effects:l1')
    """
    if isinstance(observation, ObservationEffects):
        return f"{ObservationEffects.kind}:l1"
    if isinstance(observation, Gamma):
        return f"gamma:{observation.shape!r}"
    if isinstance(observation, HeavyTailed):
        return f"heavy:{observation.shape!r}"
    return "exponential"


def check_observation(options: FitRunOptions, execution: Execution) -> None:
    """Raise an error if the observation is unknown, or does not support these options."""
    if options.observation in EFFECTS:
        check_effects_options(options, execution)
    elif options.observation is not None and options.observation not in FAMILIES:
        parse_observation(options.observation)


def compare_with_plain(model: Model, data: Dataset, threads: int | None) -> tuple[str, ...]:
    """Compare with a model without effects; return notices on what the data cannot tell.

    The first notice is general. The second names orders that are reversed in the other model.

    Parameters
    ----------
    model : Model
        A model with effects on the observation.
    data : Dataset
        The samples from which the model was learned.
    threads : int or None
        Number of threads; the result does not depend on it.
    """
    words = plain_words(model)
    seed = model.metadata["seed"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model without effects is used only for comparison
        plain = Learner(
            model.metadata["penalty"], random_state=seed, n_threads=threads, progress=False
        ).fit(data)
    top = list(data.most_frequent(min(_ITEMS, data.n_items)).items)
    if len(top) < 2:
        return (words,)
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
        f"{turned.size} of {i.size} orders are reversed in the model without effects that was "
        "learned with the same penalty and items"
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
    return (words, said)
