"""Test whether the samples come from two subtypes with different models.

A mixture of two models is compared with a single model. The statistic is the gain: how much better
the objective of the mixture is, summed over all samples. A mixture has more parameters, so its gain
is positive even if there is one subtype only. Therefore data sets are simulated from the single
model (a parametric bootstrap), and the gain of each is computed in the same way, including the fit
of the single model and all starts of the mixture. p is the share of the data sets whose gain is at
least the observed gain. The observed data set counts as one of these data sets, so p is never 0.

The simulated data come from the single model after a refit without the penalty, on the same
interactions. The penalised model has too small interactions, so data that are simulated from it
would have too small gains.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from sequela.data.dataset import Dataset
from sequela.learning.learner import Learner
from sequela.learning.mixture_fit import fit_mixture
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.refitting import refit
from sequela.likelihood.mixture import MixtureLikelihood
from sequela.model import Model
from sequela.observation import Exponential
from sequela.settings import read_settings
from sequela.simulation import simulate
from sequela.support.errors import InputError
from sequela.support.naming import argument
from sequela.support.random import Purpose, stream
from sequela.support.threads import run_pieces
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.learning.mixture_fit import MixtureFit
    from sequela.settings import Settings, SettingsKeywords

__all__ = ["SubtypeTest", "subtype_test"]

_CLEAR = 0.05
_NAMES = ("subtype 1", "subtype 2")


@dataclass(frozen=True)
class SubtypeTest:
    """Whether the samples come from two subtypes.

    Attributes
    ----------
    gain : float
        How much better the objective of the mixture is than that of the single model, in nats.
    simulated : array
        The gains of the data sets that were simulated from the single model.
    p : float
        Share of the data sets (the simulated ones and the given one) with a gain of at least
        `gain`.
    single : Model
        The single model.
    models : tuple of Model
        The models of the two subtypes. The subtype with more samples comes first.
    shares : tuple of float
        The share of the samples that belong to each subtype.
    membership : DataFrame
        One row per sample: the probability that it belongs to "subtype 1" and to "subtype 2".
    seed : int
        The seed of all random numbers.
    """

    gain: float
    simulated: NDArray[np.float64]
    p: float
    single: Model = field(repr=False)
    models: tuple[Model, Model] = field(repr=False)
    shares: tuple[float, float]
    membership: pd.DataFrame = field(repr=False)
    seed: int

    @property
    def verdict(self) -> str:
        """The result in plain words.

        The limit for p is 0.05.
        """
        median = float(np.median(self.simulated))
        numbers = (
            f"a mixture of two models is better than one model by {self.gain:.1f} nats; in data "
            f"simulated from one model, it is better by {median:.1f} nats (median), and p is "
            f"{self.p:.2g}"
        )
        if self.p > _CLEAR:
            return (
                f"no sign of two subtypes: {numbers}. This does not prove that there is only one "
                "subtype: with a few hundred samples, most mixtures are not noticed"
            )
        return (
            f"one model does not describe these samples: {numbers}. There may be two subtypes, of "
            f"{self.shares[0]:.0%} and {self.shares[1]:.0%} of the samples. Other wrong "
            "assumptions can have the same effect. Do not rely on the orders of a single model"
        )


def subtype_test(
    data: DataLike,
    *,
    penalty: float = 0.01,
    simulations: int = 99,
    starts: int = 8,
    **settings: Unpack[SettingsKeywords],
) -> SubtypeTest:
    """Test whether the samples come from two subtypes with different models.

    Parameters
    ----------
    data : Dataset, DataFrame, array or list of sets
        Complete samples without weights; times are not used.
    penalty : float
        Weight of the L1 penalty on the interactions, as in `SetChain`. In the mixture, the
        interactions of both models are penalised.
    simulations : int
        Number of simulated data sets. The smallest possible p is 1 / (simulations + 1).
    starts : int
        Number of starts of each mixture.
    **settings
        `budget` (a set that needs more raises a `BudgetError`), `random_state`, and `n_threads`,
        on which the result does not depend. See `Settings`.

    Returns
    -------
    SubtypeTest

    Notes
    -----
    With 500 samples of 7 items, the test notices few mixtures; see "When the model fits" in the
    documentation. Observation times are exponential in all models.

    Examples
    --------
    >>> from sequela import example_samples
    >>> data = example_samples().most_frequent(4)
    >>> test = subtype_test(data, penalty=0.02, simulations=9, starts=2, random_state=1)
    >>> test.membership.shape == (data.n_samples, 2), len(test.simulated)
    (True, 9)
    """
    how = read_settings(settings, unused=("draws", "target_se", "sampling"))
    samples = _plain(data)
    task = _Task(float(OffDiagonalL1(penalty).strength), positive_integer("starts", starts), how)
    simulations = positive_integer("simulations", simulations)
    own = _compare(samples, task)
    null = _null_model(own.single, samples, how)

    def simulated_gain(index: int) -> float:
        seed = int(stream(how.seed, Purpose.SUBTYPES, 1, index).integers(2**53))
        drawn = simulate(null, samples.n_samples, random_state=seed, n_threads=1).to_dataset()
        return _compare(drawn, task).gain

    gains = np.array(
        run_pieces(simulated_gain, range(simulations), how.threads, "simulated data sets")
    )
    first, second = (
        Model(theta, samples.items, {"penalty": task.penalty, "share": float(share)})
        for theta, share in zip(own.mixture.thetas, own.mixture.shares, strict=True)
    )
    membership = own.mixture.membership[:, own.inverse].T
    return SubtypeTest(
        gain=own.gain,
        simulated=gains,
        p=float((1 + np.sum(gains >= own.gain - 1e-9)) / (simulations + 1)),
        single=own.single,
        models=(first, second),
        shares=(float(own.mixture.shares[0]), float(own.mixture.shares[1])),
        membership=pd.DataFrame(membership, index=list(samples.samples), columns=list(_NAMES)),
        seed=how.seed,
    )


class _Task(NamedTuple):
    """How every data set is compared."""

    penalty: float
    starts: int
    settings: Settings


class _Compared(NamedTuple):
    """A single model and a mixture of the same samples."""

    gain: float
    single: Model
    mixture: MixtureFit
    inverse: NDArray[np.int64]


def _plain(data: DataLike) -> Dataset:
    """Return the samples without times; raise an error if they cannot be tested."""
    samples = Dataset.coerce(data).without_times()
    if samples.weights is not None:
        raise InputError(
            f"{argument('data')} has weights; expected samples without weights, because data sets "
            "of the same size are simulated. Leave out the weights"
        )
    samples.require_plain("the test for subtypes")
    if samples.n_samples < 2:
        raise InputError(f"{argument('data')} has {samples.n_samples} samples; expected at least 2")
    return samples


def _compare(samples: Dataset, task: _Task) -> _Compared:
    """Learn a single model and a mixture, and return the gain of the mixture in nats."""
    settings = task.settings
    samples = samples.without_times()
    likelihood = MixtureLikelihood(samples, Exponential(), settings.budget)
    learner = Learner(
        task.penalty, random_state=settings.seed, n_threads=1, budget=settings.budget,
        progress=False,
    )  # fmt: skip
    with warnings.catch_warnings():
        # ignore warnings that fits to simulated data did not converge
        warnings.simplefilter("ignore")
        learner.fit(samples)
    model: Model = learner.model_
    mixture = fit_mixture(
        likelihood, model.theta, task.penalty, starts=task.starts, seed=settings.seed
    )
    gain = samples.n_samples * (mixture.objective - learner.objective_)
    return _Compared(float(gain), model, mixture, likelihood.distinct.inverse)


def _null_model(single: Model, samples: Dataset, how: Settings) -> Model:
    """Return the model from which data sets are simulated: the single model without shrinkage."""
    return refit(
        single, samples, budget=how.budget, random_state=how.seed, n_threads=how.threads
    ).model
