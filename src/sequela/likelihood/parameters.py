"""Convert theta to the forms that the kernels need."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arguments import ColumnRoom, SetColumns, ThetaTables
from sequela.kernels.columns import SHORTCUT_LIMIT, choose_columns
from sequela.likelihood.decomposition import acting
from sequela.observation import Exponential, ObservationEffects, phases_of
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.naming import either

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.model import Model
    from sequela.observation import Observation

__all__ = ["Columns", "Parameters"]

_NONE = np.empty(0, dtype=np.int64)


@lru_cache(maxsize=8)
def _row_starts(n: int) -> NDArray[np.int64]:
    """Return the bounds of the rows of a flat n x n array; cached for later evaluations."""
    return np.arange(0, n * n + 1, n)


@dataclass(frozen=True)
class Columns:
    """The entries of theta that one set needs.

    A column is an item whose rate depends on the state. The first columns are the items of the set.
    The other columns are the items outside the set on which the set acts.

    Attributes
    ----------
    items : array of int
        The items of the columns; the first `k` are those of the set.
    k : int
        Size of the set.
    effects : array, (k, m)
        Log-effect of each item of the set on each column. The effect of an item on itself is 0.
    rate : array, (m,)
        Base rates of the items of the columns.
    rest : float
        Sum of the rates of all other items, which are constant.
    stop_rate : float
        Rate of the observation.
    highest, lowest : float
        Bounds of the log-rates of the columns over all states.
    hidden : array of int
        Missing items that are not on the lattice. Their rates are left out of all sums.
    """

    items: NDArray[np.int64]
    k: int
    effects: NDArray[np.float64]
    rate: NDArray[np.float64]
    rest: float
    stop_rate: float
    highest: float
    lowest: float
    hidden: NDArray[np.int64] = field(default_factory=lambda: _NONE)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.items.size)

    @property
    def others(self) -> float:
        """The sum of the base rates of all items outside the set (effects are not included)."""
        return self.rest + float(self.rate[self.k :].sum())

    def arrays(self, scale: float = 1.0) -> SetColumns:
        """Return the arrays for the samplers of orders, with all effects multiplied by `scale`."""
        effects = self.effects if scale == 1.0 else self.effects * scale
        return SetColumns(np.exp(effects), effects, self.rate, self.rest, self.stop_rate)


class Parameters:
    """A checked theta: effects, base rates, and which effects are not zero.

    Parameters
    ----------
    theta : array (n, n)
        The parameters; the caller has checked them.
    observation : Observation or None
        The distribution of the observation time. None gives an exponential time with rate 1.
    any_times : bool
        Whether the caller supports observations whose rate is not constant (`phases`). If False,
        such an observation raises an error.

    Attributes
    ----------
    phases : PhaseTables or None
        The observation time as phases, if the rate of the observation is not constant. In this
        case, `stop_rate` is 1 / (mean time) and is used only as a scale.
    """

    def __init__(
        self,
        theta: NDArray[np.float64],
        observation: Observation | None = None,
        *,
        any_times: bool = False,
    ) -> None:
        if any_times and isinstance(observation, ObservationEffects):
            # Use the equivalent model without effects on the observation. It gives all sets the
            # same probabilities, with the same derivatives with respect to theta.
            theta, observation = observation.absorb(theta), None
        # If the array is read-only (as the theta of a model is), copy it. For Numba, a read-only
        # array has another type, so every kernel would be compiled a second time.
        theta = np.require(theta, requirements=("C", "W"))
        n = theta.shape[0]
        self.theta = theta
        self.n = n
        self.phases = None if not any_times or observation is None else phases_of(observation)
        if self.phases is not None and observation is not None:
            self.stop_rate = 1.0 / observation.mean_time
        else:
            self.stop_rate = _constant_rate(observation)
        # Rates that are too large for a double become infinite here. The range of each set is
        # tested later.
        with np.errstate(over="ignore"):
            W = np.exp(theta, order="C")
        self.rate = W.diagonal().copy()
        W.ravel()[:: n + 1] = 1.0  # an item has no effect on itself
        present = (theta != 0.0).ravel()
        present[:: n + 1] = False
        places = present.nonzero()[0]
        self.shared = self.rate <= SHORTCUT_LIMIT * self.stop_rate
        all_shared = bool(self.shared.all())  # as in most models
        self.tables = ThetaTables(
            theta=theta,
            W=W,
            rate=self.rate,
            row_start=places.searchsorted(_row_starts(n)),
            row_item=places % n,
            shared=self.shared,
            constant=float((self.rate if all_shared else self.rate[self.shared]).sum()),
            fast=_NONE if all_shared else np.nonzero(~self.shared)[0].astype(np.int64),
            stop_rate=self.stop_rate,
        )

    @cached_property
    def children(self) -> list[tuple[int, ...]]:
        """The items on which each item acts."""
        return acting(self.theta != 0.0)

    @classmethod
    def of(cls, model: Model) -> Parameters:
        """Return the parameters of a model whose observation has a constant rate."""
        return cls(model.theta, model.observation)

    @classmethod
    def for_sets(cls, model: Model) -> Parameters:
        """Return the parameters for the probabilities of sets, for any kind of observation."""
        return cls(model.theta, model.observation, any_times=True)

    def columns(self, items: NDArray[np.int64]) -> Columns:
        """Return the columns of the set `items`."""
        n = self.n
        k = items.shape[0]
        room = ColumnRoom(
            np.empty(n, dtype=np.int64), np.empty(n), np.empty(n), np.zeros(n, dtype=np.int64)
        )
        m, rest = call(choose_columns, items, self.tables, room)
        columns = room.columns[:m].copy()
        effects = self.theta[np.ix_(items, columns)]
        effects[np.arange(k), np.arange(k)] = 0.0
        base = self.theta[columns, columns]
        return Columns(
            items=columns,
            k=k,
            effects=np.ascontiguousarray(effects),
            rate=self.rate[columns],
            rest=float(rest),
            stop_rate=self.stop_rate,
            highest=float(np.max(base + room.above[:m], initial=-np.inf)),
            lowest=float(np.min(base + room.below[:m], initial=np.inf)),
        )

    def spread(self, columns: Columns, G: NDArray[np.float64], into: NDArray[np.float64]) -> None:
        """Add one set's gradient G (axes as in `lattice.gradient`) to the n x n array `into`."""
        self._spread(columns, G, -self.rate, into)

    def spread_variance(
        self, columns: Columns, G: NDArray[np.float64], into: NDArray[np.float64]
    ) -> None:
        """Add the variances G of one set's gradient to the n x n array `into`."""
        self._spread(columns, G, self.rate**2, into)

    def _spread(
        self,
        columns: Columns,
        G: NDArray[np.float64],
        per_time: NDArray[np.float64],
        into: NDArray[np.float64],
    ) -> None:
        k = columns.k
        m = columns.items.shape[0]
        # For items that are not columns, the entry is column m of G (times spent) times a factor.
        full = G[:, m : m + 1] * per_time
        full[:, columns.items] = G[:, :m]
        full[:, columns.hidden] = 0.0
        own = columns.items[:k]
        full[np.arange(k), own] = 0.0
        into[own] += full[:k]
        into[np.arange(self.n), np.arange(self.n)] += full[k]


def _constant_rate(observation: Observation | None) -> float:
    """Return the rate of the observation; raise an error if it is not constant."""
    rate = (observation or Exponential()).constant_rate
    if rate is None:
        raise InputError(
            f"this function does not support an observation of kind {observation.kind!r}; "
            "use an observation with a constant rate, such as "
            + either("sequela.Exponential()", "that of `sequela fit --observation exponential`")
            if observation is not None
            else "the observation has no rate"
        )
    return rate
