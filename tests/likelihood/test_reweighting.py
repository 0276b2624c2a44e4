"""Orders are drawn at one theta and reweighted at another: compare with exact probabilities."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from sequela import Sampling
from sequela.likelihood.orders import OrderSampler
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.reweighting import DrawKey, DrawnOrders
from sequela.observation import Exponential

quick = settings(max_examples=30, deadline=None, derandomize=True, database=None)


@st.composite
def cases(draw):
    """Draw two similar thetas, a set of their items, and a rate of the observation."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k = draw(st.integers(2, 4))
    n = k + draw(st.integers(0, 3))
    theta = ref.random_theta(rng, n, 0.7, draw(st.sampled_from([0.0, 0.6, 1.0])))
    other = theta + rng.normal(0.0, 0.5, (n, n))
    return theta, other, np.sort(rng.choice(n, k, replace=False)), draw(st.sampled_from([0.3, 2.0]))


def holding(theta, S, rate, orders):
    """Return `DrawnOrders` with these orders, of shape (chains, kept, k), as if drawn at theta."""
    columns = Parameters(theta, Exponential(rate)).columns(S)
    drawn = DrawnOrders(items=S, weight=1.0)
    chains = [(listed[-1].copy(), listed) for listed in orders]
    drawn.replace(columns, chains, ref.log_p_set(theta, S, stop_rate=rate))
    return drawn


def every_order(k, chains=2):
    """Return all k! orders of k items, divided equally among the chains."""
    orders = np.array(list(itertools.permutations(range(k))), dtype=np.int64)
    return orders.reshape(chains, -1, k)


@quick
@given(cases())
def test_orders_have_the_probability_of_proposition_2(case):
    """A weight is the probability of the order, divided by the rate of the observation."""
    theta, other, S, rate = case
    orders = every_order(len(S))
    drawn = holding(theta, S, rate, orders)
    at_other = Parameters(other, Exponential(rate)).columns(S)
    for chain, listed in enumerate(orders):
        for at, found in ((theta, drawn.drawn[chain]), (other, drawn.log_weights(at_other, chain))):
            expected = [ref.log_p_sequence(at, S[order].tolist(), rate) for order in listed]
            np.testing.assert_allclose(found + math.log(rate), expected, rtol=1e-11, atol=1e-11)


@quick
@given(cases())
def test_gradients_of_orders_are_added_with_their_shares(case):
    theta, other, S, rate = case
    orders = every_order(len(S))
    drawn = holding(theta, S, rate, orders)
    parameters = Parameters(other, Exponential(rate))
    columns = parameters.columns(S)
    shares = np.random.default_rng(1).random(orders.shape[:2])
    for chain, listed in enumerate(orders):
        found = np.zeros_like(other)
        parameters.spread(columns, drawn.gradient(columns, chain, shares[chain]), found)
        expected = sum(
            share * ref.gradient_sequence(other, S[order].tolist(), stop_rate=rate)
            for share, order in zip(shares[chain], listed, strict=True)
        )
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


def test_weights_are_ratios_of_probabilities():
    """The probabilities of three orders change by factors of 1, 2 and 6.

    Compare the weights and the effective number of orders with values computed by hand.
    """
    drawn = DrawnOrders(
        items=np.arange(2), weight=1.0, drawn=np.log([[0.1, 0.2, 0.3]]), offset=-1.0
    )
    found = drawn.weigh(np.log([[0.1, 0.4, 1.8]]))
    np.testing.assert_allclose(found.shares, [[1 / 9, 2 / 9, 6 / 9]], rtol=1e-14)
    assert found.log_p == pytest.approx(-1.0 + math.log(3.0), rel=1e-14)
    # The number of effective orders is (sum of weights)^2 / (sum of squared weights).
    assert found.effective == pytest.approx(81 / 41 / 3, rel=1e-14)
    far = drawn.weigh(np.log([[0.1, 0.4, 1.8]]) + 1e4)
    np.testing.assert_allclose(far.shares, found.shares, rtol=1e-9)
    assert far.log_p == pytest.approx(found.log_p + 1e4, rel=1e-14)


