"""Compare draws with exact distributions of sets, orders and times, also for extreme rates."""

from __future__ import annotations

import collections
import functools
import pickle
import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reference as ref
import sequela
from sequela import Dataset, InputError, Model, simulate, simulation
from sequela.kernels import simulate as kernel
from sequela.observation import Exponential
from sequela.simulation import Simulation

# The seeds of statistical checks are fixed. If they were random, each comparison would fail with
# this probability although the program is correct.
FALSE_ALARM = 1e-6
LARGEST_Z = scipy.stats.norm.isf(FALSE_ALARM / 2)

FIELDS = ("indptr", "sequence", "arrival_times", "observation_times")


def observed(theta, stop_rate):
    return Model(theta, observation=Exponential(stop_rate))


def same_bits(a, b):
    return all(np.array_equal(getattr(a, field), getattr(b, field)) for field in FIELDS)


def masks(drawn):
    """Return the set of each draw as a bit mask: its index in `reference.set_distribution`."""
    return drawn.to_dataset().values @ (1 << np.arange(len(drawn.items)))


def draws(drawn):
    """Yield (observation time, items in order, arrival times) of each draw."""
    for s, (start, end) in enumerate(pairwise(drawn.indptr)):
        yield (
            drawn.observation_times[s],
            tuple(drawn.sequence[start:end].tolist()),
            drawn.arrival_times[start:end],
        )


def chi_square_p_value(counts, probabilities):
    """Return the p-value of a chi-square test of these counts, with rare outcomes combined."""
    order = np.argsort(probabilities)
    observed = list(np.asarray(counts)[order])
    expected = list(np.sum(counts) * np.asarray(probabilities)[order])
    while expected[0] < 10:  # the chi-square test needs large expected counts
        observed[:2] = [sum(observed[:2])]
        expected[:2] = [sum(expected[:2])]
    assert len(expected) > 2
    scale = sum(observed) / sum(expected)  # SciPy requires equal sums
    return scipy.stats.chisquare(observed, np.array(expected) * scale).pvalue


@pytest.fixture(params=["rates", "logarithms"])
def branch(request, monkeypatch):
    """Run a test in both branches of the kernel: one computes rates, the other log-rates."""
    if request.param == "logarithms":
        monkeypatch.setattr(simulation, "PRODUCT_LOG_RANGE", -1.0)
    return request.param


@pytest.fixture(scope="module")
def theta():
    return ref.random_theta(np.random.default_rng(5), 4, scale=1.5)


@pytest.fixture(scope="module")
def drawn(theta):
    return simulate(observed(theta, 0.7), 100_000, random_state=11)


@functools.cache
def leaving_rate(theta_bytes, n, present, stop_rate):
    """Return the total rate of leaving R: q~(R) plus the rate of observation."""
    theta = np.frombuffer(theta_bytes).reshape(n, n)
    return stop_rate + ref.exit_rate(theta, present)


# --- Distributions --------------------------------------------------------------------------------


