"""Derive as many independent random streams as needed from one seed.

The function that a user calls converts its `random_state` to one integer, and records this integer
with the result. Every piece of work (such as a chunk of draws, or a Markov chain) gets its own
stream. The stream is derived from the integer, the purpose of the stream and the index of the
piece. So the result does not depend on which thread runs which piece, and each piece can be run
again alone.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import numpy as np

from sequela.support.errors import InputError
from sequela.support.naming import argument, option

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
    """Return the integer seed of a `random_state`, from which all streams are derived.

    Parameters
    ----------
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        An integer is the seed itself. If a generator is given, a seed is drawn from it, which
        changes the state of the generator. None means a new seed from the operating system.

    Examples
    --------
    >>> materialise_seed(7)
    7
    """
    if random_state is None:
        # Use 53 bits, because every JSON reader keeps such integers exactly. So a seed can be
        # copied from a file.
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) >> 11
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**53))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise InputError(
                f"{argument('random_state')} is {random_state}; a seed is a non-negative integer, "
                f"for example {option('random_state', 1)}"
            )
        return int(random_state)
    raise InputError(
        f"random_state is {random_state!r} ({type(random_state).__name__}); expected a "
        "non-negative integer, a numpy.random.Generator, or None"
    )


class Purpose(IntEnum):
    """The purpose of a stream of random numbers.

    The value is the first part of the key of a stream. So streams for different purposes never
    share random numbers. Never change or reuse a value, because then the same seed would give other
    results.
    """

    FITTED_ORDERS = 1  # orders of large sets while a model is fitted
    RANDOM_START = 2  # interactions at a random start
    FOLDS = 3  # assignment of samples to the folds of a cross-validation
    ADAGRAD_SEED = 4  # the seed of a fit with the optimiser AdaGrad
    SAMPLED_LIKELIHOOD = 5  # orders of large sets for a log-likelihood and its gradient
    SAMPLED_POSTERIOR = 6  # orders of large sets for posteriors of times and orders
    POSTERIOR_CHAIN = 7  # a Markov chain over theta
    POSTERIOR_SWAP = 8  # exchanges between replicas of a chain over theta
    EXPERIMENT = 10  # draws of an experiment of the paper
    QUESTION_TO_DRAW = 11  # the seed for the answer that one model of a posterior gives
    COMPLETIONS = 12  # missing cells of samples
    STUDY = 13  # a simulated data set of a planned study
    FIT_CHECK = 14  # simulated data sets that are compared with the data of a fit


def stream(seed: int, purpose: Purpose, *index: int) -> np.random.Generator:
    """Return the random generator of one piece of work, given its purpose and index.

    Examples
    --------
    >>> stream(7, Purpose.FOLDS, 3).random() == stream(7, Purpose.FOLDS, 3).random()
    True
    >>> stream(7, Purpose.FOLDS, 3).random() == stream(7, Purpose.RANDOM_START, 3).random()
    False
    """
    # The key has at least two numbers, because keys of one number belong to `simulation_stream`.
    return _generator(seed, (int(purpose), *(index or (0,))))


def simulation_stream(seed: int, chunk: int) -> np.random.Generator:
    """Return the generator of one chunk of simulated draws.

    The key of the stream is a single number, the number of the chunk. All other streams have longer
    keys. Version 0.1 used the same keys, so the same seed gives the same draws as in version 0.1.
    """
    return _generator(seed, (chunk,))


class PlanDraw(IntEnum):
    """What a plan of repeats draws. The value is the first part of the key of the stream."""

    BOOTSTRAP = 1  # the samples of a bootstrap, with replacement
    FOLDS = 2  # assignment of samples to folds
    SUBSET = 3  # the items of a random subset


def plan_stream(plan_seed: int, draw: PlanDraw, *index: int) -> np.random.Generator:
    """Return the generator of one draw of a plan of repeats.

    The seed of a plan is used only for these draws. Each of its fits has its own seed. The keys are
    the same as in version 0.1, for two reasons. A folder may contain repeats that an older version
    recorded, and the remaining repeats must use the same draws. Also, a record does not contain the
    items of a random subset: they are drawn again when the record is read.
    """
    return _generator(plan_seed, (int(draw), *index))


def _generator(seed: int, key: tuple[int, ...]) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
