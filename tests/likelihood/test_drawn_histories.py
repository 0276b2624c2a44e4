"""Histories of samples, drawn with their missing cells: weights, slopes along a path, chains."""

import numpy as np
import pytest
from tests import reference

from sequela.kernels import histories
from sequela.likelihood.drawn_histories import DrawnHistories, Histories
from sequela.likelihood.drawn_samples import independent_log_p
from sequela.likelihood.independent import log_p_independent
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.partial import PartialSet

N = 6


def parameters(seed, scale=1.0):
    return Parameters(reference.random_theta(np.random.default_rng(seed), N, scale=scale))


def weighed(theta, order):
    """Return log p of a history by definition.

    Each arrival, and the observation (None), contributes log(rate / total rate).
    """
    present, total = [], 0.0
    for item in [*order, None]:
        rates = {
            j: np.exp(theta[j, j] + sum(theta[i, j] for i in present))
            for j in range(N)
            if j not in present
        }
        total -= np.log(1.0 + sum(rates.values()))
        if item is not None:
            total += np.log(rates[item])
            present.append(item)
    return total


def places(at, order, item):
    """Return, by both kernels, the weights of all places at which an item can be in an order.

    A weight is the probability of the order with the item at this place, divided by the probability
    of the order without the item.
    """
    state = np.array([*order, 0])
    length = len(order)
    rates, exits = np.empty((N + 1, N)), np.empty(N + 1)
    present = []
    for q in range(length + 1):
        rates[q] = at.rate * np.prod(at.tables.W[present], axis=0)
        rates[q, present] = 0.0
        exits[q] = 1.0 + rates[q].sum()
        present += order[q : q + 1]
    room = (rates, exits, state, length, item, at.tables)
    plain, careful = np.empty(N + 1), np.empty(N + 1)
    total = histories.place_weights.py_func(plain, *room)
    sum_of_careful, absent = histories.log_place_weights.py_func(careful, *room)
    assert total == pytest.approx(plain[: length + 1].sum(), rel=1e-12)
    assert sum_of_careful == pytest.approx(careful[: length + 1].sum(), rel=1e-12)
    return plain[: length + 1], careful[: length + 1] / absent


@pytest.mark.parametrize("order", [[], [3], [2, 5, 0], [1, 0, 5, 3, 2]])
def test_the_weight_of_a_place_is_a_ratio_of_probabilities(order):
    at = parameters(1, scale=2.0)
    plain, careful = places(at, order, 4)
    without = weighed(at.theta, order)
    expected = [
        np.exp(weighed(at.theta, [*order[:p], 4, *order[p:]]) - without)
        for p in range(len(order) + 1)
    ]
    np.testing.assert_allclose(plain, expected, rtol=1e-11)
    np.testing.assert_allclose(careful, expected, rtol=1e-11)


def some_draws(at, kept=3):
    known = [
        PartialSet(np.array([0, 2]), np.array([1, 4, 5])),
        PartialSet(np.arange(4), np.arange(0)),
    ]
    rng = np.random.default_rng(3)
    return Histories.at_first(known, N, rng).moved(at, known, kept, (1, (2,)), 1)


def test_slopes_are_products_of_gradients_and_effects():
    at = parameters(2)
    effects = at.theta - np.diag(at.theta.diagonal())
    draws = some_draws(at)
    slopes = draws.slopes(at, effects, 1)
    for place in np.ndindex(slopes.shape):
        one = np.zeros(slopes.shape)
        one[place] = 1.0
        expected = np.sum(draws.gradient(at, one, 1) * effects)
        assert slopes[place] == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_log_p_of_draws_is_that_of_their_orders():
    at = parameters(5)
    draws = some_draws(at)
    found = draws.log_p(at, 1).ravel()
    orders, lengths = draws.kept.reshape(-1, N), draws.lengths.ravel()
    for order, length, log_p in zip(orders, lengths, found, strict=True):
        assert log_p == pytest.approx(weighed(at.theta, order[:length].tolist()), rel=1e-12)


def test_equal_samples_have_chains_each():
    known = [PartialSet(np.array([s]), np.array([5])) for s in range(5)]
    weights = np.array([0.1, 0.1, 0.1, 0.4, 0.3])
    drawn = DrawnHistories(known, weights, N)
    assert [sum(k is one for k in drawn.partials) for one in known] == [1, 1, 1, 4, 3]
    for one, weight in zip(known, weights, strict=True):
        share = sum(w for k, w in zip(drawn.partials, drawn.weights, strict=True) if k is one)
        assert share == pytest.approx(weight)


def test_samples_without_interactions_have_their_probability():
    at = parameters(4)
    known = [
        PartialSet(np.array([], dtype=int), np.array([1, 4])),
        PartialSet(np.array([0, 2, 3]), np.array([5])),
        PartialSet(np.arange(6), np.array([], dtype=int)),
    ]
    expected = []
    for one in known:
        outside = np.setdiff1d(np.arange(N), [*one.present, *one.missing])
        expected.append(log_p_independent(at.rate[one.present], float(at.rate[outside].sum())))
    np.testing.assert_allclose(independent_log_p(at, known), expected, rtol=1e-12)
