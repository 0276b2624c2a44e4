"""Questions about samples with missing cells or known orders: compare with sums over orders."""

import numpy as np
import pytest

import reference
from likelihood import partly_known as twin
from questions.drawn_models import by_hand, random_posterior
from sequela import Dataset, InputError, Model
from sequela import questions as q
from sequela.questions import imputation
from sequela.settings import Budget

N = 6
THETA = reference.random_theta(np.random.default_rng(8), N, sparsity=0.3)
MODEL = Model(THETA)
PRESENT, MISSING = [0, 2, 5], [1, 4]
STATEMENTS = [(2, 0, 0.8), (0, 5, 1.0)]
SAMPLE = Dataset(
    [[1, None, 1, 0, None, 1]], orders=[[(str(a), str(b), p) for a, b, p in STATEMENTS]]
)
EVERY = list(twin.posterior(THETA, PRESENT, MISSING, STATEMENTS))


def mean(of):
    return sum(p * of(order) for order, p in EVERY)


def test_the_twin_is_a_distribution():
    assert mean(lambda _: 1.0) == pytest.approx(1.0, abs=1e-12)


def test_missing_cells_have_the_probability_of_their_completions():
    table = q.impute(MODEL, SAMPLE)
    assert table["item"].tolist() == ["1", "4"]
    expected = [mean(lambda order, i=i: float(i in order)) for i in MISSING]
    np.testing.assert_allclose(table["probability"], expected, rtol=1e-10)
    assert set(table["method"]) == {"exact"}


def test_cells_of_items_that_act_on_nothing_are_imputed_as_well():
    theta = THETA.copy()
    theta[4, [0, 1, 2, 3, 5]] = 0.0
    every = list(twin.posterior(theta, PRESENT, MISSING))
    expected = sum(p for order, p in every if 4 in order)
    table = q.impute(Model(theta), SAMPLE.without_orders())
    assert table["probability"][1] == pytest.approx(expected, rel=1e-10)


def test_drawn_cells_agree():
    """Drawn probabilities are within 5 standard errors of the exact probabilities.

    The reported standard error is at least the error of independent draws, so |z| > 5 is very rare.
    """
    data = SAMPLE.without_orders()
    exact = q.impute(MODEL, data)
    drawn = q.impute(MODEL, data, budget=Budget(work=300.0), random_state=1)
    assert set(drawn["method"]) == {"completions"}
    assert np.abs(drawn["probability"] - exact["probability"]).max() < 0.05
    z = (drawn["probability"] - exact["probability"]) / drawn["se"]
    assert np.abs(z).max() < 5.0


def test_times():
    times = twin.holding_means
    expected = mean(lambda order: times(THETA, order).sum())
    second = mean(lambda order: times(THETA, order).sum() ** 2 + (times(THETA, order) ** 2).sum())
    found = q.time_posterior(MODEL, SAMPLE)
    assert found.mean == pytest.approx(expected, rel=1e-10)
    assert found.variance == pytest.approx(second - expected**2, rel=1e-9)
    table = q.pseudo_times(MODEL, SAMPLE)
    assert table["mean"].iloc[0] == pytest.approx(expected, rel=1e-10)
    # The distribution function, integrated numerically, must be one half at the median.
    median = float(table["q50"].iloc[0])
    grid = np.linspace(1e-6, 60.0, 40001)
    density = found.density(grid)["density"].to_numpy()
    cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2.0)])
    cumulative *= grid[1] - grid[0]
    assert cumulative[-1] == pytest.approx(1.0, abs=1e-4)
    assert np.interp(median, grid, cumulative) == pytest.approx(0.5, abs=1e-3)


def test_the_time_of_a_sample_that_may_be_empty():
    data = Dataset([[0, None, 0, 0, None, 0]])
    every = list(twin.posterior(THETA, [], MISSING))
    expected = sum(p * twin.holding_means(THETA, order).sum() for order, p in every)
    table = q.pseudo_times(MODEL, data, quantiles=(0.5,))
    assert table["mean"].iloc[0] == pytest.approx(expected, rel=1e-10)
    assert 0.0 < table["q50"].iloc[0] < table["mean"].iloc[0]


