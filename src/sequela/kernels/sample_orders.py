"""Compute which of two items came first in the observed samples, at one theta without zeros."""

import numpy as np

from sequela.kernels.latent_histories import count_histories
from sequela.kernels.shared_lattice import padded_width, shared_log_likelihood
from sequela.support.jit import kernel


@kernel
def sum_sample_orders(before, theta, target, orders):
    """Fill ``before[a, b]``: the expected number of samples in which a came before b.

    This is the expected number of arrivals of b while a is present. A large sample counts as 1 or
    0, according to its current latent order. So does a partly known sample in which both items are
    known to be present. Return False if a probability underflows.
    """
    n = theta.shape[0]
    wanted = n > 0
    collected = np.empty((n + 1, padded_width(n)))
    value = shared_log_likelihood(theta, target.shared, target.stop_rate, collected, wanted, 0.0)
    if not value > -1e300:
        return False
    for a in range(n):
        for b in range(n):
            before[a, b] = 0.0 if a == b else collected[a, b]
    for s in range(target.large_start.shape[0] - 1):
        order = orders[target.large_start[s] : target.large_start[s + 1]]
        for a in range(order.shape[0]):
            for b in range(a + 1, order.shape[0]):
                before[order[a], order[b]] += 1.0
    count_histories(before, target, orders)
    return True
