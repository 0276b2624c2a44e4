"""A demo with samples from a small known model: the results are compared with the truth."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.data.examples import example_theta
from sequela.learning.estimator import SetChain
from sequela.likelihood import evaluate, sample_posteriors
from sequela.likelihood.ways import is_exact
from sequela.report.json_values import plain_values
from sequela.report.run import package_versions
from sequela.simulation import simulate

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.likelihood.histories import SamplePosteriors
    from sequela.simulation import Simulation

__all__ = [
    "DrawnItem",
    "InteractionCheck",
    "KnownDemo",
    "LearnedCheck",
    "LikelihoodCheck",
    "OrderCheck",
    "SampleCheck",
    "SetCounts",
    "run_known_demo",
]

# The pair of items whose order is computed. Its true order is known, because we made the model.
_EARLY, _LATE = "first", "second"
_PENALTY = 0.01
_STARTS = 4
_SHOWN = 6


@dataclass(frozen=True)
class DrawnItem:
    """An item: its frequency in the samples, its base rate, and how other items change its rate."""

    item: str
    samples: int
    frequency: float
    base_rate: float
    changed_by: dict[str, float]


@dataclass(frozen=True)
class LikelihoodCheck:
    """Mean log-likelihood per sample, of the true model and of a model without interactions."""

    true_model: float
    true_model_se: float
    independent_model: float
    independent_model_se: float


@dataclass(frozen=True)
class SetCounts:
    """The number of sets that were evaluated exactly, and the number of sets that were sampled."""

    exact: int
    sampled: int


@dataclass(frozen=True)
class InteractionCheck:
    """The learned and the true value of an interaction."""

    source: str = field(metadata={"json": "from"})
    target: str = field(metadata={"json": "to"})
    learned: float
    true: float


@dataclass(frozen=True)
class LearnedCheck:
    """A model learned from the sets alone, and its strongest interactions."""

    penalty: float
    starts: int
    optima: int
    converged: bool
    objective: float
    kkt_residual: float
    log_likelihood: float
    interactions: tuple[InteractionCheck, ...]


@dataclass(frozen=True)
class SampleCheck:
    """One sample: its inferred time and order, and its simulated time and order."""

    sample: str
    items: tuple[str, ...]
    method: str
    time_mean: float
    time_sd: float
    early_before_late: float
    simulated_time: float
    simulated_order: tuple[str, ...]


@dataclass(frozen=True)
class OrderCheck:
    """How often the early item came first in samples with both: expected and simulated shares.

    `looked_at` describes at most two of these samples in detail.
    """

    early: str
    late: str
    samples_with_both: int
    expected_share: float | None
    simulated_share: float | None
    looked_at: tuple[SampleCheck, ...]


@dataclass(frozen=True)
class KnownDemo:
    """Results from samples of a known model, compared with the truth.

    Attributes
    ----------
    seed, samples : int
        Seed, and number of samples that were drawn.
    items : tuple of DrawnItem
        The items of the model.
    log_likelihood : LikelihoodCheck
        Log-likelihoods of the true model and of a model without interactions.
    sets : SetCounts
        How the sets were evaluated.
    learned : LearnedCheck
        A model learned from the sets.
    order : OrderCheck
        Which of two items came first.
    versions : dict
        Versions of sequela, Python and the packages that numbers depend on.
    """

    seed: int
    samples: int
    items: tuple[DrawnItem, ...]
    log_likelihood: LikelihoodCheck
    sets: SetCounts
    learned: LearnedCheck
    order: OrderCheck
    versions: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return the results as plain values for JSON."""
        found: dict[str, Any] = plain_values(self)
        return found


def run_known_demo(samples: int = 1000, *, seed: int = 1) -> KnownDemo:
    """Draw samples from `example_theta`, learn from their sets, and compare with the truth.

    Parameters
    ----------
    samples : int
        Number of samples to draw.
    seed : int
        Seed of all random numbers.

    Examples
    --------
    >>> found = run_known_demo(300)
    >>> found.log_likelihood.true_model > found.log_likelihood.independent_model
    True
    """
    theta = example_theta()
    drawn = simulate(theta, samples, random_state=seed)
    # Remove the times, because otherwise the likelihood of each sample would use its known time.
    data = drawn.to_dataset().without_times()
    true = evaluate(theta, data, gradient=False, random_state=seed)
    independent = evaluate(_independent_theta(data), data, gradient=False, random_state=seed)
    exact = int(is_exact(true.methods).sum())
    return KnownDemo(
        seed=drawn.seed,
        samples=samples,
        items=_describe_items(theta, data),
        log_likelihood=LikelihoodCheck(
            true.value, true.value_se, independent.value, independent.value_se
        ),
        sets=SetCounts(exact, samples - exact),
        learned=_learn(data, theta, seed),
        order=_compare_orders(drawn, data, sample_posteriors(theta, data, random_state=seed)),
        versions=package_versions(),
    )


