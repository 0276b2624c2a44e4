"""Count pairs of items in drawn sequences."""

from sequela.support.jit import kernel


@kernel
def count_pairs(counts, first, last, indptr, sequence, wanted):
    """Count the sequences in which a comes before b.

    For each pair, this number is added to ``counts[a, b]``. The number of sequences that contain a
    is added to ``counts[a, a]``. Only the sequences from `first` to `last - 1` are counted.
    ``wanted[j]`` is the row of item j in `counts`, or -1 if the item is not counted.
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
