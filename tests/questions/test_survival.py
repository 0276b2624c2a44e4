"""Kaplan-Meier curves and the log-rank test: compare with their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequela import InputError
from sequela.questions import kaplan_meier, log_rank

SAMPLES = st.lists(
    st.tuples(st.integers(0, 12), st.booleans(), st.integers(0, 2)), min_size=1, max_size=40
)


def by_definition(times, events, at):
    """Return the survival at the time `at`.

    It is the product of 1 - deaths / (number at risk) over all times of deaths up to `at`.
    """
    share = 1.0
    for t in sorted({x for x, e in zip(times, events, strict=True) if e and x <= at}):
        deaths = sum(e and x == t for x, e in zip(times, events, strict=True))
        share *= 1.0 - deaths / sum(x >= t for x in times)
    return share


@settings(max_examples=60, deadline=None)
@given(SAMPLES)
def test_the_curve_is_the_product_over_events(samples):
    times, events, _ = zip(*samples, strict=True)
    curve = kaplan_meier(times, events)
    for t, row in curve.iterrows():
        assert row["survival"] == pytest.approx(by_definition(times, events, t))
        assert 0.0 <= row["low"] <= row["survival"] + 1e-12 <= row["high"] + 2e-12 <= 1.0 + 3e-12
        assert row["at_risk"] == sum(x >= t for x in times)
    assert (np.diff(curve["survival"]) <= 0).all()
    assert curve.index[0] == 0.0


def test_intervals_are_those_of_greenwood():
    """Compute the interval of Greenwood by hand for eight samples with two deaths.

    The variance of log S, where S is the survival, is 1 / (8 * 7) + 1 / (6 * 5).
    """
    curve = kaplan_meier([1, 2, 3, 4, 5, 6, 7, 8], [1, 0, 1, 0, 0, 0, 0, 0])
    share = 7 / 8 * 5 / 6
    wide = 1.959963984540054 * np.sqrt(1 / 56 + 1 / 30) / -np.log(share)
    assert curve.loc[3.0, "survival"] == pytest.approx(share)
    assert curve.loc[3.0, "low"] == pytest.approx(share ** np.exp(wide))
    assert curve.loc[3.0, "high"] == pytest.approx(share ** np.exp(-wide))


@settings(max_examples=40, deadline=None)
@given(SAMPLES)
def test_two_groups_have_the_textbook_statistic(samples):
    times, events, groups = (np.array(x) for x in zip(*samples, strict=True))
    groups = np.minimum(groups, 1)
    if len(set(groups)) < 2:
        return
    observed = expected = variance = 0.0
    for t in sorted(set(times[events])):
        n, n1 = np.sum(times >= t), np.sum((times >= t) & (groups == 1))
        d, d1 = np.sum(events & (times == t)), np.sum(events & (times == t) & (groups == 1))
        observed += d1
        expected += d * n1 / n
        if n > 1:
            variance += d * (n1 / n) * (1 - n1 / n) * (n - d) / (n - 1)
    found = log_rank(times, events, groups)
    if variance > 1e-12:
        assert found.statistic == pytest.approx((observed - expected) ** 2 / variance, abs=1e-9)
    assert found == pytest.approx(log_rank(times, events, 1 - groups), abs=1e-9)


def test_p_values_are_uniform_if_survival_is_the_same():
    """About 10% of 1,000 p-values are below 0.1. The limits are 4 standard deviations from 10%."""
    rng = np.random.default_rng(1)
    p = [
        log_rank(
            rng.exponential(size=60), rng.random(60) < 0.7, rng.integers(0, 3, size=60)
        ).p_value
        for _ in range(1000)
    ]
    assert 0.062 < np.mean(np.array(p) < 0.1) < 0.138


def test_it_agrees_with_lifelines():
    lifelines = pytest.importorskip("lifelines", reason="lifelines is not installed")
    from lifelines.statistics import multivariate_logrank_test

    rng = np.random.default_rng(2)
    times, events = rng.exponential(size=90).round(1), rng.random(90) < 0.6
    groups = rng.integers(0, 3, size=90)
    theirs = lifelines.KaplanMeierFitter().fit(times, events)
    mine = kaplan_meier(times, events)
    np.testing.assert_allclose(mine["survival"], theirs.survival_function_.iloc[:, 0])
    inner = mine["survival"].between(1e-9, 1 - 1e-9).to_numpy()
    np.testing.assert_allclose(
        mine[["low", "high"]].to_numpy()[inner], theirs.confidence_interval_.to_numpy()[inner]
    )
    test = multivariate_logrank_test(times, groups, events)
    assert log_rank(times, events, groups) == pytest.approx((test.test_statistic, test.p_value))


def test_bad_samples_are_refused():
    with pytest.raises(InputError, match="negative or not finite"):
        kaplan_meier([1.0, -1.0], [True, True])
    with pytest.raises(InputError, match="one entry per sample"):
        kaplan_meier([1.0], [True, True])
    with pytest.raises(InputError, match="one group"):
        log_rank([1.0, 2.0], [True, True], [0, 0])
    with pytest.raises(InputError, match="level is 2"):
        kaplan_meier([1.0], [True], level=2)
