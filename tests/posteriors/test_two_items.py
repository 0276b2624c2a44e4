"""Two items alone cannot tell their order (Proposition 1), and the posterior says so."""

from __future__ import annotations

import pytest

import sequela


@pytest.mark.filterwarnings("ignore::sequela.posteriors.NotConvergedWarning")
@pytest.mark.parametrize("seed", [3, 11])
def test_the_interval_of_two_items_alone_is_wide(seed):
    """Test two seeds with the default prior; verification/order_against_clocks.py tests 20."""
    theta = [[0.0, 4.0], [0.0, -4.0]]
    drawn = sequela.simulate(theta, 500, items=["a", "b"], random_state=seed)
    found = sequela.posterior(
        drawn.to_dataset().without_times(), draws=120, thin=6, random_state=seed
    )
    order = found.orders().iloc[0]
    low, high = (order["low"], order["high"])
    if order["first"] == "b":
        low, high = 1.0 - high, 1.0 - low
    assert low < 0.3
    assert high > 0.95
    assert order["verdict"] == "the data cannot tell"
