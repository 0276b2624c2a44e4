"""Likelihood and gradient of one sequence of arrivals."""

import math

import numpy as np

from sequela.kernels.contour import transient_chain
from sequela.kernels.limits import LARGEST_LOG_RATE
from sequela.support.jit import helper, kernel

# How the end of a sequence was observed.
COMPLETE = 0  # all items have arrived, eq. (4)
MARGINAL = 1  # observed at an unknown time, Proposition 2, eq. (6)
TIMED = 2  # observed at a known time, section 4.2


@helper
def sequence_gradient(gradient, theta, sequence, kind, t, stop_rate, want_gradient, weight):
    """Return log p of `sequence`; add `weight` times its gradient to `gradient`.

    All rates are stored as logarithms, so that any theta is possible. There is one exception: if
    `kind` is TIMED, the result is NaN if an exit rate is too large for a double.
    """
    n = theta.shape[0]
    k = sequence.shape[0]
    log_rates = np.empty((k + 1, n))
    largest = np.empty(k + 1)
    exits = np.empty(k + 1)
    times = np.empty(k + 1)
    present = np.zeros(n, np.bool_)
    for j in range(n):
        log_rates[0, j] = theta[j, j]
    log_p = 0.0
    for a in range(k + 1):
        largest[a] = 0.0 if kind == MARGINAL else -np.inf
        for j in range(n):
            if not present[j]:
                largest[a] = max(largest[a], log_rates[a, j])
        # The exit rate divided by exp(largest), so that it stays in range.
        total = stop_rate * math.exp(-largest[a]) if kind == MARGINAL else 0.0
        for j in range(n):
            if not present[j]:
                total += math.exp(log_rates[a, j] - largest[a])
        exits[a] = total
        if a < k:
            i = sequence[a]
            log_p += log_rates[a, i]
            present[i] = True
            for j in range(n):
                log_rates[a + 1, j] = log_rates[a, j] + (0.0 if i == j else theta[i, j])
    if kind == TIMED:
        for a in range(k + 1):
            # `transient_chain` needs the exit rates, not their logarithms. If an exit rate is too
            # large for a double, return NaN.
            if largest[a] > LARGEST_LOG_RATE:
                return np.nan
            # The exit rate is 0 if all items are present.
            exits[a] = exits[a] * math.exp(largest[a]) if exits[a] > 0.0 else 0.0
            largest[a] = 0.0
        log_p += transient_chain(t, exits, times)
    else:
        for a in range(k + 1):
            if kind == COMPLETE and a == k:
                times[a] = 0.0
                largest[a] = 0.0
            else:
                log_p -= math.log(exits[a]) + largest[a]
                times[a] = 1.0 / exits[a]
        if kind == MARGINAL:
            log_p += math.log(stop_rate)
    if want_gradient:
        # Go backwards. For every item j, `later` contains the sum of the contributions of state a
        # and of all later states. If an item is present from state a on, it affects exactly these
        # states.
        later = np.zeros(n)
        for a in range(k, -1, -1):
            if a < k:
                present[sequence[a]] = False
            for j in range(n):
                if not present[j]:
                    later[j] -= times[a] * math.exp(log_rates[a, j] - largest[a])
            if a < k:
                later[sequence[a]] += 1.0
            if a > 0:
                i = sequence[a - 1]
                for j in range(n):
                    if j != i:
                        gradient[i, j] += weight * later[j]
        for j in range(n):
            gradient[j, j] += weight * later[j]
    return log_p


@kernel
def sequences_block(
    gradient, log_p, theta, sequences, chosen, kind, times, stop_rate, want_gradient
):
    """Evaluate the sequences `chosen` of a `SetList`; add their weighted gradients."""
    for s in chosen:
        sequence = sequences.items[sequences.start[s] : sequences.start[s + 1]]
        log_p[s] = sequence_gradient(
            gradient, theta, sequence, kind, times[s], stop_rate, want_gradient,
            sequences.weights[s],
        )  # fmt: skip
