"""Compute the posterior of observation times, arrival times and orders of samples.

For sets within the budget the posterior is exact, on the lattice or by components. For larger sets
it is estimated from sampled orders, with standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sequela.data.dataset import Dataset
from sequela.kernels.arguments import SetMoments
from sequela.kernels.passage import order_moments
from sequela.likelihood.component_histories import ComponentHistory
from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.orders import OrderSampler, draw_orders, sampled_columns
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.partial_plan import partial_passage
from sequela.likelihood.passage import Passage
from sequela.likelihood.plan import choose_way
from sequela.likelihood.ways import Way
from sequela.model import as_model
from sequela.settings import read_settings
from sequela.support.jit import call
from sequela.support.linear_algebra import blas_on_one_thread
from sequela.support.threads import run_pieces

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.likelihood.parameters import Columns
    from sequela.model import ModelLike
    from sequela.settings import Settings, SettingsKeywords

__all__ = ["OrderMoments", "SamplePosteriors", "chain_error", "sample_posteriors"]


class _Orders(Protocol):
    """The order of the items of one set. `ComponentHistory` computes it only when it is needed.

    ``place[c, p]`` is the probability that item c arrived after exactly p other items.
    """

    @property
    def before(self) -> NDArray[np.float64]: ...

    @property
    def place(self) -> NDArray[np.float64]: ...


@dataclass(frozen=True)
class _SetPosterior:
    """Moments of the observation time and the arrival times of one set, and its orders."""

    time: NDArray[np.float64]
    arrival_mean: NDArray[np.float64]
    arrival_variance: NDArray[np.float64]
    arrival_se: NDArray[np.float64]
    orders: _Orders
    before_se: NDArray[np.float64]
    place_se: NDArray[np.float64]
    time_se: float
    method: str


@dataclass(frozen=True)
class _KnownOrders:
    """Orders of the items of one set that were computed together with the moments."""

    before: NDArray[np.float64]
    place: NDArray[np.float64]


@dataclass(frozen=True)
class SamplePosteriors:
    """Posterior moments of the times of every sample, given its set.

    Attributes
    ----------
    time_mean, time_variance : arrays (samples,)
        Mean and variance of the observation time.
    time_se : array (samples,)
        Monte Carlo standard error of `time_mean`; 0 for exact means.
    arrival_mean, arrival_variance : arrays (samples, n)
        Mean and variance of the arrival time of each item; NaN if the item is absent.
    methods : array of str
        "exact", "components" (exact as well) or "relocation" (sampled).
    items : tuple of str
        Labels of the n items.
    seed : int
        The seed from which all draws were derived.
    """

    time_mean: NDArray[np.float64]
    time_variance: NDArray[np.float64]
    time_se: NDArray[np.float64]
    arrival_mean: NDArray[np.float64]
    arrival_variance: NDArray[np.float64]
    methods: NDArray[np.str_]
    items: tuple[str, ...]
    seed: int
    _distinct: DistinctSamples
    _sets: list[_SetPosterior]

    def before(self, sample: int) -> NDArray[np.float64]:
        """Return P(a before b | set of this sample) for its items, in the order of `present`.

        The diagonal is 0; entries (a, b) and (b, a) add up to 1.
        """
        return self._sets[int(self._distinct.inverse[sample])].orders.before

    def before_se(self, sample: int) -> NDArray[np.float64]:
        """Return the Monte Carlo standard errors of `before`; 0 if the probabilities are exact."""
        return self._sets[int(self._distinct.inverse[sample])].before_se

    def place(self, sample: int) -> NDArray[np.float64]:
        """Return the probability that each item arrived after exactly 0, 1, ... other items.

        There is one row per item of this sample, in the order of `present`.
        """
        return self._sets[int(self._distinct.inverse[sample])].orders.place

    def mean_errors(self, sample: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the Monte Carlo standard errors of the mean arrival times and mean positions."""
        found = self._sets[int(self._distinct.inverse[sample])]
        return found.arrival_se, found.place_se

    def present(self, sample: int) -> NDArray[np.int64]:
        """Return the items of this sample, as positions in `items`."""
        return self._distinct.items(int(self._distinct.inverse[sample]))


def sample_posteriors(
    model: ModelLike, data: DataLike, **settings: Unpack[SettingsKeywords]
) -> SamplePosteriors:
    """Return the posterior moments of the times of every sample given its set.

    The posterior is conditional on the set and on known orders. It does not use observation times
    in the data. If cells are missing, it is an average over their possible values, given the known
    cells.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    data : Dataset, DataFrame, array or list of sets
        The samples.
    **settings
        `budget`, `sampling`, `random_state`, `n_threads`; see `Settings`.

    Examples
    --------
    >>> import numpy as np
    >>> theta = np.array([[0.0, 4.0], [0.0, -4.0]])
    >>> posteriors = sample_posteriors(theta, np.array([[1, 1], [1, 0]]))
    >>> posteriors.time_mean.round(3).tolist()
    [1.995, 0.995]
    >>> posteriors.before(0).round(3).tolist()
    [[0.0, 0.982], [0.018, 0.0]]
    """
    how = read_settings(settings, unused=("draws", "target_se"))
    read = Dataset.coerce(data)
    parameters = Parameters.of(as_model(model, read.items))
    distinct = DistinctSamples.of(read.without_times(), partial=True)

    def work(s: int) -> _SetPosterior:
        items = distinct.items(s)
        known = distinct.known(s)
        if known is not None:
            return _exact(partial_passage(parameters, known, how.budget), items.size)
        way = choose_way(parameters, items, how.budget, components=True)
        if way is Way.COMPONENTS:
            history = ComponentHistory(parameters, items)
            if history.is_accurate:
                return _by_components(history)
            way = choose_way(parameters, items, how.budget)
        if way is Way.EXACT:
            return _exact(Passage.of(parameters, items), items.size)
        return _sampled(parameters, items, how, s)

    pieces = distinct.largest_first()
    with blas_on_one_thread():
        done = run_pieces(work, pieces, how.threads, "arrival times of samples")
    sets = [done[place] for place in np.argsort(pieces, kind="stable")]
    inverse = distinct.inverse
    arrival_mean = np.full((read.n_samples, read.n_items), np.nan)
    arrival_variance = np.full((read.n_samples, read.n_items), np.nan)
    for row, s in enumerate(inverse):
        present = distinct.items(int(s))
        arrival_mean[row, present] = sets[s].arrival_mean
        arrival_variance[row, present] = sets[s].arrival_variance
    times = np.array([found.time for found in sets])[inverse]
    return SamplePosteriors(
        time_mean=times[:, 0],
        time_variance=times[:, 1],
        time_se=np.array([found.time_se for found in sets])[inverse],
        arrival_mean=arrival_mean,
        arrival_variance=arrival_variance,
        methods=np.array([found.method for found in sets])[inverse],
        items=read.items,
        seed=how.seed,
        _distinct=distinct,
        _sets=sets,
    )


