"""Shifts: the mean changes of other entries of theta if the order of a pair changes."""

from __future__ import annotations

import numpy as np
import pytest

from sequela import simulate
from sequela.kernels.posterior_sweep import write_coordinates
from sequela.observation import Exponential
from sequela.posteriors import Laplace
from sequela.posteriors.jump_shifts import learn_shifts
from sequela.posteriors.problem import Problem
from sequela.support.jit import call

N = 4
FIRST = np.array([[0.0, 2.0], [0.0, -2.0]])  # with these effects, item 0 is usually first
SECOND = FIRST[::-1, ::-1]


@pytest.fixture(scope="module")
def problem():
    data = simulate(np.diag([-0.5] * N), 60, random_state=1).to_dataset().without_times()
    return Problem.of(data, Laplace(0.5), Exponential(), 12)


def draws_of(problem, shares, rng):
    """Return draws of two chains, in which theta[2, 3] is larger by 1.5 if item 0 is first."""
    positions = np.zeros((len(shares), 2, N * N + 1))
    for place in np.ndindex(positions.shape[:2]):
        is_first = rng.random() < shares[place[0]]
        theta = 0.1 * rng.standard_normal((N, N))
        theta[:2, :2] += FIRST if is_first else SECOND
        theta[2, 3] += 1.5 * is_first
        z = np.empty((N, N))
        call(write_coordinates, z, theta, np.zeros(1), problem.target.prior)
        positions[place] = np.append(z.ravel(), 0.0)
    return positions


def test_a_shift_is_the_difference_of_the_means_without_the_pair_itself(problem):
    rng = np.random.default_rng(1)
    positions = draws_of(problem, np.full(200, 0.4), rng)
    pairs = problem.pair_copies[0]
    at = pairs.tolist().index([0, 1])
    slow = np.where(np.arange(len(pairs)) == at, 50.0, 1.0)
    slots, shifts = learn_shifts(problem, positions, slow)
    assert shifts.shape == (1, N * N)
    np.testing.assert_array_equal(slots, np.where(np.arange(len(pairs)) == at, 0, -1))
    assert np.flatnonzero(shifts[0]).tolist() == [2 * N + 3]
    flat = positions.reshape(-1, N * N + 1)
    is_first = flat[:, 1] > flat[:, N]  # the effect of 0 on 1 is larger than that of 1 on 0
    difference = flat[is_first].mean(axis=0) - flat[~is_first].mean(axis=0)
    assert shifts[0, 2 * N + 3] == pytest.approx(difference[2 * N + 3], rel=1e-12)
    assert shifts[0, 2 * N + 3] > 1.0


@pytest.mark.parametrize(
    ("share", "slowness"), [(0.0, 50.0), (0.4, 1.5)], ids=["one order only", "quick"]
)
def test_nothing_is_learned_of_one_order_or_of_quick_pairs(problem, share, slowness):
    positions = draws_of(problem, np.full(100, share), np.random.default_rng(2))
    slots, shifts = learn_shifts(problem, positions, np.full(len(problem.pair_copies[0]), slowness))
    at = problem.pair_copies[0].tolist().index([0, 1])
    assert slots[at] == -1
    if slowness < 4.0:
        assert shifts.shape == (0, N * N)
