"""Compare the fast kernel with slow reference functions and with the log kernel.

The layout of the lattice in memory depends on the size of the set, so many sizes are tested.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reference as ref
from sequela import InputError, Model, evaluate, log_likelihood
from sequela.kernels.columns import SHORTCUT_LIMIT
from sequela.kernels.limits import LARGEST_LOG_RATE
from sequela.likelihood import plan
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.passage import Passage
from sequela.observation import Exponential

quick = settings(max_examples=40, deadline=None, derandomize=True, database=None)

# Set sizes. The fast kernel works on rows of the lattice and on tiles of rows, so the layout
# changes at 2, 6, 7, 8, 11 and 12 items.
LAYOUTS = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]

ALWAYS_30 = np.full((5, 5), 30.0)


def table(n, *sets):
    X = np.zeros((len(sets), n), dtype=int)
    for row, S in zip(X, sets, strict=True):
        row[list(S)] = 1
    return X


@pytest.fixture(autouse=True)
def lattices_only(monkeypatch):
    """Use the lattice also for sets that would be evaluated by components."""
    monkeypatch.setattr(plan, "LEAST_COMPONENT_SET", 1000)


def evaluate_one(theta, S, stop_rate=1.0, **options):
    model = Model(theta, observation=Exponential(stop_rate))
    return evaluate(model, table(len(theta), S), n_threads=1, **options)


def log_kernel(theta, S, stop_rate=1.0):
    """Return log p and its gradient by the log kernel (`Passage`), which uses logarithms."""
    parameters = Parameters(np.ascontiguousarray(theta), Exponential(stop_rate))
    passage = Passage.of(parameters, np.array(sorted(S), np.int64))
    return passage.log_p(), passage.gradient()


def assert_same(found, value, gradient, rtol=1e-12):
    assert found.value == pytest.approx(value, rel=rtol, abs=rtol)
    np.testing.assert_allclose(
        found.gradient, gradient, rtol=0, atol=20 * rtol * max(1.0, np.abs(gradient).max())
    )


def log_p_of_equal_items(effect, n, k):
    """Return log p of a set of k of n items, if all entries of theta are equal.

    All orders have the same probability, so p is k! times the probability of one order.
    """
    total = scipy.special.gammaln(k + 1)
    for a in range(k + 1):
        # If a items are present, each of the n - a absent items has the rate exp(effect (a + 1)).
        # D is the total rate: log D = log(1 + (n - a) exp(effect (a + 1))).
        total += effect * (a + 1) if a < k else 0.0
        total -= np.logaddexp(0.0, math.log(n - a) + effect * (a + 1))
    return total


def with_fast_items(theta, rng, count):
    """Give some items a base rate so large that the kernel cannot put them into a shared sum."""
    for j in rng.choice(len(theta), min(count, len(theta)), replace=False):
        theta[j, j] = math.log(SHORTCUT_LIMIT) + rng.uniform(0.01, 3.0)
    return theta


@st.composite
def moderate(draw, largest_n=7, largest_k=7):
    """Draw a theta (dense or sparse, with up to two fast items) and a set of its items."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, largest_n))
    theta = ref.random_theta(
        rng, n, draw(st.sampled_from([0.0, 0.5, 1.0, 2.0])), draw(st.sampled_from([0, 0.6, 1.0]))
    )
    theta = with_fast_items(theta, rng, draw(st.integers(0, 2)))
    members = draw(st.sets(st.integers(0, n - 1), max_size=largest_k))
    return theta, sorted(members)


@st.composite
def extreme(draw, largest_n=6):
    n = draw(st.integers(1, largest_n))
    entries = st.one_of(st.sampled_from([-30.0, 0.0, 30.0]), st.floats(-30, 30))
    theta = draw(hnp.arrays(float, (n, n), elements=entries, fill=st.nothing()))
    return theta, sorted(draw(st.sets(st.integers(0, n - 1))))


rates = st.sampled_from([0.01, 0.3, 1.0, 2.5, 100.0])


# --- Small sets, compared with slow reference functions and closed forms --------------------------


@quick
@given(moderate(), rates)
def test_value_is_that_of_the_dense_solve(model, stop_rate):
    theta, S = model
    found = evaluate_one(theta, S, stop_rate, gradient=False)
    expected = ref.log_p_set(theta, S, stop_rate=stop_rate)
    assert found.value == pytest.approx(expected, rel=1e-11, abs=1e-11)


@quick
@given(moderate(largest_k=5), rates)
def test_value_and_gradient_are_those_of_all_permutations(model, stop_rate):
    theta, S = model
    found = evaluate_one(theta, S, stop_rate)
    assert_same(
        found,
        ref.log_p_set_permutations(theta, S, stop_rate=stop_rate),
        ref.gradient_set_permutations(theta, S, stop_rate=stop_rate),
    )