def _exact(passage: Passage, k: int) -> _SetPosterior:
    """Return the exact posterior of the first k items of a lattice, which are present."""
    passage.log_p()  # `log_p` also computes the forward weights, which are needed below
    found = passage.moments()
    return _SetPosterior(
        time=np.array([found.times[0], found.times[1] - found.times[0] ** 2]),
        arrival_mean=found.arrival_mean[:k],
        arrival_variance=(found.arrival_second - found.arrival_mean**2)[:k],
        arrival_se=np.zeros(k),
        orders=_KnownOrders(found.before[:k, :k], found.place[:k, :k]),
        before_se=np.zeros((k, k)),
        place_se=np.zeros(k),
        time_se=0.0,
        method=Way.EXACT.value,
    )


def _by_components(history: ComponentHistory) -> _SetPosterior:
    k = history.items.size
    return _SetPosterior(
        time=np.array([history.time_mean, history.time_variance]),
        arrival_mean=history.arrival_mean,
        arrival_variance=history.arrival_variance,
        arrival_se=np.zeros(k),
        orders=history,
        before_se=np.zeros((k, k)),
        place_se=np.zeros(k),
        time_se=0.0,
        method=Way.COMPONENTS.value,
    )


@dataclass(frozen=True)
class OrderMoments:
    """Moments of times and orders, estimated from drawn orders. The first axis is the chain.

    ``exits[chain, sweep, a]`` is the total rate out of the state after the first a items of the
    order that was drawn in this sweep.
    """

    times: NDArray[np.float64]
    arrival_mean: NDArray[np.float64]
    arrival_second: NDArray[np.float64]
    before: NDArray[np.float64]
    place: NDArray[np.float64]
    exits: NDArray[np.float64]

    @classmethod
    def of(cls, columns: Columns, orders: NDArray[np.int64]) -> OrderMoments:
        """Return averages over the orders (chains, sweeps, k) of one set."""
        chains, sweeps, k = orders.shape
        arrays = columns.arrays()
        sums = SetMoments(
            times=np.zeros((chains, 2)),
            arrival_mean=np.zeros((chains, k)),
            arrival_second=np.zeros((chains, k)),
            before=np.zeros((chains, k, k)),
            place=np.zeros((chains, k, k)),
        )
        exits = np.empty((chains, sweeps, k + 1))
        scratch = np.empty(columns.n_columns)
        for chain in range(chains):
            of_chain = SetMoments(*(array[chain] for array in sums))
            for sweep in range(sweeps):
                call(
                    order_moments, of_chain, orders[chain, sweep], arrays, exits[chain, sweep],
                    scratch,
                )  # fmt: skip
        return cls(
            times=sums.times / sweeps,
            arrival_mean=sums.arrival_mean / sweeps,
            arrival_second=sums.arrival_second / sweeps,
            before=sums.before / sweeps,
            place=sums.place / sweeps,
            exits=exits,
        )


def chain_error(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard error of the mean over chains (the first axis); NaN for one chain."""
    chains = values.shape[0]
    if chains < 2:
        return np.full(values.shape[1:], np.nan)
    spread: NDArray[np.float64] = values.std(axis=0, ddof=1) / np.sqrt(chains)
    return spread


def _sampled(
    parameters: Parameters, items: NDArray[np.int64], settings: Settings, index: int
) -> _SetPosterior:
    """Return the posterior of a set, estimated from orders of independent chains."""
    columns = sampled_columns(parameters, items)
    orders = draw_orders(OrderSampler(columns, settings.sampling), settings.seed, index)
    found = OrderMoments.of(columns, orders)
    time = found.times.mean(axis=0)
    mean = found.arrival_mean.mean(axis=0)
    return _SetPosterior(
        time=np.array([time[0], time[1] - time[0] ** 2]),
        arrival_mean=mean,
        arrival_variance=found.arrival_second.mean(axis=0) - mean**2,
        arrival_se=chain_error(found.arrival_mean),
        orders=_KnownOrders(found.before.mean(axis=0), found.place.mean(axis=0)),
        before_se=chain_error(found.before),
        place_se=chain_error(found.place @ np.arange(columns.k)),
        time_se=float(chain_error(found.times[:, 0])),
        method=Way.RELOCATION.value,
    )
