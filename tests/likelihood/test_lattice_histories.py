"""Histories that are drawn from a lattice: compare with a list of all histories."""

import numpy as np
import pytest

import reference
from likelihood import partly_known as twin
from sequela import Dataset, Exponential
from sequela.budget import Budget
from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.lattice_histories import LatticeHistories, arrived_last
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.partial_plan import partial_passage

N = 5
THETA = reference.random_theta(np.random.default_rng(4), N, sparsity=0.2)
PRESENT, MISSING = [0, 3], [1, 4]
STATEMENTS = {"none": (), "some": ((3, 0, 0.8),), "certain": ((3, 0, 1.0),)}


def lattice_of(statements, stop_rate=1.0):
    row = [1, None, 0, 1, None]
    data = Dataset([row], orders=[[(str(a), str(b), p) for a, b, p in statements]])
    known = DistinctSamples.of(data, partial=True).known(0)
    passage = partial_passage(Parameters(THETA, Exponential(stop_rate)), known, Budget())
    passage.log_p()
    assert passage.k == 4
    return passage


def histories(statements):
    """Return the probability of each history, as positions on the lattice."""
    place = {item: at for at, item in enumerate([*PRESENT, *MISSING])}
    return {
        tuple(place[i] for i in order): p
        for order, p in twin.posterior(THETA, PRESENT, MISSING, statements)
    }


@pytest.mark.parametrize("kind", STATEMENTS)
def test_steps_backwards_have_the_probabilities_of_the_histories(kind):
    """P(history) is the product of P(final state) and the probabilities of all steps backwards."""
    passage = lattice_of(STATEMENTS[kind])
    last, ends = arrived_last(passage), passage.end_shares()
    states = np.arange(1 << 4)
    for c in range(4):
        assert (last[c, states >> c & 1 == 0] == 0.0).all()
    for order, p in histories(STATEMENTS[kind]).items():
        state = sum(1 << c for c in order)
        found = ends[state]
        for c in order[::-1]:
            found *= last[c, state]
            state ^= 1 << c
        assert found == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize("kind", STATEMENTS)
def test_draws_are_as_frequent_as_they_are_probable(kind):
    """Each of about 40 frequencies is within 5 standard errors of its probability."""
    sampler = LatticeHistories(lattice_of(STATEMENTS[kind]))
    rng = np.random.default_rng(1)
    draws = 20_000
    counts = {}
    for _ in range(draws):
        order = tuple(sampler.draw(rng))
        counts[order] = counts.get(order, 0) + 1
    truth = histories(STATEMENTS[kind])
    assert set(counts) <= set(truth)
    for order, p in truth.items():
        error = np.sqrt(p * (1 - p) / draws)
        assert abs(counts.get(order, 0) / draws - p) < 5 * error + 1e-4


def test_times_are_exponential_with_the_rates_of_the_states():
    sampler = LatticeHistories(lattice_of((), stop_rate=2.0))
    rng = np.random.default_rng(2)
    held = np.array([sampler.times([0, 2, 1], rng) for _ in range(20_000)])
    order = [0, 1, 3]  # the items at these positions of the lattice
    exits = [2.0 + reference.exit_rate(THETA, order[:at]) for at in range(4)]
    np.testing.assert_allclose(held.mean(axis=0) * exits, 1.0, atol=5 / np.sqrt(20_000))
    np.testing.assert_allclose(held.std(axis=0) * exits, 1.0, atol=0.06)
