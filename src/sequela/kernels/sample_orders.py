"""The expected number of observed samples in which one item came before another, at one theta."""

from sequela.kernels.dense_likelihood import dense_tables
from sequela.kernels.latent_histories import count_histories
from sequela.kernels.shared_lattice import shared_orders
from sequela.support.jit import kernel


@kernel
def sum_sample_orders(before, theta, target, orders):
    """Fill ``before[a, b]``: the expected number of samples in which a came before b.

    For samples on lattices, this is the expected number of arrivals of b while a is present. A
    sample with a latent order counts as 1 if a comes before b in this order, and otherwise as 0.
    For samples with latent histories see `count_histories`. Only samples in which both items are
    known to be present count. Return False if a probability underflows.
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
