"""What each sample's set tells about its times: when observed, when each item came, in what order.

Exact on the lattice within the budget; beyond it from sampled orders, with standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.data.dataset import Dataset
from sequela.kernels.passage import order_moments, passage_moments
from sequela.kernels.relocation import relocate
from sequela.likelihood.budget import Budget, check_budget
from sequela.likelihood.exact import Passage
from sequela.likelihood.independent import draw_orders
from sequela.likelihood.observations import Observations
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.sampled import FIRST_BURN_IN, Sampling, check_sampling, sampled_columns
from sequela.support.jit import call
from sequela.support.random import RandomState, materialise_seed, stream
from sequela.support.threads import resolve_threads, run_pieces
from sequela.support.validation import check_observation_rate, check_theta

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.parameters import Columns

__all__ = [
    "OrderMoments",
    "SamplePosteriors",
    "chain_error",
    "sample_posteriors",
    "sampled_orders",
]


@dataclass(frozen=True)
class _SetPosterior:
    """Moments of one set: time (mean, variance), arrivals of its items, order of its items.

    ``place[c, p]`` is the probability that item c came after exactly p others.
    """

    time: NDArray[np.float64]
    arrival_mean: NDArray[np.float64]
    arrival_variance: NDArray[np.float64]
    arrival_se: NDArray[np.float64]
    before: NDArray[np.float64]
    before_se: NDArray[np.float64]
    place: NDArray[np.float64]
    place_se: NDArray[np.float64]
    time_se: float
    method: str


@dataclass(frozen=True)
class SamplePosteriors:
    """Posterior moments of the times of every sample, given its set.

    Attributes
    ----------
    time_mean, time_variance : arrays (samples,)
        Of the observation time.
    time_se : array (samples,)
        Monte Carlo standard error of `time_mean`; 0 where exact.
    arrival_mean, arrival_variance : arrays (samples, n)
        Of each item's arrival; NaN where the item is absent.
    methods : array of str
        "exact" or "relocation".
    items : tuple of str
        Labels of the n items.
    seed : int
        What every draw was derived from.
    """

    time_mean: NDArray[np.float64]
    time_variance: NDArray[np.float64]
    time_se: NDArray[np.float64]
    arrival_mean: NDArray[np.float64]
    arrival_variance: NDArray[np.float64]
    methods: NDArray[np.str_]
    items: tuple[str, ...]
    seed: int
    _observations: Observations
    _sets: list[_SetPosterior]

    def before(self, sample: int) -> NDArray[np.float64]:
        """Return P(a before b | set of this sample) for its items, in the order of `present`.

        The diagonal is 0; entries (a, b) and (b, a) add up to 1.
        """
        return self._sets[int(self._observations.inverse[sample])].before

    def before_se(self, sample: int) -> NDArray[np.float64]:
        """Return the Monte Carlo standard errors of `before`; 0 where exact."""
        return self._sets[int(self._observations.inverse[sample])].before_se

    def place(self, sample: int) -> NDArray[np.float64]:
        """Return the probability that each item of this sample came after exactly 0, 1, ... others.

        One row for each item, in the order of `present`.
        """
        return self._sets[int(self._observations.inverse[sample])].place

    def mean_errors(self, sample: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the Monte Carlo standard errors of the mean arrivals and of the mean places."""
        found = self._sets[int(self._observations.inverse[sample])]
        return found.arrival_se, found.place_se

    def present(self, sample: int) -> NDArray[np.int64]:
        """Return the positions of the items that this sample has."""
        return self._observations.items(int(self._observations.inverse[sample]))


def sample_posteriors(
    theta: Any,
    X: Any,
    *,
    budget: Budget | None = None,
    sampling: Sampling | None = None,
    observation_rate: float = 1.0,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> SamplePosteriors:
    """Return the posterior moments of the times of every sample given its set.

    Observation times of the data are not used: this is what the sets alone tell. See `Likelihood`
    for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> theta = np.array([[0.0, 4.0], [0.0, -4.0]])
    >>> found = sample_posteriors(theta, np.array([[1, 1], [1, 0]]))
    >>> found.time_mean.round(3).tolist()
    [1.995, 0.995]
    >>> found.before(0).round(3).tolist()
    [[0.0, 0.982], [0.018, 0.0]]
    """
    data = Dataset.coerce(X)
    parameters = Parameters(
        check_theta(theta, data.items), check_observation_rate(observation_rate)
    )
    limits = check_budget(budget)
    how = check_sampling(sampling)
    seed = materialise_seed(random_state)
    observations = Observations.of(data.without_times())

    def work(s: int) -> _SetPosterior:
        items = observations.items(s)
        columns = parameters.columns(items).items.size
        if items.size <= 1 or limits.exact_fits(items.size, columns):
            return _exact(Passage(parameters, items))
        return _sampled(parameters, items, how, seed, s)

    # Descending sizes: the long pieces first.
    pieces = [int(s) for s in np.argsort(-observations.sizes, kind="stable")]
    done = run_pieces(work, pieces, resolve_threads(n_threads), "times of samples")
    sets = [done[place] for place in np.argsort(pieces, kind="stable")]
    inverse = observations.inverse
    arrival_mean = np.full((data.n_samples, data.n_items), np.nan)
    arrival_variance = np.full((data.n_samples, data.n_items), np.nan)
    for row, s in enumerate(inverse):
        present = observations.items(int(s))
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
        items=data.items,
        seed=seed,
        _observations=observations,
        _sets=sets,
    )


