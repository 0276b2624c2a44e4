"""The joint probability of a set and of statements: compare with sums over orders, and lattices."""

import numpy as np
import pytest

import reference
from likelihood import partly_known as twin
from sequela.likelihood import stated_value
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.partial import PartialSet, passage_of
from sequela.likelihood.stated_value import log_p_with_statements
from sequela.observation import Exponential

NOTHING = np.empty(0, dtype=np.int64)
STATEMENTS = {
    "some": ((2, 0, 0.8), (5, 2, 0.7), (0, 3, 0.9)),
    "certain": ((2, 0, 1.0), (0, 5, 1.0)),
    "both": ((2, 0, 0.8), (0, 5, 1.0)),
}


def known_of(statements, present=(0, 2, 3, 5)):
    return PartialSet(np.array(present), NOTHING, tuple(statements))


@pytest.mark.parametrize("kind", STATEMENTS)
def test_small_sets_against_a_sum_over_all_orders(kind):
    z = []
    for seed in range(4):
        theta = reference.random_theta(np.random.default_rng(seed), 6, sparsity=0.2)
        known = known_of(STATEMENTS[kind])
        parameters = Parameters(theta, Exponential(1.7))
        found, variance = log_p_with_statements(parameters, known, (seed, (0,)), 2)
        truth = twin.log_p(theta, known.present.tolist(), [], known.statements, stop_rate=1.7)
        assert variance < 0.01
        z.append((found - truth) / np.sqrt(variance))
    # The error is estimated from 8 chains, so z has heavier tails than a normal variable.
    assert np.abs(z).max() < 6.0
    assert 0.3 < np.std(z) < 2.0


@pytest.mark.parametrize("seed", range(4))
def test_larger_sets_against_the_lattice(seed):
    rng = np.random.default_rng(seed)
    k, right = 13, [1.0, 0.9, 1.0, 0.8, 1.0, 1.0]
    theta = reference.random_theta(rng, 16, sparsity=0.5, scale=1.0 + 0.3 * seed)
    pairs = [sorted(rng.choice(k, 2, replace=False).tolist()) for _ in right]
    known = known_of([(a, b, p) for (a, b), p in zip(pairs, right, strict=True)], range(k))
    found, variance = log_p_with_statements(Parameters(theta), known, (seed, (0,)), 2)
    truth = passage_of(Parameters(theta), known, []).log_p()
    assert variance < 0.1
    assert abs(found - truth) < 6.0 * np.sqrt(variance)


def test_statements_that_contradict_the_model():
    """Item 0 promotes item 1 strongly, so that 1 before 0 has a probability of about 1e-5."""
    theta = np.array([[2.0, 9.0, 0.0], [0.0, -7.0, 0.0], [0.0, 0.0, -0.5]])
    for target in (1.0, 0.999999):
        known = known_of([(1, 0, target)], [0, 1, 2])
        found, variance = log_p_with_statements(Parameters(theta), known, (1, (0,)), 1)
        truth = twin.log_p(theta, [0, 1, 2], [], known.statements)
        assert truth < twin.log_p(theta, [0, 1, 2], []) - 8.0
        assert abs(found - truth) < 6.0 * np.sqrt(variance) + 0.05


def test_the_threads_do_not_change_the_bits():
    parameters = Parameters(reference.random_theta(np.random.default_rng(1), 6))
    known = known_of(STATEMENTS["both"])
    one, two, other = (
        log_p_with_statements(parameters, known, (seed, (0,)), threads)
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    )
    assert one == two != other


def test_without_effects_and_with_one_order_the_value_is_exact():
    theta = np.diag([0.3, -0.5, 0.1])
    known = known_of([(2, 0, 1.0), (0, 1, 1.0)], [0, 1, 2])
    found, variance = log_p_with_statements(Parameters(theta), known, (1, (0,)), 1)
    assert found == pytest.approx(reference.log_p_sequence(theta, [2, 0, 1]), rel=1e-10)
    assert variance == pytest.approx(0.0, abs=1e-20)
    assert stated_value.__doc__