def _independent_theta(data: Dataset) -> NDArray[np.float64]:
    """Return the diagonal theta that fits the frequencies.

    Without interactions, an item of rate w arrives before the observation (rate 1) with probability
    f = w / (1 + w), so log w = log(f / (1 - f)). The frequency f is the number of samples with the
    item divided by the number of all samples. Numbers of samples with or without the item that are
    below one half are replaced by one half, so that no rate is 0 or infinite.
    """
    n = data.n_samples
    counts = np.clip(data.values.sum(axis=0), 0.5, n - 0.5)
    return np.diag(np.log(counts / (n - counts)))


def _learn(data: Dataset, theta: pd.DataFrame, seed: int) -> LearnedCheck:
    """Learn a model from the sets alone; compare its strongest interactions with the true ones."""
    learner = SetChain(penalty=_PENALTY, n_starts=_STARTS, random_state=seed)
    with warnings.catch_warnings():
        # Ignore warnings, because the report also says whether the fit converged, and how many
        # optima it found.
        warnings.simplefilter("ignore")
        learner.fit(data)
    strongest = learner.model_.interactions().head(_SHOWN)
    return LearnedCheck(
        penalty=_PENALTY,
        starts=len(learner.starts_),
        optima=len(learner.optima_),
        converged=bool(learner.converged_),
        objective=learner.objective_,
        kkt_residual=learner.kkt_residual_,
        log_likelihood=learner.score(data),
        interactions=tuple(
            InteractionCheck(
                source=row["from"],
                target=row["to"],
                learned=float(row["effect"]),
                true=float(theta.loc[row["from"], row["to"]]),
            )
            for _, row in strongest.iterrows()
        ),
    )


def _describe_items(theta: pd.DataFrame, data: Dataset) -> tuple[DrawnItem, ...]:
    effects = theta.to_numpy()
    counts = data.values.sum(axis=0).tolist()
    return tuple(
        DrawnItem(
            item=item,
            samples=counts[j],
            frequency=counts[j] / data.n_samples,
            base_rate=float(np.exp(effects[j, j])),
            changed_by={
                data.items[i]: float(np.exp(effects[i, j]))
                for i in np.flatnonzero(effects[:, j])
                if i != j
            },
        )
        for j, item in enumerate(data.items)
    )


def _compare_orders(drawn: Simulation, data: Dataset, posteriors: SamplePosteriors) -> OrderCheck:
    """Compare the order that the model infers from the sets with the simulated order."""
    early, late = data.items.index(_EARLY), data.items.index(_LATE)
    both = np.flatnonzero(data.values[:, early] & data.values[:, late])
    expected = np.array([_probability(posteriors, int(s), early, late) for s in both])
    place = np.zeros((2, len(drawn)), dtype=np.int64)
    for row, item in zip(place, (early, late), strict=True):
        at = np.flatnonzero(drawn.sequence == item)
        row[np.searchsorted(drawn.indptr, at, side="right") - 1] = at
    happened = (place[0] < place[1])[both]
    # The two samples with the smallest and the largest expected observation time.
    by_time = both[np.argsort(posteriors.time_mean[both], kind="stable")]
    chosen = dict.fromkeys([*by_time[:1].tolist(), *by_time[-1:].tolist()])
    return OrderCheck(
        early=_EARLY,
        late=_LATE,
        samples_with_both=both.size,
        expected_share=float(expected.mean()) if both.size else None,
        simulated_share=float(happened.mean()) if both.size else None,
        looked_at=tuple(
            SampleCheck(
                sample=data.samples[s],
                items=tuple(data.items[j] for j in posteriors.present(s)),
                method=str(posteriors.methods[s]),
                time_mean=float(posteriors.time_mean[s]),
                time_sd=float(np.sqrt(posteriors.time_variance[s])),
                early_before_late=_probability(posteriors, s, early, late),
                simulated_time=float(drawn.observation_times[s]),
                simulated_order=tuple(
                    data.items[j] for j in drawn.sequence[drawn.indptr[s] : drawn.indptr[s + 1]]
                ),
            )
            for s in chosen
        ),
    )


def _probability(posteriors: SamplePosteriors, sample: int, a: int, b: int) -> float:
    """Return P(a before b) given the set of a sample that has both."""
    present = posteriors.present(sample).tolist()
    return float(posteriors.before(sample)[present.index(a), present.index(b)])
