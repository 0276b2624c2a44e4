"""The items of the example model behave as their names say."""

from itertools import chain

import numpy as np
import pytest

import reference as ref
import sequela
from sequela.data.examples import example_theta

GROUPS = {
    "pair": ["first", "second"],
    "exclusive": ["left", "right"],
    "cascade": ["step 1", "step 2", "step 3"],
    "clocks": ["clock 1", "clock 2", "clock 3"],
}


def part(group):
    return example_theta().loc[GROUPS[group], GROUPS[group]].to_numpy()


def test_it_is_a_labelled_square_table_of_its_groups():
    theta = example_theta()
    assert list(theta.index) == list(theta.columns) == list(chain(*GROUPS.values()))
    assert (theta.dtypes == np.float64).all()
    assert sequela.example_theta is example_theta


def test_groups_do_not_act_on_each_other():
    theta = example_theta()
    for group in GROUPS.values():
        theta.loc[group, group] = 0.0
    assert not theta.to_numpy().any()


def test_every_call_gives_a_new_copy():
    theta = example_theta()
    theta.iloc[0, 0] = 99.0
    assert example_theta().iloc[0, 0] == 0.0


def test_the_pair_is_the_warm_up_of_the_paper():
    np.testing.assert_array_equal(part("pair"), [[0.0, 4.0], [0.0, -4.0]])
    # The probabilities of the two orders differ only because of the rate of "second". It is 1 if
    # "first" is present, and exp(-4) otherwise.
    expected = 1 / (1 + np.exp(-4.0))
    assert ref.order_probability_by_enumeration(part("pair"), 0, 1) == pytest.approx(expected)


def test_the_exclusive_pair_is_rarely_seen_together():
    p = ref.set_distribution(part("exclusive"))
    assert p[3] < 0.1 * (p[1] + p[3]) * (p[2] + p[3])


def test_the_cascade_comes_in_order():
    theta = part("cascade")
    assert ref.order_probability_by_enumeration(theta, 0, 1) > 0.9
    assert ref.order_probability_by_enumeration(theta, 1, 2) > 0.9
    assert theta[0, 2] == 0.0


def test_the_clocks_are_independent():
    theta = part("clocks")
    np.testing.assert_array_equal(theta, np.diag(theta.diagonal()))


def test_every_item_is_seen_often_enough_to_learn_from():
    frequencies = sequela.simulate(example_theta(), 20_000, random_state=1).frequencies
    assert frequencies.min() > 0.03
    assert frequencies.max() < 0.6
