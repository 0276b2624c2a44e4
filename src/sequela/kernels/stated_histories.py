"""Draw histories of one sample given statements about the order of its items.

A sweep removes every item from the history and inserts it again at a place that is drawn given the
places of all other items, the statements and, for a missing item, the chance that it is absent
(`history_places`). Exchanges of neighbours are among these steps, so every history that agrees with
the certain statements can be reached.
"""

import numpy as np

from sequela.kernels.histories import extend
from sequela.kernels.history_places import redraw_item
from sequela.support.jit import kernel


@kernel
def draw_stated_histories(kept, lengths, order, length, items, tables, statements, burn_in, rng):
    """Draw histories with one chain; return its new length, or -1 if rates are out of range.

    ``order[:length]`` is the state of the chain and is updated. `items` are two arrays: the present
    and the missing items. The chain first discards `burn_in` sweeps over all items. ``kept[draw]``
    then receives one draw per sweep, which has the length ``lengths[draw]``. `statements` has the
    form that `history_places.weigh_statements` describes.
    """
    present, missing = items
    n = tables.rate.shape[0]
    count = present.shape[0] + missing.shape[0]
    room = (np.empty(count + 1), np.empty((count + 1, n)), np.empty(count + 1))
    places = np.empty(count, np.int64)
    extend(room[1], room[2], order, length, 0, tables)
    for sweep in range(burn_in + kept.shape[0]):
        for at in range(count):
            places[at] = at
        for at in range(count - 1, 0, -1):
            other = int(rng.random() * (at + 1))
            places[at], places[other] = places[other], places[at]
        for at in range(count):
            optional = places[at] >= present.shape[0]
            item = missing[places[at] - present.shape[0]] if optional else present[places[at]]
            length = redraw_item(order, length, item, optional, room, tables, statements, rng)
            if length < 0:
                return -1
        if sweep >= burn_in:
            lengths[sweep - burn_in] = length
            for q in range(length):
                kept[sweep - burn_in, q] = order[q]
    return length