def test_orders_and_arrivals():
    orders = q.order_matrix(MODEL, given=SAMPLE).probability
    arrivals = q.sample_arrivals(MODEL, SAMPLE)
    for a in PRESENT:
        for b in PRESENT:
            if a != b:
                expected = mean(lambda order, a=a, b=b: order.index(a) < order.index(b))
                assert orders.loc[str(a), str(b)] == pytest.approx(expected, abs=1e-10)
        when = mean(lambda order, a=a: twin.holding_means(THETA, order)[: order.index(a) + 1].sum())
        assert arrivals.loc[str(a), "arrival_mean"] == pytest.approx(when, rel=1e-10)
        earlier = mean(
            lambda order, a=a: 1 + sum(order.index(b) < order.index(a) for b in PRESENT if b != a)
        )
        assert arrivals.loc[str(a), "position_mean"] == pytest.approx(earlier, rel=1e-10)


def test_likely_orders_obey_what_is_known():
    theta = THETA[:4, :4]
    statements = [(0, 1, 1.0), (2, 3, 0.7)]
    data = Dataset([[1, 1, 1, 1]], orders=[[(str(a), str(b), p) for a, b, p in statements]])
    table = q.likely_orders(Model(theta), data, max_orders=100)
    every = dict(twin.posterior(theta, [0, 1, 2, 3], [], statements))
    assert len(table) == len(every) == 12
    for order, probability in zip(table["order"], table["probability"], strict=True):
        assert probability == pytest.approx(every[tuple(map(int, order))], rel=1e-10)
    cohort = q.cohort_orders(Model(theta), data)
    assert cohort.orders[0] == table["order"][0]
    best = q.likely_orders(MODEL, SAMPLE, 1)
    assert q.cohort_orders(MODEL, SAMPLE).orders == (best["order"][0],)


@pytest.mark.parametrize("exact", [True, False])
def test_what_comes_next_is_the_mean_over_the_missing_cells(exact, monkeypatch):
    data = SAMPLE.without_orders()
    every = list(twin.posterior(THETA, PRESENT, MISSING))
    expected = np.zeros(N)
    observed = 0.0
    for order, p in every:
        total = 1.0 + reference.exit_rate(THETA, order)
        observed += p / total
        for j in set(range(N)) - set(order):
            expected[j] += p * reference.rate(THETA, order, j) / total
    if not exact:
        monkeypatch.setattr(Budget, "exact_fits", lambda *_, **__: False)
    step = q.next_items(MODEL, data)
    tolerance = 1e-10 if exact else 0.03
    assert step.observed_first == pytest.approx(observed, abs=tolerance)
    for label, probability in step.items["probability"].items():
        assert probability == pytest.approx(expected[int(label)], abs=tolerance)
    whole = Dataset([[1, 0, 1, 0, 0, 1]])
    plain = q.next_items(MODEL, {"0", "2", "5"})
    assert q.next_items(MODEL, whole).items.equals(plain.items)


def test_other_questions_refuse_and_say_what_to_do():
    with pytest.raises(InputError, match="no missing cells"):
        q.impute(MODEL, [[1, 0, 0, 0, 0, 1]])
    two = Dataset([[1, 0], [None, 1]])
    with pytest.raises(InputError, match="a data set of 2 samples; expected one"):
        q.time_posterior([[0.0, 0.0], [0.0, 0.0]], two)
    assert imputation.impute is q.impute


def test_orders_in_a_sample_under_a_posterior_are_means_over_its_models():
    posterior = random_posterior(N, chains=2, draws=4)
    items = dict(zip(map(str, range(N)), posterior.items, strict=True))
    data = Dataset(
        SAMPLE.values, items=posterior.items,
        orders=[[(items[str(a)], items[str(b)], p) for a, b, p in STATEMENTS]],
    ).with_missing(SAMPLE.missing)  # fmt: skip
    found = q.order_matrix(posterior, given=data)
    a, b = items["2"], items["0"]
    truths = []
    for model in by_hand(posterior):
        every = twin.posterior(model.theta, PRESENT, MISSING, STATEMENTS)
        truths.append(sum(p for order, p in every if order.index(2) < order.index(0)))
    assert found.probability.loc[a, b] == pytest.approx(np.mean(truths), rel=1e-9)
    low, high = np.quantile(truths, [0.05, 0.95])
    assert found.low.loc[a, b] == pytest.approx(low, rel=1e-9)
    assert found.high.loc[a, b] == pytest.approx(high, rel=1e-9)
    with pytest.raises(InputError, match="not known whether the sample has 'b'"):
        q.order_probability(posterior, "a", "b", given=data)
    both = Dataset([[1] * N] * 2, items=posterior.items)
    with pytest.raises(InputError, match="given is a data set of 2 samples"):
        q.order_matrix(posterior, given=both)
