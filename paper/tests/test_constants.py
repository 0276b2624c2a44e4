"""Figure 5: compare the constants of Theorem 1 with mpmath, and with sums over all counts."""

import json
import math

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import digamma, polygamma
from scipy.stats import binom

from sequela_paper import Settings, find_experiment, make

TIMES = [0.5, 1.0, 2.0, 4.0]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fig5") / "x"
    return folder, make("fig5", Settings(quick=True), folder, backend="threads", workers=1)


@pytest.fixture(scope="module")
def tables(made):
    folder, found = made
    return {name: pd.read_csv(folder / f"{name}.csv") for name in found.record["tables"]}


def beta_moments(w, m, k):
    """Return mean and variance of T. By Lemma 1, exp(-w T) is Beta(1/w + m - k, k + 1)."""
    alpha, total = 1.0 / w + m - k, 1.0 / w + m + 1.0
    mean = (digamma(total) - digamma(alpha)) / w
    return mean, (polygamma(1, alpha) - polygamma(1, total)) / w**2


def test_files_and_verdict(made):
    folder, found = made
    for suffix in ("csv", "svg", "pdf", "png", "json"):
        assert (folder / f"fig5.{suffix}").stat().st_size > 0
    assert found.verdict.holds is True
    assert json.loads((folder / "fig5.json").read_text())["holds"] is True


def test_curves_are_the_closed_forms(tables):
    table = tables["fig5"]
    assert sorted(table["t"].unique()) == TIMES
    for row in table.iloc[::7].itertuples():
        w, t = mpmath.mpf(row.w), mpmath.mpf(row.t)
        # The formulas are those printed in appendix B of the paper.
        assert float(mpmath.exp(w * t) / w) == pytest.approx(row.C1, rel=1e-12)
        C2 = (2 - mpmath.exp(-w * t)) / (w**2 * mpmath.exp(-w * t))
        assert float(C2) == pytest.approx(row.C2, rel=1e-12)


def test_minima_are_where_the_derivatives_vanish(tables):
    """C1 is smallest at w t = 1, and C2 where (2 - w t) exp(w t) = 1."""
    x = float(mpmath.findroot(lambda x: (2 - x) * mpmath.exp(x) - 1, 1.8))
    for row in tables["fig5_best"].itertuples():
        assert row.w == pytest.approx((1.0 if row.constant == "C1" else x) / row.t, rel=1e-6)
        curve = tables["fig5"].query(f"t == {row.t}")
        assert row.value <= curve[row.constant].min()
        assert row.value == pytest.approx(curve[row.constant].min(), rel=0.02)


def test_lemma_of_this_test_is_an_integral():
    w, m, k = 0.92, 60, 25

    def moment(power):
        return quad(
            lambda t: t**power * (1 - math.exp(-w * t)) ** k * math.exp(-t * (1 + w * (m - k))),
            0, 30, epsabs=0.0, epsrel=1e-10, limit=200,
        )[0]  # fmt: skip

    mean = moment(1) / moment(0)
    variance = moment(2) / moment(0) - mean**2
    np.testing.assert_allclose(beta_moments(w, m, k), [mean, variance], rtol=1e-7)


def test_drawn_variances_are_those_of_all_draws(tables):
    """Means over draws agree with exact sums over all k, within 5 standard errors."""
    for row in tables["fig5_theorem"].itertuples():
        k = np.arange(row.m + 1)
        chance = binom.pmf(k, row.m, -math.expm1(-row.w * row.t))
        mean, variance = beta_moments(row.w, row.m, k)
        expected = row.m * float(chance @ variance)
        spread = row.m * math.sqrt(float(chance @ (variance - chance @ variance) ** 2) / row.draws)
        assert row.m_variance == pytest.approx(expected, abs=5 * spread)
        if row.enough:
            C1, C2 = math.exp(row.w * row.t) / row.w, row.C2
            in_mean = np.abs(mean - row.t) <= C1 * math.sqrt(math.log(row.m) / row.m)
            # By Theorem 1 the probability is at least 1 - 2/m^2, apart from its O() terms.
            assert float(chance @ in_mean) > 1 - 1e-5
            assert float(chance @ (variance <= C2 / row.m)) > 1 - 1e-5
            assert row.mean_held == row.variance_held == 1.0


def test_m_times_variance_has_its_limit(tables):
    """With 10^10 items, m times the variance is near (exp(w t) - 1) / w^2, which is below C2."""
    for row in tables["fig5_theorem"].itertuples():
        assert row.limit == pytest.approx((math.exp(row.w * row.t) - 1) / row.w**2)
        assert row.limit < row.C2
        m = 10**10
        k = round(m * -math.expm1(-row.w * row.t))
        assert m * beta_moments(row.w, m, k)[1] == pytest.approx(row.limit, rel=1e-3)


def test_enough_is_the_step_of_the_proof(tables):
    """The column `enough` means that 1 - r >= exp(-w t) / 2 for all r that Lemma 2 allows.

    Here r is the share of the items that are present. The proof of Theorem 1 needs this inequality.
    """
    for row in tables["fig5_theorem"].itertuples():
        left = math.exp(-row.w * row.t) - math.sqrt(math.log(row.m) / row.m)
        assert row.enough == (left >= math.exp(-row.w * row.t) / 2)
    assert 0 < tables["fig5_theorem"]["enough"].sum() < len(tables["fig5_theorem"])


def test_verdict_needs_falling_rates_and_bounds(tables):
    judge = find_experiment("fig5").judge
    assert judge(tables).holds is True
    best, trials = tables["fig5_best"], tables["fig5_theorem"]
    assert judge({**tables, "fig5_best": best.assign(w=best["t"])}).holds is False
    assert judge({**tables, "fig5_best": best.assign(value=1.0)}).holds is False
    assert judge({**tables, "fig5_theorem": trials.assign(mean_held=0.9)}).holds is False
    doubled = trials.assign(m_variance=2 * trials["m_variance"])
    assert judge({**tables, "fig5_theorem": doubled}).holds is False
    turned = trials.assign(m_variance=trials["limit"] / trials["w"] ** 3)
    assert judge({**tables, "fig5_theorem": turned}).holds is False


def test_the_picture_shows_the_table(tables):
    figure = find_experiment("fig5").draw(tables)
    for ax, name in zip(figure.axes, ("C1", "C2"), strict=True):
        assert ax.get_xscale() == ax.get_yscale() == "log"
        curves, markers = ax.lines[::2], ax.lines[1::2]
        for t, curve, marker in zip(TIMES, curves, markers, strict=True):
            rows = tables["fig5"].query(f"t == {t}")
            np.testing.assert_array_equal(curve.get_ydata(), rows[name])
            low, high = ax.get_ylim()
            assert low < marker.get_ydata()[0] < high
            assert curve.get_label() == f"t* = {t:g}"
