"""Data and expected values for tests of learning. `reference` computes the expected values."""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import reference as ref
from sequela import simulate

ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def quiet():
    """Ignore warnings that the test does not examine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@cache
def simulated(n, size, seed, scale=0.7, base=0.0, sparsity=0.5):
    """Return a data set with its true times, drawn from a random model."""
    rng = np.random.default_rng([n, seed])
    theta = ref.random_theta(rng, n, scale, sparsity)
    theta[np.diag_indices(n)] += base
    return simulate(theta, size, random_state=seed).to_dataset()


def table(n, sets):
    X = np.zeros((len(sets), n), dtype=int)
    for row, S in zip(X, sets, strict=True):
        row[list(S)] = 1
    return X


def masks(X):
    """Return each set as a number, with bit j for item j: the index in `set_distribution`."""
    return np.asarray(X, dtype=int) @ (1 << np.arange(np.shape(X)[1]))


def mean_log_p(theta, X, times=None, stop_rate=1.0):
    """Return the mean log-likelihood, for small n, by dense linear algebra over all 2^n states."""
    which = masks(X)
    times = np.full(len(which), np.nan) if times is None else np.asarray(times, dtype=float)
    unknown = np.log(ref.set_distribution(theta, stop_rate))
    return float(
        np.mean(
            [
                unknown[mask]
                if math.isnan(t)
                else math.log(ref.set_distribution_at(theta, t)[mask])
                for mask, t in zip(which, times, strict=True)
            ]
        )
    )


def gradient_by_differences(theta, X, times=None, stop_rate=1.0):
    return ref.finite_difference_gradient(
        lambda moved: mean_log_p(moved, X, times, stop_rate), theta, 1e-5
    )


def l1(theta, penalty):
    return penalty * sum(abs(theta[i, j]) for i, j in np.ndindex(theta.shape) if i != j)


def kkt_residual(theta, gradient, penalty):
    """Return the KKT residual of the gradient of the log-likelihood.

    This is the largest distance of an entry of the gradient from its value at an optimum. This
    value is 0 for a base rate. For an interaction above 0 it is the penalty, and for an interaction
    below 0 it is minus the penalty. For an interaction that is 0, it may be any value from -penalty
    to penalty.
    """
    worst = 0.0
    for i, j in np.ndindex(theta.shape):
        g, x = gradient[i, j], theta[i, j]
        if i == j:
            away = abs(g)
        elif x != 0.0:
            away = abs(g - math.copysign(penalty, x))
        else:
            away = max(abs(g) - penalty, 0.0)
        worst = max(worst, away)
    return worst


def interactions(theta):
    return int(np.count_nonzero(theta) - np.count_nonzero(np.diagonal(theta)))


def real_data():
    """Return the folder of real data, or skip the test if there is none."""
    folder = Path(os.environ.get("SEQUELA_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data: there is no folder {folder}; set SEQUELA_DATA")
    return folder


class Closed:
    """An objective without sampling. `function(theta)` returns its loss and its full gradient."""

    effective = 1.0
    is_sampled = False
    is_partial = False
    most_kept = 64

    def __init__(self, function):
        self.function = function
        self.asked = []

    def evaluate(self, theta, *, full=False):  # noqa: ARG002 - always in full
        self.asked.append(theta.copy())
        return self.function(theta)

    def prepare(self, support):
        """Do nothing: this objective does not depend on the support."""

    def is_slower_than_orders(self, support):  # noqa: ARG002 - never
        return False

    def is_affordable(self, support):  # noqa: ARG002 - always
        return True

    def draw(self, theta, kept):
        """Do nothing: this objective needs no draws."""

    def gradient_error(self, theta):
        return np.zeros_like(theta)
