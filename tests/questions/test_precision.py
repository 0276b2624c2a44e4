"""The number of draws that are needed to reach a target for the standard error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequela import BudgetError, InputError
from sequela.questions import Estimate
from sequela.questions.precision import (
    BATCHES,
    MAX_DRAWS,
    batch_of_draws,
    fill_by_simulation,
    jackknife_error,
    settings_for_orders,
    until_precise,
)
from sequela.settings import Sampling, Settings

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)


class Sampler:
    """A made-up question. Its answer is the number of draws, with the error of a mean.

    `sd` is the standard deviation of one draw. The error is known after `seen_after` draws.
    """

    def __init__(self, sd=1.0, seen_after=0):
        self.sd = sd
        self.seen_after = seen_after
        self.asked = []

    def __call__(self, size):
        assert isinstance(size, int)
        self.asked.append(size)
        return size

    def error(self, size):
        return self.sd / math.sqrt(size) if size > self.seen_after else math.inf

    def answer(self, draws=None, target_se=None, **options):
        how = Settings(draws=draws, target_se=target_se, random_state=1)
        return until_precise(self, self.error, how, **{"default": 777, **options})


def test_draws_as_given_or_by_default():
    assert Sampler().answer() == 777
    sampler = Sampler()
    assert sampler.answer(12) == 12
    assert sampler.asked == [12]


@quick
@given(st.floats(0.01, 100.0), st.floats(0.001, 1.0))
def test_a_target_is_reached_with_about_the_draws_it_takes(sd, target):
    sampler = Sampler(sd)
    needed = (sd / target) ** 2
    if 1.1 * needed > MAX_DRAWS:
        with pytest.raises(BudgetError, match="cannot be reached"):
            sampler.answer(target_se=target)
        assert max(sampler.asked) <= MAX_DRAWS
        return
    size = sampler.answer(target_se=target)
    assert sampler.error(size) <= target
    assert size <= max(10_000, 1.11 * needed + 1)
    assert len(sampler.asked) <= 2


def test_a_target_that_is_met_at_once_takes_the_first_draws():
    assert Sampler().answer(target_se=1.0) == 10_000
    assert Sampler().answer(target_se=1.0, first=50) == 50
    assert Sampler().answer(target_se=1.0, first=50, max_draws=20) == 20


def test_what_is_seen_late_is_waited_for():
    sampler = Sampler(seen_after=500_000)
    assert sampler.answer(target_se=0.01) > 500_000
    assert sampler.asked == sorted(sampler.asked)


def test_what_is_never_seen_ends():
    sampler = Sampler(seen_after=math.inf)
    with pytest.raises(BudgetError, match=r"0.01 cannot be reached: in .* never observed"):
        sampler.answer(target_se=0.01)
    assert max(sampler.asked) <= MAX_DRAWS
    assert len(sampler.asked) < 10


def test_an_error_that_is_no_number_counts_as_never_seen():
    with pytest.raises(BudgetError, match="never observed"):
        until_precise(
            lambda size: size, lambda _: math.nan, Settings(target_se=0.1), max_draws=10**6
        )


def test_an_error_that_does_not_fall_ends():
    """If the error does not decrease with more draws, the search for enough draws must end."""
    asked = []
    with pytest.raises(BudgetError, match=r"more than the limit of 1,000,000\. Use a larger"):
        until_precise(
            lambda size: asked.append(size) or size,
            lambda _: 0.11,
            Settings(target_se=0.1),
            max_draws=10**6,
        )
    assert max(asked) <= 10**6


def test_out_of_reach_says_what_it_would_take():
    with pytest.raises(BudgetError) as error:
        Sampler().answer(target_se=1e-5)
    assert str(error.value) == (
        "target_se 1e-05 cannot be reached: after 10,000 draws the standard error is 0.01, and "
        "about 1e+10 draws would be needed, more than the limit of 20,000,000. Use a larger "
        "value"
    )


@pytest.mark.parametrize("draws", [0, 1, -5, 2.5, "many", True])
def test_what_is_no_number_of_draws(draws):
    with pytest.raises(InputError, match="draws is"):
        Sampler().answer(draws)


@pytest.mark.parametrize("target", [0, 0.0, -0.1, math.nan, math.inf, "small", True, [0.1]])
def test_what_is_no_target(target):
    with pytest.raises(InputError, match=r"target_se is .*; expected a positive number"):
        Sampler().answer(target_se=target)


def test_both():
    sampler = Sampler()
    with pytest.raises(InputError, match=r"draws \(10\) and target_se \(0\.1\) were both given"):
        sampler.answer(10, 0.1)
    assert not sampler.asked


@pytest.mark.parametrize(("draws", "sweeps"), [(2, 1), (8, 1), (9, 2), (1600, 200)])
def test_orders_are_drawn_by_all_chains(draws, sweeps):
    how = Settings(sampling=Sampling(chains=8, block=3), target_se=0.1, random_state=4)
    found = settings_for_orders(how, draws)
    assert (found.sampling.sweeps, found.sampling.chains, found.sampling.block) == (sweeps, 8, 3)
    assert (found.draws, found.target_se, found.seed) == (None, None, 4)


def test_batches_and_the_jackknife_of_a_mean():
    values = np.random.default_rng(1).normal(size=(600, 3))
    batch = batch_of_draws(600)
    assert np.bincount(batch).tolist() == [30] * BATCHES
    without = np.array([values[batch != b].mean(axis=0) for b in range(BATCHES)])
    means = np.array([values[batch == b].mean(axis=0) for b in range(BATCHES)])
    expected = means.std(axis=0, ddof=1) / np.sqrt(BATCHES)
    np.testing.assert_allclose(jackknife_error(without), expected, rtol=1e-10)


def test_only_what_is_missing_is_simulated():
    exact = np.array([0.25, np.nan, 1.0])

    def count_hits(draws):
        return np.array([draws, draws // 2, 0])

    shares = fill_by_simulation(exact, count_hits, Settings(draws=400, random_state=3))
    assert shares.probability.tolist() == [0.25, 0.5, 1.0]
    assert shares.method.tolist() == ["exact", "simulation", "exact"]
    assert shares.se[[0, 2]].tolist() == [0.0, 0.0]
    assert shares.se[1] == pytest.approx(0.025, rel=1e-2)
    assert (shares.draws, shares.seed) == (400, 3)
    known = fill_by_simulation(exact[[0, 2]], count_hits, Settings(draws=400, random_state=3))
    assert (known.draws, known.seed) == (0, None)
    reached = fill_by_simulation(exact, count_hits, Settings(target_se=0.001, random_state=3))
    assert reached.se.max() <= 0.001


def test_an_estimate_reads_as_a_number():
    sampled = Estimate(0.123456789, 0.0123, "simulation", 100, 7)
    assert float(sampled) == 0.123456789
    assert str(sampled) == "0.123457 ± 0.012"
    assert str(Estimate(0.25)) == "0.25"
    assert Estimate(0.25) == Estimate(0.25, 0.0, "exact", 0, None)
    assert f"{float(sampled):.2f}" == "0.12"
