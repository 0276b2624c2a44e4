"""Stretched coordinates: a smooth one-to-one map, and the density of the prior in it."""

from __future__ import annotations

import numpy as np
import scipy.integrate
import scipy.stats

from posteriors import twins
from sequela.kernels import stretched_coordinates
from sequela.posteriors.stretching import stretched_place

stretched = stretched_coordinates.stretched.py_func
unstretched = stretched_coordinates.unstretched.py_func
stretched_prior = stretched_coordinates.stretched_prior.py_func

Z = np.array([-6.0, -2.5, -1.0, -1e-9, 0.0, 0.3, 1.0, 2.7, 8.0])


def test_unstretching_inverts_stretching():
    for z in Z:
        assert abs(unstretched(stretched(z)) - z) <= 1e-14 * (1.0 + abs(z))
        assert stretched(-z) == -stretched(z)


def test_small_coordinates_keep_their_size_and_large_ones_grow():
    assert abs(stretched(1e-3) / 1e-3 - 1.0) < 1e-6
    assert stretched(3.0) > 6.0


def test_the_slopes_of_the_map_and_of_the_density_are_those_of_differences():
    h = 1e-5
    for y in map(stretched, Z):
        rise, _, push = stretched_prior(unstretched(y))
        below, above = unstretched(y - h), unstretched(y + h)
        assert abs(rise - (above - below) / (2.0 * h)) < 1e-8
        difference = stretched_prior(above)[1] - stretched_prior(below)[1]
        assert abs(push - difference / (2.0 * h)) < 1e-6


def test_the_density_is_that_of_a_standard_normal_z():
    """The integral of the density up to y must be the integral of the normal density up to z."""
    for z in (-1.0, 0.5, 2.0):
        mass, _ = scipy.integrate.quad(
            lambda y: np.exp(stretched_prior(unstretched(y))[1]), -200.0, stretched(z), limit=500
        )
        assert abs(mass / np.sqrt(2.0 * np.pi) - scipy.stats.norm.cdf(z)) < 1e-6


def test_a_place_has_stretched_interactions_and_plain_base_rates():
    z = np.array([[2.0, -3.0], [0.5, -1.5]])
    place = stretched_place(twins.state_at(z, 0.7))
    assert place.tolist() == [2.0, stretched(-3.0), stretched(0.5), -1.5, 0.7]
