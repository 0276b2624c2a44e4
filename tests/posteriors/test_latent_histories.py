"""Latent histories of partly known samples: their likelihood, how they are drawn and exchanged."""

from __future__ import annotations

import itertools

import numba
import numpy as np
import pytest
import scipy.special
import scipy.stats

import reference as ref
from likelihood import partly_known
from posteriors import twins
from sequela import Dataset, Model, questions
from sequela.kernels.dense_likelihood import dense_tables
from sequela.kernels.latent_histories import exchange_in_histories, history_scores, redraw_histories
from sequela.kernels.posterior_sweep import log_likelihoods
from sequela.kernels.sample_orders import sum_sample_orders
from sequela.likelihood.partial import PartialSet
from sequela.posteriors import Laplace, LearnedScale
from sequela.posteriors.partly_known import start_histories
from sequela.support.jit import call

# Seeds are fixed. With a random seed, a correct program would fail each check of draws with at most
# this probability.
FALSE_ALARM = 1e-4
PRIOR = Laplace(0.8)


@numba.njit(error_model="numpy")
def redraw(theta, target, orders, sweeps, rng):
    for _ in range(sweeps):
        redraw_histories(dense_tables(theta, target.stop_rate), target, orders, rng)


@numba.njit(error_model="numpy")
def exchange(orders, target, i, j):
    return exchange_in_histories(orders, target, i, j)


def partial(present, missing=(), statements=()):
    return PartialSet(
        np.array(present, dtype=np.int64), np.array(missing, dtype=np.int64), tuple(statements)
    )


def target_of(samples, n, stop_rate=1.0):
    return twins.with_histories(twins.target_of([], PRIOR, n, 1, stop_rate)[0], samples)


def value_of(theta, target, orders):
    values, gradient = np.empty(2), np.empty(theta.shape)
    assert call(log_likelihoods, values, gradient, theta, target, orders)
    assert values[0] == 0.0
    return values[1], gradient


# --- Likelihood -----------------------------------------------------------------------------------

SAMPLES = [
    partial([0, 2], [1, 4]),
    partial([], [0, 3]),
    partial([1, 3, 4], [0], [(3, 1, 0.9)]),
    partial([0, 1, 2, 3, 4], [], [(0, 4, 1.0)]),
]
HISTORIES = [[2, 1, 0], [], [4, 3, 1], [3, 0, 4, 2, 1]]


@pytest.mark.parametrize("stop_rate", [1.0, 0.3])
def test_a_history_has_the_probability_of_its_sequence(stop_rate):
    theta = ref.random_theta(np.random.default_rng(1), 5)
    target = target_of(SAMPLES, 5, stop_rate)
    orders = twins.padded_histories(HISTORIES, SAMPLES)
    assert orders.tolist() == [2, 1, 0, -1, -1, -1, 4, 3, 1, -1, 3, 0, 4, 2, 1]

    def wanted(at):
        return sum(ref.log_p_sequence(at, order, stop_rate=stop_rate) for order in HISTORIES)

    value, gradient = value_of(theta, target, orders)
    assert value == pytest.approx(wanted(theta), rel=1e-12)
    slopes = ref.finite_difference_gradient(wanted, theta)
    np.testing.assert_allclose(gradient, slopes, atol=1e-6)


def log_p_by_logarithms(theta, order):
    """Return the log-probability of a sequence, eq. (6), for rates beyond the range of a double."""
    total = 0.0
    for at in range(len(order) + 1):
        logs = [
            ref.log_rate(theta, order[:at], j) for j in range(len(theta)) if j not in order[:at]
        ]
        total -= scipy.special.logsumexp([0.0, *logs])
        total += ref.log_rate(theta, order[:at], order[at]) if at < len(order) else 0.0
    return total


@pytest.mark.parametrize(
    ("base", "effect", "n"), [(-300.0, 0.0, 5), (-720.0, 0.0, 5), (38.0, 37.0, 25)]
)
def test_a_history_with_extreme_rates_is_right(base, effect, n):
    """If products of rates leave the range of a double, logarithms of rates are used."""
    theta = ref.random_theta(np.random.default_rng(2), n)
    theta += effect + np.diag(np.full(n, base - effect))
    order = list(range(n - 2))
    known = [partial(order, [n - 1])]
    value, gradient = value_of(theta, target_of(known, n), twins.padded_histories([order], known))
    assert value == pytest.approx(log_p_by_logarithms(theta, order), rel=1e-12)
    direction = np.random.default_rng(3).standard_normal((n, n))
    ends = [log_p_by_logarithms(theta + x * direction, order) for x in (-1e-4, 1e-4)]
    assert np.sum(gradient * direction) == pytest.approx((ends[1] - ends[0]) / 2e-4, rel=1e-6)


