"""The test for two subtypes: a clear mixture is found, and p is valid for a single model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sequela import Dataset, InputError, simulate
from sequela.questions import subtype_test

SIZE = 300


def draws(theta, size, seed):
    return simulate(theta, size, random_state=seed).to_dataset().values


@pytest.fixture(scope="module")
def mixed():
    """Two subtypes of independent items: three items are frequent in one, three in the other."""
    often, rarely = [0.8, 0.5, 0.2], [-3.5, -4.0, -3.0]
    one, other = np.diag(often + rarely), np.diag(rarely + often)
    values = np.vstack([draws(one, SIZE, 1), draws(other, SIZE, 2)])
    return Dataset(values, items=list("abcdef"))


@pytest.fixture(scope="module")
def found(mixed):
    return subtype_test(mixed, penalty=0.01, simulations=19, starts=3, random_state=1)


def test_a_clear_mixture_is_found(found, mixed):
    assert found.p == 0.05
    assert found.gain > found.simulated.max() + 10.0
    assert "one model does not describe these samples" in found.verdict
    assert found.shares == pytest.approx((0.5, 0.5), abs=0.1)
    membership = found.membership
    assert list(membership.index) == list(mixed.samples)
    assert membership.sum(axis=1).to_numpy() == pytest.approx(np.ones(2 * SIZE))
    assert membership.mean().to_numpy() == pytest.approx(np.array(found.shares), abs=0.01)
    # Samples with items are assigned to their subtype.
    some = mixed.set_sizes > 0
    strong = (membership["subtype 1"].to_numpy() > 0.5)[some]
    first = (np.arange(2 * SIZE) < SIZE)[some]
    assert max(np.mean(strong == first), np.mean(strong != first)) > 0.9
    # In each model, three items have large base rates.
    rates = np.sort([np.diagonal(model.theta)[:3].mean() for model in found.models])
    assert rates[1] - rates[0] > 2.0


def test_p_is_valid_for_a_single_model():
    """Under one model, p is about uniform: at most 0.25 in about a quarter of the data sets.

    Of 16 data sets, the expected number is 4. The probability of more than 9 is 0.2%.
    """
    theta = np.diag([-0.5, -1.0, -0.3, -0.8])
    theta[0, 1], theta[2, 3] = 1.5, -1.0
    p = np.array(
        [
            subtype_test(
                draws(theta, 150, seed), penalty=0.02, simulations=19, starts=2, random_state=seed
            ).p
            for seed in range(100, 116)
        ]
    )
    assert (p <= 0.25).sum() <= 9
    assert 0.25 < p.mean() < 0.8


def test_the_result_does_not_depend_on_the_number_of_threads(mixed):
    one, two = (
        subtype_test(mixed, penalty=0.02, simulations=5, starts=2, random_state=3, n_threads=k)
        for k in (1, 2)
    )
    np.testing.assert_array_equal(one.simulated, two.simulated)
    assert (one.gain, one.p, one.seed) == (two.gain, two.p, two.seed)
    pd.testing.assert_frame_equal(one.membership, two.membership, check_exact=True)


def test_a_single_model_has_no_sign_of_subtypes():
    data = draws(np.diag([-0.5, -1.0, 0.0]), 200, 5)
    test = subtype_test(data, penalty=0.02, simulations=9, starts=2, random_state=1)
    assert test.p > 0.05
    assert "no sign of two subtypes" in test.verdict
    assert "does not prove" in test.verdict


def test_wrong_arguments(mixed):
    weighted = mixed.with_weights(np.ones(mixed.n_samples))
    with pytest.raises(InputError, match="weights"):
        subtype_test(weighted)
    missing = mixed.values.astype(float)
    missing[0, 0] = np.nan
    with pytest.raises(InputError, match="missing"):
        subtype_test(missing)
    with pytest.raises(InputError, match="simulations"):
        subtype_test(mixed, simulations=0)
    with pytest.raises(InputError, match="starts"):
        subtype_test(mixed, starts=0)
    with pytest.raises(InputError, match="expected at least 2"):
        subtype_test(mixed.values[:1])
