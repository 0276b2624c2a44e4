"""Count pairs of items in drawn sequences."""

from sequela.support.jit import kernel


@kernel
def count_pairs(counts, first, last, indptr, sequence, wanted):
    """Add the number of sequences with a before b to ``counts[a, b]``, and with a to ``[a, a]``.

    Only the draws `first` to `last` are counted. ``wanted[j]`` is the row of item j, or -1 for an
    item that is not counted.
    """
    for s in range(first, last):
        for at in range(indptr[s], indptr[s + 1]):
            b = wanted[sequence[at]]
            if b >= 0:
                counts[b, b] += 1
                for earlier in range(indptr[s], at):
                    a = wanted[sequence[earlier]]
                    if a >= 0:
                        counts[a, b] += 1