def _exact(passage: Passage) -> _SetPosterior:
    k = passage.k
    passage.log_p()  # fills the forward weights
    times = np.empty(2)
    mean = np.empty(k)
    second = np.empty(k)
    before = np.empty((k, k))
    place = np.empty((k, k))
    scratch = np.empty((3, 1 << k))
    call(
        passage_moments, times, mean, second, before, place, scratch[0], scratch[1], scratch[2],
        passage.log_F, passage.Q, passage.parameters.observation_rate, passage.low_log,
        passage.high_log, k, passage.low,
    )  # fmt: skip
    return _SetPosterior(
        time=np.array([times[0], times[1] - times[0] ** 2]),
        arrival_mean=mean,
        arrival_variance=second - mean**2,
        arrival_se=np.zeros(k),
        before=before,
        before_se=np.zeros((k, k)),
        place=place,
        place_se=np.zeros(k),
        time_se=0.0,
        method="exact",
    )


def sampled_orders(
    parameters: Parameters, columns: Columns, sampling: Sampling, seed: int, index: int
) -> NDArray[np.int64]:
    """Return orders (chains, sweeps, k) of a set drawn by independent chains, one a sweep.

    Entries are places in the set.
    """
    k = columns.k
    Wc = np.exp(columns.effects)
    others = columns.rest + float(columns.rate[k:].sum())
    unused = np.zeros((k + 1, columns.items.size + 1))
    kept = np.empty((sampling.chains, sampling.sweeps, k), dtype=np.int64)
    never = np.iinfo(np.int64).max
    for chain in range(sampling.chains):
        rng = stream(seed, index, chain)
        order = draw_orders(columns.rate[:k], others + parameters.observation_rate, np.nan, rng)
        call(
            relocate, unused, kept[chain], order, Wc, columns.rate, columns.rest,
            parameters.observation_rate, sampling.block, sampling.burn_in + FIRST_BURN_IN,
            sampling.sweeps, never, rng,
        )  # fmt: skip
    return kept


@dataclass(frozen=True)
class OrderMoments:
    """What drawn orders tell, a mean for each chain (first axis)."""

    times: NDArray[np.float64]
    arrival_mean: NDArray[np.float64]
    arrival_second: NDArray[np.float64]
    before: NDArray[np.float64]
    place: NDArray[np.float64]
    exits: NDArray[np.float64]

    @classmethod
    def of(
        cls, parameters: Parameters, columns: Columns, orders: NDArray[np.int64]
    ) -> OrderMoments:
        """Average over the orders (chains, sweeps, k) of one set."""
        chains, sweeps, k = orders.shape
        Wc = np.exp(columns.effects)
        found = cls(
            times=np.zeros((chains, 2)),
            arrival_mean=np.zeros((chains, k)),
            arrival_second=np.zeros((chains, k)),
            before=np.zeros((chains, k, k)),
            place=np.zeros((chains, k, k)),
            exits=np.empty((chains, sweeps, k + 1)),
        )
        scratch = np.empty(columns.items.size)
        for chain in range(chains):
            for sweep in range(sweeps):
                call(
                    order_moments, found.times[chain], found.arrival_mean[chain],
                    found.arrival_second[chain], found.before[chain], found.place[chain],
                    orders[chain, sweep], Wc, columns.rate, columns.rest,
                    parameters.observation_rate, found.exits[chain, sweep], scratch,
                )  # fmt: skip
        for sums in (found.times, found.arrival_mean, found.arrival_second, found.before,
                     found.place):  # fmt: skip
            sums /= sweeps
        return found


def chain_error(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard error of the mean over chains (first axis); NaN for a single chain."""
    chains = values.shape[0]
    if chains < 2:
        return np.full(values.shape[1:], np.nan)
    spread: NDArray[np.float64] = values.std(axis=0, ddof=1) / np.sqrt(chains)
    return spread


def _sampled(
    parameters: Parameters, items: NDArray[np.int64], sampling: Sampling, seed: int, index: int
) -> _SetPosterior:
    """Average over orders drawn by independent chains, one order a sweep."""
    columns = sampled_columns(parameters, items)
    orders = sampled_orders(parameters, columns, sampling, seed, index)
    found = OrderMoments.of(parameters, columns, orders)
    time = found.times.mean(axis=0)
    mean = found.arrival_mean.mean(axis=0)
    return _SetPosterior(
        time=np.array([time[0], time[1] - time[0] ** 2]),
        arrival_mean=mean,
        arrival_variance=found.arrival_second.mean(axis=0) - mean**2,
        arrival_se=chain_error(found.arrival_mean),
        before=found.before.mean(axis=0),
        before_se=chain_error(found.before),
        place=found.place.mean(axis=0),
        place_se=chain_error(found.place @ np.arange(columns.k)),
        time_se=float(chain_error(found.times[:, 0])),
        method="relocation",
    )
