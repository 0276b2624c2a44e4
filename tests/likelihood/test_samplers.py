"""The kernels that draw orders, and their sums: compare with an enumeration of all orders.

The seeds of statistical checks are fixed. If they were random, each check would fail with
probability FALSE_ALARM although the program is correct.
"""

from __future__ import annotations

import collections
import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from sequela.kernels.metropolis import metropolis, propose_informed
from sequela.kernels.relocation import relocate
from sequela.likelihood.independent import (
    draw_independent_order,
    log_p_independent,
    log_p_independent_at,
)
from sequela.likelihood.parameters import Parameters
from sequela.observation import Exponential

FALSE_ALARM = 1e-6
quick = settings(max_examples=30, deadline=None, derandomize=True, database=None)
NEVER = np.iinfo(np.int64).max


class Case:
    """One set and one theta, with the arrays that kernels need. The methods call the kernels."""

    def __init__(self, theta, S, stop_rate=1.0):
        self.theta = theta
        self.S = np.array(sorted(S), dtype=np.int64)
        self.stop_rate = stop_rate
        self.parameters = Parameters(np.ascontiguousarray(theta), Exponential(stop_rate))
        self.columns = self.parameters.columns(self.S)
        self.arrays = self.columns.arrays()
        self.k = len(self.S)
        self.shape = (self.k + 1, self.columns.n_columns + 1)

    def relocate(self, order, rng, *, block, burn_in=0, sweeps=0, every=NEVER, keep=0):
        """Return the sum G of gradients, the number of terms of G, and the first `keep` orders."""
        G = np.zeros(self.shape)
        kept = np.full((keep, self.k), -1, dtype=np.int64)
        terms = relocate(G, kept, order, self.arrays, block, burn_in, sweeps, every, rng)
        return G, terms, kept

    def metropolis(self, order, rng, *, informed, draws, burn_in=0, t=np.nan, resume=False):
        G = np.zeros(self.shape)
        accepted = metropolis(G, order, self.arrays, t, informed, resume, burn_in, draws, rng)
        return G, accepted

    def propose(self, rng):
        order = np.empty(self.k, np.int64)
        return order, self._log_q(order, False, rng)

    def log_q_of(self, order):
        """Return log Q of an order, where Q is its proposal probability, by the kernel."""
        return self._log_q(order, True, np.random.default_rng(0))

    def _log_q(self, order, given, rng):
        scratch = np.empty(self.columns.n_columns), np.empty(self.k), np.empty(self.k, np.int64)
        return propose_informed(order, given, self.arrays, *scratch, rng)

    def items(self, order):
        return tuple(self.S[order].tolist())

    def gradient(self, G):
        full = np.zeros((len(self.theta), len(self.theta)))
        self.parameters.spread(self.columns, G, full)
        return full

    def exact_orders(self):
        return ref.posterior_orders(self.theta, self.S, stop_rate=self.stop_rate)


def p_value(counts, probabilities):
    """Return the p-value of a chi-square test of drawn orders, with rare orders combined."""
    assert set(counts) <= set(probabilities), "an impossible order was drawn"
    outcomes = sorted(probabilities, key=probabilities.get)
    observed = [counts[outcome] for outcome in outcomes]
    expected = [sum(counts.values()) * probabilities[outcome] for outcome in outcomes]
    while expected[0] < 10:
        observed[:2] = [sum(observed[:2])]
        expected[:2] = [sum(expected[:2])]
    assert len(expected) > 2
    return scipy.stats.chisquare(observed, expected).pvalue


@st.composite
def cases(draw, least_k=2, largest_k=7):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k = draw(st.integers(least_k, largest_k))
    n = k + draw(st.integers(0, 3))
    theta = ref.random_theta(rng, n, draw(st.sampled_from([0.0, 0.7, 2.0])), rng.choice([0, 0.7]))
    S = rng.choice(n, k, replace=False)
    return Case(theta, S, draw(st.sampled_from([0.2, 1.0, 3.0])))


def dense_case(k, n=None, scale=1.0, seed=0, sparsity=0.0):
    rng = np.random.default_rng([seed, k])
    n = k + 2 if n is None else n
    return Case(ref.random_theta(rng, n, scale, sparsity), rng.choice(n, k, replace=False), 0.8)


# --- Relocation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("sparsity", [0.0, 0.8])
def test_a_block_of_all_items_is_an_exact_draw(k, sparsity):
    """After one step, orders have exactly their posterior distribution (chi-square test)."""
    case = dense_case(k, sparsity=sparsity, seed=4)
    rng = np.random.default_rng(k)
    counts = collections.Counter()
    for _ in range(6000):
        order = np.arange(k)  # all chains start at this order, which must not matter
        case.relocate(order, rng, block=k, burn_in=1)
        counts[case.items(order)] += 1
    if k > 2:
        assert p_value(counts, case.exact_orders()) > FALSE_ALARM
    else:
        (order, p), _ = case.exact_orders().items()
        assert scipy.stats.binomtest(counts[order], 6000, p).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("k", "block"), [(4, 2), (4, 3), (5, 2), (5, 3), (5, 4)])