@pytest.mark.parametrize("stop_rate", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("n", [4, 5])
def test_sets_have_their_exact_distribution(branch, n, stop_rate):
    theta = ref.random_theta(np.random.default_rng(n), n, scale=1.5)
    drawn = simulate(observed(theta, stop_rate), 100_000, random_state=3)
    counts = np.bincount(masks(drawn), minlength=2**n)
    expected = ref.set_distribution(theta, stop_rate)
    assert chi_square_p_value(counts, expected) > FALSE_ALARM


def test_sets_of_more_items_than_a_block_have_their_exact_frequencies(branch):
    # The kernel puts 40 items into 3 blocks, of which the last is not full. Only item 0 (in the
    # first block) and item 39 (in the last block) interact.
    n = 40
    theta = np.diag(np.linspace(-3.0, -1.0, n))
    theta[0, 39], theta[39, 0] = 1.5, -2.0
    drawn = simulate(theta, 100_000, random_state=8)
    rates = np.exp(theta.diagonal()[1:39])
    counts = np.array(drawn.frequencies)[1:39] * len(drawn)
    p_values = [
        scipy.stats.binomtest(round(count), len(drawn), rate / (1 + rate)).pvalue
        for count, rate in zip(counts, rates, strict=True)
    ]
    assert min(p_values) > FALSE_ALARM
    pair = drawn.to_dataset().values[:, [0, 39]] @ [1, 2]
    expected = ref.set_distribution(theta[np.ix_([0, 39], [0, 39])])
    assert chi_square_p_value(np.bincount(pair, minlength=4), expected) > FALSE_ALARM


def test_orders_have_their_exact_distribution(drawn, theta):
    expected = ref.sequence_distribution(theta, stop_rate=0.7)
    counts = collections.Counter(sigma for _, sigma, _ in draws(drawn))
    assert set(counts) <= set(expected)
    p_value = chi_square_p_value(
        [counts[sigma] for sigma in expected], [expected[sigma] for sigma in expected]
    )
    assert p_value > FALSE_ALARM


@pytest.mark.parametrize("stop_rate", [0.01, 1.0, 50.0])
def test_observation_times_are_exponential(stop_rate):
    times = simulate(observed(np.zeros((3, 3)), stop_rate), 50_000, random_state=2)
    p_value = scipy.stats.kstest(times.observation_times * stop_rate, "expon").pvalue
    assert p_value > FALSE_ALARM


def test_holding_times_given_the_state_are_exponential(drawn, theta):
    # The stay in R ends with an arrival or with the observation. In both cases its duration has the
    # distribution Exp(q~(R) + rate).
    held = drawn.holding_times()
    left, last = collections.defaultdict(list), collections.defaultdict(list)
    at = 0
    for end, sigma, arrivals in draws(drawn):
        for k in range(len(sigma)):
            left[frozenset(sigma[:k])].append(held[at + k])
        last[frozenset(sigma)].append(end - (arrivals[-1] if sigma else 0.0))
        at += len(sigma)
    compared = 0
    for stays in (left, last):
        for present, times in stays.items():
            if len(times) > 500:
                rate = leaving_rate(theta.tobytes(), 4, present, 0.7)
                p_value = scipy.stats.kstest(np.array(times) * rate, "expon").pvalue
                assert p_value > FALSE_ALARM, sorted(present)
                compared += 1
    assert compared > 20


def test_times_and_orders_hang_together(drawn, theta):
    # For each set, the expected mean times are averages over all orders of the set.
    by_set = collections.defaultdict(list)
    for end, sigma, arrivals in draws(drawn):
        by_set[tuple(sorted(sigma))].append((end, dict(zip(sigma, arrivals, strict=True))))
    compared = 0
    for S, found in by_set.items():
        if len(found) < 1000:
            continue
        moments = ref.posterior_arrival_moments(theta, S, stop_rate=0.7)
        moments[None] = ref.posterior_time_moments(theta, S, stop_rate=0.7)
        for item, (mean, variance) in moments.items():
            times = [end if item is None else arrivals[item] for end, arrivals in found]
            z = (np.mean(times) - mean) / np.sqrt(variance / len(times))
            assert abs(z) < LARGEST_Z
            compared += 1
    assert compared > 20


def test_one_item_is_a_race_between_arrival_and_observation():
    drawn = simulate(observed([[np.log(3.0)]], 2.0), 50_000, random_state=6)
    seen = int(drawn.set_sizes.sum())
    assert scipy.stats.binomtest(seen, len(drawn), 3 / 5).pvalue > FALSE_ALARM
    assert scipy.stats.kstest(drawn.arrival_times * 5, "expon").pvalue > FALSE_ALARM


# --- Both branches, and the ends of the range -----------------------------------------------------


def test_rates_and_logarithms_draw_the_same(monkeypatch):
    theta = ref.random_theta(np.random.default_rng(9), 37)
    by_rates = simulate(theta, 5000, random_state=1)
    monkeypatch.setattr(simulation, "PRODUCT_LOG_RANGE", -1.0)
    by_logarithms = simulate(theta, 5000, random_state=1)
    assert by_rates.set_sizes.max() > 20
    np.testing.assert_array_equal(by_rates.sequence, by_logarithms.sequence)
    np.testing.assert_array_equal(by_rates.observation_times, by_logarithms.observation_times)
    np.testing.assert_allclose(by_rates.arrival_times, by_logarithms.arrival_times, rtol=1e-12)


@pytest.mark.parametrize(("size", "in_logs"), [(30.0, False), (350.0, True)])
def test_extreme_effects_give_the_exact_distribution(size, in_logs):
    # Base rates are moderate: with extreme base rates, nearly all draws would be equal.
    rng = np.random.default_rng(3)
    theta = size * rng.choice([-1.0, 0.0, 1.0], (4, 4))
    np.fill_diagonal(theta, [0.5, -1.0, 0.0, -0.5])
    theta[:, 0] = [0.5, size, -size, size]
    assert simulation._tables(theta)[2] is in_logs
    drawn = simulate(theta, 50_000, random_state=1)
    expected = [
        np.exp(ref.mp_log_p_set(theta, [j for j in range(4) if mask >> j & 1]))
        for mask in range(16)
    ]
    assert np.sum(expected) == pytest.approx(1.0)
    counts = np.bincount(masks(drawn), minlength=16)
    assert chi_square_p_value(counts, expected) > FALSE_ALARM


@pytest.mark.parametrize("n", [1, 3, 20])
@pytest.mark.parametrize("entry", [30.0, 500.0])
def test_huge_rates_fill_the_set_at_once_and_stop(n, entry):
    drawn = simulate(np.full((n, n), entry), 5000, random_state=1)
    # The probability that the observation comes before the last of n arrivals is below n exp(-30).
    assert (drawn.set_sizes == n).all()
    assert np.isfinite(drawn.arrival_times).all()
    assert drawn.arrival_times.max() < 1e-9
    assert (np.sort(drawn.sequence.reshape(-1, n), axis=1) == np.arange(n)).all()
    # All items are equal, so each of them is the first equally often.
    firsts = np.bincount(drawn.sequence[::n], minlength=n)
    assert n == 1 or scipy.stats.chisquare(firsts).pvalue > FALSE_ALARM


@pytest.mark.parametrize("n", [1, 3, 20])
@pytest.mark.parametrize("entry", [-30.0, -500.0])
def test_tiny_rates_leave_the_set_empty(n, entry):
    drawn = simulate(np.full((n, n), entry), 5000, random_state=1)
    assert drawn.set_sizes.max() == 0
    assert drawn.sequence.size == drawn.arrival_times.size == drawn.holding_times().size == 0
    assert drawn.sequences() == [()] * 5000


def test_a_rate_below_every_double_can_come_back():
    # The items a, b, c and d arrive in this order, very quickly. a and b lower the rate of e to
    # exp(-990), and then c and d raise it again.
    theta = np.diag([10.0, -20.0, -20.0, -20.0, -20.0])
    theta[0, 1] = theta[1, 2] = theta[2, 3] = 40.0
    theta[0, 4], theta[1, 4], theta[2, 4], theta[3, 4] = -500.0, -470.0, 500.0, 500.0
    drawn = simulate(theta, 2000, items=["a", "b", "c", "d", "e"], random_state=1)
    counts = collections.Counter(drawn.sequences())
    # The probability that two neighbours arrive in the opposite order is at most exp(-10), which is
    # 1 / 22,026.
    assert counts["a", "b", "c", "d", "e"] >= 1990


def test_a_rate_below_every_double_still_counts_for_late_observations():
    # The items a, b and c arrive in this order. The rate of d is exp(-820) after the arrival of b,
    # and exp(-320) after that of c.
    theta = np.diag([10.0, -20.0, -20.0, -20.0])
    theta[0, 1] = theta[1, 2] = 40.0
    theta[0, 3], theta[1, 3], theta[2, 3] = -400.0, -400.0, 500.0
    model = Model(theta, ["a", "b", "c", "d"], observation=Exponential(np.exp(-330.0)))
    drawn = simulate(model, 2000, random_state=1)
    counts = collections.Counter(drawn.sequences())
    assert counts["a", "b", "c", "d"] >= 1990


def test_a_rate_beyond_every_double_takes_no_time():
    theta = np.diag([0.0, -30.0, -30.0])
    theta[0, 1], theta[0, 2] = 500.0, 500.0
    theta[1, 2], theta[2, 1] = 500.0, 500.0
    drawn = simulate(theta, 5000, random_state=1)
    assert set(drawn.set_sizes.tolist()) == {0, 3}
    starts = drawn.indptr[:-1][drawn.set_sizes == 3]
    arrivals = drawn.arrival_times[starts[:, None] + np.arange(3)]
    assert (arrivals[:, 0] == arrivals[:, 2]).all()
    assert np.isfinite(arrivals).all()


def test_hardly_ever_observed_is_still_finite():
    drawn = simulate(observed(np.zeros((3, 3)), 5e-324), 100, random_state=1)
    assert np.isfinite(drawn.observation_times).all()
    assert (drawn.set_sizes == 3).all()


entries = st.one_of(
    st.floats(-3, 3), st.floats(-30, 30), st.sampled_from([-500.0, -30.0, 0.0, 30.0, 500.0])
)


@settings(deadline=None, max_examples=60)
@given(
    theta=st.integers(1, 20).flatmap(lambda n: hnp.arrays(np.float64, (n, n), elements=entries)),
    stop_rate=st.sampled_from([1e-9, 1.0, 1e9]),
    size=st.integers(1, 50),
    seed=st.integers(0, 2**64),
)
def test_every_draw_is_a_sequence(theta, stop_rate, size, seed):
    drawn = simulate(observed(theta, stop_rate), size, random_state=seed, n_threads=1)
    n = len(theta)
    assert len(drawn) == size
    assert len(drawn.indptr) == size + 1
    assert drawn.indptr[0] == 0
    assert drawn.indptr[-1] == len(drawn.sequence) == len(drawn.arrival_times)
    assert ((drawn.observation_times > 0) & np.isfinite(drawn.observation_times)).all()
    for end, sigma, arrivals in draws(drawn):
        assert len(set(sigma)) == len(sigma)
        assert set(sigma) <= set(range(n))
        assert (np.diff(arrivals, prepend=0.0) >= 0).all()
        assert (arrivals < end).all()


def test_arrivals_increase_and_come_before_the_observation(drawn):
    draw_of = np.repeat(np.arange(len(drawn)), drawn.set_sizes)
    assert (drawn.holding_times() > 0).all()
    assert (drawn.arrival_times < drawn.observation_times[draw_of]).all()


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_an_item_without_a_rate_is_never_chosen(end):
    """If `end` is 0, all rates of the last block are 0. If `end` is 1, one of them is positive."""
    width = kernel.WIDTH
    rates = np.zeros(4 * width)
    positive = [width + 2, width + 5, 2 * width] + ([3 * width + 1] if end else [])
    rates[positive] = [0.1, 0.2, 0.3, end][: len(positive)]
    sums = np.empty(4)
    # Call the uncompiled function, because Python cannot call the compiled one.
    total = kernel.sum_blocks.py_func(rates, sums)
    assert total == pytest.approx(rates.sum())
    assert kernel.choose(rates, sums, 0.0) == positive[0]
    assert kernel.choose(rates, sums, 0.15) == positive[1]
    assert kernel.choose(rates, sums, 0.45) == positive[2]
    # If rounding makes a random number as large as the total rate, or larger, the last item that
    # can arrive is chosen.
    for beyond in (total, np.nextafter(total, 9.0), 2 * total):
        assert kernel.choose(rates, sums, beyond) == positive[-1]
    # Rounding can also make the stored sum of a block too large. Then the last item of this block
    # that can arrive is chosen.
    sums[1] += 0.05
    assert kernel.choose(rates, sums, 0.34) == positive[1]


# --- Seeds and threads ----------------------------------------------------------------------------


def test_the_number_of_threads_does_not_change_a_bit(branch, theta):
    size = 4 * simulation._CHUNK + 17
    one, two, three = (simulate(theta, size, random_state=5, n_threads=k) for k in (1, 2, 3))
    assert same_bits(one, two)
    assert same_bits(one, three)


def test_the_same_seed_gives_the_same_draws(theta):
    assert same_bits(simulate(theta, 100, random_state=5), simulate(theta, 100, random_state=5))
    assert not np.array_equal(
        simulate(theta, 100, random_state=5).observation_times,
        simulate(theta, 100, random_state=6).observation_times,
    )


@pytest.mark.parametrize("random_state", [None, np.random.default_rng(1)])
def test_the_recorded_seed_repeats_the_draws(theta, random_state):
    first = simulate(theta, 100, random_state=random_state)
    second = simulate(theta, 100, random_state=random_state)
    assert first.seed != second.seed
    assert same_bits(first, simulate(theta, 100, random_state=first.seed))


def test_chunks_are_independent_of_each_other(theta):
    drawn = simulate(theta, 2 * simulation._CHUNK, random_state=5)
    first, second = drawn.observation_times.reshape(2, -1)
    assert not np.isin(first, second).any()
    correlation = np.corrcoef(first, second)[0, 1]
    assert abs(correlation) * np.sqrt(len(first)) < LARGEST_Z


@pytest.mark.parametrize("more", [101, simulation._CHUNK + 1])
def test_a_longer_run_begins_with_the_same_draws(theta, more):
    few, many = simulate(theta, 100, random_state=5), simulate(theta, more, random_state=5)
    np.testing.assert_array_equal(few.indptr, many.indptr[:101])
    np.testing.assert_array_equal(few.arrival_times, many.arrival_times[: few.indptr[-1]])


@pytest.mark.parametrize("room", [1, 100, 10**6])
def test_the_size_of_the_buffers_does_not_change_a_bit(monkeypatch, theta, room):
    usual = simulate(theta, 5000, random_state=5)
    monkeypatch.setattr(simulation, "_ROOM", room)
    assert same_bits(usual, simulate(theta, 5000, random_state=5))


def test_large_sets_need_several_buffers():
    n = 40
    drawn = simulate(np.full((n, n), 4.0), 3000, random_state=1)
    assert len(drawn.sequence) > 3 * simulation._ROOM
    assert drawn.set_sizes.max() == n


def test_memory_does_not_grow_with_draws_times_items():
    n, size = 1000, 200_000
    theta = np.full((n, n), 0.01)
    np.fill_diagonal(theta, -8.0)
    simulate(theta, 1)  # compile before memory is measured
    tracemalloc.start()
    try:
        simulate(theta, size, random_state=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size * n / 2


# --- What comes out -------------------------------------------------------------------------------


def test_the_views_tell_the_same_story(theta):
    items = ["d", "a", "c", "b"]
    drawn = simulate(theta, 300, items=items, random_state=1)
    orders = drawn.sequences()
    assert orders == [tuple(items[j] for j in sigma) for _, sigma, _ in draws(drawn)]
    assert drawn.set_sizes.tolist() == [len(order) for order in orders]
    data = drawn.to_dataset()
    # `from_sets` validates its input. So the data set of the draws is valid, too.
    assert data == Dataset.from_sets(orders, items=items, times=drawn.observation_times)
    assert data.frequencies.to_dict() == pytest.approx(drawn.frequencies.to_dict())
    assert list(drawn.frequencies.index) == items
    held = drawn.holding_times()
    at = 0
    for _, _, arrivals in draws(drawn):
        assert np.cumsum(held[at : at + len(arrivals)]) == pytest.approx(arrivals)
        at += len(arrivals)


def test_a_data_set_does_not_share_memory_with_the_draws(theta):
    drawn = simulate(theta, 10, random_state=1)
    assert not np.shares_memory(drawn.to_dataset().times, drawn.observation_times)
    assert drawn.observation_times.flags.writeable


def test_types_and_repr(theta):
    drawn = simulate(theta, 10, random_state=1)
    assert isinstance(drawn, Simulation)
    kinds = [getattr(drawn, field).dtype for field in FIELDS]
    assert kinds == [np.int64, np.int32, np.float64, np.float64]
    assert drawn.items == ("0", "1", "2", "3")
    assert repr(drawn).startswith("Simulation(10 draws of 4 items: '0', '1', '2', ...; ")
    assert repr(drawn).endswith(" items per draw; seed 1)")
    with pytest.raises(AttributeError):
        drawn.seed = 2
    assert same_bits(pickle.loads(pickle.dumps(drawn)), drawn)  # noqa: S301


def test_the_labels_of_a_table_become_items(theta):
    labels = ["w", "x", "y", "z"]
    frame = pd.DataFrame(theta, index=labels, columns=labels)
    drawn = simulate(frame, 500, random_state=1)
    assert drawn.items == tuple(labels)
    assert same_bits(drawn, simulate(theta, 500, random_state=1))


def test_items_put_the_items_of_a_table_in_order(theta):
    labels = ["w", "x", "y", "z"]
    frame = pd.DataFrame(theta, index=labels, columns=labels)
    order = [2, 0, 3, 1]
    drawn = simulate(frame, 500, items=[labels[j] for j in order], random_state=1)
    assert drawn.items == ("y", "w", "z", "x")
    assert same_bits(drawn, simulate(theta[np.ix_(order, order)], 500, random_state=1))


def test_a_model_is_drawn_as_it_says(theta):
    """Draws have the labels and the observation of the model.

    The argument `items` may list the labels in another order.
    """
    labels = ["w", "x", "y", "z"]
    model = Model(theta, labels, observation=Exponential(2.0))
    drawn = simulate(model, 500, random_state=1)
    assert drawn.items == tuple(labels)
    assert same_bits(drawn, simulate(observed(theta, 2.0), 500, random_state=1))
    assert not same_bits(drawn, simulate(theta, 500, random_state=1))
    order = [2, 0, 3, 1]
    turned = simulate(model, 500, items=[labels[j] for j in order], random_state=1)
    assert turned.items == ("y", "w", "z", "x")
    expected = simulate(observed(theta[np.ix_(order, order)], 2.0), 500, random_state=1)
    assert same_bits(turned, expected)


def test_an_observation_without_a_constant_rate_is_refused():
    """An observation without a constant rate is refused, because no kernel can draw it."""

    class Slowing(Exponential):
        kind = "slowing"
        constant_rate = None

    with pytest.raises(InputError, match=r"kind 'slowing' cannot be simulated.*constant rate"):
        simulate(Model([[0.0]], observation=Slowing()), 5)


def test_it_is_reached_from_the_top():
    assert sequela.simulate is simulation.simulate


@pytest.mark.parametrize(
    ("theta", "size", "options", "message"),
    [
        ([[0.0]], 0, {}, "size is 0; expected an integer of at least 1"),
        ([[0.0]], -3, {}, "size is -3"),
        ([[0.0]], 2.5, {}, "size is 2.5"),
        ([[0.0]], True, {}, "size is True"),
        ([[0.0, 1.0]], 5, {}, r"theta has shape \(1, 2\)"),
        ([[np.nan]], 5, {}, r"theta\[0, 0\] is nan"),
        ([[501.0]], 5, {}, r"theta\[0, 0\] is 501"),
        (np.zeros((0, 0)), 5, {}, "theta has no items"),
        ("theta", 5, {}, r"model is the text 'theta'; expected a Model.*Model\.load"),
        ([["theta"]], 5, {}, "theta cannot be read as numbers"),
        ([[0.0]], 5, {"random_state": -1}, "random_state is -1"),
        ([[0.0]], 5, {"n_threads": 0}, "n_threads is 0"),
        (
            np.zeros((2, 2)),
            5,
            {"items": ["a"]},
            r"theta has shape \(2, 2\) but the given labels or data have 1 items; expected 1 x 1",
        ),
        (np.zeros((2, 2)), 5, {"items": ["a", "a"]}, "'a' at positions 0 and 1"),
        (np.zeros((2, 2)), 5, {"items": ["a", None]}, "items, position 1"),
        (np.zeros((2, 2)), 5, {"items": "ab"}, "items must be a list"),
        (pd.DataFrame(np.zeros((2, 2)), list("aa"), list("aa")), 5, {}, "'a' at positions 0 and 1"),
        (pd.DataFrame(np.zeros((2, 2)), list("ab"), list("ba")), 5, {}, "labelled differently"),
        (
            pd.DataFrame(np.zeros((2, 2)), list("ab"), list("ab")),
            5,
            {"items": ["a", "c"]},
            r"different items: only theta has \['b'\], theta lacks \['c'\]; give the same items",
        ),
    ],
)
def test_what_does_not_fit_is_refused(theta, size, options, message):
    with pytest.raises(InputError, match=message):
        simulate(theta, size, **options)
