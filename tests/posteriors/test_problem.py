"""The class `Problem`, which prepares data and prior for the sampler of theta."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats

import sequela.observation
from posteriors import twins
from sequela import Dataset, InputError
from sequela.kernels.posterior_sweep import log_likelihoods
from sequela.observation import Exponential
from sequela.posteriors import BaseRates, Laplace, LearnedScale, StudentT
from sequela.posteriors.problem import Problem
from sequela.support.jit import call


def table(n=6, samples=40, share=0.4, seed=1):
    return np.random.default_rng(seed).random((samples, n)) < share


def test_every_sample_is_summed_or_carries_an_order():
    X = table()
    for largest in (1, 2, 3, 6):
        target = Problem.of(Dataset(X), Laplace(), Exponential(), largest).target
        sizes = np.diff(target.sets.start)
        assert (sizes[target.lattice] <= largest).all()
        summed = target.sets.weights[target.lattice].sum() * target.total
        assert summed == pytest.approx((X.sum(axis=1) <= largest).sum())
        large = [np.flatnonzero(row).tolist() for row in X if row.sum() > largest]
        starts = target.large_start
        found = [target.large_items[a:b].tolist() for a, b in itertools.pairwise(starts)]
        assert found == large
    assert target.large_items.dtype == np.int64


def test_pairs_are_those_that_occur_together():
    X = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0]], dtype=bool)
    problem = Problem.of(Dataset(X), Laplace(), Exponential(), 12)
    np.testing.assert_array_equal(problem.together, X.T.astype(int) @ X)
    assert problem.pairs.tolist() == [[0, 1], [1, 2]]
    assert {tuple(pair) for pair in problem.jump_pairs.tolist()} == {(0, 1), (1, 2)}
    alone = Problem.of(Dataset(np.eye(3, dtype=bool)), Laplace(), Exponential(), 12)
    assert alone.pairs.shape == alone.jump_pairs.shape == (0, 2)


def test_associated_pairs_are_tried_more_often():
    """The number of tries grows with 1 plus the likelihood-ratio statistic of the 2 x 2 table."""
    rng = np.random.default_rng(2)
    X = rng.random((200, 4)) < 0.4
    # items 0 and 1: together more often than by chance
    X[:, 1] = X[:, 0] ^ (rng.random(200) < 0.35)
    # items 2 and 3: together less often than by chance
    X[:, 3] = X[:, 2] ^ (rng.random(200) < 0.75)
    problem = Problem.of(Dataset(X), Laplace(), Exponential(), 12)
    pairs, copies = np.unique(problem.jump_pairs, axis=0, return_counts=True)
    assert pairs.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    statistic = np.array(
        [
            scipy.stats.chi2_contingency(
                scipy.stats.contingency.crosstab(X[:, i], X[:, j]).count,
                correction=False,
                lambda_="log-likelihood",
            ).statistic
            for i, j in pairs
        ]
    )
    weight = 1.0 + np.minimum(statistic, 100.0)
    np.testing.assert_array_equal(copies, np.maximum(1, np.round(60 * weight / weight.max())))
    assert min(copies[0], copies[-1]) > 2 * max(copies[1:-1])


def test_an_observation_without_a_rate_is_refused():
    class Varying(sequela.observation.Exponential):
        """An observation that has no constant rate, so its time is not exponential."""

        kind = "varying"

        @property
        def constant_rate(self):
            return None

    with pytest.raises(InputError, match="not available for an observation of kind 'varying'"):
        Problem.of(Dataset(table()), Laplace(), Varying(), 12)


# --- Starts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prior",
    [
        Laplace(),
        Laplace(scale=100.0),
        StudentT(df=0.5, scale=1000.0),
        StudentT(scale=LearnedScale(1e4, 5.0), base_rates=BaseRates(10.0, 0.1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("largest", [2, 12])
def test_starts_are_in_range_and_can_be_advanced(prior, largest):
    n = 5
    problem = Problem.of(Dataset(table(n)), prior, Exponential(0.5), largest)
    how = twins.trajectory(n, 0.01)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        state = problem.start(rng)
        theta, _, good = twins.read(state, problem.target)
        assert good
        values = np.empty(2)
        unused = np.empty((n, n))
        assert call(log_likelihoods, values, unused, theta, problem.target, state.orders)
        np.testing.assert_array_equal(values, state.values)
        assert np.isfinite(values).all()
        twins.sweep(state, problem.target, how, problem.jump_pairs, jumps=2, sweeps=3, rng=rng)
        assert np.isfinite(state.z).all()


def test_starts_are_dispersed_around_the_independent_model():
    X = table(5, 300, seed=3)
    prior = Laplace(scale=0.5)
    problem = Problem.of(Dataset(X), prior, Exponential(2.0), 2)
    states = [problem.start(np.random.default_rng(seed)) for seed in range(200)]
    theta = np.array([problem.theta(state)[0] for state in states])
    frequency = (X.sum(axis=0) + 0.5) / 301
    base = np.diagonal(theta, axis1=1, axis2=2) - np.log(2.0 * frequency / (1 - frequency))
    # `base` has the base rates of 200 starts, in standard normal coordinates. The limits are five
    # standard errors.
    assert np.abs(base.mean(axis=0)).max() < 5 / np.sqrt(200)
    assert np.abs(base.var(axis=0) - 1.0).max() < 5 * np.sqrt(2 / 200)
    off = ~np.eye(5, dtype=bool)
    wanted = scipy.stats.laplace(scale=0.5).ppf([0.1, 0.25, 0.5, 0.75, 0.9])
    np.testing.assert_allclose(
        np.quantile(theta[:, off], [0.1, 0.25, 0.5, 0.75, 0.9]), wanted, atol=0.08
    )
    # Latent orders differ from start to start, and each has the items of its sample.
    assert len({state.orders.tobytes() for state in states}) > 190
    starts = problem.target.large_start
    for a, b in itertools.pairwise(starts):
        np.testing.assert_array_equal(
            np.sort(states[0].orders[a:b]), problem.target.large_items[a:b]
        )


def test_a_prior_far_too_wide_is_an_error():
    problem = Problem.of(Dataset(table(4)), Laplace(scale=1e9), Exponential(), 12)
    with pytest.raises(InputError, match=r"no starting point .* Laplace\(scale=1000000000.0"):
        problem.start(np.random.default_rng(1))