@quick
@given(cases())
def test_orders_in_exact_proportion_give_the_exact_answer(case):
    """If orders have exactly their posterior shares, reweighting gives the exact log p(S).

    The test uses all orders, with their exact shares, instead of drawn orders.
    """
    theta, other, S, rate = case
    orders = every_order(len(S))
    drawn = holding(theta, S, rate, orders)
    posterior = ref.posterior_orders(theta, S.tolist(), rate)
    share = np.array([[posterior[tuple(S[o].tolist())] for o in listed] for listed in orders])
    columns = Parameters(other, Exponential(rate)).columns(S)
    log_weights = np.stack([drawn.log_weights(columns, chain) for chain in range(len(orders))])
    # Each order is listed once. To count it as often as a sampler would draw it, multiply its
    # weight by its posterior probability and by the number of orders.
    corrected = log_weights + np.log(share * share.size)
    found = drawn.weigh(corrected)
    assert found.log_p == pytest.approx(ref.log_p_set(other, S, stop_rate=rate), abs=1e-9)
    expected = ref.posterior_orders(other, S.tolist(), rate)
    for chain, place in np.ndindex(share.shape):
        order = tuple(S[orders[chain, place]].tolist())
        assert found.shares[chain, place] == pytest.approx(expected[order], abs=1e-9)
    assert 0.0 < found.effective <= 1.0 + 1e-12


def test_without_an_estimate_log_p_is_that_without_interactions():
    theta = np.diag(np.random.default_rng(2).normal(-0.5, 0.7, 6))
    S = np.array([0, 2, 3, 5])
    columns = Parameters(theta, Exponential(0.4)).columns(S)
    drawn = DrawnOrders(items=S, weight=1.0)
    orders = every_order(4)
    drawn.replace(columns, [(listed[-1].copy(), listed) for listed in orders], None)
    assert drawn.offset == pytest.approx(ref.log_p_set(theta, S, stop_rate=0.4), abs=1e-10)
    drawn.replace(columns, [(listed[-1].copy(), listed) for listed in orders], -7.5)
    assert drawn.offset == -7.5


def test_chains_go_on_where_they_stand():
    """The first draw starts new chains. Later draws continue these chains from their states."""
    theta = ref.random_theta(np.random.default_rng(3), 7, 0.5)
    S = np.arange(6)
    sampler = OrderSampler(Parameters(theta).columns(S), Sampling(chains=1, block=2, burn_in=0))
    drawn = DrawnOrders(items=S, weight=1.0)
    state, orders = drawn.advance(sampler, DrawKey(seed=1, start=0, draws=0), (0, 0), kept=4)
    assert orders.shape == (4, 6)
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(6), (4, 1)))
    np.testing.assert_array_equal(state, orders[-1])
    found = []
    for stands in (state, state[::-1].copy()):
        drawn.states = stands[None]
        key = DrawKey(seed=1, start=0, draws=1)
        found.append(drawn.advance(sampler, key, (0, 0), kept=1)[1])
        # `advance` runs one chain and must not change the stored states. They are replaced later,
        # when all chains are done.
        np.testing.assert_array_equal(drawn.states[0], stands)
    assert not np.array_equal(*found)


def test_every_draw_has_a_stream_of_its_own():
    theta = ref.random_theta(np.random.default_rng(3), 9, 0.3)
    S = np.arange(8)
    sampler = OrderSampler(Parameters(theta).columns(S), Sampling(chains=1))
    drawn = DrawnOrders(items=S, weight=1.0, states=np.tile(np.arange(8), (3, 1)))

    def orders(*, seed=1, start=0, draws=1, index=(0, 0)):
        return drawn.advance(sampler, DrawKey(seed, start, draws), index, kept=3)[1].tobytes()

    assert orders() == orders()
    changed = [
        orders(seed=2), orders(start=1), orders(draws=2), orders(index=(1, 0)), orders(index=(0, 1))
    ]  # fmt: skip
    assert len({orders(), *changed}) == 6
