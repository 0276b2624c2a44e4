"""Priors, compared with SciPy, and the map from standard normal coordinates to theta."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from posteriors import twins
from sequela import InputError
from sequela.kernels.posterior_sweep import read_theta, write_coordinates
from sequela.posteriors import BaseRates, Laplace, LearnedScale, Normal, Prior, StudentT
from sequela.posteriors.priors import KINDS, as_prior, prior_shape, prior_to_json, read_prior
from sequela.support.jit import call

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)

PRIORS = [
    Laplace(scale=0.4),
    StudentT(df=2.0, scale=0.4),
    StudentT(df=0.5, scale=1.0),
    StudentT(df=30.0, scale=LearnedScale(0.3, 0.5), base_rates=BaseRates(0.5, 1.5)),
    Normal(scale=2.0),
    Laplace(),
]
HEAVY = [prior for prior in PRIORS if isinstance(prior, StudentT) and prior.df < 1.0]
names = pytest.mark.parametrize("prior", PRIORS, ids=str)


@names
def test_quantiles_and_densities_are_those_of_scipy(prior):
    z = np.concatenate([[0.0, 1e-9], np.linspace(0.01, 8.0, 300)])
    np.testing.assert_allclose(
        prior.quantile(z), twins.shape_quantile(prior, z), rtol=1e-10, atol=1e-15
    )
    x = np.linspace(-12.0, 12.0, 101)
    np.testing.assert_allclose(
        prior.log_density(x), twins.shape_distribution(prior).logpdf(x), rtol=1e-11, atol=1e-12
    )


def theta_at(prior, z, scale):
    theta, slope = np.empty((2, *z.shape))
    good = call(read_theta, theta, slope, z, np.array([scale]), prior_shape(prior))
    return theta, slope, good


@names
@pytest.mark.parametrize("between", [0.0, 0.5, 0.3])
def test_the_map_gives_the_quantiles_at_and_between_its_nodes(prior, between):
    """Test the map at and between its nodes, which are 0.02 apart, up to z = 8.

    The tested values of z are the interactions in column 0 of a large theta.
    """
    positive = 0.02 * (np.arange(400) + between)
    z = np.zeros((401, 401))
    z[1:, 0] = np.where(np.arange(400) % 2 == 0, positive, -positive)
    scale = 0.7
    theta, _, _ = theta_at(prior, z, scale)
    wanted = twins.scale_of(prior, scale) * twins.shape_quantile(prior, z[1:, 0])
    # Between nodes, the map h is interpolated by cubics. This is less precise in the heaviest
    # tails, where h grows like exp(z^2).
    rough = 5e-5 if prior in HEAVY else 2e-7
    np.testing.assert_allclose(theta[1:, 0], wanted, rtol=rough if between else 1e-10, atol=1e-12)


@names
def test_slopes_are_derivatives_of_the_map(prior):
    z = np.random.default_rng(1).normal(0.0, 2.0, (30, 30))
    h = 1e-6
    up, down = theta_at(prior, z + h, -0.4)[0], theta_at(prior, z - h, -0.4)[0]
    slope = theta_at(prior, z, -0.4)[1]
    np.testing.assert_allclose(slope, (up - down) / (2 * h), rtol=1e-6)
    # The prior density of theta is phi(z) / slope. Compare it with the density of SciPy.
    theta = theta_at(prior, z, -0.4)[0]
    off = ~np.eye(30, dtype=bool)
    unit = twins.scale_of(prior, -0.4)
    density = twins.shape_distribution(prior).pdf(theta[off] / unit) / unit
    rough = 1e-3 if prior in HEAVY else 2e-5
    np.testing.assert_allclose(scipy.stats.norm.pdf(z[off]) / slope[off], density, rtol=rough)


@names
def test_base_rates_are_normal(prior):
    z = np.diag([-2.0, 0.0, 1.5])
    theta, slope, _ = theta_at(prior, z, 0.0)
    rates = prior.base_rates
    np.testing.assert_allclose(np.diag(theta), rates.mean + rates.sd * np.diag(z))
    np.testing.assert_array_equal(np.diag(slope), rates.sd)


@names
@quick
@given(st.lists(st.floats(-11.0, 11.0), min_size=9, max_size=9), st.floats(-2.0, 2.0))
def test_the_map_is_inverted_exactly(prior, coordinates, scale):
    """Map z to theta and back, also beyond the last node of the map (z = 8)."""
    z = np.reshape(coordinates, (3, 3))
    theta, _, _ = theta_at(prior, z, scale)
    back = np.empty((3, 3))
    call(write_coordinates, back, theta, np.array([scale]), prior_shape(prior))
    np.testing.assert_allclose(back, z, rtol=1e-12, atol=1e-12)


def test_theta_out_of_range_is_told():
    z = np.zeros((2, 2))
    assert theta_at(Normal(scale=1.0), z, 0.0)[2]
    z[0, 1] = 6.0
    assert theta_at(Normal(scale=6.6), z, 0.0)[2]
    # an entry of 6 * 6.7 is above the limit of 40
    assert not theta_at(Normal(scale=6.7), z, 0.0)[2]
    z[0, 1] = -6.0
    # An effect of -600 makes a rate very small. Effects have no lower limit.
    assert theta_at(Normal(scale=100.0), z, 0.0)[2]


@names
def test_a_fixed_scale_has_no_coordinate(prior):
    shape = prior_shape(prior)
    if isinstance(prior.scale, LearnedScale):
        assert shape.log_spread == prior.scale.spread
        assert np.exp(shape.log_median) == pytest.approx(prior.scale.median)
    else:
        assert shape.log_spread == 0.0
        assert np.exp(shape.log_median) == pytest.approx(prior.scale)


# --- Files and names ------------------------------------------------------------------------------


@names
def test_a_prior_survives_json(prior):
    assert read_prior(json.loads(json.dumps(prior_to_json(prior)))) == prior


def test_names_stand_for_learned_scales():
    assert as_prior(None) == StudentT(df=2.0, scale=LearnedScale())
    for name, shape in KINDS.items():
        assert as_prior(name) == shape()
        assert isinstance(as_prior(name).scale, LearnedScale)
        assert isinstance(as_prior(name), Prior)
    mine = Laplace(scale=3.0)
    assert as_prior(mine) is mine


# --- Bad input ------------------------------------------------------------------------------------

BAD_NUMBERS = [0.0, -1.0, np.nan, np.inf, True, "1", None]


@pytest.mark.parametrize("bad", BAD_NUMBERS)
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: Laplace(scale=x), "scale"),
        (lambda x: StudentT(scale=x), "scale"),
        (lambda x: Normal(scale=x), "scale"),
        (lambda x: StudentT(df=x), "df"),
        (lambda x: LearnedScale(median=x), "median"),
        (lambda x: LearnedScale(spread=x), "spread"),
        (lambda x: BaseRates(sd=x), "sd"),
    ],
)
def test_a_number_that_is_not_positive_is_named(make, name, bad):
    with pytest.raises(InputError, match=f"^{name} is {re.escape(repr(bad))}; expected"):
        make(bad)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, "0", None])
def test_the_mean_of_base_rates_is_a_number(bad):
    with pytest.raises(InputError, match="mean of the log base rates"):
        BaseRates(mean=bad)


def test_other_bad_input():
    with pytest.raises(InputError, match=r"at least 0\.5 degrees"):
        StudentT(df=0.1)
    with pytest.raises(InputError, match=r"base_rates is 3\.0; expected a BaseRates"):
        Laplace(base_rates=3.0)
    with pytest.raises(InputError, match="'horseshoe'; expected one of 'laplace', 'student-t'"):
        as_prior("horseshoe")
    for bad in (Laplace, 3.0, object()):
        with pytest.raises(InputError, match="expected a prior such as"):
            as_prior(bad)


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"kind": "horseshoe"},
        {"kind": "laplace"},
        {"kind": "laplace", "scale": 1.0, "base_rates": {"mean": 0.0, "width": 1.0}},
        {"kind": "laplace", "scale": 1.0, "base_rates": 3},
        {"kind": "laplace", "scale": {"median": 1.0, "sd": 1.0}, "base_rates": {}},
        {"kind": "laplace", "scale": -1.0, "base_rates": {}},
        {"kind": "normal", "df": 3.0, "base_rates": {}},
        {"kind": ["laplace"]},
    ],
)
def test_a_file_with_a_broken_prior_is_refused(stored):
    with pytest.raises(InputError):
        read_prior(stored)


@dataclass(frozen=True)
class Improper:
    """A normal prior in which the function of quantiles or the density is wrong.

    The field `broken` says in which way; "none" leaves it correct.
    """

    broken: str
    scale: float = 1.0
    base_rates: BaseRates = field(default_factory=BaseRates)
    kind: ClassVar[str] = "improper"

    def quantile(self, z):
        return {
            "infinite": np.where(z > 5.0, np.inf, z),
            "flat": np.minimum(z, 5.0),
            "falling": np.sin(z),
            "nan": np.where(z > 5.0, np.nan, z),
            "density": z.copy(),
            "none": z.copy(),
        }[self.broken]

    def log_density(self, x):
        log_f = -0.5 * x * x - 0.5 * np.log(2.0 * np.pi)
        return np.where(x > 3.0, -np.inf, log_f) if self.broken == "density" else log_f


@pytest.mark.parametrize("broken", ["infinite", "flat", "falling", "nan", "density"])
@pytest.mark.filterwarnings("ignore:overflow")
def test_an_improper_prior_is_refused(broken):
    with pytest.raises(InputError, match="is not proper"):
        prior_shape(as_prior(Improper(broken)))


def test_a_prior_of_ones_own_is_welcome():
    np.testing.assert_array_equal(
        prior_shape(as_prior(Improper("none"))).nodes, prior_shape(Normal(scale=1.0)).nodes
    )
