"""One seed in, any number of independent streams out.

A `random_state` becomes one integer at the door. It is recorded with the result, and every piece
of work (a chunk of draws, a chain of a sample) gets a stream of its own from that integer and the
piece's index. So a result does not depend on how the pieces were shared among threads, and piece
17 of 96 can be run again alone.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from sequela.support.errors import InputError

__all__ = ["RandomState", "materialise_seed", "stream"]

RandomState: TypeAlias = int | np.integer | np.random.Generator | np.random.RandomState | None


def materialise_seed(random_state: RandomState) -> int:
    """Turn a `random_state` into the one integer that everything is derived from.

    Parameters
    ----------
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        An integer is the seed itself; a generator is asked for one (and moves on); None takes
        fresh entropy from the operating system.

    Examples
    --------
    >>> materialise_seed(7)
    7
    """
    if random_state is None:
        # 53 bits: what every reader of JSON keeps, so that a seed can be copied from anywhere.
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) >> 11
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**53))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise InputError(
                f"random_state is {random_state}; a seed is a non-negative integer, "
                "for example random_state=1"
            )
        return int(random_state)
    raise InputError(
        f"random_state is {random_state!r} ({type(random_state).__name__}); expected a "
        "non-negative integer, a numpy.random.Generator, or None"
    )


def stream(seed: int, *index: int) -> np.random.Generator:
    """Return the generator of the piece of work with this index.

    Examples
    --------
    >>> stream(7, 0, 3).random() == stream(7, 0, 3).random()
    True
    >>> stream(7, 0, 3).random() == stream(7, 3, 0).random()
    False
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=index)))