@pytest.mark.parametrize("k", [6, 7])
@pytest.mark.parametrize("extra", [0, 2])
def test_all_permutations_of_six_and_seven_items(k, extra):
    rng = np.random.default_rng(k)
    theta = ref.random_theta(rng, k + extra, 0.8)
    S = sorted(rng.choice(k + extra, k, replace=False).tolist())
    assert_same(
        evaluate_one(theta, S),
        ref.log_p_set_permutations(theta, S),
        ref.gradient_set_permutations(theta, S),
    )


@quick
@given(moderate(largest_n=5, largest_k=5), rates)
def test_gradient_is_the_finite_difference(model, stop_rate):
    theta, S = model
    found = evaluate_one(theta, S, stop_rate)
    numerical = ref.finite_difference_gradient(
        lambda at: evaluate_one(at, S, stop_rate, gradient=False).value, theta, 1e-5
    )
    np.testing.assert_allclose(found.gradient, numerical, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_all_sets_together_have_the_distribution_of_the_dense_solve(n):
    theta = ref.random_theta(np.random.default_rng(n), n, 1.0, sparsity=0.3)
    X = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    found = evaluate(theta, X, gradient=False)
    np.testing.assert_allclose(
        np.exp(found.log_likelihoods), ref.set_distribution(theta), rtol=1e-11
    )
    assert np.exp(found.log_likelihoods).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_the_expected_gradient_at_the_truth_is_zero(n):
    """The sum over all sets of p(S) times the gradient of log p(S) must be zero.

    It is the gradient of the sum of all p(S), which is always 1.
    """
    theta = ref.random_theta(np.random.default_rng(n), n, 1.5)
    X = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    total = np.zeros((n, n))
    for S in X:
        found = evaluate(theta, S[None], n_threads=1)
        total += math.exp(found.value) * found.gradient
    np.testing.assert_allclose(total, 0.0, atol=1e-13)


def test_one_item_by_hand():
    """For one item of rate w, p({}) = 1 / (1 + w) and p({0}) = w / (1 + w)."""
    theta = np.array([[0.7]])
    w = math.exp(0.7)
    found = evaluate(theta, [[0], [1], [1]])
    np.testing.assert_allclose(
        np.exp(found.log_likelihoods), [1 / (1 + w), w / (1 + w), w / (1 + w)], rtol=1e-14
    )
    assert found.gradient[0, 0] == pytest.approx((2 / (1 + w) - w / (1 + w)) / 3, rel=1e-13)


def test_the_empty_set_is_seen_before_anything_arrives():
    """If w are the base rates, p({}) = 1 / (1 + sum w). So the gradient is diagonal."""
    theta = ref.random_theta(np.random.default_rng(0), 90, 1.0)
    w = np.exp(theta.diagonal())
    found = evaluate_one(theta, [])
    assert found.value == pytest.approx(-math.log1p(w.sum()), rel=1e-13)
    np.testing.assert_allclose(found.gradient, -np.diag(w / (1 + w.sum())), rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("k", [*LAYOUTS, 16])
def test_no_effects_and_equal_rates_have_a_closed_form(k):
    """If all items have the rate w and there are no effects, p(S) is k! times p of any order."""
    n, w = 20, 0.3
    theta = np.zeros((n, n))
    np.fill_diagonal(theta, math.log(w))
    expected = scipy.special.gammaln(k + 1) + k * math.log(w)
    expected -= sum(math.log(1 + w * (n - a)) for a in range(k + 1))
    assert evaluate_one(theta, range(k)).value == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("k", LAYOUTS)
@pytest.mark.parametrize("effect", [-1.0, 0.8])
def test_exchangeable_items_have_a_closed_form(k, effect):
    """If all effects are equal and all base rates are equal, p(S) is k! times p of one order."""
    n = 15
    theta = np.full((n, n), effect)
    np.fill_diagonal(theta, -0.5)
    S = list(range(n - k, n))
    expected = scipy.special.gammaln(k + 1) + ref.log_p_sequence(theta, S)
    found = evaluate_one(theta, S)
    assert found.value == pytest.approx(expected, rel=1e-13)
    # By symmetry, the gradient for the set and the gradient for one order have the same sum over
    # the diagonal, and the same sum over all other entries.
    one = ref.gradient_sequence(theta, S)
    off = ~np.eye(n, dtype=bool)
    assert found.gradient[off].sum() == pytest.approx(one[off].sum(), abs=1e-11)
    assert np.trace(found.gradient) == pytest.approx(np.trace(one), abs=1e-11)


# --- Larger sets: the fast kernel compared with the log kernel ------------------------------------


@pytest.mark.parametrize("k", LAYOUTS)
@pytest.mark.parametrize(
    ("n", "sparsity", "fast"), [(20, 0.0, 0), (40, 0.0, 3), (40, 0.95, 3), (33, 1.0, 2)]
)
def test_fast_and_log_kernel_agree_in_every_layout(k, n, sparsity, fast):
    rng = np.random.default_rng([k, n])
    theta = with_fast_items(ref.random_theta(rng, n, 0.7, sparsity), rng, fast)
    S = rng.choice(n, k, replace=False)
    for stop_rate in (1.0, 0.2):
        found = evaluate_one(theta, S, stop_rate)
        assert_same(found, *log_kernel(theta, S, stop_rate), rtol=1e-13)


@pytest.mark.parametrize("n", [63, 64, 65, 66, 67, 130])
@pytest.mark.parametrize("k", [1, 6, 7, 12])
@pytest.mark.parametrize("where", ["first", "last", "anywhere"])
def test_fast_and_log_kernel_agree_beyond_64_items(n, k, where):
    rng = np.random.default_rng([n, k])
    theta = with_fast_items(ref.random_theta(rng, n, 0.3, sparsity=0.5), rng, 4)
    S = {
        "first": np.arange(k),
        "last": np.arange(n - k, n),
        "anywhere": rng.choice(n, k, replace=False),
    }[where]
    assert_same(evaluate_one(theta, S), *log_kernel(theta, S), rtol=1e-13)


@pytest.mark.parametrize("k", [1, 2, 6, 7, 8, 12])
def test_the_full_set(k):
    rng = np.random.default_rng(k)
    theta = with_fast_items(ref.random_theta(rng, k, 1.0), rng, 1)
    assert_same(evaluate_one(theta, range(k)), *log_kernel(theta, range(k)), rtol=1e-13)
    if k <= 8:
        assert_same(
            evaluate_one(theta, range(k)),
            ref.mp_log_p_set(theta, range(k)),
            ref.mp_gradient_set(theta, range(k)),
        )


@pytest.mark.parametrize("k", [7, 8, 9, 10])
def test_log_kernel_is_that_of_the_dense_solve(k):
    """Check the log kernel with sets of up to 10 items. Other tests use it as a reference."""
    rng = np.random.default_rng(k)
    theta = ref.random_theta(rng, k + 3, 1.0, sparsity=0.2)
    S = rng.choice(k + 3, k, replace=False)
    value, gradient = log_kernel(theta, S, 0.7)
    assert value == pytest.approx(ref.log_p_set(theta, S, stop_rate=0.7), abs=1e-11)
    if k <= 8:
        np.testing.assert_allclose(
            gradient, ref.mp_gradient_set(theta, S, stop_rate=0.7), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize(
    "offset", [0.0, 1e-12, -1e-12, 2.0, 8.0], ids=["at", "just above", "just below", "e2", "e8"]
)
def test_base_rates_around_the_shortcut_limit(outside, active, offset):
    """Test base rates near `SHORTCUT_LIMIT`, for an item inside or outside the set.

    Base rates up to this limit are added up once for all sets. Each set subtracts from this sum the
    base rates of its columns. Larger base rates are added for each set separately. If `active` is
    False, no other item acts on the tested item.
    """
    n, S = 6, [0, 2, 3]
    theta = ref.random_theta(np.random.default_rng(4), n, 0.5)
    j = 5 if outside else 2
    theta[j, j] = math.log(SHORTCUT_LIMIT) + offset
    if not active:
        theta[:, j] = np.where(np.arange(n) == j, theta[:, j], 0.0)
    assert_same(evaluate_one(theta, S), ref.mp_log_p_set(theta, S), ref.mp_gradient_set(theta, S))


def test_an_effect_of_zero_and_a_tiny_one_give_the_same():
    """The kernel treats items with tiny effects differently from items without effects.

    The results must be the same, up to rounding.
    """
    rng = np.random.default_rng(8)
    theta = ref.random_theta(rng, 30, 0.5, sparsity=1.0)
    S = [2, 11, 29]
    sparse = evaluate_one(theta, S)
    tiny = np.where(theta == 0.0, 1e-300, theta)
    dense = evaluate_one(tiny, S)
    assert dense.value == pytest.approx(sparse.value, rel=1e-13)
    np.testing.assert_allclose(dense.gradient, sparse.gradient, rtol=0, atol=1e-13)


# --- Extreme parameters ---------------------------------------------------------------------------


@settings(quick, max_examples=80)
@given(extreme())
@example((ALWAYS_30, [0, 1, 2, 3, 4]))
@example((-ALWAYS_30, [0, 1, 2, 3, 4]))
@example((ALWAYS_30, []))
@example((np.diag([30.0, -30.0, 30.0]), [1]))
@example((np.diag([-30.0, -30.0]), [0, 1]))
def test_extreme_theta_is_finite_and_right(model):
    theta, S = model
    assert_same(
        evaluate_one(theta, S),
        ref.mp_log_p_set(theta, S, digits=400),
        ref.mp_gradient_set(theta, S, digits=400),
    )


@pytest.mark.parametrize("k", [12, 14])
@pytest.mark.parametrize("sign", [-1.0, 1.0, 0.0])
def test_extreme_theta_in_a_large_set(k, sign):
    """If all entries of theta are equal, compare with the closed form k! p(sigma).

    If their signs are random, the results must be finite.
    """
    n = k + 2
    theta = np.full((n, n), 30.0 * sign)
    if sign == 0.0:
        theta = np.random.default_rng(k).choice([-30.0, 30.0], (n, n))
    found = evaluate_one(theta, range(k))
    assert np.isfinite(found.value)
    assert np.isfinite(found.gradient).all()
    if sign:
        exact = log_p_of_equal_items(30.0 * sign, n, k)
        assert found.value == pytest.approx(exact, rel=1e-13)


# A regression test: in the first three cases, entries of the gradient were 0 instead of -1 and -2.
# The cause was that a product of two tiny numbers (F * T in `lattice.gradient`) underflowed before
# it was divided by the total.
@pytest.mark.parametrize(
    ("theta", "S"),
    [
        (np.diag([0.0, 290.0]), [0]),  # a product of three holding times is below all doubles
        (np.diag([0.0, 0.0, 199.0]), [0, 1]),
        (np.diag([0.0, 0.0, 0.0, 149.0]), [0, 1, 2]),
        (np.diag([-500.0, 500.0]), [0]),
        (np.diag([-500.0, -500.0]), [0, 1]),
        (np.array([[0.0, 345.0, 0.0], [345.0, 0.0, 0.0], [0.0, 0.0, -500.0]]), [0, 1]),
        (np.array([[0.0, 0.0, 345.0], [0.0, 0.0, 345.0], [0.0, 0.0, -500.0]]), [0, 1]),
    ],
)
def test_theta_up_to_its_limit_of_500(theta, S):
    assert_same(
        evaluate_one(theta, S),
        ref.mp_log_p_set(theta, S, digits=1500),
        ref.mp_gradient_set(theta, S, digits=1500),
    )


@pytest.mark.parametrize("stop_rate", [1e-3, 1e3, 1e8, 1e100])
@pytest.mark.parametrize("k", [0, 1, 4, 6])
def test_rates_of_observation_far_from_one(stop_rate, k):
    theta = ref.random_theta(np.random.default_rng(k), 6, 1.0, sparsity=0.3)
    found = evaluate_one(theta, range(k), stop_rate)
    expected = ref.mp_log_p_set(theta, range(k), stop_rate=stop_rate)
    gradient = ref.mp_gradient_set(theta, range(k), stop_rate=stop_rate)
    assert_same(found, expected, gradient)


# A regression test: the kernel adds the rates of many absent items in one shared sum. This sum was
# computed by subtraction, which gave up to 1e-15 instead of 0. Compared with a rate of observation
# of 1, this is negligible. Compared with a rate of 1e-10, it is a relative error of 1e-5.
@pytest.mark.parametrize("stop_rate", [1e-6, 1e-8, 1e-10, 1e-15, 1e-100])
@pytest.mark.parametrize("seed", range(6))
def test_tiny_rates_of_observation(stop_rate, seed):
    theta = ref.random_theta(np.random.default_rng(seed), 6, 1.0, sparsity=0.3)
    S = range(6 if seed % 2 else 5)
    found = evaluate_one(theta, S, stop_rate)
    expected = ref.mp_log_p_set(theta, S, stop_rate=stop_rate, digits=300)
    gradient = ref.mp_gradient_set(theta, S, stop_rate=stop_rate, digits=300)
    assert found.value == pytest.approx(expected, rel=1e-11, abs=1e-11)
    np.testing.assert_allclose(
        found.gradient, gradient, rtol=0, atol=1e-9 * max(1.0, np.abs(gradient).max())
    )


def test_log_rates_beyond_a_double_are_refused():
    """The log-rate of an absent item is a sum of 23 entries of theta, and may be at most 690."""
    n, k = 31, 22
    at_the_limit = np.full((n, n), LARGEST_LOG_RATE / (k + 1))
    assert evaluate_one(at_the_limit, range(k), gradient=False).value == pytest.approx(
        log_p_of_equal_items(LARGEST_LOG_RATE / (k + 1), n, k), rel=1e-13
    )
    with pytest.raises(InputError, match="log-rate of 692 for a set of 22 items"):
        log_likelihood(np.full((n, n), 30.1), table(n, range(k)), budget=None)
