"""Draw sequences from a model by Algorithm 1, with its stopping rule corrected.

The current rates are one vector. An arrival multiplies it by one row of effects. The effect of an
item on itself is 0, so the rates of present items stay 0. This takes O(n) operations per step. The
vector is padded to whole blocks, and the sum of each block is stored. So the search for the item
that arrives reads n / WIDTH + WIDTH numbers, not n.

If products of rates could be too large or too small for a double, `base` and `effects` contain
logarithms. The stored rates are then divided by the largest rate.
"""

import math

import numpy as np

from sequela.support.jit import helper, kernel

WIDTH = 16  # the values 8 and 32 were slower, measured with 100 and with 1,000 items

LARGEST = np.finfo(np.float64).max


@helper
def sum_blocks(rates, sums):
    """Fill the sum of each block of `rates`, and return the total sum."""
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
    """Multiply `rates` by the effects in `row`; fill `sums` and return the total sum."""
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
    """Fill `rates` with rates divided by the largest rate; return 1 / (largest rate).

    `logs` contains the logarithms of the rates. The result may be out of the range of a double: it
    is then 0 (arrivals take no time) or infinity (no item arrives any more).
    """
    shift = logs[0]
    for j in range(logs.shape[0]):
        shift = max(shift, logs[j])
    for j in range(logs.shape[0]):
        rates[j] = math.exp(logs[j] - shift)
    return math.exp(-shift)


@kernel
def choose(rates, sums, target):
    """Return the item at which the cumulative sum of the rates exceeds `target`.

    The sums of blocks are not rounded in the same way as sums of single rates, so `target` may be
    beyond the end of its block or of all blocks. In this case, the last item with a positive rate
    is returned. An item with rate 0 is never returned if any rate is positive.
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
    """Draw sequences, beginning with number `first`, until all are drawn or the arrays are full.

    The sequences are concatenated in `sequence` and `arrivals`, which must have at least n entries.
    `sizes[s]` and `observed[s]` receive the length and the observation time of sequence s. If
    `stop_rate` is 0, `observed` already contains the times. Return the number of the next sequence
    to draw, and the number of entries that were filled.
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
        # the observation time is infinite, because the observation rate is almost 0
        if not end < LARGEST:
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
            # `not now < end` is also true, and ends the sequence, if the waiting time is infinite
            # or NaN.
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
