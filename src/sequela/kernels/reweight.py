"""Importance weights of orders that were drawn at one theta, for another theta nearby.

The mean of p(order; theta) / p(order; theta_0) over orders drawn at theta_0 is an estimate of p(S;
theta) / p(S; theta_0), and it is a smooth function of theta. An optimiser can use the logarithm of
this estimate and its gradient, until orders are drawn again. As long as the same orders are used,
repeated evaluations at the same theta give the same value.
"""

import numpy as np

from sequela.kernels.metropolis import add_order_gradient, order_weight
from sequela.support.jit import kernel


@kernel
def weigh_orders(G, log_w, shares, orders, columns, t):
    """Fill ``log_w[r]``, the log-probability of order r; add ``shares[r]`` times its gradient to G.

    If `shares` is empty, no gradient is added.
    """
    k, m = columns.Wc.shape
    h = np.empty((k + 1, m))
    hold = np.empty(k + 1)
    exits = np.empty(k + 1)
    later = np.empty(m + 1)
    for r in range(orders.shape[0]):
        log_w[r] = order_weight(h, hold, exits, orders[r], columns, t)
        if shares.shape[0] > 0:
            add_order_gradient(G, shares[r], h, hold, orders[r], later)
