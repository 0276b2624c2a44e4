"""The next item under a posterior, if cells are missing: compare with sums over all histories."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import reference
from likelihood import partly_known as twin
from questions.drawn_models import by_hand, random_posterior
from sequela import Dataset, InputError, Settings, questions
from sequela.budget import Budget
from sequela.posteriors.diagnostics import effective_size
from sequela.questions import next_item

PRESENT, MISSING, N = [0, 3], [1, 4], 5
POSTERIOR = random_posterior(N, chains=3, draws=5)
ITEMS = list(POSTERIOR.items)
STATEMENTS = {"none": [], "some": [(3, 0, 0.8)], "certain": [(0, 3, 1.0)]}


def sample_of(statements=()):
    named = [(ITEMS[a], ITEMS[b], p) for a, b, p in statements]
    return Dataset([[1, None, 0, 1, None]], items=ITEMS, orders=[named])


def truth_of(theta, statements):
    """Return three arrays, with one entry per item, and two numbers of the sample.

    For each item: P(it arrives next), its mean rate, and P(it is the next item | an item arrives
    next). For the sample: P(the observation comes next), and the mean time until the next event.
    """
    probability, rate, share = np.zeros((3, N))
    observed = waiting = 0.0
    for order, p in twin.posterior(theta, PRESENT, MISSING, statements):
        total = 1.0 + reference.exit_rate(theta, order)
        observed += p / total
        waiting += p / total
        for j in set(range(N)) - set(order):
            one = reference.rate(theta, order, j)
            rate[j] += p * one
            probability[j] += p * one / total
            share[j] += p * one / (total - 1.0)
    return probability, rate, share, observed, waiting


@pytest.mark.parametrize("kind", STATEMENTS)
def test_all_numbers_against_an_enumeration(kind):
    step = questions.next_items(POSTERIOR, sample_of(STATEMENTS[kind]), level=0.8)
    truths = [truth_of(model.theta, STATEMENTS[kind]) for model in by_hand(POSTERIOR)]
    probability = np.array([truth[0] for truth in truths]).reshape(3, 5, N)
    assert set(step.items.index) == {"b", "c", "e"}
    for label, row in step.items.iterrows():
        j = ITEMS.index(label)
        values = probability[:, :, j]
        assert row["probability"] == pytest.approx(values.mean(), rel=1e-9)
        assert row["rate"] == pytest.approx(np.mean([t[1][j] for t in truths]), rel=1e-9)
        assert row["share"] == pytest.approx(np.mean([t[2][j] for t in truths]), rel=1e-9)
        low, high = np.quantile(values, [0.1, 0.9])
        assert row[["low", "high"]].tolist() == pytest.approx([low, high], rel=1e-9)
        assert row["effective"] == pytest.approx(effective_size(values), rel=1e-6)
    assert step.items["probability"].is_monotonic_decreasing
    assert step.observed_first == pytest.approx(np.mean([t[3] for t in truths]), rel=1e-9)
    low = np.quantile([t[4] for t in truths], 0.1)
    assert step.summary.loc["waiting_time", "low"] == pytest.approx(low, rel=1e-9)


def test_a_data_set_without_missing_cells_is_a_set_of_labels():
    data = Dataset([[1, 0, 0, 1, 0]], items=ITEMS, orders=[[("a", "d")]])
    one = questions.next_items(POSTERIOR, data)
    other = questions.next_items(POSTERIOR, {"a", "d"})
    pd.testing.assert_frame_equal(one.items, other.items, check_exact=True)
    pd.testing.assert_frame_equal(one.summary, other.summary, check_exact=True)


def test_a_missing_item_that_is_hardly_ever_present_may_as_well_be_absent():
    theta = POSTERIOR.draws.theta.copy()
    theta[:, :, :, [1, 4]] = 0.0
    theta[:, :, [1, 4], [1, 4]] = -40.0
    rare = POSTERIOR.but(
        draws=type(POSTERIOR.draws)(theta, *list(vars(POSTERIOR.draws).values())[1:])
    )
    one = questions.next_items(rare, sample_of()).items
    other = questions.next_items(rare, {"a", "d"}).items
    pd.testing.assert_frame_equal(one.loc[["c"]], other.loc[["c"]], rtol=1e-9)


def test_drawn_completions_are_near_the_exact_answer(monkeypatch):
    exact = questions.next_items(POSTERIOR, sample_of()).items
    monkeypatch.setattr(Budget, "exact_fits", lambda *_, **__: False)
    drawn = questions.next_items(POSTERIOR, sample_of()).items.loc[exact.index]
    # 2,000 completions for each of 15 draws of theta: the error of a mean is below 0.5 / 170.
    np.testing.assert_allclose(drawn["probability"], exact["probability"], atol=0.015)
    again = questions.next_items(POSTERIOR, sample_of(), n_threads=1).items.loc[exact.index]
    pd.testing.assert_frame_equal(drawn, again, check_exact=True)
    other = questions.next_items(POSTERIOR, sample_of(), random_state=1).items.loc[exact.index]
    assert not drawn.equals(other)


def test_completions_are_summed_in_parts_as_at_once(monkeypatch):
    whole = questions.next_items(POSTERIOR, sample_of())
    monkeypatch.setattr(next_item, "_TOGETHER", 3)
    parts = questions.next_items(POSTERIOR, sample_of())
    for one, other in ((parts.items, whole.items), (parts.summary, whole.summary)):
        # Effective draws and R-hat depend on ranks of the draws, which rounding can change.
        exact = other.columns.drop(["effective", "r_hat"])
        np.testing.assert_allclose(one[exact].to_numpy(), other[exact].to_numpy(), rtol=1e-12)


def test_max_models_chooses_the_draws():
    few = questions.next_items(POSTERIOR, sample_of(), max_models=3).items
    first = [truth_of(model.theta, [])[0] for model in by_hand(POSTERIOR)[::5]]
    for label, row in few.iterrows():
        expected = np.mean([truth[ITEMS.index(label)] for truth in first])
        assert row["probability"] == pytest.approx(expected, rel=1e-9)
    complete = questions.next_items(POSTERIOR, {"a"}, max_models=3).items
    alone = [questions.next_items(model, {"a"}).items for model in by_hand(POSTERIOR)[::5]]
    for label, row in complete.iterrows():
        expected = np.mean([table.loc[label, "probability"] for table in alone])
        assert row["probability"] == pytest.approx(expected, rel=1e-9)


def test_bad_input():
    two = Dataset([[1, None, 0, 1, None]] * 2, items=ITEMS)
    with pytest.raises(InputError, match=r"state is a data set of 2 samples; expected one"):
        questions.next_items(POSTERIOR, two)
    with pytest.raises(InputError, match="draws is not used by this function"):
        questions.next_items(POSTERIOR, sample_of(), draws=100)
    with pytest.raises(InputError, match="max_models is not used by this function"):
        questions.next_items(by_hand(POSTERIOR)[0], sample_of(), max_models=100)
    how = Settings(random_state=1)
    assert questions.next_items(POSTERIOR, sample_of(), settings=how).observed_first > 0.0