def test_scores_are_gradients_of_single_histories():
    prior = Laplace(LearnedScale(0.5, 0.7))
    target = twins.with_histories(twins.target_of([], prior, 5, 1)[0], SAMPLES)
    orders = twins.padded_histories(HISTORIES, SAMPLES)
    theta = ref.random_theta(np.random.default_rng(3), 5)
    slope = np.random.default_rng(4).random((5, 5))
    chosen = np.array([3, 0])
    scores = np.empty((2, 26))
    call(history_scores, scores, theta, slope, target, orders, chosen)
    for row, s in zip(scores, chosen, strict=True):
        gradient = ref.gradient_sequence(theta, HISTORIES[s])
        np.testing.assert_allclose(row[:-1], (gradient * slope).ravel(), atol=1e-9)
        off = ~np.eye(5, dtype=bool)
        assert row[-1] == pytest.approx(0.7 * (gradient * theta)[off].sum(), abs=1e-9)


# --- Draws ----------------------------------------------------------------------------------------

CASES = {
    "missing cells": partial([2], [0, 1, 3]),
    "no present item": partial([], [1, 3]),
    "certain statements": partial([0, 1, 2, 3, 4], [], [(3, 1, 1.0), (1, 0, 1.0), (4, 2, 1.0)]),
    "uncertain statements": partial([0, 1, 2, 4], [], [(2, 0, 0.9), (0, 1, 0.7), (4, 2, 0.55)]),
    "all": partial([0, 2, 4], [1, 3], [(4, 0, 1.0), (0, 2, 0.8), (2, 4, 0.6)]),
}


@pytest.mark.parametrize("change", [0.0, -480.0, 16.0], ids=["", "slow item", "fast item"])
@pytest.mark.parametrize("known", CASES.values(), ids=CASES)
def test_histories_are_drawn_from_their_exact_distribution(known, change):
    """Compare how often each history is drawn with its exact probability (chi-squared test).

    The histories of 3,000 independent copies of a sample are drawn. In the cases "slow item" and
    "fast item", the weights of the places of this item are so small, or lose so many digits, that
    the kernel uses logarithms.
    """
    copies, n = 3000, 5
    theta = ref.random_theta(np.random.default_rng(5), n)
    theta[2, 2] += change
    target = target_of([known] * copies, n)
    rng = np.random.default_rng(6)
    orders = np.concatenate(start_histories(target, rng))
    redraw(theta, target, orders, 40, rng)
    rows = orders.reshape(copies, -1)
    exact = dict(
        partly_known.posterior(
            theta, known.present.tolist(), known.missing.tolist(), known.statements
        )
    )
    drawn = [tuple(int(i) for i in row if i >= 0) for row in rows]
    assert set(drawn) <= set(exact)  # no history contradicts a certain statement
    counts = np.array([drawn.count(order) for order in exact])
    expected = copies * np.array(list(exact.values()))
    often = expected >= 5.0
    observed = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    kept = wanted > 0.0
    assert kept.sum() > (1 if change > 0.0 else 3)
    p = scipy.stats.chisquare(observed[kept], wanted[kept] * copies / wanted.sum()).pvalue
    assert p > FALSE_ALARM / (3 * len(CASES))


def test_missing_cells_are_drawn_with_their_imputed_probabilities():
    copies, n = 4000, 6
    theta = ref.random_theta(np.random.default_rng(7), n)
    known = partial([1, 4], [0, 2, 5], [(4, 1, 0.9)])
    cells = [None, 1, None, 0, 1, None]
    data = Dataset([cells], items=list("abcdef"), orders=[[("e", "b", 0.9)]])
    wanted = questions.impute(Model(theta, data.items), data)["probability"].to_numpy()
    target = target_of([known] * copies, n)
    rng = np.random.default_rng(8)
    orders = np.concatenate(start_histories(target, rng))
    redraw(theta, target, orders, 40, rng)
    rows = orders.reshape(copies, -1)
    share = np.array([(rows == item).any(axis=1).mean() for item in known.missing])
    se = np.sqrt(wanted * (1.0 - wanted) / copies)
    assert (np.abs(share - wanted) < scipy.stats.norm.isf(FALSE_ALARM / 6) * se).all()
    assert (np.abs(share - 0.5) > 5 * se).any()


