"""Compare kinds of observation by their held-out likelihood."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.data.dataset import Dataset
from sequela.learning.learner import Learner
from sequela.learning.observation_effects import fit_observation_effects
from sequela.likelihood.evaluation import Likelihood
from sequela.observation import (
    Exponential,
    Gamma,
    HeavyTailed,
    ObservationEffects,
    as_observation,
)
from sequela.settings import Settings
from sequela.support.errors import InputError
from sequela.support.naming import argument
from sequela.support.progress import WorkProgress
from sequela.support.random import Purpose, materialise_seed, stream
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.model import Model
    from sequela.observation import Observation
    from sequela.support.random import RandomState

__all__ = [
    "FAMILIES", "LEARNED_EFFECTS", "PLAUSIBLE_WITHIN", "ObservationComparison",
    "compare_observations",
]  # fmt: skip

# The shapes that are compared. The evaluation of a gamma time is fastest if its shape is an
# integer.
FAMILIES: dict[str, tuple[Any, ...]] = {
    "exponential": (Exponential(),),
    "gamma": (
        Exponential(),
        Gamma(0.5),
        Gamma(2.0),
        Gamma(3.0),
        Gamma(5.0),
        Gamma(10.0),
        Gamma(30.0),
    ),
    "heavy": (Exponential(), HeavyTailed(1.5), HeavyTailed(2.5), HeavyTailed(5.0)),
}
# In a comparison, this name stands for effects on the observation, learned from the data.
LEARNED_EFFECTS = ObservationEffects.kind
FAMILIES["any"] = (*FAMILIES["gamma"], *FAMILIES["heavy"][1:], LEARNED_EFFECTS)
# A kind other than the first is chosen only if its gain is above this number of nats, and above the
# standard error of the gain. If the first kind is true, the gain of another kind is a few nats, for
# any number of samples. We tested this rule on simulated data. If the first kind was true, it chose
# another kind in 1 of 40 data sets. If times were gamma-distributed with shape 2, it chose gamma
# times in 28 of 40 data sets. A limit of two standard errors in place of 5 nats would have chosen
# gamma times in only 14 of them. Effects have more parameters, so they need a larger gain.
_LEAST_GAIN = 5.0
_LEAST_GAIN_OF_EFFECTS = 6.0
# Effects on the observation are plausible if their held-out log-likelihood is less than this number
# of nats below the log-likelihood of the chosen kind. `order_ranges` uses the same number: it
# regards models within 2 nats as equally good. We tested limits on simulated data sets of 500
# samples, in which exponential times were chosen. This limit gave a warning in 31 of 36 data sets
# with effects, and in 34 of 72 data sets without effects. A limit of 0 nats would have given a
# warning in 27 and 18 of them, and a limit of 3 nats in 33 and 45.
PLAUSIBLE_WITHIN = 2.0
_TOLERANCE = 1e-3
# The gamma shapes that `ObservationComparison.beyond` proposes to try next are in this range.
_LEAST_SHAPE, _LARGEST_SHAPE = 0.05, 200.0


@dataclass(frozen=True)
class ObservationComparison:
    """A comparison of kinds of observation by their held-out likelihood.

    Attributes
    ----------
    observations : tuple of Observation
        The observations that were compared. The first one is chosen unless another one is clearly
        better. If effects on the observation were compared, the tuple contains the effects that
        were learned from all samples.
    held_out : array (observations, samples)
        Log-likelihood of every sample under a model that was learned without this sample.
    chosen : int
        The position of the chosen observation in `observations`.
    folds, seed : int
        Number of folds, and the seed of their assignment.
    """

    observations: tuple[Observation, ...]
    held_out: NDArray[np.float64]
    chosen: int
    folds: int
    seed: int

    @property
    def observation(self) -> Observation:
        """The chosen kind of observation."""
        return self.observations[self.chosen]

    @property
    def table(self) -> pd.DataFrame:
        """One row per observation: held-out log-likelihood per sample, and gain over the first.

        "gain" is the log-likelihood of all samples minus that of the first observation, in nats,
        and "se" is its standard error.
        """
        import pandas as pd

        gain = self.held_out - self.held_out[0]
        return pd.DataFrame(
            {
                "observation": [repr(each) for each in self.observations],
                "log_likelihood": self.held_out.mean(axis=1),
                "gain": gain.sum(axis=1),
                "se": gain.std(axis=1, ddof=1) * np.sqrt(gain.shape[1]),
                "chosen": np.arange(len(self.observations)) == self.chosen,
            }
        )

    @property
    def beyond(self) -> Observation | None:
        """An observation to try next, if the chosen shape is at the end of the compared shapes.

        None if the chosen shape is between others, so that shapes beyond it need not be tried.
        """
        chosen = self.observation
        shapes = [each.shape for each in self.observations if isinstance(each, Gamma)]
        if isinstance(chosen, Gamma) and len(shapes) > 1:
            # Exponential times are gamma times with shape 1.
            if chosen.shape == max(*shapes, 1.0) and 2.0 * chosen.shape < _LARGEST_SHAPE:
                return Gamma(2.0 * chosen.shape)
            if chosen.shape == min(*shapes, 1.0) and 0.5 * chosen.shape > _LEAST_SHAPE:
                return Gamma(0.5 * chosen.shape)
        # With a larger shape, heavy-tailed times come close to exponential times, which are always
        # among the compared kinds. So only a smaller shape is beyond the list.
        tails = [each.shape for each in self.observations if isinstance(each, HeavyTailed)]
        if isinstance(chosen, HeavyTailed) and len(tails) > 1 and chosen.shape == min(tails):
            return HeavyTailed(0.5 * (1.0 + chosen.shape))
        return None

    @property
    def effects_behind(self) -> tuple[float, float] | None:
        """How much worse held-out samples are predicted with effects than with the chosen kind.

        The first number is the difference of two held-out log-likelihoods of all samples, in nats:
        with the chosen kind, minus with effects. The second number is its standard error. Both are
        0 if effects were chosen. None: effects were not compared.
        """
        totals = [
            each.sum() if isinstance(kind, ObservationEffects) else -np.inf
            for kind, each in zip(self.observations, self.held_out, strict=True)
        ]
        best = int(np.argmax(totals))
        if totals[best] == -np.inf:
            return None
        behind = self.held_out[self.chosen] - self.held_out[best]
        error = behind.std(ddof=1) * np.sqrt(behind.size) if behind.size > 1 else 0.0
        return float(behind.sum()), float(error)

    @property
    def effects_plausible(self) -> bool:
        """Whether effects on the observation were compared, and are not clearly worse.

        They are clearly worse if `effects_behind` is at least 2 nats. Sets without times never
        exclude such effects. So if this is true, some orders may depend on the assumption that
        items do not influence the observation: `sequela.questions.check_effects` names them.
        """
        behind = self.effects_behind
        return behind is not None and behind[0] < PLAUSIBLE_WITHIN

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain values for a JSON file."""
        rows = self.table.to_dict("records")
        return {"chosen": self.observation.to_json(), "folds": self.folds, "table": [
            {str(name): value for name, value in row.items()} for row in rows]}  # fmt: skip


