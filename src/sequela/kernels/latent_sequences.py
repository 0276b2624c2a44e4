"""The probability of all latent orders and histories at one theta.

A large sample has an order of its items as a latent variable, and a partly known sample has a
history: an order of its present items and of some of its missing items. Given its order or history,
a sample contributes the probability of this sequence (Proposition 2, eq. 6). Rates are products of
the factors exp(theta), so only the matrix of factors needs exponentials.
"""

import math

import numpy as np

from sequela.kernels.gemm import lane_sum
from sequela.kernels.sequence import MARGINAL, sequence_gradient
from sequela.support.jit import helper

# The probability of a sequence is a product of many factors. When the product is below _SMALL, its
# logarithm is added to a sum, and a new product begins. A product below _TOO_SMALL may have lost
# digits. In this case `sequence_gradient` computes the log-probability from logarithms of rates.
_SMALL = 1e-150
_TOO_SMALL = 1e-300


@helper
def history_length(orders, first, last):
    """Return the number of items of the history at ``orders[first:last]``, before the first -1."""
    length = 0
    while first + length < last and orders[first + length] >= 0:
        length += 1
    return length


@helper
def count_sequences(target):
    """Return the number of latent orders and histories."""
    return target.large_start.shape[0] + target.histories.start.shape[0] - 2


@helper
def sequence_bounds(target, orders, s):
    """Return where the latent order or history with number s begins and ends in `orders`.

    The latent orders of large samples come first, and then the histories.
    """
    large = target.large_start.shape[0] - 1
    if s < large:
        return target.large_start[s], target.large_start[s + 1]
    first = target.histories.start[s - large]
    return first, first + history_length(orders, first, target.histories.start[s - large + 1])


@helper
def fill_factors(factors, base, theta):
    """Fill the factors exp(theta) and the base rates.

    The diagonal of `factors` is 0, because an item that is present does not arrive again.
    """
    n = theta.shape[0]
    for i in range(n):
        for j in range(n):
            factors[i, j] = math.exp(theta[i, j])
        base[i] = factors[i, i]
        factors[i, i] = 0.0


@helper
def follow_sequence(rates, exits, order, factors, stop_rate):
    """Fill the rates and exit rates of all states of a sequence; return its log-probability.

    The first row of `rates` holds the base rates. The result is not finite if rates are out of
    range.
    """
    n = factors.shape[0]
    total = 0.0
    product = stop_rate
    for q in range(order.shape[0] + 1):
        exits[q] = stop_rate + lane_sum(rates[q], n)
        product /= exits[q]
        if q < order.shape[0]:
            c = order[q]
            product *= rates[q, c]
            for j in range(n):
                rates[q + 1, j] = rates[q, j] * factors[c, j]
        if product < _TOO_SMALL:
            return -np.inf
        if product < _SMALL:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@helper
def add_sequence_gradient(gradient, running, rates, exits, order):
    """Add the gradient of the log-probability of a sequence that `follow_sequence` followed.

    An item is present in all states after its arrival. So the sums over states begin with the last
    state.
    """
    n = rates.shape[1]
    length = order.shape[0]
    for j in range(n):
        running[j] = 0.0
    for q in range(length, -1, -1):
        time = 1.0 / exits[q]
        for j in range(n):
            running[j] -= time * rates[q, j]
        if q < length:
            running[order[q]] += 1.0
        if q > 0:
            b = order[q - 1]
            own = gradient[b, b]
            for j in range(n):
                gradient[b, j] += running[j]
            gradient[b, b] = own
    for j in range(n):
        gradient[j, j] += running[j]


@helper
def sum_sequences(theta, factors, base, target, orders, gradient, want_gradient):
    """Return the log-probability of all latent orders and histories.

    `factors` and `base` belong to `theta` (see `fill_factors`). If `want_gradient`, the gradient is
    added to `gradient`.
    """
    n = theta.shape[0]
    rates = np.empty((n + 1, n))
    exits = np.empty(n + 1)
    running = np.empty(n)
    for j in range(n):
        rates[0, j] = base[j]
    value = 0.0
    for s in range(count_sequences(target)):
        first, last = sequence_bounds(target, orders, s)
        order = orders[first:last]
        log_p = follow_sequence(rates, exits, order, factors, target.stop_rate)
        if -np.inf < log_p < np.inf:
            value += log_p
            if want_gradient:
                add_sequence_gradient(gradient, running, rates, exits, order)
        else:
            value += sequence_gradient(
                gradient, theta, order, MARGINAL, np.nan, target.stop_rate, want_gradient, 1.0
            )
    return value


@helper
def latent_log_likelihood(theta, target, orders, gradient, want_gradient):
    """Return the log-probability of all latent orders and histories.

    If `want_gradient`, its gradient is added to `gradient`.
    """
    if count_sequences(target) == 0:
        return 0.0
    n = theta.shape[0]
    factors = np.empty((n, n))
    base = np.empty(n)
    fill_factors(factors, base, theta)
    return sum_sequences(theta, factors, base, target, orders, gradient, want_gradient)
