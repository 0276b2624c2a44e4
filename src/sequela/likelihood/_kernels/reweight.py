"""Orders that were drawn at one theta, used at another nearby: importance weights.

The mean of p(order; theta) / p(order; theta_0) over orders drawn at theta_0 is an estimate of
p(S; theta) / p(S; theta_0), and a smooth function of theta. Its logarithm and gradient are what
an optimiser needs between two draws, without noise from one evaluation to the next.
"""

import math

import numpy as np

from sequela._jit import kernel
from sequela.likelihood._kernels.metropolis import add_order_gradient, order_weight


@kernel
def weigh_orders(log_w, orders, Wc, rate, rest, observation_rate, t):
    """Fill ``log_w[r]``, the log-probability of order r."""
    k, m = Wc.shape
    h = np.empty((k + 1, m))
    hold = np.empty(k + 1)
    exits = np.empty(k + 1)
    for r in range(orders.shape[0]):
        log_w[r] = order_weight(h, hold, exits, orders[r], Wc, rate, rest, observation_rate, t)


@kernel
def reweigh(G, log_w, drawn_w, orders, Wc, rate, rest, observation_rate, t):
    """Add the weighted mean gradient to G; return log of the mean ratio and the effective number.

    `log_w` receives the log-probabilities now, `drawn_w` holds those at which orders were drawn.
    """
    k, m = Wc.shape
    h = np.empty((k + 1, m))
    hold = np.empty(k + 1)
    exits = np.empty(k + 1)
    later = np.empty(m + 1)
    count = orders.shape[0]
    largest = -np.inf
    for r in range(count):
        log_w[r] = order_weight(h, hold, exits, orders[r], Wc, rate, rest, observation_rate, t)
        largest = max(largest, log_w[r] - drawn_w[r])
    total = 0.0
    squares = 0.0
    for r in range(count):
        w = math.exp(log_w[r] - drawn_w[r] - largest)
        total += w
        squares += w * w
    for r in range(count):
        share = math.exp(log_w[r] - drawn_w[r] - largest) / total
        order_weight(h, hold, exits, orders[r], Wc, rate, rest, observation_rate, t)
        add_order_gradient(G, share, h, hold, orders[r], later)
    return largest + math.log(total / count), total * total / squares
