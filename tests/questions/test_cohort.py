"""Orders of a cohort: the most likely order per sample, their tree, and positions of items."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequela import Dataset, InputError, Model, example_theta, simulate
from sequela.likelihood import sample_posteriors
from sequela.questions import cohort_orders, item_arrivals, item_positions, likely_orders


def some_model(seed, n=5):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(n, n))
    return Model(theta, [f"item {k}" for k in range(n)])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_orders_and_arrivals_are_those_of_each_sample(seed):
    model = some_model(seed)
    values = np.random.default_rng(seed).random((6, 5)) < 0.6
    data = Dataset(values, items=model.items)
    cohort = cohort_orders(model, data)
    past = sample_posteriors(model, data)
    for row, chosen in enumerate(data.sets()):
        best = likely_orders(model, chosen, 1)
        assert cohort.orders[row] == best["order"][0]
        assert cohort.probability[row] == pytest.approx(best["probability"][0])
        found = [cohort.arrivals[row][model.items[j]] for j in past.present(row)]
        np.testing.assert_allclose(found, past.arrival_mean[row, past.present(row)])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_every_sample_is_in_the_tree_once(seed, least):
    model = some_model(seed)
    data = Dataset(np.random.default_rng(seed).random((30, 5)) < 0.5, items=model.items)
    cohort = cohort_orders(model, data)

    def leaves(branch):
        assert branch.count == branch.ended + branch.rest + sum(c.count for c in branch.children)
        assert all(child.count >= least for child in branch.children)
        return branch.ended + branch.rest + sum(leaves(child) for child in branch.children)

    tree = cohort.tree(least=least)
    assert tree.count == 30 == leaves(tree)
    whole = cohort.tree()
    assert whole.children == tuple(sorted(whole.children, key=lambda c: -c.count))
    assert sum(c.count for c in whole.children) == (data.set_sizes > 0).sum()


def test_paths_are_beginnings_of_orders():
    cohort = cohort_orders(
        example_theta(), simulate(example_theta(), 300, random_state=1).to_dataset()
    )
    paths = cohort.paths(2)
    for path, count in paths.items():
        assert count == sum(order[:2] == path for order in cohort.orders)
    assert list(paths.values()) == sorted(paths.values(), reverse=True)
    steps = cohort.paths(2, ["step 1", "step 2", "step 3"])
    assert next(iter(steps)) == ("step 1", "step 2")


def test_large_samples_have_no_order():
    n = 16
    model = Model(np.diag(np.zeros(n)))
    data = np.zeros((3, n), dtype=bool)
    data[0, :14] = data[1, :3] = True
    cohort = cohort_orders(model, data)
    assert [order is None for order in cohort.orders] == [True, False, False]
    assert np.isnan(cohort.probability[0])
    assert cohort.largest == 12
    assert cohort_orders(model, data, max_size=14).orders[0] is not None
    assert cohort.tree().count == 2


def test_unknown_items_are_refused():
    cohort = cohort_orders(example_theta(), [{"first"}])
    with pytest.raises(InputError, match="no item 'nothing'"):
        cohort.tree(["nothing"])


def test_positions_are_quantiles_of_the_draws():
    theta = example_theta()
    found = item_positions(theta, draws=20_000, random_state=4)
    drawn = simulate(theta, 20_000, random_state=4)
    sequences = drawn.sequences()
    for item in ("first", "step 3"):
        places = sorted(s.index(item) + 1 for s in sequences if item in s)
        assert found.loc[item, "observed"] == len(places) / 20_000
        # The median is the first position such that at least half of the draws are not after it.
        middle = found.loc[item, "place_50"]
        assert np.mean(np.array(places) <= middle) >= 0.5 > np.mean(np.array(places) < middle)
    means = item_arrivals(theta, draws=20_000, random_state=4)
    inside = means.loc[found.index, "arrival_mean"]
    assert ((found["time_05"] < inside) & (inside < found["time_95"])).all()
    assert (np.diff(found["place_50"]) >= 0).all()


def test_items_that_are_hardly_ever_drawn_have_no_position():
    found = item_positions(np.diag([0.0, -25.0]), draws=1000, random_state=1)
    assert found.loc["1"].drop("observed").isna().all()
    with pytest.raises(InputError, match="items is empty"):
        item_positions(example_theta(), [])
