"""The posterior of the observation time: compare with sums of exponentials and integrals."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.integrate import quad

import reference
from questions.enumeration import observed
from sequela import BudgetError, Dataset, InputError, Model, questions
from sequela.budget import Budget
from sequela.likelihood import components, grid_distribution
from sequela.likelihood.component_cost import has_small_components
from sequela.likelihood.parameters import Parameters

quick = settings(max_examples=25, deadline=None, derandomize=True, database=None)
SAMPLED = Budget(work=1.0)
RATES = [1.0, 0.2, 5.0]


def labels(S):
    return [str(item) for item in S]


@st.composite
def cases(draw, scale=3.0, most=5):
    n = draw(st.integers(1, 6))
    entries = st.floats(-scale, scale)
    theta = np.array(draw(st.lists(entries, min_size=n * n, max_size=n * n))).reshape(n, n)
    S = draw(st.sets(st.integers(0, n - 1), max_size=most))
    return theta, sorted(S), draw(st.sampled_from(RATES))


class Truth:
    """The density p(t | S) as a sum of exponentials in mpmath, which is precise for any rates.

    Let p(R, t) be the probability that at time t the process is in R and was not yet observed. Its
    derivative by t is the sum over the items c of R of q(R - c -> R) p(R - c, t), minus D(R)
    p(R, t). So p(R, t) is the sum of a(R, T) exp(-D(T) t) over all subsets T of R.
    """

    def __init__(self, theta, S, rate, digits=250):
        S = frozenset(S)
        self.digits = digits
        with mp.workdps(digits):
            exact = reference._mp_matrix(theta)
            subsets = list(reference._subsets(S))
            D = [mp.mpf(rate) + reference._mp_exit_rate(exact, R) for R in subsets]
            D = dict(zip(subsets, reference._separated(D), strict=True))
            a = {(subsets[0], subsets[0]): mp.mpf(1)}
            for R in subsets[1:]:
                inflow = {c: reference._mp_rate(exact, R - {c}, c) for c in R}
                for T in reference._subsets(R):
                    if T != R:
                        paths = mp.fsum(q * a[R - {c}, T] for c, q in inflow.items() if c not in T)
                        a[R, T] = paths / (D[R] - D[T])
                a[R, R] = -mp.fsum(a[R, T] for T in reference._subsets(R) if T != R)
            self.terms = [(a[S, T], D[T]) for T in subsets]
            self.total = mp.fsum(c / d for c, d in self.terms)

    def _sum(self, f):
        with mp.workdps(self.digits):
            return float(mp.fsum(f(c, d) for c, d in self.terms) / self.total)

    def density(self, t):
        return self._sum(lambda c, d: c * mp.exp(-d * mp.mpf(t)))

    def before(self, t):
        return self._sum(lambda c, d: -c * mp.expm1(-d * mp.mpf(t)) / d)

    def moments(self):
        mean = self._sum(lambda c, d: c / d**2)
        return mean, self._sum(lambda c, d: c * (2 / d**3 - 2 * mean / d**2 + mean**2 / d))


def check(theta, S, rate, digits=250):
    truth = Truth(theta, S, rate, digits)
    found = questions.time_posterior(observed(theta, rate), labels(S))
    assert (found.method, found.mean_se, found.draws, found.seed) == ("exact", 0.0, 0, None)
    mean, variance = truth.moments()
    assert found.mean == pytest.approx(mean, rel=1e-11)
    assert found.variance == pytest.approx(variance, rel=1e-10)
    sd = np.sqrt(variance)
    quantiles = found.quantile([0.001, 0.05, 0.5, 0.95, 0.999])
    assert (quantiles["se"] == 0).all()
    assert quantiles.index.name == "probability"
    for probability, t in quantiles["time"].items():
        assert truth.before(t) == pytest.approx(probability, rel=1e-9)
    times = np.array([0.01 * mean, 0.3 * mean, mean, mean + sd, mean + 6 * sd])
    table = found.density(times)
    assert (table["se"] == 0).all()
    for t, row in zip(times, table.itertuples(), strict=True):
        assert row.density * sd == pytest.approx(truth.density(t) * sd, rel=1e-8, abs=1e-11)
        assert row.cumulative == pytest.approx(truth.before(t), rel=1e-8, abs=1e-11)


# --- The exact time of one sample -----------------------------------------------------------------


@given(cases())
@quick
def test_distribution_of_the_time(case):
    check(*case)


@given(cases(scale=8.0, most=4))
@quick
def test_large_and_tiny_rates(case):
    check(*case)


@given(cases(scale=30.0, most=3))
@settings(quick, max_examples=15)
def test_extreme_rates(case):
    check(*case, digits=600)


@given(cases(most=4))
@settings(quick, max_examples=10)
def test_against_the_dense_exponential_and_quadrature(case):
    theta, S, rate = case
    found = questions.time_posterior(observed(theta, rate), labels(S))
    mean, variance = reference.posterior_time_moments(theta, S, rate)
    assert (found.mean, found.variance) == pytest.approx((mean, variance), rel=1e-10)
    times = mean * np.array([0.2, 1.0, 2.0])
    for t, density in found.density(times)["density"].items():
        truth = reference.posterior_time_density(theta, S, t, rate)
        assert density == pytest.approx(truth, rel=1e-7, abs=1e-8 / mean)


def test_density_has_the_integral_and_the_moments_that_are_reported():
    theta = reference.random_theta(np.random.default_rng(3), 5)
    found = questions.time_posterior(theta, labels([0, 2, 4]))
    grid = found.density()
    assert grid.index[0] == 0.0
    assert grid.index.is_monotonic_increasing
    assert np.trapezoid(grid["density"], grid.index) == pytest.approx(1, abs=1e-3)
    assert grid["cumulative"].iloc[-1] == pytest.approx(1, abs=1e-8)

    def moment(power):
        return quad(lambda t: t**power * found.density([t])["density"].iloc[0], 0, 60, limit=200)[0]

    assert moment(0) == pytest.approx(1, abs=1e-7)
    assert moment(1) == pytest.approx(found.mean, rel=1e-7)
    assert moment(2) == pytest.approx(found.variance + found.mean**2, rel=1e-6)


@pytest.mark.parametrize("rate", RATES)
def test_empty_set_is_exponential(rate):
    theta = reference.random_theta(np.random.default_rng(4), 4)
    found = questions.time_posterior(observed(theta, rate), [])
    D = rate + np.exp(np.diagonal(theta)).sum()
    assert (found.mean, found.variance) == pytest.approx((1 / D, 1 / D**2))
    times = np.array([0.0, 1e-300, 1e-9, 0.1 / D, 3 / D])
    table = found.density(times)
    np.testing.assert_allclose(table["density"], D * np.exp(-D * times), rtol=1e-10)
    np.testing.assert_allclose(table["cumulative"], -np.expm1(-D * times), rtol=1e-10, atol=1e-299)
    assert found.quantile([0.5])["time"].iloc[0] == pytest.approx(np.log(2) / D, rel=1e-10)


@pytest.mark.parametrize("S", [[], [1], [0, 2], [0, 1, 2, 3]])
@pytest.mark.parametrize("rate", RATES)
def test_independent_items_have_a_closed_form(S, rate):
    w = np.array([0.3, 2.0, 0.9, 40.0])

    def unnormalised(t):
        arrived = np.prod([-np.expm1(-w[j] * t) for j in S])
        return np.exp(-t * (rate + sum(w[j] for j in range(4) if j not in S))) * arrived

    found = questions.time_posterior(observed(np.diag(np.log(w)), rate), labels(S))
    ends = [0.0, 0.05, 0.5, 3.0, 20.0, 200.0]
    total = sum(quad(unnormalised, a, b, epsrel=1e-11)[0] for a, b in itertools.pairwise(ends))
    times = np.array([0.01, 0.1, 1.0, 4.0])
    table = found.density(times)
    truth = np.array([unnormalised(t) / total for t in times])
    np.testing.assert_allclose(table["density"], truth, rtol=1e-8, atol=1e-12 * truth.max())
    before = [quad(unnormalised, 0, t, epsrel=1e-11)[0] / total for t in times]
    np.testing.assert_allclose(table["cumulative"], before, rtol=1e-7)


@given(cases(), st.randoms(use_true_random=False))
@settings(quick, max_examples=15)
def test_relabelling_changes_nothing(case, random):
    theta, S, rate = case
    order = random.sample(range(len(theta)), len(theta))
    turned = observed(theta[np.ix_(order, order)], rate, labels(order))
    one = questions.time_posterior(observed(theta, rate), labels(S))
    two = questions.time_posterior(turned, labels(S))
    assert (one.mean, one.variance) == pytest.approx((two.mean, two.variance), rel=1e-11)
    times = np.array([0.3, 1.0, 2.5]) * one.mean
    np.testing.assert_allclose(one.density(times), two.density(times), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("rate", RATES)
def test_blocks_are_independent_given_the_time(rate):
    rng = np.random.default_rng(5)
    a, b = reference.random_theta(rng, 3), reference.random_theta(rng, 2)
    both = np.block([[a, np.zeros((3, 2))], [np.zeros((2, 3)), b]])
    times = np.geomspace(0.05, 5.0, 9) / max(rate, 1.0)

    def density(theta, S):
        found = questions.time_posterior(observed(theta, rate), labels(S))
        return found.density(times)["density"].to_numpy()

    # For sets A and B of the two blocks, p(t | A, B) is proportional to p(A | t) p(B | t) p(t). The
    # product of p(t | A) and p(t | B) has the factor p(t) twice, so divide by p(t) once.
    product = density(a, [0, 2]) * density(b, [1]) / np.exp(-rate * times)
    ratio = density(both, [0, 2, 4]) / product
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-8)


def test_the_unit_of_time_is_free():
    theta = reference.random_theta(np.random.default_rng(6), 4)
    slow = questions.time_posterior(theta, ["0", "3"])
    faster = observed(theta + np.eye(4) * np.log(7), 7.0)
    fast = questions.time_posterior(faster, ["0", "3"])
    assert fast.mean * 7 == pytest.approx(slow.mean)
    assert fast.variance * 49 == pytest.approx(slow.variance)
    assert fast.quantile()["time"].to_numpy() * 7 == pytest.approx(
        slow.quantile()["time"].to_numpy()
    )


def test_how_a_sample_may_be_named():
    theta = reference.random_theta(np.random.default_rng(7), 3)
    model = Model(theta, ["a", "b", "c"])
    truth = questions.time_posterior(model, {"a", "c"}).mean
    row = pd.Series([True, True, False], index=["c", "a", "b"])
    for sample in (["c", "a"], ("a", "c"), [True, False, True], row, np.array([True, False, True])):
        assert questions.time_posterior(model, sample).mean == truth
    assert questions.time_posterior(theta, [0, 2]).mean == truth
    assert "mean" in repr(questions.time_posterior(model, {"a"}))


# --- Beyond the budget ----------------------------------------------------------------------------


def test_sampled_posterior_is_right_within_calibrated_errors():
    theta = reference.random_theta(np.random.default_rng(8), 9, scale=1.5)
    S = labels(range(8))
    exact = questions.time_posterior(theta, S)
    probabilities, times = [0.05, 0.5, 0.95], np.array([0.5, 1.0, 2.0]) * exact.mean
    quantiles = exact.quantile(probabilities)["time"].to_numpy()
    densities = exact.density(times)
    z, variances = [], []
    for seed in range(16):
        found = questions.time_posterior(theta, S, budget=SAMPLED, random_state=seed)
        assert (found.method, found.draws, found.seed) == ("relocation", 320, seed)
        assert found.variance == pytest.approx(exact.variance, rel=0.3)
        variances.append(found.variance)
        at, between = found.quantile(probabilities), found.density(times)
        np.testing.assert_allclose(between["cumulative"], densities["cumulative"], atol=0.05)
        z.append([
            (found.mean - exact.mean) / found.mean_se,
            *(at["time"].to_numpy() - quantiles) / at["se"].to_numpy(),
            *((between["density"] - densities["density"]) / between["se"]).to_numpy(),
        ])  # fmt: skip
    # Standard errors come from 16 chains. So z has a t distribution with 15 degrees of freedom, and
    # z^2 has the mean 15/13. For each column, the mean of z^2 over 16 runs is outside these limits
    # with a probability of about 0.001.
    spread = np.mean(np.square(z), axis=0)
    assert np.all(spread < 3.2)
    assert np.all(spread > 0.2)
    assert np.all(np.abs(z) < 6)
    off = np.mean(variances) - exact.variance
    assert abs(off) < 5 * np.std(variances) / np.sqrt(len(variances))


def test_target_for_the_standard_error():
    theta = reference.random_theta(np.random.default_rng(9), 8, scale=2.0)
    S = labels(range(7))
    exact = questions.time_posterior(theta, S)
    first = questions.time_posterior(theta, S, budget=SAMPLED, random_state=1)
    target = first.mean_se / 3
    found = questions.time_posterior(theta, S, budget=SAMPLED, target_se=target, random_state=1)
    assert found.mean_se <= target
    assert found.draws > 4 * first.draws
    assert abs(found.mean - exact.mean) < 6 * target
    same = questions.time_posterior(theta, S, budget=SAMPLED, draws=found.draws, random_state=1)
    assert (same.mean, same.mean_se) == (found.mean, found.mean_se)
    with pytest.raises(BudgetError, match=r"target_se 1e-12 cannot be reached"):
        questions.time_posterior(theta, S, budget=SAMPLED, target_se=1e-12, random_state=1)
    assert questions.time_posterior(theta, S, target_se=1e-12).method == "exact"


# --- Many samples ---------------------------------------------------------------------------------


def table_of_samples(rate=1.0):
    rng = np.random.default_rng(10)
    model = observed(reference.random_theta(rng, 6), rate, list("abcdef"))
    values = rng.random((20, 6)) < 0.5
    values[3], values[4] = values[0], True
    values[5] = False
    return model, Dataset(values, items=model.items, samples=[f"s{i}" for i in range(20)])


def test_pseudo_times_are_the_posteriors_of_the_rows():
    model, data = table_of_samples(rate=2.0)
    table = questions.pseudo_times(model, data, quantiles=[0.025, 0.5])
    assert list(table.columns) == ["size", "mean", "sd", "se", "q02.5", "q50", "method"]
    assert list(table.index) == list(data.samples)
    assert table.attrs == {"draws": 0, "seed": None}
    for row, values in zip(table.itertuples(index=False), data.values, strict=True):
        one = questions.time_posterior(model, values)
        assert list(row[:4]) == [values.sum(), one.mean, np.sqrt(one.variance), 0.0]
        # The two functions compute quantiles by different methods: `pseudo_times` by an integral,
        # and `time_posterior` by an inverse Laplace transform.
        assert row[4:6] == pytest.approx(one.quantile([0.025, 0.5])["time"].to_list(), rel=1e-8)
        assert row[6] == "exact"


def test_pseudo_times_of_many_small_sets():
    """Sets that are computed together get the same times as sets that are computed one by one."""
    rng = np.random.default_rng(5)
    n = 14
    theta = np.diag(rng.normal(-0.5, 1.5, n))
    for _ in range(16):
        i, j = rng.choice(n, 2, replace=False)
        theta[i, j] = rng.normal(0.0, 1.5)
    # All items act on item 13. If item 13 is absent, its rate couples all items of the set, so the
    # set has a single component.
    theta[:, 13] = 1.0
    X = rng.random((90, n)) < rng.random((90, 1))
    table = questions.pseudo_times(theta, X, quantiles=[0.05, 0.5, 0.95])
    chosen = [has_small_components(Parameters(theta), np.nonzero(row)[0]) for row in X]
    assert 20 < sum(chosen) < 85
    for row in range(0, 90, 3):
        one = questions.time_posterior(theta, X[row])
        expected = one.quantile([0.05, 0.5, 0.95])["time"].to_numpy()
        found = table.iloc[row][["q05", "q50", "q95"]].to_numpy().astype(float)
        np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_inaccurate_components_give_way(monkeypatch):
    """If the estimated error with components is too large, the lattice is used instead."""
    theta = np.diag(np.linspace(-1.0, 0.5, 14))
    X = np.ones((1, 14), dtype=bool)
    expected = questions.pseudo_times(theta, X)
    assert expected["method"].item() == "components"
    monkeypatch.setattr(components, "ACCURACY", -1.0)
    monkeypatch.setattr(grid_distribution, "ACCURACY", -1.0)
    found = questions.pseudo_times(theta, X)
    assert found["method"].item() == "exact"
    columns = ["mean", "sd", "q05", "q50", "q95"]
    np.testing.assert_allclose(found[columns], expected[columns], rtol=1e-8)
    row = X & (np.arange(14) < 3)
    small = questions.pseudo_times(theta, row)["q50"].item()
    assert small == questions.time_posterior(theta, row[0]).quantile([0.5])["time"].item()


def test_pseudo_times_of_all_kinds_of_data():
    model, data = table_of_samples()
    truth = questions.pseudo_times(model, data)
    frame = data.to_frame()
    sets = [{x for x, there in zip(data.items, row, strict=True) if there} for row in data.values]
    for given_as in (frame, frame[list("fdbace")], sets, data.values, data.values.astype(int)):
        found = questions.pseudo_times(model, given_as)
        pd.testing.assert_frame_equal(found.reset_index(drop=True), truth.reset_index(drop=True))
    timed = Dataset(data.values, items=data.items, times=np.arange(1.0, 21.0))
    found = questions.pseudo_times(model, timed)
    assert found["mean"].tolist() == truth["mean"].tolist()


def test_names_of_quantiles():
    model, data = table_of_samples()

    def names(quantiles):
        table = questions.pseudo_times(model, data, quantiles=quantiles)
        return [c for c in table.columns if c.startswith("q")]

    assert names((0.05, 0.5, 0.95)) == ["q05", "q50", "q95"]
    assert names([0.025, 0.0249, 0.999, 0.9999]) == ["q02.5", "q02.49", "q99.9", "q99.99"]
    assert names(0.5) == ["q50"]
    assert names([]) == []
    with pytest.raises(InputError, match=r"quantiles are \[0.5, 0.5\]; expected each of them once"):
        names([0.5, 0.5])


def test_sampled_pseudo_times_do_not_depend_on_threads():
    model, data = table_of_samples()
    exact = questions.pseudo_times(model, data)
    one, two = (
        questions.pseudo_times(model, data, budget=SAMPLED, random_state=3, n_threads=n)
        for n in (1, 2)
    )
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert one.attrs == two.attrs == {"draws": 160, "seed": 3}
    sampled = one["method"] == "relocation"
    assert sampled.equals(one["size"] > 1)
    z = ((one["mean"] - exact["mean"]) / one["se"])[one["se"] > 1e-12]
    assert len(z) >= 4
    assert z.abs().max() < 6
    np.testing.assert_allclose(one["mean"], exact["mean"], rtol=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: questions.time_posterior(m, "a"), "sample is the text 'a'; expected a list"),
        (lambda m: questions.time_posterior(m, ["z"]), "no item 'z'"),
        (lambda m: questions.time_posterior(m, ["a", "a"]), "sample contains 'a' more than once"),
        (lambda m: questions.time_posterior(m, [True]), "sample has 1 true/false entries"),
        (lambda m: questions.time_posterior(m, [], draws=1), "draws is 1; expected an integer"),
        (lambda m: questions.time_posterior(m, [], target_se=0), "target_se is 0; expected"),
        (lambda m: questions.time_posterior(m, [], draws=9, target_se=1), "both given"),
        (lambda m: questions.time_posterior(m, [], budget=5), "budget is 5; expected"),
        (lambda m: questions.time_posterior(m, []).density([-1]), r"times are \[-1\]; expected"),
        (lambda m: questions.time_posterior(m, []).density("x"), "times are 'x'; expected"),
        (lambda m: questions.time_posterior(m, []).density([[1.0]]), "times are"),
        (lambda m: questions.time_posterior(m, []).quantile([1]), r"probabilities are \[1\]"),
        (lambda m: questions.time_posterior(m, []).quantile("x"), "probabilities are 'x'"),
        (lambda m: questions.pseudo_times(m, [{"a"}], quantiles=[0]), r"quantiles are \[0\]"),
        (lambda m: questions.pseudo_times(m, [{"a"}], draws="x"), "draws is 'x'; expected"),
        (lambda m: questions.pseudo_times(m, [{"a"}], n_threads=0), "n_threads"),
        (lambda m: questions.pseudo_times(m, [{"a"}], target_se=0.1), "target_se is not used"),
        (lambda m: questions.pseudo_times(m, [[1, 0]]), "3 of the 3 items of the model"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call(Model(np.zeros((3, 3)), ["a", "b", "c"]))


def test_rates_beyond_doubles_are_an_error():
    with pytest.raises(InputError, match="log-rate of 840"):
        questions.time_posterior(np.full((6, 6), 140.0), labels(range(6)))