@pytest.mark.parametrize("sparsity", [0.0, 0.8])
def test_relocation_leaves_the_posterior_as_it_is(k, block, sparsity):
    """One sweep with small blocks does not change the distribution of exact draws."""
    case = dense_case(k, sparsity=sparsity, seed=5)
    rng = np.random.default_rng([k, block])
    counts = collections.Counter()
    for _ in range(8000):
        order = np.arange(k)
        case.relocate(order, rng, block=k, burn_in=1)
        case.relocate(order, rng, block=block, burn_in=1)
        counts[case.items(order)] += 1
    assert p_value(counts, case.exact_orders()) > FALSE_ALARM


@pytest.mark.parametrize(("k", "block"), [(4, 2), (5, 3), (6, 4)])
def test_relocation_finds_the_posterior_from_afar(k, block):
    """Ten sweeps from the least likely order are enough to reach the posterior."""
    case = dense_case(k, scale=0.6, seed=6)
    exact = case.exact_orders()
    worst = min(exact, key=exact.get)
    start = np.searchsorted(case.S, worst)
    rng = np.random.default_rng(k)
    counts = collections.Counter()
    for _ in range(8000):
        order = start.astype(np.int64)
        case.relocate(order, rng, block=block, burn_in=10)
        counts[case.items(order)] += 1
    assert p_value(counts, exact) > FALSE_ALARM


