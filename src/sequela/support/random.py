"""One seed in, any number of independent streams out.

A `random_state` becomes one integer at the door. It is recorded with the result, and every piece
of work (a chunk of draws, a chain of a sample) gets a stream of its own from that integer, the
purpose of the stream and the index of the piece. So a result does not depend on how the pieces
were shared among threads, and piece 17 of 96 can be run again alone.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import numpy as np

from sequela.support.errors import InputError

__all__ = [
    "PlanDraw",
    "Purpose",
    "RandomState",
    "materialise_seed",
    "plan_stream",
    "simulation_stream",
    "stream",
]

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


class Purpose(IntEnum):
    """What a stream of random numbers is for.

    The number is the first part of the key of the stream, so two purposes never share numbers.
    It is part of what a seed means: never change or reuse one.
    """

    FITTED_ORDERS = 1  # orders of large sets while a model is fitted
    RANDOM_START = 2  # interactions at a random start
    FOLDS = 3  # samples dealt to the folds of a cross-validation
    ADAGRAD_SEED = 4  # the seed of the sampler that AdaGrad uses
    SAMPLED_LIKELIHOOD = 5  # orders of large sets for a value and a gradient
    SAMPLED_POSTERIOR = 6  # orders of large sets for posteriors of times and orders
    POSTERIOR_CHAIN = 7  # a Markov chain over theta
    POSTERIOR_SWAP = 8  # exchanges between replicas of a chain over theta
    EXPERIMENT = 10  # whatever an experiment of the paper draws itself
    QUESTION_TO_DRAW = 11  # the seed of a question to one draw of a posterior
    COMPLETIONS = 12  # missing cells of samples
    STUDY = 13  # a data set that a planned study might find
    FIT_CHECK = 14  # data sets that are compared with the data of a fit


def stream(seed: int, purpose: Purpose, *index: int) -> np.random.Generator:
    """Return the generator of one piece of work: its purpose and its index.

    Examples
    --------
    >>> stream(7, Purpose.FOLDS, 3).random() == stream(7, Purpose.FOLDS, 3).random()
    True
    >>> stream(7, Purpose.FOLDS, 3).random() == stream(7, Purpose.RANDOM_START, 3).random()
    False
    """
    # At least two numbers: a key of one number belongs to `simulation_stream`.
    return _generator(seed, (int(purpose), *(index or (0,))))


def simulation_stream(seed: int, chunk: int) -> np.random.Generator:
    """Return the generator of one chunk of simulated draws.

    Its key is the chunk alone. No other stream has a key of one number, and simulations keep the
    draws that a seed has had since version 0.1.
    """
    return _generator(seed, (chunk,))


class PlanDraw(IntEnum):
    """What a plan of repeats draws itself; the first part of the key of its stream."""

    BOOTSTRAP = 1  # samples, with replacement
    FOLDS = 2  # samples dealt to folds
    SUBSET = 3  # items


def plan_stream(plan_seed: int, draw: PlanDraw, *index: int) -> np.random.Generator:
    """Return the generator of one draw of a plan of repeats.

    The seed of a plan is for these draws alone; each of its fits has a seed of its own. The keys
    are those of version 0.1, because the folder of a plan outlives a version: what is still to be
    done must fit what was recorded, and the items of a record are drawn again when it is read.
    """
    return _generator(plan_seed, (int(draw), *index))


def _generator(seed: int, key: tuple[int, ...]) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
