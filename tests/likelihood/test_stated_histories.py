"""Histories drawn given statements, without a lattice: compare with sums over all histories."""

import numpy as np
import pytest

import reference
from likelihood import partly_known as twin
from sequela import InputError
from sequela.kernels.stated_histories import draw_stated_histories
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.partial import PartialSet
from sequela.likelihood.stated_histories import (
    StatedHistories,
    reports,
)

N = 6
PRESENT, MISSING = [0, 2, 5], [1, 4]
STATEMENTS = {
    "none": (),
    "some": ((2, 0, 0.8), (5, 2, 0.7)),
    "certain": ((2, 0, 1.0), (0, 5, 1.0)),
    "both": ((2, 0, 0.8), (0, 5, 1.0)),
}


def theta_of(seed):
    return reference.random_theta(np.random.default_rng(seed), N, sparsity=0.2)


def known_of(statements, present=PRESENT, missing=MISSING):
    return PartialSet(np.array(present), np.array(missing, dtype=np.int64), tuple(statements))


@pytest.mark.parametrize("kind", STATEMENTS)
@pytest.mark.parametrize("missing", [MISSING, []], ids=["missing", "complete"])
def test_histories_have_their_probabilities(kind, missing):
    """The shares of all histories are within 5 standard errors of their probabilities.

    Draws of one chain depend on each other, so the error is that of half as many draws.
    """
    theta = theta_of(4)
    parameters = Parameters(theta)
    known = known_of(STATEMENTS[kind], missing=missing)
    drawn = StatedHistories.drawn(parameters, known, 3_000, (1, (0,)), 2)
    counts = {}
    for order in map(tuple, drawn.sequences()):
        counts[order] = counts.get(order, 0) + 1
    every = dict(twin.posterior(theta, PRESENT, missing, STATEMENTS[kind]))
    assert set(counts) <= set(every)
    total = drawn.lengths.size
    for order, p in every.items():
        error = np.sqrt(2.0 * p * (1.0 - p) / total) + 1.0 / total
        assert abs(counts.get(order, 0) / total - p) < 5.0 * error, order


def test_a_draw_has_its_log_probability_and_that_of_its_statements():
    theta = theta_of(5)
    known = known_of(STATEMENTS["some"])
    drawn = StatedHistories.drawn(Parameters(theta), known, 5, (1, (0,)), 1)
    log_p = drawn.log_p(Parameters(theta), 1)
    of_statements = reports(drawn, known).ravel()
    for at, order in enumerate(drawn.sequences()):
        assert log_p[at] == pytest.approx(reference.log_p_sequence(theta, order), rel=1e-10)
        expected = np.log(twin.report(order, STATEMENTS["some"]))
        assert of_statements[at] == pytest.approx(expected, abs=1e-12)


def test_threads_and_pieces_do_not_change_the_bits(monkeypatch):
    parameters, known = Parameters(theta_of(2)), known_of(STATEMENTS["both"])
    one, two, other = (
        StatedHistories.drawn(parameters, known, 30, (seed, (0,)), threads)
        for seed, threads in ((7, 1), (7, 2), (8, 1))
    )
    np.testing.assert_array_equal(one.orders, two.orders)
    assert not np.array_equal(one.orders, other.orders)
    monkeypatch.setattr("sequela.likelihood.stated_histories._SWEEPS", 7)
    pieces = StatedHistories.drawn(parameters, known, 30, (7, (0,)), 1)
    np.testing.assert_array_equal(one.lengths, pieces.lengths)
    more = StatedHistories.drawn(parameters, known, 30, (7, (1,)), 1, one)
    assert not np.array_equal(more.orders, one.orders)
    np.testing.assert_array_equal(one.orders, pieces.orders)


def test_rates_out_of_range_are_an_error():
    theta = np.diag([300.0] * 4)
    theta[:3, 3] = 300.0
    known = known_of([(0, 1, 1.0)], present=[0, 1, 2, 3], missing=[])
    with pytest.raises(InputError, match="outside the range of floating-point numbers"):
        StatedHistories.drawn(Parameters(theta), known, 5, (1, (0,)), 1)
    assert draw_stated_histories.py_func.__doc__