def compare_observations(
    data: DataLike,
    observations: str | Iterable[Observation | str] = "any",
    *,
    penalty: float = 0.01,
    folds: int = 5,
    times: Iterable[object] | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> ObservationComparison:
    """Compare kinds of observation by held-out likelihood; choose the one that the data prefer.

    Parameters
    ----------
    data : Dataset, DataFrame, array or list of sets
        The samples.
    observations : str or iterable of Observation or "effects"
        "gamma" or "heavy" compares exponential times with several shapes of this family. "any"
        compares exponential times with both families and, if no times are known, with effects on
        the observation. A list contains the observations to compare. Its first observation is
        chosen unless another one is clearly better. In a list, "effects" stands for effects on the
        observation that are learned from the data with the L1 penalty:
        `fit_observation_effects(data, penalty, penalty_kind="l1")`.
    penalty : float
        Weight of the L1 penalty in all fits.
    folds : int
        Number of folds; each is held out once.
    times : iterable of numbers or None
        Observation times, NaN where unknown. Samples with a known time do not contribute to the
        comparison.
    random_state : int, Generator or None
        Seed of the folds.
    n_threads : int or None
        Number of threads; the result does not depend on it.

    Returns
    -------
    ObservationComparison

    Notes
    -----
    A kind other than the first is chosen if its held-out log-likelihood is better by more than 5
    nats (6 for effects) and by more than one standard error. If several kinds meet these
    conditions, the best of them is chosen.

    Effects on the observation add no new distributions of sets. But with such effects, fewer
    interactions may be enough to describe the data. The held-out likelihood is then better.

    Examples
    --------
    >>> from sequela import Gamma, Model, simulate
    >>> model = Model(np.diag([-0.5, -0.5, 0.0]), observation=Gamma(8.0))
    >>> data = simulate(model, 600, random_state=1).to_dataset().without_times()
    >>> compared = compare_observations(data, [Exponential(), Gamma(8.0)], random_state=1)
    >>> compared.observation
    Gamma(shape=8.0, mean=1.0)
    """
    samples = Dataset.coerce(data, times=times)
    kinds = _read_kinds(observations, timed=samples.times is not None)
    parts = positive_integer("folds", folds, least=2)
    if parts > samples.n_samples:
        raise InputError(
            f"{argument('folds')} is {parts}; expected at most the number of samples, "
            f"{samples.n_samples}"
        )
    seed = materialise_seed(random_state)
    fold_of = stream(seed, Purpose.FOLDS).permutation(samples.n_samples) % parts
    held_out = np.empty((len(kinds), samples.n_samples))

    settings = Settings(random_state=seed, n_threads=n_threads)
    with WorkProgress("kinds of observation", len(kinds) * parts) as bar:
        for fold in range(parts):
            rest = fold_of != fold
            learn_from = samples.select_samples(rest)
            out = Likelihood(samples.select_samples(~rest), settings=settings)
            for which, kind in enumerate(kinds):
                model = _learn(learn_from, kind, penalty, seed, n_threads)
                held_out[which, ~rest] = out.evaluate(model, gradient=False).log_likelihoods
                bar.advance()
    shown = tuple(
        _learn(samples, kind, penalty, seed, n_threads).observation
        if isinstance(kind, str)
        else kind
        for kind in kinds
    )
    return ObservationComparison(shown, held_out, _choose(held_out, kinds), parts, seed)


def _learn(
    data: Dataset, kind: Observation | str, penalty: float, seed: int, n_threads: int | None
) -> Model:
    """Return a model with this kind of observation, learned with a large tolerance."""
    if isinstance(kind, str):
        return fit_observation_effects(
            data, penalty, penalty_kind="l1", tol=_TOLERANCE, random_state=seed,
            n_threads=n_threads,
        )  # fmt: skip
    learner = Learner(
        penalty, tol=_TOLERANCE, observation=kind, random_state=seed, n_threads=n_threads,
        progress=False,
    )  # fmt: skip
    with warnings.catch_warnings():
        # The user does not need warnings about fits to parts of the data.
        warnings.simplefilter("ignore")
        return learner.fit(data).model_


def _read_kinds(
    observations: str | Iterable[Observation | str], *, timed: bool
) -> tuple[Observation | str, ...]:
    if isinstance(observations, str):
        if observations not in FAMILIES:
            known = ", ".join(map(repr, FAMILIES))
            raise InputError(
                f"observations is {observations!r}; expected one of {known}, or a list of "
                "observations"
            )
        family = FAMILIES[observations]
        return tuple(kind for kind in family if not (timed and kind == LEARNED_EFFECTS))
    kinds: list[Observation | str] = [
        LEARNED_EFFECTS if isinstance(each, str) and each == LEARNED_EFFECTS else _checked(each)
        for each in observations
    ]
    if not kinds:
        raise InputError("observations is empty; expected at least one observation")
    if timed and LEARNED_EFFECTS in kinds:
        raise InputError(
            f"observations has {LEARNED_EFFECTS!r}, and effects on the observation cannot be "
            f"learned from samples with known times; leave out {LEARNED_EFFECTS!r}, or the times"
        )
    return tuple(kinds)


def _checked(observation: Observation | str) -> Observation:
    if isinstance(observation, str):
        raise InputError(
            f"observations has {observation!r}; expected an observation object such as "
            f"sequela.Gamma(2.0), or {LEARNED_EFFECTS!r}"
        )
    return as_observation(observation)


def _choose(held_out: NDArray[np.float64], kinds: Sequence[Observation | str]) -> int:
    """Return the position of the best kind that is clearly better than the first, or 0."""
    gain = held_out - held_out[0]
    total = gain.sum(axis=1)
    error = np.zeros(len(kinds))
    if gain.shape[1] > 1:
        error = gain.std(axis=1, ddof=1) * np.sqrt(gain.shape[1])
    least = [_LEAST_GAIN_OF_EFFECTS if isinstance(kind, str) else _LEAST_GAIN for kind in kinds]
    clear = (total > least) & (total > error)
    return int(np.argmax(np.where(clear, total, 0.0)))
