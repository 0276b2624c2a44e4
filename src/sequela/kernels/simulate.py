"""Sequences drawn from the chain: Algorithm 1, with its stopping rule corrected.

The current rates are one vector, and an arrival multiplies it by one row of effects (0 for the
item itself, so the rates of present items stay 0): O(n) a step, nothing is recomputed. The vector
is padded to whole blocks and the sum of each block is kept, so that finding the item that arrives
reads n / WIDTH + WIDTH numbers one after the other, not n.

Where products of rates could leave the range of a double, `base` and `effects` hold logarithms,
and the rates are kept up to a common factor, which makes the largest of them 1.
"""

import math

import numpy as np

from sequela.support.jit import helper, kernel

WIDTH = 16  # measured: 8 and 32 are slower, at 100 and at 1,000 items

LARGEST = np.finfo(np.float64).max


@helper
def sum_blocks(rates, sums):
    """Fill the sum of each block of `rates` and return the sum of all."""
    total = 0.0
    for b in range(sums.shape[0]):
        part = 0.0
        for j in range(b * WIDTH, b * WIDTH + WIDTH):
            part += rates[j]
        sums[b] = part
        total += part
    return total


@helper
def multiply(rates, row, sums):
    """Multiply `rates` by the effects in `row`, with the sums of `sum_blocks` in the same pass."""
    total = 0.0
    for b in range(sums.shape[0]):
        part = 0.0
        for j in range(b * WIDTH, b * WIDTH + WIDTH):
            rates[j] *= row[j]
            part += rates[j]
        sums[b] = part
        total += part
    return total


@helper
def rescale(logs, rates):
    """Fill `rates` from their logarithms, the largest at 1; return one over the common factor.

    That may be beyond a double: 0, when no time passes, or infinity, when nothing happens any more.
    """
    shift = logs[0]
    for j in range(logs.shape[0]):
        shift = max(shift, logs[j])
    for j in range(logs.shape[0]):
        rates[j] = math.exp(logs[j] - shift)
    return math.exp(-shift)


@kernel
def choose(rates, sums, target):
    """Return the item at which the cumulative sum of the rates passes `target`.

    The sums of blocks are rounded differently from those of single rates, so `target` may lie
    beyond the end of its block or of all: then the last item with a positive rate is meant. An
    item with rate 0 is never returned while any rate is positive.
    """
    block = 0
    inside = 0.0
    for b in range(sums.shape[0]):
        if sums[b] > 0.0:
            block = b
            inside = target
            if target < sums[b]:
                break
            target -= sums[b]
    item = block * WIDTH
    for j in range(block * WIDTH, block * WIDTH + WIDTH):
        if rates[j] > 0.0:
            item = j
            inside -= rates[j]
            if inside < 0.0:
                break
    return item


@kernel
def simulate(base, effects, in_logs, stop_rate, first, sizes, observed, sequence, arrivals, rng):
    """Draw sequences from number `first` on until all are drawn or the buffers are full.

    `sequence` and `arrivals` are filled from their beginning, one sequence after the other, and
    must have room for n entries at least; `sizes[s]` and `observed[s]` receive the length and the
    observation time of sequence s. If `stop_rate` is 0, `observed` holds the times. Returns the
    number of the next sequence to draw, and how many entries were filled.
    """
    n, padded = effects.shape
    logs = np.empty(padded)
    rates = np.empty(padded)
    sums = np.empty(padded // WIDTH)
    filled = 0
    for s in range(first, sizes.shape[0]):
        if filled + n > sequence.shape[0]:
            return s, filled
        end = rng.standard_exponential() / stop_rate if stop_rate > 0.0 else observed[s]
        if not end < LARGEST:  # the observation rate is next to nothing
            end = LARGEST
        slowness = 1.0
        if in_logs:
            for j in range(padded):
                logs[j] = base[j]
            slowness = rescale(logs, rates)
        else:
            for j in range(padded):
                rates[j] = base[j]
        total = sum_blocks(rates, sums)
        now = 0.0
        k = 0
        while k < n:
            now += rng.standard_exponential() * slowness / total
            # So written, a waiting time that is infinite (or 0 * infinity) ends the sequence.
            if not now < end:
                break
            item = choose(rates, sums, rng.random() * total)
            sequence[filled + k] = item
            arrivals[filled + k] = now
            k += 1
            row = effects[item]
            if in_logs:
                for j in range(padded):
                    logs[j] += row[j]
                slowness = rescale(logs, rates)
                total = sum_blocks(rates, sums)
            else:
                total = multiply(rates, row, sums)
        sizes[s] = k
        observed[s] = end
        filled += k
    return sizes.shape[0], filled