def test_an_item_stays_where_rates_are_out_of_range():
    """With 19 effects of 39 on a rate, products of rates are infinite.

    Then no new place can be drawn for an item, so it keeps its place.
    """
    n = 21
    theta = np.full((n, n), 39.0)
    known = [partial(range(n), [])]
    order = np.random.default_rng(9).permutation(n)
    now = order.copy()
    redraw(theta, target_of(known, n), now, 2, np.random.default_rng(10))
    assert sorted(now.tolist()) == list(range(n))


def test_starts_agree_with_certain_statements():
    known = [partial([0, 1, 2, 3], [4], [(3, 0, 1.0), (0, 2, 1.0), (2, 1, 0.9)])] * 300
    target = target_of(known, 5)
    orders = start_histories(target, np.random.default_rng(11))
    found = {tuple(order.tolist()) for order in orders}
    wanted = {
        (*order, -1)
        for order in itertools.permutations(range(4))
        if order.index(3) < order.index(0) < order.index(2)
    }
    assert found == wanted


# --- Exchanges ------------------------------------------------------------------------------------


def test_an_exchange_takes_statements_into_account_and_leads_back():
    rng = np.random.default_rng(12)
    changed = kept = 0
    for _ in range(300):
        order = rng.permutation(5)[: rng.integers(2, 6)].tolist()
        known = twins.simulated_knowledge(order, 5, rng, stated=0.6)
        target = target_of([known], 5)
        before = twins.padded_histories([order], [known])
        i, j = rng.permutation(5)[:2].tolist()
        after = before.copy()
        gain = exchange(after, target, i, j)
        swapped = [{i: j, j: i}.get(item, item) for item in order]
        both = i in order and j in order
        old, new = (
            partly_known.report(one, known.statements) if both else 0.0 for one in (order, swapped)
        )
        if new > 0.0:
            assert after[: len(order)].tolist() == swapped
            assert gain == pytest.approx(np.log(new / old), abs=1e-12)
            changed += 1
        else:
            np.testing.assert_array_equal(after, before)
            assert gain == 0.0
            kept += both
        assert exchange(after, target, i, j) == pytest.approx(-gain, abs=1e-12)
        np.testing.assert_array_equal(after, before)
    assert min(changed, kept) > 30


# --- Orders of samples ----------------------------------------------------------------------------


def share_before(theta, order, known, a, b):
    """Return P(a before b) if the place of a is drawn given the rest of the history."""
    rest = [item for item in order if item != a]
    orders = [[*rest[:q], a, *rest[q:]] for q in range(len(order))]
    weights = np.array(
        [np.exp(ref.log_p_sequence(theta, o)) * partly_known.report(o, known.statements)
         for o in orders]
    )  # fmt: skip
    return weights @ [o.index(a) < o.index(b) for o in orders] / weights.sum()


def test_orders_count_in_samples_that_are_known_to_have_both():
    theta = ref.random_theta(np.random.default_rng(13), 5)
    orders = twins.padded_histories(HISTORIES, SAMPLES)
    before = np.empty((5, 5))
    assert call(sum_sample_orders, before, theta, target_of(SAMPLES, 5), orders)
    wanted, both = np.zeros((2, 5, 5))
    for order, known in zip(HISTORIES, SAMPLES, strict=True):
        for a, b in itertools.permutations(known.present.tolist(), 2):
            share = share_before(theta, order, known, a, b)
            wanted[a, b] += 0.5 * share
            wanted[b, a] += 0.5 * (1.0 - share)
            both[a, b] += 1.0
    np.testing.assert_allclose(before, wanted, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(before + before.T, both, rtol=1e-12)
    assert before[0, 4] == 1.0  # the statement about the last sample is certain


def test_orders_of_histories_have_the_right_mean():
    known = CASES["all"]
    theta = ref.random_theta(np.random.default_rng(14), 5)
    copies = 2000
    target = target_of([known] * copies, 5)
    rng = np.random.default_rng(15)
    orders = np.concatenate(start_histories(target, rng))
    redraw(theta, target, orders, 40, rng)
    before = np.empty((5, 5))
    assert call(sum_sample_orders, before, theta, target, orders)
    posterior = list(
        partly_known.posterior(
            theta, known.present.tolist(), known.missing.tolist(), known.statements
        )
    )
    for a, b in itertools.combinations(known.present.tolist(), 2):
        wanted = sum(p for order, p in posterior if order.index(a) < order.index(b))
        # `before` is a mean of probabilities. So its standard error is smaller than that of a mean
        # of indicators (0 or 1), from which the limit is computed.
        se = np.sqrt(wanted * (1.0 - wanted) / copies)
        limit = scipy.stats.norm.isf(FALSE_ALARM / 6) * se + 1e-12
        assert abs(before[a, b] / copies - wanted) < limit
