"""Compare results for sampled sets, and their standard errors, with exact results.

The seeds of statistical checks are fixed. If they were random, each comparison would fail with
probability FALSE_ALARM although the program is correct.

Let z be the difference from the exact value, divided by its standard error. If there are C chains,
z has a t distribution with C - 1 degrees of freedom, so its normal score norm.ppf(t.cdf(z)) has the
distribution N(0, 1). The sum of the scores of M seeds then has the distribution N(0, M), and the
sum of their squares a chi-square distribution with M degrees of freedom. Only one number per seed
is used, because the numbers of one run depend on each other.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

import reference as ref
from sequela import Sampling
from sequela.likelihood import Likelihood, evaluate, sample_posteriors

FALSE_ALARM = 1e-5

# These tests need only half of the default number of points along the path. This makes them faster,
# so they can use more seeds.
RELOCATION = Sampling(nodes=6)
# The proposals of Metropolis-Hastings do not depend on the current order. With strong interactions
# they need many draws to find the important orders, so the interactions here are weak.
METROPOLIS = Sampling(draws=100, draws_burn_in=50, nodes=5)
METHODS = {
    "relocation": (RELOCATION, 70, [(12, 16, 0.5), (14, 30, 0.5), (16, 20, 0.4)]),
    "metropolis": (METROPOLIS, 25, [(12, 14, 0.15), (14, 18, 0.12), (16, 20, 0.1)]),
    "metropolis-uniform": (METROPOLIS, 25, [(12, 14, 0.15), (14, 18, 0.12), (16, 20, 0.1)]),
}


def table(n, *sets):
    X = np.zeros((len(sets), n), dtype=int)
    for row, S in zip(X, sets, strict=True):
        row[list(S)] = 1
    return X


def normal_scores(z, chains):
    return scipy.stats.norm.ppf(scipy.stats.t.cdf(z, chains - 1))


def assert_standard_normal(scores, what):
    scores = np.asarray(scores)
    assert np.isfinite(scores).all()
    mean = scores.sum() / math.sqrt(scores.size)
    assert 2 * scipy.stats.norm.sf(abs(mean)) > FALSE_ALARM, f"{what} is biased: {mean:.1f} sigma"
    below = scipy.stats.chi2.cdf((scores**2).sum(), scores.size)
    spread = math.sqrt(np.mean(scores**2))
    assert 2 * min(below, 1 - below) > FALSE_ALARM, f"z-scores of {what} have spread {spread:.2f}"


def model(k, n, scale):
    rng = np.random.default_rng([k, n])
    theta = ref.random_theta(rng, n, scale)
    np.fill_diagonal(theta, rng.normal(-1.0, 0.5, n))
    return theta, np.sort(rng.choice(n, k, replace=False))


def open_pairs(theta, S):
    """Return the pairs (a, b) of items of S for which P(a before b | S) is between 0.15 and 0.85.

    Only the entries of these pairs in the gradient are tested. An entry that depends on rare orders
    has a skewed distribution, and its error cannot be estimated from a few chains.
    """
    before = sample_posteriors(theta, table(len(theta), S)).before(0)
    return [(S[a], S[b]) for a, b in np.argwhere((before > 0.15) & (before < 0.85))]


# --- Values and gradients are unbiased, and their standard errors are right -----------------------


# With the method "relocation", the number of seeds is so large that the test fails if standard
# errors are too large or too small by a factor of 1.4. This was checked with wrong standard errors.


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_values_are_unbiased_and_their_errors_right(method):
    sampling, seeds, cases = METHODS[method]
    scores = []
    for k, n, scale in cases:
        theta, S = model(k, n, scale)
        exact = evaluate(theta, table(n, S), gradient=False)
        assert set(exact.methods) == {"exact"}
        for seed in range(seeds):
            found = evaluate(
                theta, table(n, S), method=method, sampling=sampling, random_state=seed,
                gradient=False,
            )  # fmt: skip
            assert set(found.methods) == {method}
            scores.append((found.value - exact.value) / found.value_se)
    assert_standard_normal(normal_scores(np.array(scores), sampling.chains), "the value")


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_gradients_are_unbiased_and_their_errors_right(method):
    sampling, _, cases = METHODS[method]
    scores = []
    for k, n, scale in cases:
        theta, S = model(k, n, scale)
        exact = evaluate(theta, table(n, S)).gradient
        pairs = open_pairs(theta, S)
        rng = np.random.default_rng(k)
        gaps = []
        for seed in range(60):
            likelihood = Likelihood(
                table(n, S), method=method, sampling=sampling, random_state=seed
            )
            # The test uses the second evaluation, in which the chains have forgotten their start.
            likelihood.evaluate(theta, value=False)
            found = likelihood.evaluate(theta, value=False)
            gap = found.gradient - exact
            entry = pairs[rng.integers(len(pairs))]
            scores.append(gap[entry] / found.gradient_se[entry])
            gaps.append(gap.ravel())
        # Project the errors of the gradient on random directions. A t test of the projections, one
        # per seed, checks that their mean is zero.
        along = np.array(gaps) @ rng.normal(size=(n * n, 4))
        p = scipy.stats.ttest_1samp(along, 0.0).pvalue
        assert p.min() > FALSE_ALARM, f"the gradient is biased at k = {k}"
    assert_standard_normal(normal_scores(np.array(scores), sampling.chains), "the gradient")


@pytest.mark.parametrize("method", ["metropolis", "metropolis-uniform"])
def test_sampled_sets_at_known_times(method):
    sampling = Sampling(draws=60, draws_burn_in=30, nodes=4)
    value_scores, entry_scores = [], []
    for k, n, scale, t in ((8, 10, 0.2, 1.5), (12, 14, 0.12, 2.5)):
        theta, S = model(k, n, scale)
        X = table(n, S)
        exact = evaluate(theta, X, times=[t])
        rng = np.random.default_rng(k)
        pairs = open_pairs(theta, S)
        for seed in range(10):
            found = evaluate(
                theta, X, times=[t], method=method, sampling=sampling, random_state=seed
            )
            gap = found.gradient - exact.gradient
            entry = pairs[rng.integers(len(pairs))]
            value_scores.append((found.value - exact.value) / found.value_se)
            entry_scores.append(gap[entry] / found.gradient_se[entry])
    assert_standard_normal(normal_scores(np.array(value_scores), sampling.chains), "the value")
    assert_standard_normal(normal_scores(np.array(entry_scores), sampling.chains), "the gradient")


def test_persistent_chains_go_on_and_stay_right():
    """The gradient is right if chains continue while theta changes and changes back."""
    theta, S = model(12, 16, 0.5)
    X = table(16, S)
    near = theta + np.random.default_rng(1).normal(0, 0.05, theta.shape)
    exact = {at: evaluate(there, X).gradient for at, there in enumerate((theta, near, theta))}
    pairs = open_pairs(theta, S)
    scores, changed = [], []
    rng = np.random.default_rng(2)
    for seed in range(30):
        likelihood = Likelihood(X, method="relocation", random_state=seed)
        found = [likelihood.evaluate(there, value=False) for there in (theta, near, theta)]
        assert np.isnan(found[0].value)
        # Test the last of the three evaluations. Its result would be wrong if the chains did not
        # move, or if they still depended on their start.
        entry = pairs[rng.integers(len(pairs))]
        gap = found[2].gradient - exact[2]
        scores.append(gap[entry] / found[2].gradient_se[entry])
        changed.append(not np.array_equal(found[0].gradient, found[2].gradient))
    assert all(changed)
    assert_standard_normal(normal_scores(np.array(scores), 16), "the third gradient")


def test_every_evaluation_has_new_draws():
    theta, S = model(12, 16, 0.5)
    likelihood = Likelihood(table(16, S), method="relocation", random_state=1)
    found = [likelihood.evaluate(theta) for _ in range(3)]
    assert len({one.value for one in found}) == 3
    # A new object with the same seed repeats all draws.
    again = Likelihood(table(16, S), method="relocation", random_state=1)
    for one in found:
        other = again.evaluate(theta)
        assert other.value == one.value
        np.testing.assert_array_equal(other.gradient, one.gradient)


def test_a_value_after_a_gradient_is_right_too():
    theta, S = model(12, 16, 0.5)
    X = table(16, S)
    exact = evaluate(theta, X).value
    scores = []
    for seed in range(20):
        likelihood = Likelihood(X, method="relocation", random_state=seed)
        likelihood.evaluate(theta, value=False)
        found = likelihood.evaluate(theta, gradient=False)
        assert found.gradient is None
        assert found.gradient_se is None
        scores.append((found.value - exact) / found.value_se)
    assert_standard_normal(normal_scores(np.array(scores), 16), "the value")


# --- Cases in which sampling has no error ---------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("sparsity", [0.0, 0.7])
def test_blocks_as_large_as_the_set_are_exact(k, sparsity):
    rng = np.random.default_rng(k)
    n = k + 3
    theta = ref.random_theta(rng, n, 0.5, sparsity)
    X = table(n, rng.choice(n, k, replace=False))
    exact = evaluate(theta, X)
    found = evaluate(
        theta, X, method="relocation", random_state=0,
        sampling=Sampling(chains=3, block=8, sweeps=1, burn_in=0, nodes=20),
    )  # fmt: skip
    np.testing.assert_allclose(found.gradient, exact.gradient, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.gradient_se, 0.0, atol=1e-13)
    # The value is an integral of such exact quantities along the path. So it has no sampling error,
    # either.
    assert found.value == pytest.approx(exact.value, abs=1e-9)
    assert found.value_se < 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_without_interactions_the_value_has_no_error(method):
    """Without interactions the path has length 0. The value is only an integral over time."""
    theta = np.diag(np.random.default_rng(3).normal(-1.0, 1.0, 60))
    found = evaluate(
        theta, table(60, range(45)), method=method, random_state=1, gradient=False,
        sampling=Sampling(chains=2, sweeps=1, draws=1, nodes=1),
    )  # fmt: skip
    assert found.value == pytest.approx(
        ref.log_p_set_independent(theta, range(45), digits=16), rel=1e-10
    )
    assert found.value_se == 0.0


def exchangeable(n, effect):
    theta = np.full((n, n), effect)
    np.fill_diagonal(theta, -1.0)
    return theta


def log_p_exchangeable(theta, k):
    """Return log p of k exchangeable items, where p is k! times the probability of any order."""
    return scipy.special.gammaln(k + 1) + ref.log_p_sequence(theta, list(range(k)))


@pytest.mark.parametrize(
    ("n", "k", "effect"), [(16, 12, -0.5), (16, 12, 0.5), (30, 16, 0.3), (70, 50, 0.02)]
)
def test_values_of_exchangeable_items(n, k, effect):
    """If all orders are equally likely, the integral along the path is the only source of error."""
    theta = exchangeable(n, effect)
    found = evaluate(
        theta, table(n, range(k)), method="relocation", random_state=0, gradient=False,
        sampling=Sampling(chains=2, sweeps=2),
    )  # fmt: skip
    assert found.value == pytest.approx(log_p_exchangeable(theta, k), abs=1e-6)


# A regression test: the quadrature rule along the path had an error of 2e-3 here (0.1 for
# interactions of size 5), although the reported standard error was 1e-14.
@pytest.mark.parametrize("effect", [-2.0, -1.0, 1.0, 2.0])
@pytest.mark.parametrize(("n", "k"), [(12, 12), (30, 16)])
def test_the_rule_along_the_path_is_as_good_as_it_says(n, k, effect):
    theta = exchangeable(n, effect)
    found = evaluate(
        theta, table(n, range(k)), method="relocation", random_state=0, gradient=False,
        sampling=Sampling(chains=2, sweeps=2),
    )  # fmt: skip
    assert abs(found.value - log_p_exchangeable(theta, k)) < 1e-6 + 6 * found.value_se


# --- Larger than any lattice ----------------------------------------------------------------------


def log_p_one_pair(theta, k, i, j):
    """Return log p of the set {0, ..., k - 1} if only i and j interact, by an integral over t."""
    n = len(theta)
    w = np.exp(theta.diagonal())
    single = [b for b in range(k) if b not in (i, j)]
    pair = theta[np.ix_([i, j], [i, j])]

    def log_integrand(t):
        both = ref.transition_matrix(ref.generator(pair), t)[0, 3]
        return np.log(-np.expm1(-w[single] * t)).sum() - (1.0 + w[k:n].sum()) * t + math.log(both)

    grid = np.linspace(0.2, 40.0, 100)
    peak = max(log_integrand(t) for t in grid)
    total, _ = scipy.integrate.quad(
        lambda t: math.exp(log_integrand(t) - peak), 1e-3, 60.0, limit=200, epsabs=0, epsrel=1e-9
    )
    return peak + math.log(total)


@pytest.mark.parametrize("effect", [-1.5, 1.5])
def test_sets_of_40_items_against_an_integral(effect):
    """Test the value and one derivative for a set of 40 items, of which only two interact."""
    k, n, i, j = 40, 50, 3, 30
    theta = np.diag(np.random.default_rng(4).normal(-0.5, 0.4, n))
    theta[j, j] = -1.0 - effect
    theta[i, j] = effect
    exact = log_p_one_pair(theta, k, i, j)
    step = 1e-3
    up, down = theta.copy(), theta.copy()
    up[i, j] += step
    down[i, j] -= step
    slope = (log_p_one_pair(up, k, i, j) - log_p_one_pair(down, k, i, j)) / (2 * step)
    value_scores, slope_scores = [], []
    for seed in range(10):
        found = evaluate(theta, table(n, range(k)), method="relocation", random_state=seed)
        value_scores.append((found.value - exact) / found.value_se)
        slope_scores.append((found.gradient[i, j] - slope) / found.gradient_se[i, j])
    assert_standard_normal(normal_scores(np.array(value_scores), 16), "the value")
    assert_standard_normal(normal_scores(np.array(slope_scores), 16), "the gradient")


# --- Standard errors and methods of each sample ---------------------------------------------------


def test_errors_shrink_with_the_share_of_a_sample():
    """The error of a mean is proportional to the share of the only sampled set among the samples.

    If the share grows from 1/2 to 2/3, the error grows by the factor 4/3.
    """
    theta, S = model(12, 16, 0.5)
    half = evaluate(theta, table(16, [0], S), method="relocation", random_state=5)
    more = evaluate(theta, table(16, [0], S, S), method="relocation", random_state=5)
    assert list(more.methods) == ["exact", "relocation", "relocation"]
    assert more.value_se == pytest.approx(half.value_se * 4 / 3, rel=1e-13)
    np.testing.assert_allclose(more.gradient_se, half.gradient_se * 4 / 3, rtol=1e-13)
    assert more.log_likelihoods[1] == more.log_likelihoods[2] == half.log_likelihoods[1]
    assert list(more.standard_errors[:1]) == [0.0]


def test_items_without_interactions_have_errors_in_proportion_to_their_rates():
    """Test the gradient of the effect of an item in the set on an absent item without interactions.

    It is -rate * time, so its error is the rate of the absent item times the error of the time.
    """
    n, k = 20, 12
    theta = np.diag(np.linspace(-3.0, 1.0, n))
    theta[0, 1] = theta[2, 3] = theta[4, 0] = 0.8
    found = evaluate(theta, table(n, range(k)), method="relocation", random_state=1)
    outside = np.arange(k, n)
    rate = np.exp(theta.diagonal())[outside]
    for i in range(k):
        time, error = -found.gradient[i, outside] / rate, found.gradient_se[i, outside] / rate
        assert error[0] > 0
        np.testing.assert_allclose(time, time[0], rtol=1e-10)
        np.testing.assert_allclose(error, error[0], rtol=1e-10)
    # If zeros are replaced by negligible effects, the kernel computes the rates of absent items by
    # different code. The draws are the same, so the results must be the same up to rounding.
    near = np.where(theta == 0.0, 1e-200, theta)
    columns = evaluate(near, table(n, range(k)), method="relocation", random_state=1)
    np.testing.assert_allclose(columns.gradient, found.gradient, rtol=0, atol=1e-11)
    np.testing.assert_allclose(columns.gradient_se, found.gradient_se, rtol=1e-9, atol=1e-12)


def test_errors_of_different_sets_add_up_as_variances():
    theta, S = model(12, 16, 0.5)
    other = np.sort(np.setdiff1d(np.arange(16), S[:4]))[:11]
    found = evaluate(theta, table(16, S, other), method="relocation", random_state=5)
    expected = math.sqrt(np.sum(found.standard_errors**2)) / 2
    assert found.value_se == pytest.approx(expected, rel=1e-13)


def test_more_chains_are_less_error():
    theta, S = model(12, 16, 0.5)
    few, many = (
        evaluate(
            theta, table(16, S), method="relocation", random_state=1,
            sampling=Sampling(chains=chains),
        ).value_se
        for chains in (16, 256)
    )  # fmt: skip
    # With 16 times as many chains, the true standard error is 1/4 as large. But both standard
    # errors are estimated.
    assert 0.12 < many / few < 0.5


def test_a_single_chain_has_an_unknown_error():
    theta, S = model(12, 16, 0.5)
    found = evaluate(
        theta, table(16, S), method="relocation", random_state=1, sampling=Sampling(chains=1)
    )
    assert np.isfinite(found.value)
    assert np.isnan(found.value_se)
    assert np.isnan(found.gradient_se[S[0], S[1]])


@pytest.mark.parametrize("method", METHODS)
def test_sets_of_at_most_one_item_need_no_sampling(method):
    theta = ref.random_theta(np.random.default_rng(1), 3, 1.0)
    found = evaluate(theta, table(3, [], [2], [0, 1]), method=method, random_state=1)
    assert list(found.methods) == ["exact", "exact", method]
    assert found.log_likelihoods[1] == pytest.approx(ref.log_p_set(theta, [2]), abs=1e-12)


# --- Extreme parameters ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_extreme_theta_is_finite(method, seed):
    theta = np.random.default_rng(seed).uniform(-30, 30, (14, 14))
    found = evaluate(theta, table(14, range(12)), method=method, random_state=1)
    assert np.isfinite(found.value)
    assert np.isfinite(found.gradient).all()


# A regression test: the result was NaN, and there was no error. Each log-rate was within its limit
# of 600, but the weights in a row of `relocate` are products of four rates.
@pytest.mark.parametrize("effect", [-30.0, -20.0])
def test_strong_inhibition_is_finite_or_refused(effect):
    theta = exchangeable(12, effect)
    try:
        found = evaluate(theta, table(12, range(12)), method="relocation", random_state=1)
    except ValueError:
        return
    assert np.isfinite(found.value)
    assert np.isfinite(found.gradient).all()


# A regression test, like test_samplers.test_informed_proposals_with_one_very_fast_item. For
# fast = 40 the gradient came from uninitialised memory, which was the same in all chains. For
# fast = 60 it was NaN.
@pytest.mark.parametrize("fast", [30.0, 40.0, 60.0])
def test_a_very_fast_item_by_metropolis(fast):
    theta = np.array([[0.0, 0.3], [0.0, fast]])
    exact = evaluate(theta, [[1, 1]])
    found = evaluate(theta, [[1, 1]], method="metropolis", random_state=1)
    assert found.value == pytest.approx(exact.value, abs=1e-6)
    np.testing.assert_allclose(found.gradient, exact.gradient, atol=1e-6)
