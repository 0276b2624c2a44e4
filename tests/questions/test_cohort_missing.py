"""Orders of a cohort with missing cells and known orders: compare with sums over all histories."""

import numpy as np
import pandas as pd
import pytest

import reference
from likelihood import partly_known as twin
from sequela import Dataset, Model, Settings
from sequela.questions import cohort, cohort_orders, known_orders, likely_orders, sample_posteriors

N = 6
ROWS = [
    [1, None, 1, 0, None, 1],
    [1, None, 1, 0, None, 1],
    [1, 1, 1, None, 0, 0],
    [0, None, 1, None, None, 0],
    [None, 0, 0, 0, 0, 0],
    [1, 1, 0, 0, 1, 1],
]
STATEMENTS = {1: [(2, 0, 0.8), (0, 5, 1.0)], 2: [(1, 0, 0.9)], 5: [(4, 0, 1.0)]}


def data_of(rows=ROWS, statements=STATEMENTS):
    return Dataset(
        rows,
        orders=[
            [(str(a), str(b), p) for a, b, p in statements.get(row, [])] for row in range(len(rows))
        ],
    )


def truth_of(theta, row):
    """Return P(order of the known items), and their mean arrival times, from all histories."""
    present = [j for j, cell in enumerate(ROWS[row]) if cell == 1]
    missing = [j for j, cell in enumerate(ROWS[row]) if cell is None]
    orders, arrival = {}, dict.fromkeys(present, 0.0)
    for order, p in twin.posterior(theta, present, missing, STATEMENTS.get(row, [])):
        known = tuple(str(i) for i in order if i in present)
        orders[known] = orders.get(known, 0.0) + p
        holds = twin.holding_means(theta, order)
        for j in present:
            arrival[j] += p * holds[: order.index(j) + 1].sum()
    return orders, arrival


@pytest.mark.parametrize("seed", range(4))
def test_all_samples_against_an_enumeration(seed):
    theta = reference.random_theta(np.random.default_rng(seed), N, sparsity=0.2, scale=1.5)
    found = cohort_orders(Model(theta), data_of())
    for row in range(len(ROWS)):
        orders, arrival = truth_of(theta, row)
        assert found.probability[row] == pytest.approx(max(orders.values()), rel=1e-9)
        assert found.probability[row] == pytest.approx(orders[found.orders[row]], rel=1e-9)
        assert found.arrivals[row] == pytest.approx({str(j): t for j, t in arrival.items()})
    assert found.orders[4] == ()
    assert found.largest == 12


def test_a_sample_has_the_order_and_the_times_of_the_other_questions():
    theta = reference.random_theta(np.random.default_rng(9), N, sparsity=0.2)
    data = data_of()
    found = cohort_orders(Model(theta), data)
    times = sample_posteriors(Model(theta), data)
    for row in range(len(ROWS)):
        best = likely_orders(Model(theta), data.select_samples([row]), 1)
        assert found.orders[row] == best["order"][0]
        assert found.probability[row] == pytest.approx(best["probability"][0], rel=1e-12)
        for item, time in found.arrivals[row].items():
            assert time == pytest.approx(times.arrival_mean[row, int(item)], rel=1e-9)


def test_complete_samples_keep_their_bits():
    theta = reference.random_theta(np.random.default_rng(9), N, sparsity=0.2)
    alone = cohort_orders(theta, [ROWS[5]])
    among = cohort_orders(theta, data_of(statements={}))
    assert alone.orders[0] == among.orders[5]
    assert alone.probability[0] == among.probability[5]
    assert alone.arrivals[0] == among.arrivals[5]


def test_missing_items_count_only_if_they_matter():
    n = 16
    theta = np.diag(np.full(n, -1.0))
    theta[0, 8:] = 1.0  # known items may act on the missing items
    data = Dataset([[1] * 8 + [None] * 8])
    found = cohort_orders(theta, data, max_size=8)
    assert len(found.orders[0]) == 8
    theta[8:, 0] = 0.5  # now the missing items matter, so the lattice has 16 items
    left_out = cohort_orders(theta, data, max_size=8)
    assert left_out.orders == (None,)
    assert np.isnan(left_out.probability[0])
    assert left_out.arrivals == (None,)


def test_rates_out_of_range_give_no_order():
    theta = np.diag([400.0, 0.0, 0.0])
    theta[2, 0] = 400.0
    found = cohort_orders(theta, Dataset([[1, None, 1], [0, 1, 1]]))
    assert found.orders[0] is None


def test_a_tree_has_the_known_items():
    theta = np.array([[0.0, 4.0], [0.0, -4.0]])
    found = cohort_orders(theta, Dataset([[1, 1], [1, None], [1, 0], [None, 0]]))
    tree = found.tree()
    assert (tree.count, tree.ended) == (4, 1)
    first = tree.children[0]
    assert (first.item, first.count, first.ended) == ("0", 3, 2)
    assert found.paths(2) == {("0", "1"): 1}


def test_the_seed_decides_if_the_search_takes_too_long_and_threads_do_not(monkeypatch):
    theta = reference.random_theta(np.random.default_rng(6), N, sparsity=0.2, scale=0.3)
    monkeypatch.setattr(known_orders, "_LARGEST_SEARCHED", 2)
    one, two, other = (
        cohort_orders(theta, data_of(), random_state=seed, n_threads=threads)
        for seed, threads in ((0, 1), (0, 2), (4, 1))
    )
    assert one.orders == two.orders
    np.testing.assert_array_equal(one.probability, two.probability)
    assert not np.array_equal(one.probability, other.probability)
    default = cohort_orders(theta, data_of())
    np.testing.assert_array_equal(one.probability, default.probability)
    by_object = cohort_orders(theta, data_of(), settings=Settings(random_state=4))
    np.testing.assert_array_equal(other.probability, by_object.probability)
    for row in (0, 1, 2):  # shares of 1,600 draws
        truth = truth_of(theta, row)[0][one.orders[row]]
        assert one.probability[row] == pytest.approx(truth, abs=5 * 0.5 / np.sqrt(1600))


def test_many_large_lattices_lower_the_limit(monkeypatch):
    monkeypatch.setattr(cohort, "_MAX_STATES", 40)
    theta = reference.random_theta(np.random.default_rng(6), N)
    found = cohort_orders(theta, data_of(statements={}))
    # Distinct lattices of 1, 4 (three samples) and 5 items; not more than 40 states together.
    kept = pd.Series(found.orders).notna()
    assert found.largest < 5
    assert not kept[0]
    assert kept[4]
