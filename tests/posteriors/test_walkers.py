"""Chains over theta, compared with integration over the prior; seeds, threads, adaptation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import expit

import reference as ref
from posteriors import twins
from sequela import Dataset, SequelaError
from sequela.observation import Exponential
from sequela.posteriors import BaseRates, Laplace, LearnedScale, Normal, StudentT
from sequela.posteriors.problem import Problem
from sequela.posteriors.walkers import Plan, Walkers

BASE = BaseRates(-1.0, 1.5)
# The largest accepted difference of a mean of chains, in standard errors. Seeds are fixed. With a
# random seed, a correct program would exceed this limit with a probability of 1e-6 per number.
LIMIT = 5.0


def data_of(theta, samples, seed, stop_rate=1.0):
    orders = twins.simulated_orders(theta, np.random.default_rng(seed), samples, stop_rate)
    X = np.zeros((samples, len(theta)), dtype=bool)
    for row, order in zip(X, orders, strict=True):
        row[order] = True
    return Dataset(X)


def run(walkers, draws, n_threads=1):
    """Warm up; return theta, scale, log-likelihood and orders, of shape (draws, chains, ...)."""
    while not walkers.is_warm:
        walkers.advance(n_threads)
    rows = []
    for _ in range(draws):
        walkers.advance(n_threads)
        rows.append(walkers.read(n_threads))
    return [np.array(part) for part in zip(*rows, strict=True)]


def bounded(theta):
    """Map the entries of theta to numbers between 0 and 1, so that heavy tails do not matter."""
    entries = theta.reshape(*theta.shape[:-2], -1)
    return np.concatenate([expit(entries), expit(3.0 * entries), entries > 0.5], axis=-1)


def assert_means(draws, wanted, slack=0.0):
    mean, se = twins.batch_mean(draws)
    assert (np.abs(mean - wanted) < LIMIT * se + slack).all(), (mean, wanted, se)
    return se


# --- Two items: integration over the prior --------------------------------------------------------

TWO = np.array([[-0.3, 1.5], [0.0, -1.0]])
PRIORS = [
    Laplace(0.8, BASE),
    StudentT(2.0, 0.6, BASE),
    Normal(LearnedScale(0.7, 0.8), BASE),
    StudentT(3.0, LearnedScale(0.5, 0.8), BASE),
]
# The error of the quasi-random integration. It was measured by comparison with an integration over
# more points. Five standard errors of the means of chains are about ten times as large.
INTEGRAL = 2e-3


def assert_two_item_posterior(prior, counts, draws, stop_rate=1.0, power=1.0):
    """Compare draws (theta, coordinate of the scale, log-likelihood) with integration."""
    theta, scale, weights, log_likelihood = twins.two_item_posterior(prior, counts, stop_rate)
    if power != 1.0:
        heated = power * log_likelihood
        weights = np.exp(heated - heated.max())
        weights /= weights.sum()
    se = assert_means(bounded(draws[0]), weights @ bounded(theta), INTEGRAL)
    # The chains are long enough to detect an error of a few hundredths.
    assert se.max() < 0.012
    if isinstance(prior.scale, LearnedScale):
        # The coordinate of the scale is standard normal in the prior. So its mean and its mean
        # square show what was learned from the data.
        assert_means(draws[1], weights @ scale, INTEGRAL)
        assert_means(draws[1] ** 2, weights @ scale**2, 2 * INTEGRAL)
    shown = weights > 0.0
    assert_means(draws[2], weights[shown] @ log_likelihood[shown], 2 * INTEGRAL)
    p = twins.two_item_sets(theta, stop_rate)[shown]
    share = p[:, 3] / (p[:, 3] + p[:, 4])
    return weights[shown] @ np.stack([share, share > 0.5], axis=-1)


@pytest.mark.parametrize(
    ("prior", "replicas"),
    [*((prior, 1) for prior in PRIORS), (PRIORS[0], 3), (PRIORS[-1], 3)],
    ids=str,
)
def test_two_items_agree_with_integration_over_the_prior(prior, replicas):
    stop_rate = 1.0 if replicas == 1 else 2.0
    data = data_of(TWO, 50, 21, stop_rate)
    counts = twins.two_item_counts(data)
    assert (counts > 1).all()
    problem = Problem.of(data, prior, Exponential(stop_rate), 12)
    plan = Plan(chains=4, replicas=replicas, warm_up=150, thin=2, jumps=4, most_steps=8)
    walkers = Walkers.begin(problem, plan, 31)
    theta, scale, log_likelihood, orders = run(walkers, 1500)
    draws = [theta, coordinate(prior, scale), log_likelihood]
    share = assert_two_item_posterior(prior, counts, draws, stop_rate)
    first = orders[:, :, 0]
    assert_means(np.stack([first, first > 0.5], axis=-1), share, INTEGRAL)
    # The data cannot tell the order: both orders are plausible.
    assert 0.05 < share[1] < 0.95


def coordinate(prior, scale):
    if isinstance(prior.scale, LearnedScale):
        return np.log(scale / prior.scale.median) / prior.scale.spread
    assert (scale == prior.scale).all()
    return np.zeros_like(scale)


def test_heated_replicas_sample_from_their_powers():
    prior = Laplace(0.8, BASE)
    data = data_of(TWO, 50, 22)
    problem = Problem.of(data, prior, Exponential(), 12)
    plan = Plan(chains=4, replicas=3, warm_up=150, thin=2, jumps=4, most_steps=8)
    walkers = Walkers.begin(problem, plan, 32)
    run(walkers, 0)
    walkers.gap = 1.0  # a large gap, so that the hottest replica differs clearly from the posterior
    parts = [[], [], []]
    for _ in range(1500):
        walkers.advance(1)
        for k, part in enumerate(parts):
            states = [row[k] for row in walkers.states]
            theta = np.array([problem.theta(state)[0] for state in states])
            part.append((theta, np.zeros(4), np.array([s.values.sum() for s in states])))
    np.testing.assert_allclose(walkers.powers(), np.exp([0.0, -1.0, -2.0]))
    counts = twins.two_item_counts(data)
    for power, part in zip(walkers.powers(), parts, strict=True):
        draws = [np.array(column) for column in zip(*part, strict=True)]
        assert_two_item_posterior(prior, counts, draws, power=power)
    tried, accepted = walkers.swaps.T
    assert (tried == 4 * 750).all()
    assert (accepted / tried > 0.2).all()
    assert (accepted / tried < 0.99).all()


# --- Latent orders --------------------------------------------------------------------------------


@pytest.mark.parametrize("replicas", [1, 2])
def test_latent_orders_give_the_same_posterior(replicas):
    """Compare two runs: all sets of at least two items have latent orders, or all are summed."""
    rng = np.random.default_rng(23)
    data = data_of(ref.random_theta(rng, 4, 0.8), 60, 23)
    assert (data.set_sizes > 2).sum() >= 5
    prior = StudentT(3.0, LearnedScale(0.5, 0.6), BASE)
    plan = Plan(chains=4, replicas=replicas, warm_up=200, thin=2, jumps=6, most_steps=8)
    results = []
    for largest in (1, 12):
        problem = Problem.of(data, prior, Exponential(), largest)
        assert (problem.target.large_start.size > 1) == (largest == 1)
        walkers = Walkers.begin(problem, plan, 33)
        theta, scale, log_likelihood, orders = run(walkers, 1000 // replicas)
        numbers = np.concatenate([bounded(theta), orders, np.log(scale)[..., None]], axis=-1)
        results.append((*twins.batch_mean(numbers), log_likelihood.mean()))
    (one, one_se, with_orders), (two, two_se, without) = results
    error = np.hypot(one_se, two_se)
    assert (np.abs(one - two) <= LIMIT * error).all()
    assert np.median(error) < 0.012
    # An order is less probable than its set, so the log-likelihood with latent orders is smaller.
    assert with_orders < without - 5.0


# --- Seeds, threads, adaptation -------------------------------------------------------------------

SMALL = Plan(chains=2, replicas=2, warm_up=20, draws=10, thin=1, jumps=3, most_steps=4)


def small_problem(largest=2):
    rng = np.random.default_rng(24)
    data = data_of(ref.random_theta(rng, 4, 0.8), 40, 24)
    return Problem.of(data, StudentT(base_rates=BASE), Exponential(), largest)


def test_the_same_seed_gives_the_same_bits_with_any_number_of_threads():
    problem = small_problem()
    assert problem.target.large_start.size > 1
    one, two, other = (
        run(Walkers.begin(problem, SMALL, seed), 10, n_threads)
        for seed, n_threads in ((1, 1), (1, 2), (2, 1))
    )
    for a, b, c in zip(one, two, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()
    assert (one[0] != other[0]).all()


def test_chains_and_replicas_start_apart():
    walkers = Walkers.begin(small_problem(), SMALL, 1)
    starts = [state.z for row in walkers.states for state in row]
    assert len({z.tobytes() for z in starts}) == len(starts) == 4


def test_what_is_read_belongs_to_the_states():
    problem = small_problem()
    walkers = Walkers.begin(problem, SMALL, 3)
    theta, scale, log_likelihood, orders = (part[-1] for part in run(walkers, 2))
    for c, row in enumerate(walkers.states):
        np.testing.assert_array_equal(theta[c], problem.theta(row[0])[0])
        assert scale[c] == pytest.approx(0.5 * np.exp(row[0].scale[0]), rel=1e-12)
        target, start = problem.target, problem.target.large_start
        latent = [row[0].orders[a:b].tolist() for a, b in itertools.pairwise(start)]
        value = sum(ref.log_p_sequence(theta[c], order) for order in latent)
        for s in target.lattice:
            items = target.sets.items[target.sets.start[s] : target.sets.start[s + 1]]
            value += target.total * target.sets.weights[s] * ref.log_p_set(theta[c], items)
        assert log_likelihood[c] == pytest.approx(value, rel=1e-9)
    assert orders.shape == (2, len(problem.pairs))
    assert ((orders >= 0.0) & (orders <= 1.0)).all()


def test_a_state_out_of_range_is_an_error():
    walkers = Walkers.begin(small_problem(), SMALL, 6)
    walkers.states[1][0].z[0, 0] = 1e3
    with pytest.raises(SequelaError, match="too large or too small to compute with"):
        walkers.advance(1)


@pytest.mark.parametrize("replicas", [1, 2])
def test_warm_up_reaches_the_wanted_acceptance(replicas):
    problem = small_problem(12)
    plan = Plan(chains=4, replicas=replicas, warm_up=200, draws=200, thin=1, jumps=2)
    walkers = Walkers.begin(problem, plan, 4)
    assert not walkers.counts.any()
    run(walkers, 0)
    assert not walkers.counts.any()  # moves during the warm-up are not counted
    steps = [step.step for step in walkers.steps]
    run(walkers, 200)
    assert [step.step for step in walkers.steps] == steps
    trajectories, acceptance = walkers.counts[:, 0], walkers.counts[:, 1]
    np.testing.assert_array_equal(trajectories, 4 * 200)
    np.testing.assert_allclose(acceptance / trajectories, 0.8, atol=0.1)
    assert walkers.done == 400


def test_the_gap_of_the_powers_is_chosen_by_how_often_replicas_are_exchanged():
    """If exchanges are accepted too often, the gap between the powers grows."""
    problem = small_problem(12)
    plan = Plan(chains=4, replicas=3, warm_up=300, thin=1, jumps=2)
    walkers = Walkers.begin(problem, plan, 5)
    first = walkers.gap
    run(walkers, 200)
    assert walkers.gap > first
    rates = walkers.swaps[:, 1] / walkers.swaps[:, 0]
    assert (rates > 0.1).all()
    assert (rates < 0.9).all()
    np.testing.assert_allclose(np.diff(np.log(walkers.powers())), -walkers.gap)