@quick
@given(cases(), st.integers(0, 2**32))
def test_a_block_of_all_items_gives_the_exact_gradient(case, seed):
    """If the block has all items, the kernel sums over all orders, without sampling error."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(case.k)
    G, terms, _ = case.relocate(order, rng, block=8, sweeps=3, every=1)
    assert terms == 3
    exact = ref.mp_gradient_set(case.theta, case.S, stop_rate=case.stop_rate)
    np.testing.assert_allclose(case.gradient(G / terms), exact, rtol=0, atol=1e-12)


def conditional_gradient(case, order, free):
    """Return the mean gradient over all orders in which only the `free` items change places."""
    chain = [i for i in order if i not in free]
    orders = [
        sigma
        for sigma in itertools.permutations(order)
        if [i for i in sigma if i not in free] == chain
    ]
    logs = [
        ref.log_p_sequence(case.theta, case.items(list(sigma)), stop_rate=case.stop_rate)
        for sigma in orders
    ]
    weights = np.exp(np.array(logs) - scipy.special.logsumexp(logs))
    return sum(
        w * ref.gradient_sequence(case.theta, case.items(list(sigma)), stop_rate=case.stop_rate)
        for w, sigma in zip(weights, orders, strict=True)
    )


@pytest.mark.parametrize(("k", "block"), [(3, 2), (4, 2), (5, 2), (5, 3)])
@pytest.mark.parametrize("sparsity", [0.0, 0.7])
def test_every_term_is_the_expectation_given_the_chain(k, block, sparsity):
    """A term of the sum is a mean gradient over all places of the items of a random block.

    The kernel does not return the block. So compare the term with an enumeration for each possible
    block: one of them must agree.
    """
    case = dense_case(k, seed=7, sparsity=sparsity)
    rng = np.random.default_rng([k, block])
    seen = set()
    for _ in range(8):
        start = rng.permutation(k)
        # `every` is larger than the number of blocks, so only the first block adds a term.
        G, terms, _ = case.relocate(start.copy(), rng, block=block, sweeps=1, every=1000)
        assert terms == 1
        found = case.gradient(G)
        gaps = {
            free: np.abs(found - conditional_gradient(case, start.tolist(), free)).max()
            for free in itertools.combinations(range(k), block)
        }
        best = min(gaps, key=gaps.get)
        assert gaps[best] < 1e-12
        seen.add(best)
    # Blocks are chosen at random. But if only one item is not in the block, all blocks give the
    # same term.
    if block < k - 1:
        assert len(seen) > 1


@quick
@given(cases(largest_k=6), st.integers(1, 8), st.integers(0, 2**32))
def test_orders_stay_permutations(case, block, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(case.k)
    case.relocate(order, rng, block=block, burn_in=2, sweeps=2, every=1)
    assert sorted(order) == list(range(case.k))


@pytest.mark.parametrize(("k", "block", "every"), [(5, 4, 1), (12, 4, 1), (12, 4, 2), (13, 4, 3)])
def test_how_many_terms_a_sweep_gives(k, block, every):
    case = dense_case(k, scale=0.2)
    _, terms, _ = case.relocate(
        np.arange(k), np.random.default_rng(1), block=block, burn_in=1, sweeps=4, every=every
    )
    assert terms == math.ceil(4 * math.ceil(k / block) / every)


def test_orders_are_kept_after_every_sweep_but_burn_in():
    case = dense_case(6, scale=0.3)
    order, again = np.arange(6), np.arange(6)
    _, _, kept = case.relocate(
        order, np.random.default_rng(1), block=3, burn_in=2, sweeps=5, keep=5
    )
    np.testing.assert_array_equal(np.sort(kept, axis=1), np.tile(np.arange(6), (5, 1)))
    np.testing.assert_array_equal(kept[-1], order)
    # Only the first draws are stored. How many draws are stored does not influence the draws.
    _, _, fewer = case.relocate(
        again, np.random.default_rng(1), block=3, burn_in=2, sweeps=5, keep=2
    )
    np.testing.assert_array_equal(again, order)
    np.testing.assert_array_equal(fewer, kept[:2])


# --- Metropolis-Hastings --------------------------------------------------------------------------


@quick
@given(cases(), st.integers(0, 2**32))
def test_log_q_is_that_of_algorithm_2(case, seed):
    rng = np.random.default_rng(seed)
    for _ in range(4):
        order, log_q = case.propose(rng)
        assert sorted(order) == list(range(case.k))
        expected = ref.log_q_informed(
            case.theta, case.S, case.items(order), stop_rate=case.stop_rate
        )
        assert log_q == pytest.approx(expected, abs=1e-11)


def test_proposals_are_drawn_as_log_q_says():
    case = dense_case(4, seed=9)
    rng = np.random.default_rng(2)
    counts = collections.Counter(case.items(case.propose(rng)[0]) for _ in range(8000))
    probabilities = {
        sigma: math.exp(ref.log_q_informed(case.theta, case.S, sigma, stop_rate=0.8))
        for sigma in itertools.permutations(case.S.tolist())
    }
    assert sum(probabilities.values()) == pytest.approx(1.0)
    assert p_value(counts, probabilities) > FALSE_ALARM


@quick
@given(cases(largest_k=2), st.integers(0, 2**32))
def test_informed_proposals_of_two_items_are_always_accepted(case, seed):
    """For two items, Q is the posterior (appendix E), so the acceptance probability is 1."""
    _, accepted = case.metropolis(
        np.arange(2), np.random.default_rng(seed), informed=True, draws=200, burn_in=5
    )
    # By rounding, the acceptance probability may be computed as 1 - 1e-16. A rejection for this
    # reason is too rare to matter.
    assert accepted == 200


def test_informed_proposals_of_three_items_are_not_always_accepted():
    """For three items some proposals are rejected. So the acceptance probability matters."""
    _, accepted = dense_case(3).metropolis(
        np.arange(3), np.random.default_rng(1), informed=True, draws=500
    )
    assert accepted < 500


@pytest.mark.parametrize("informed", [False, True])
@pytest.mark.parametrize("t", [np.nan, 0.7])
def test_metropolis_finds_the_posterior(informed, t):
    """After 40 proposals, the last orders of 3,000 chains have the posterior distribution."""
    case = dense_case(4, scale=0.6, seed=10)
    rng = np.random.default_rng(3)
    counts = collections.Counter()
    for _ in range(3000):
        order = np.arange(4)
        case.metropolis(order, rng, informed=informed, draws=40, t=t)
        counts[case.items(order)] += 1
    if np.isnan(t):
        exact = case.exact_orders()
    else:
        logs = {
            sigma: ref.log_p_sequence_given_time(case.theta, sigma, t)
            for sigma in itertools.permutations(case.S.tolist())
        }
        total = scipy.special.logsumexp(list(logs.values()))
        exact = {sigma: math.exp(value - total) for sigma, value in logs.items()}
    assert p_value(counts, exact) > FALSE_ALARM


@pytest.mark.parametrize("informed", [False, True])
def test_one_draw_of_metropolis_is_the_gradient_of_its_order(informed):
    case = dense_case(5, seed=11)
    for seed in range(5):
        order = np.arange(5)
        G, _ = case.metropolis(order, np.random.default_rng(seed), informed=informed, draws=1)
        expected = ref.gradient_sequence(case.theta, case.items(order), stop_rate=0.8)
        np.testing.assert_allclose(case.gradient(G), expected, rtol=0, atol=1e-12)


# A regression test: `propose_informed` subtracted the rate of an item from a sum that contained
# this rate. For rates above exp(37) the difference was 0 or negative. Then log Q was NaN, no
# proposal was accepted, and G was filled from uninitialised memory.
@pytest.mark.parametrize("fast", [36.0, 40.0, 60.0])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_informed_proposals_with_one_very_fast_item(fast, place):
    theta = np.zeros((4, 4))
    theta[place, place] = fast
    theta[0, 1] = theta[1, 2] = 0.3
    case = Case(theta, [0, 1, 2])
    rng = np.random.default_rng(1)
    for _ in range(20):
        order, log_q = case.propose(rng)
        assert log_q == pytest.approx(
            ref.log_q_informed(theta, case.S, case.items(order)), abs=1e-9
        )


# --- Independent items, at which chains start -----------------------------------------------------


@quick
@given(
    st.lists(st.floats(-6, 4), min_size=1, max_size=6),
    st.lists(st.floats(-6, 4), max_size=4),
    st.sampled_from([0.1, 1.0, 7.0]),
)
def test_independent_items_by_quadrature(inside, outside, stop_rate):
    theta = np.diag([*inside, *outside])
    value = log_p_independent(np.exp(np.array(inside)), float(np.sum(np.exp(outside))), stop_rate)
    expected = ref.mp_log_p_set(theta, range(len(inside)), stop_rate=stop_rate)
    assert value == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(("k", "scale"), [(20, 0.0), (20, 5.0), (78, 1.0), (78, 5.0), (120, 1.0)])
def test_independent_items_in_large_sets(k, scale):
    log_w = np.random.default_rng(k).normal(-1.0, scale, k + 30)
    value = log_p_independent(np.exp(log_w[:k]), float(np.exp(log_w[k:]).sum()), 0.7)
    expected = ref.log_p_set_independent(np.diag(log_w), range(k), stop_rate=0.7, digits=16)
    assert value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("extreme", [-30.0, 30.0])
def test_independent_items_at_the_ends_of_the_range(extreme):
    log_w = np.array([extreme, 0.0, -extreme, extreme, 2.0])
    value = log_p_independent(np.exp(log_w[:4]), float(np.exp(log_w[4])))
    assert value == pytest.approx(ref.log_p_set_independent(np.diag(log_w), range(4)), rel=1e-11)


def test_independent_items_at_a_known_time():
    w = np.array([0.3, 2.0])
    expected = math.log(-math.expm1(-0.3 * 1.5)) + math.log(-math.expm1(-3.0)) - 0.8 * 1.5
    assert log_p_independent_at(w, 0.8, 1.5) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("t", [np.nan, 0.9])
def test_first_orders_are_those_of_independent_items(t):
    theta = np.diag([0.5, -1.0, 0.0, 1.0, -0.5])
    S = [0, 1, 2, 3]
    rng = np.random.default_rng(6)
    rate = np.exp(theta.diagonal())
    counts = collections.Counter(
        tuple(draw_independent_order(rate[:4], 1.0 + rate[4], t, rng).tolist()) for _ in range(3000)
    )
    if np.isnan(t):
        exact = ref.posterior_orders(theta, S)
    else:
        logs = {
            sigma: ref.log_p_sequence_given_time(theta, sigma, t)
            for sigma in itertools.permutations(S)
        }
        total = scipy.special.logsumexp(list(logs.values()))
        exact = {sigma: math.exp(value - total) for sigma, value in logs.items()}
    # The time is drawn from a grid of 400 points. The error of the grid is far below the error of
    # 3,000 draws.
    assert p_value(counts, exact) > FALSE_ALARM


@pytest.mark.parametrize("informed", [True, False])
@pytest.mark.parametrize("t", [np.nan, 0.7])
def test_a_resumed_chain_keeps_its_distribution(informed, t):
    """One step of a resumed chain does not change the distribution of exact draws."""
    case = dense_case(4)
    rng = np.random.default_rng(8)
    orders = case.exact_orders()
    if t == t:
        weights = {
            sigma: math.exp(ref.log_p_sequence_given_time(case.theta, sigma, t)) for sigma in orders
        }
        total = sum(weights.values())
        orders = {sigma: w / total for sigma, w in weights.items()}
    keys = list(orders)
    starts = rng.choice(len(keys), p=list(orders.values()), size=4000)
    place = {int(item): b for b, item in enumerate(case.S)}
    counts = collections.Counter()
    for start in starts:
        order = np.array([place[item] for item in keys[start]])
        case.metropolis(order, rng, informed=informed, draws=1, t=t, resume=True)
        counts[case.items(order)] += 1
    assert p_value(counts, orders) > 1e-6


def test_log_q_of_a_given_order():
    case = dense_case(5)
    order, log_q = case.propose(np.random.default_rng(3))
    assert case.log_q_of(order.copy()) == pytest.approx(log_q, abs=1e-12)
