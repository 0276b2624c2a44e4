"""The union of the lattices of all sets: each subset once, and the steps between subsets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sequela.posteriors.shared_states import choose_largest_lattice, share_lattices

SETS = st.lists(st.frozensets(st.integers(0, 90), max_size=5), max_size=6)


def arrays(sets):
    return [np.array(sorted(items), dtype=np.int64) for items in sets]


def items_of(lattice, s):
    """Return the items of a state, collected from its parents back to the empty set."""
    found = set()
    while lattice.size[s] > 0:
        found.add(int(lattice.item[s]))
        s = lattice.parent[s]
    return frozenset(found)


@given(SETS)
@settings(max_examples=50, deadline=None)
def test_each_subset_is_there_once_and_steps_add_one_item(sets):
    lattice = share_lattices(arrays(sets), np.ones(len(sets)), 91)
    states = [items_of(lattice, s) for s in range(len(lattice.size))]
    expected = {frozenset()}
    for items in sets:
        for k in range(len(items) + 1):
            expected |= {frozenset(part) for part in itertools.combinations(items, k)}
    assert len(states) == len(expected)
    assert set(states) == expected
    steps = {
        (states[s], int(lattice.step_item[e]), states[lattice.step_to[e]])
        for s in range(len(states))
        for e in range(lattice.step_start[s], lattice.step_start[s + 1])
    }
    assert steps == {(state - {i}, i, state) for state in expected for i in state}
    assert len(lattice.step_to) == len(steps)
    ways = [
        (states[lattice.way_from[w]], int(lattice.way_item[w]), states[s])
        for s in range(len(states))
        for w in range(lattice.way_start[s], lattice.way_start[s + 1])
    ]
    assert len(ways) == len(steps)
    assert set(ways) == steps
    for s in range(1, len(states)):
        assert lattice.way_from[lattice.way_start[s + 1] - 1] == lattice.parent[s]
    for item in range(len(lattice.item_start) - 1):
        chosen = lattice.item_way[lattice.item_start[item] : lattice.item_start[item + 1]]
        assert (lattice.way_item[chosen] == item).all()
    assert sorted(lattice.item_way.tolist()) == list(range(len(steps)))


@given(SETS)
@settings(max_examples=50, deadline=None)
def test_the_order_is_a_walk_through_the_tree_with_subsets_first(sets):
    lattice = share_lattices(arrays(sets), np.ones(len(sets)), 91)
    assert lattice.largest == lattice.size.max()
    for s in range(len(lattice.size)):
        to = lattice.step_to[lattice.step_start[s] : lattice.step_start[s + 1]]
        assert (to > s).all()
        if s > 0:
            # The states are numbered as a walk through the tree visits them. So the parent must be
            # the previous state, or an ancestor of the previous state.
            above = s - 1
            while lattice.size[above] >= lattice.size[s]:
                above = lattice.parent[above]
            assert above == lattice.parent[s]


def test_counts_of_equal_sets_are_added():
    lattice = share_lattices(arrays([{0, 2}, {2}, {0, 2}]), [1.0, 2.5, 4.0], 3)
    counts = {items_of(lattice, s): lattice.samples[s] for s in range(len(lattice.size))}
    assert counts == {
        frozenset(): 0.0,
        frozenset({0}): 0.0,
        frozenset({2}): 2.5,
        frozenset({0, 2}): 5.0,
    }
    assert [lattice.samples[s] for s in lattice.observed] == pytest.approx([2.5, 5.0])


def test_sets_of_nine_and_ten_items_have_latent_orders_if_they_have_too_many_states():
    rng = np.random.default_rng(1)
    sets = [np.sort(rng.permutation(60)[:size]) for size in rng.integers(7, 13, 40)]
    limit = choose_largest_lattice(sets)
    sizes = {}
    for largest in (8, 9, 10):
        kept = [s for s in sets if len(s) <= largest]
        sizes[largest] = len(share_lattices(kept, [1.0] * len(kept), 60).size)
    assert limit == max([8] + [k for k in (9, 10) if sizes[k] <= 8000])
    assert limit < 10 < len(sets)
    assert choose_largest_lattice(sets[:2]) == 10
    # Sets of eight items are summed even if they have more than 8,000 states.
    many = [np.arange(k, k + 8) for k in range(400)]
    assert len(share_lattices(many, [1.0] * 400, 407).size) > 8000
    assert choose_largest_lattice(many) == 8
