"""Draws from a model: items in order of arrival, their arrival times and the observation time.

Each draw starts without items, and items arrive until the observation time. This is Algorithm 1 of
the paper with two corrections: the item that would arrive after the observation time is not added,
and a draw ends when all items have arrived.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sequela.data._reading import read_labels
from sequela.data.dataset import Dataset
from sequela.kernels import simulate as _kernel
from sequela.kernels.limits import PRODUCT_LOG_RANGE
from sequela.model import as_model
from sequela.observation import ObservationEffects, phases_of
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.random import materialise_seed, simulation_stream
from sequela.support.threads import resolve_threads, run_pieces
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt
    import pandas as pd

    from sequela.model import ModelLike
    from sequela.support.random import RandomState

__all__ = ["Simulation", "simulate"]

# Number of draws that share one random stream. With another number, the same seed would give other
# draws.
_CHUNK = 4096

# Largest number of arrivals that one call of the kernel draws. Because of this limit, the call
# returns within a fraction of a second, for sets of any size. So the user can interrupt a
# simulation.
_ROOM = 32768

_SHOWN = 3


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Simulation:
    """Sequences drawn from a model, concatenated in flat arrays.

    Draw `s` is ``sequence[indptr[s]:indptr[s + 1]]``. Its arrival times are at the same positions
    of `arrival_times`.

    Attributes
    ----------
    indptr : ndarray of int64, shape (size + 1,)
        The position in the flat arrays where each draw begins, and where the last draw ends.
    sequence : ndarray of int32
        Positions of the items in order of arrival.
    arrival_times : ndarray of float64
        The arrival time of each item of `sequence`. Times never decrease within a draw. If rates
        are larger than about 1e16 times the observation rate, times may be equal. Only `sequence`
        then shows the order.
    observation_times : ndarray of float64, shape (size,)
        The observation time of each draw. It is later than all arrivals of the draw.
    items : tuple of str
        The label of each item.
    seed : int
        The seed that was used; ``random_state=seed`` repeats the draws.

    Examples
    --------
    >>> import numpy as np
    >>> drawn = simulate(np.diag([0.0, -1.0]), 1000, items=["a", "b"], random_state=1)
    >>> len(drawn), drawn.items, drawn.seed
    (1000, ('a', 'b'), 1)
    >>> bool((drawn.holding_times() >= 0).all())
    True
    """

    indptr: npt.NDArray[np.int64]
    sequence: npt.NDArray[np.int32]
    arrival_times: npt.NDArray[np.float64]
    observation_times: npt.NDArray[np.float64]
    items: tuple[str, ...]
    seed: int

    def __len__(self) -> int:
        return len(self.observation_times)

    @property
    def set_sizes(self) -> npt.NDArray[np.int64]:
        """The number of items of each draw."""
        return np.diff(self.indptr)

    @property
    def frequencies(self) -> pd.Series[float]:
        """The fraction of draws that contain each item, as a series with the item labels."""
        counts = np.bincount(self.sequence, minlength=len(self.items))
        import pandas as pd

        return pd.Series(counts / len(self), index=list(self.items), name="frequency")

    def sequences(self) -> list[tuple[str, ...]]:
        """Return the labels of each draw in order of arrival.

        Examples
        --------
        >>> theta = [[9, 20, 0], [0, -9, 20], [0, 0, -9]]  # "a" at once, then "b", then "c"
        >>> simulate(theta, 2, items=["a", "b", "c"], random_state=4).sequences()
        [('a', 'b', 'c'), ('a', 'b', 'c')]
        """
        labels = np.array(self.items, dtype=object)[self.sequence].tolist()
        return [tuple(labels[start:end]) for start, end in pairwise(self.indptr.tolist())]

    def holding_times(self) -> npt.NDArray[np.float64]:
        """Return the time between each arrival and the arrival before it.

        There is one number per arrival, in the order of `sequence`. For the first item of a draw,
        it is the time since the start. The time between the last arrival and the observation is not
        included.
        """
        held = np.diff(self.arrival_times, prepend=0.0)
        firsts = self.indptr[:-1][self.set_sizes > 0]
        held[firsts] = self.arrival_times[firsts]
        return held

    def to_dataset(self) -> Dataset:
        """Return the sets and their observation times, without the orders and the arrival times.

        The table needs one byte per draw and item.

        Examples
        --------
        >>> simulate([[0.0]], 1000, random_state=1).to_dataset().n_samples
        1000
        """
        values = np.zeros((len(self), len(self.items)), dtype=np.bool_)
        values[np.repeat(np.arange(len(self)), self.set_sizes), self.sequence] = True
        # The draws are known to be valid. The public constructor would check every observation time
        # separately, which is slow for a million draws.
        return Dataset._trusted(  # noqa: SLF001
            values, self.items, tuple(map(str, range(len(self)))), self.observation_times.copy()
        )

    def __repr__(self) -> str:
        items = ", ".join(repr(label) for label in self.items[:_SHOWN])
        return (
            f"Simulation({len(self)} draws of {len(self.items)} items: {items}"
            f"{', ...' if len(self.items) > _SHOWN else ''}; "
            f"{len(self.sequence) / len(self):.3g} items per draw; seed {self.seed})"
        )


def simulate(
    model: ModelLike,
    size: int,
    *,
    items: Iterable[object] | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> Simulation:
    """Draw sequences with their arrival and observation times (Algorithm 1, corrected).

    The observation time is drawn from the model's `observation`. Items that would arrive after this
    time are not part of the draw.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta (n, n)
        ``theta[j, j]`` is the log of the base rate of item j. ``theta[i, j]`` is the log-effect of
        item i on the rate of item j. If only theta is given, the observation time is exponential
        with rate 1.
    size : int
        Number of draws.
    items : iterable of labels, optional
        One label per item. Default: the labels of the model or DataFrame, otherwise ``"0"``,
        ``"1"``, ... If a model or DataFrame has labels, `items` must contain the same labels, in
        the order that the result should have.
    random_state : int, numpy.random.Generator or None
        The seed. None means a new random seed. The seed is recorded in the result. With the same
        seed, a larger `size` gives the same draws, followed by additional draws.
    n_threads : int, optional
        Number of threads. It does not change the result. Default: all cores that this process may
        use.

    Returns
    -------
    Simulation

    Raises
    ------
    InputError
        If an argument is not valid.

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> drawn = simulate(example_theta(), 20_000, random_state=7)
    >>> len(drawn)
    20000
    >>> orders = drawn.sequences()
    >>> both = [o for o in orders if "first" in o and "second" in o]
    >>> sum(o.index("first") < o.index("second") for o in both) / len(both) > 0.9
    True
    """
    drawn_from = as_model(model, None if items is None else read_labels("items", items))
    labels = drawn_from.items
    observation = drawn_from.observation
    if isinstance(observation, ObservationEffects):
        # Draw from the equivalent model without effects, then convert the times.
        return _in_own_time(
            simulate(
                drawn_from.without_observation_effects(), size, random_state=random_state,
                n_threads=n_threads,
            ),
            np.array(observation.omega),
        )  # fmt: skip
    rate = observation.constant_rate
    if rate is None and phases_of(observation) is None:
        raise InputError(
            f"an observation of kind {observation.kind!r} cannot be simulated; use an "
            "observation with a constant rate, such as sequela.Exponential()"
        )
    size = positive_integer("size", size)
    threads = resolve_threads(n_threads)
    seed = materialise_seed(random_state)
    base, effects, in_logs = _tables(drawn_from.theta)
    indptr = np.zeros(size + 1, dtype=np.int64)
    observed = np.empty(size)
    all_sizes = indptr[1:]

    def draw(chunk: int) -> list[tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]]:
        here = slice(chunk * _CHUNK, (chunk + 1) * _CHUNK)
        sizes, times = all_sizes[here], observed[here]
        sequence = np.empty(max(_ROOM, len(labels)), dtype=np.int32)
        arrivals = np.empty(len(sequence))
        rng = simulation_stream(seed, chunk)
        if rate is None:
            times[:] = np.minimum(observation.draw_times(len(times), rng), _kernel.LARGEST)
        parts = []
        done = 0
        while done < len(sizes):
            done, filled = call(
                _kernel.simulate,
                *(base, effects, in_logs, rate or 0.0, done, sizes, times, sequence, arrivals, rng),
            )
            parts.append((sequence[:filled].copy(), arrivals[:filled].copy()))
        return parts

    chunks = range(-(-size // _CHUNK))
    parts = [part for listed in run_pieces(draw, chunks, threads, "simulation") for part in listed]
    np.cumsum(indptr, out=indptr)
    return Simulation(
        indptr=indptr,
        sequence=np.concatenate([sequence for sequence, _ in parts]),
        arrival_times=np.concatenate([arrivals for _, arrivals in parts]),
        observation_times=observed,
        items=labels,
        seed=seed,
    )


def _in_own_time(drawn: Simulation, omega: npt.NDArray[np.float64]) -> Simulation:
    """Convert the times of draws from `without_observation_effects` to the times of the model.

    In a state with the observation rate d, all rates were divided by d. Therefore the time spent in
    this state is d times too long, and this function divides it by d.
    """
    count = drawn.set_sizes
    effect = omega[drawn.sequence]
    # Cumulative sums of effects. Differences between them are the sums within a draw.
    total = np.concatenate([[0.0], np.cumsum(effect)])
    first = np.repeat(total[drawn.indptr[:-1]], count)
    held = drawn.holding_times() * np.exp(first - total[:-1])
    elapsed = np.concatenate([[0.0], np.cumsum(held)])
    arrivals = elapsed[1:] - np.repeat(elapsed[drawn.indptr[:-1]], count)
    last = np.zeros(len(drawn))
    some = count > 0
    ends = drawn.indptr[1:][some] - 1
    last[some] = drawn.arrival_times[ends]
    rest = (drawn.observation_times - last) * np.exp(
        total[drawn.indptr[:-1]] - total[drawn.indptr[1:]]
    )
    last[some] = arrivals[ends]
    return replace(drawn, arrival_times=arrivals, observation_times=last + rest)


def _tables(
    theta: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], bool]:
    """Return (base rates, effects, whether both are logarithms) for the kernel.

    Logarithms are used if the rate of an item could become too large or too small for a double when
    other items have arrived.
    """
    n = len(theta)
    diagonal = theta.diagonal()
    effects = theta - np.diag(diagonal)
    highest = diagonal + np.maximum(effects, 0.0).sum(axis=0)
    lowest = diagonal + np.minimum(effects, 0.0).sum(axis=0)
    in_logs = bool(highest.max() > PRODUCT_LOG_RANGE or lowest.min() < -PRODUCT_LOG_RANGE)
    never = -np.inf if in_logs else 0.0
    padded = -(-n // _kernel.WIDTH) * _kernel.WIDTH
    base = np.full(padded, never)
    rows = np.zeros((n, padded))
    base[:n] = diagonal if in_logs else np.exp(diagonal)
    rows[:, :n] = effects if in_logs else np.exp(effects)
    np.fill_diagonal(rows, never)
    return base, rows, in_logs
