"""Compute which of two items came first in the observed samples, at one theta without zeros."""

from sequela.kernels.dense_likelihood import dense_tables
from sequela.kernels.latent_histories import count_histories
from sequela.kernels.shared_lattice import shared_orders
from sequela.support.jit import kernel


@kernel
def sum_sample_orders(before, theta, target, orders):
    """Fill ``before[a, b]``: the expected number of samples in which a came before b.

    This is the expected number of arrivals of b while a is present. A large sample counts as 1 or
    0, according to its current latent order. A sample with a latent history counts by the places of
    one item given the rest of its history. Only samples in which both items are known to be present
    count. Return False if a probability underflows.
    """
    if not shared_orders(before, theta, target.shared, target.stop_rate):
        return False
    for s in range(target.large_start.shape[0] - 1):
        order = orders[target.large_start[s] : target.large_start[s + 1]]
        for a in range(order.shape[0]):
            for b in range(a + 1, order.shape[0]):
                before[order[a], order[b]] += 1.0
    if target.histories.start.shape[0] > 1:
        count_histories(before, dense_tables(theta, target.stop_rate), target, orders)
    return True
