"""Choose the items of jumps and swaps at random, without regard to the state of the chain.

The rows of `pairs` (rows, 2) are pairs of items. Pairs that need many jumps are listed often, so
their items are chosen often.
"""

import numpy as np

from sequela.support.jit import helper

# The largest number of attempts to choose suitable rows.
_TRIES = 30


@helper
def choose_rows(rows, pairs, rng):
    """Choose random rows of `pairs`; return whether suitable rows were found.

    The rows are suitable if they are different pairs of at most three items. They are drawn
    independently until they are suitable, so every sequence of rows is as likely as its reverse.
    """
    for _ in range(_TRIES):
        fits = True
        for k in range(rows.shape[0]):
            rows[k] = int(rng.random() * pairs.shape[0])
        a = pairs[rows[0], 0]
        b = pairs[rows[0], 1]
        c = -1
        for k in range(1, rows.shape[0]):
            same = 0
            for x in range(2):
                item = pairs[rows[k], x]
                if item in (a, b):
                    same += 1
                elif c in (-1, item):
                    c = item
                else:
                    fits = False
            # Two jumps of the same pair would lead back to the start.
            fits = fits and same < 2
        if rows.shape[0] == 3:
            one = pairs[rows[1], 0] + pairs[rows[1], 1]
            two = pairs[rows[2], 0] + pairs[rows[2], 1]
            fits = fits and one != two
        if fits:
            return True
    return False


@helper
def choose_third(pairs, a, b, rng):
    """Return a third item: one whose pair with a or b is a random row; -1 if none is found.

    So an item that is often listed in a pair with a or b is chosen often.
    """
    for _ in range(_TRIES):
        row = int(rng.random() * pairs.shape[0])
        c = pairs[row, 0]
        d = pairs[row, 1]
        if c in (a, b) and d not in (a, b):
            return d
        if d in (a, b) and c not in (a, b):
            return c
    return -1


@helper
def items_of_rows(pairs, rows):
    """Return the items of one, two or three rows, each item once; there are at most three."""
    items = np.empty(3, np.int64)
    items[0] = pairs[rows[0], 0]
    items[1] = pairs[rows[0], 1]
    count = 2
    for k in range(1, rows.shape[0]):
        for x in range(2):
            item = pairs[rows[k], x]
            if count == 2 and item != items[0] and item != items[1]:
                items[2] = item
                count = 3
    return items[:count]
