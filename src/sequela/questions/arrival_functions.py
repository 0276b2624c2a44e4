"""Orders of items without a common ancestor, from the distributions of their arrival times.

The ancestors of an item are the item itself and all items that act on it, directly or through other
items. Given the observation time, items without a common ancestor are independent. Let F_a(s) be
the probability that a has arrived by time s, let f_b be the density of the arrival time of b, and
let z be the rate of the observation. Then

    P(a before b, both observed) = integral of F_a(s) f_b(s) exp(-z s).

The integral is computed on a grid of times, so one product of two matrices gives the orders of all
such pairs. This needs only small lattices: each contains the ancestors of one item. A lattice for a
pair would contain the ancestors of both items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arrival_functions import arrival_functions
from sequela.kernels.panels import DEGREES
from sequela.likelihood.components import (
    ACCURACY,
    ComponentFunction,
    TimeGrid,
    in_component_range,
    time_bounds,
)
from sequela.likelihood.decomposition import Component
from sequela.support.jit import call
from sequela.support.linear_algebra import blas_on_one_thread
from sequela.support.threads import run_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sequela.likelihood.parameters import Parameters

__all__ = ["independent_orders"]

# `independent_orders` leaves out items with more ancestors than this. With 13 ancestors, the
# probabilities of all states of the lattice at all times of the grid need 30 MB.
_MOST_ANCESTORS = 13


def independent_orders(
    parameters: Parameters,
    places: NDArray[np.int64],
    acting: Sequence[frozenset[int]],
    threads: int,
) -> NDArray[np.float64]:
    """Return P(a before b, both observed) if a and b have no common ancestor; NaN for other pairs.

    Parameters
    ----------
    parameters : Parameters
        Theta and the observation.
    places : array of int
        Positions of the items in the model.
    acting : sequence of sets
        For each of these items, the positions of its ancestors, including the item itself.
    threads : int
        Number of threads.
    """
    count = places.size
    joint = np.full((count, count), np.nan)
    chosen = [
        i
        for i in range(count)
        if len(acting[i]) <= _MOST_ANCESTORS and _in_range(parameters, acting[i])
    ]
    pairs = [(i, j) for i in chosen for j in chosen if i != j and acting[i].isdisjoint(acting[j])]
    if not pairs:
        return joint
    wanted = sorted({i for pair in pairs for i in pair})
    lattices = _lattices([acting[i] for i in wanted])
    functions = {
        lattice: ComponentFunction(parameters, Component(tuple(sorted(lattice)), ()))
        for lattice in lattices
    }
    fastest = max(float(f.exits.max()) for f in functions.values()) + parameters.stop_rate
    grid = TimeGrid.between(*time_bounds(fastest, parameters.stop_rate, 1), 2)

    def work(lattice: frozenset[int]) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        return _on_grid(functions[lattice], grid)

    with blas_on_one_thread():
        parts = dict(
            zip(lattices, run_pieces(work, lattices, threads, "arrivals of items"), strict=True)
        )
        held = {i: next(lattice for lattice in lattices if acting[i] <= lattice) for i in wanted}
        present = np.empty((len(wanted), grid.times.size))
        density = np.empty_like(present)
        for row, i in enumerate(wanted):
            at = sorted(held[i]).index(int(places[i]))
            present[row], density[row] = parts[held[i]][0][at], parts[held[i]][1][at]
        weights = np.exp(grid.log_weights - parameters.stop_rate * grid.times)
        found = (present * weights) @ density.T
        # P(both observed), by integration by parts. The probabilities of the two orders must add up
        # to this value.
        both = parameters.stop_rate * (present * weights) @ present.T
    lost = {lattice: part[2] > ACCURACY for lattice, part in parts.items()}
    row_of = {i: row for row, i in enumerate(wanted)}
    for i, j in pairs:
        a, b = row_of[i], row_of[j]
        error = abs(found[a, b] + found[b, a] - both[a, b])
        if error <= ACCURACY * both[a, b] and not (lost[held[i]] or lost[held[j]]):
            joint[i, j] = found[a, b]
    return joint


def _in_range(parameters: Parameters, lattice: frozenset[int]) -> bool:
    return in_component_range(parameters, Component(tuple(sorted(lattice)), ()))


def _lattices(needs: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """Return those sets in `needs` that are not a subset of another set in `needs`."""
    kept: list[frozenset[int]] = []
    for need in sorted(set(needs), key=lambda x: (-len(x), sorted(x))):
        if not any(need <= larger for larger in kept):
            kept.append(need)
    return kept


def _on_grid(
    f: ComponentFunction, grid: TimeGrid
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return the functions F and f of all items of a lattice on the grid, and the largest error.

    F is the probability that the item has arrived, and f is the density of its arrival time. The
    error is the largest distance from 1 of the sum of the probabilities of all states.
    """
    f.solve(grid)
    panels = grid.half.size
    present = np.empty((f.k, DEGREES, panels))
    density = np.empty((f.k, DEGREES, panels))
    whole = np.empty((DEGREES, panels))
    call(arrival_functions, present, density, whole, f.P, f.rates, f.k)
    f.P = np.empty((0, 0, 0))  # free the memory of the largest array
    values = [np.array([grid.values(one) for one in table]) for table in (present, density)]
    error = float(np.abs(grid.values(whole) - 1.0).max())
    return values[0], values[1], error
