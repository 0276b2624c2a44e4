"""From a target for the standard error to a number of draws."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequela import BudgetError, Estimate, InputError
from sequela.questions.precision import MOST_DRAWS, check_precision, until_precise

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)


class Sampler:
    """Answers with the number of draws; its error is that of a mean."""

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
        return until_precise(self, self.error, draws, target_se, **{"default": 777, **options})


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
    if 1.1 * needed > MOST_DRAWS:
        with pytest.raises(BudgetError, match="cannot be reached"):
            sampler.answer(target_se=target)
        assert max(sampler.asked) <= MOST_DRAWS
        return
    size = sampler.answer(target_se=target)
    assert sampler.error(size) <= target
    assert size <= max(10_000, 1.11 * needed + 1)
    assert len(sampler.asked) <= 2


def test_a_target_that_is_met_at_once_takes_the_first_draws():
    assert Sampler().answer(target_se=1.0) == 10_000
    assert Sampler().answer(target_se=1.0, first=50) == 50
    assert Sampler().answer(target_se=1.0, first=50, most=20) == 20


def test_what_is_seen_late_is_waited_for():
    sampler = Sampler(seen_after=500_000)
    assert sampler.answer(target_se=0.01) > 500_000
    assert sampler.asked == sorted(sampler.asked)


def test_what_is_never_seen_ends():
    sampler = Sampler(seen_after=math.inf)
    with pytest.raises(BudgetError, match=r"target_se=0.01 cannot be reached: in .* never seen"):
        sampler.answer(target_se=0.01)
    assert max(sampler.asked) <= MOST_DRAWS
    assert len(sampler.asked) < 10


def test_an_error_that_is_no_number_counts_as_never_seen():
    with pytest.raises(BudgetError, match="never seen"):
        until_precise(lambda size: size, lambda _: math.nan, None, 0.1, default=10, most=10**6)


def test_an_error_that_does_not_fall_ends():
    """Chains that do not mix: more draws do not help, and the search must not go on for ever."""
    asked = []
    with pytest.raises(BudgetError, match=r"at most 1,000,000 are made. Ask for a larger one"):
        until_precise(
            lambda size: asked.append(size) or size,
            lambda _: 0.11,
            None,
            0.1,
            default=10,
            most=10**6,
        )
    assert max(asked) <= 10**6


def test_out_of_reach_says_what_it_would_take():
    with pytest.raises(BudgetError) as error:
        Sampler().answer(target_se=1e-5)
    assert str(error.value) == (
        "target_se=1e-05 cannot be reached: after 10,000 draws the standard error is 0.01, and "
        "about 1e+10 draws would be needed; at most 20,000,000 are made. Ask for a larger one"
    )


@pytest.mark.parametrize("draws", [0, 1, -5, 2.5, "many", True])
def test_what_is_no_number_of_draws(draws):
    with pytest.raises(InputError, match="draws is"):
        check_precision(draws, None)
    with pytest.raises(InputError, match="draws is"):
        Sampler().answer(draws)


@pytest.mark.parametrize("target", [0, 0.0, -0.1, math.nan, math.inf, "small", True, [0.1]])
def test_what_is_no_target(target):
    with pytest.raises(InputError, match=r"target_se is .*; expected a positive number"):
        check_precision(None, target)
    with pytest.raises(InputError, match="target_se is"):
        Sampler().answer(target_se=target)


def test_both():
    with pytest.raises(InputError, match=r"draws=10 and target_se=0\.1 were both given"):
        check_precision(10, 0.1)
    sampler = Sampler()
    with pytest.raises(InputError, match="both given"):
        sampler.answer(10, 0.1)
    assert not sampler.asked


def test_an_estimate_reads_as_a_number():
    sampled = Estimate(0.123456789, 0.0123, "simulation", 100, 7)
    assert float(sampled) == 0.123456789
    assert str(sampled) == "0.123457 ± 0.012"
    assert str(Estimate(0.25)) == "0.25"
    assert Estimate(0.25) == Estimate(0.25, 0.0, "exact", 0, None)
    assert f"{float(sampled):.2f}" == "0.12"
