"""What each sample's set tells about its times: when observed, when each item came, in what order.

Exact on the lattice within the budget; beyond it from sampled orders, with standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela._jit import call
from sequela._random import RandomState, materialise_seed, stream
from sequela._threads import resolve_threads, run_pieces
from sequela._validation import check_observation_rate, check_theta
from sequela.data.dataset import Dataset
from sequela.likelihood._kernels.passage import order_moments, passage_moments
from sequela.likelihood._kernels.relocation import relocate
from sequela.likelihood.budget import Budget, check_budget
from sequela.likelihood.exact import Passage
from sequela.likelihood.independent import draw_orders
from sequela.likelihood.observations import Observations
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.sampled import FIRST_BURN_IN, Sampling, check_sampling, sampled_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SamplePosteriors", "sample_posteriors"]


@dataclass(frozen=True)
class _SetPosterior:
    """Moments of one set: time (mean, variance), arrivals of its items, order of its items."""

    time: NDArray[np.float64]
    arrival_mean: NDArray[np.float64]
    arrival_variance: NDArray[np.float64]
    before: NDArray[np.float64]
    time_se: float
    before_se: NDArray[np.float64]
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
    done = run_pieces(work, pieces, resolve_threads(n_threads))
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
    scratch = np.empty((3, 1 << k))
    call(
        passage_moments, times, mean, second, before, scratch[0], scratch[1], scratch[2],
        passage.log_F, passage.Q, passage.parameters.observation_rate, passage.low_log,
        passage.high_log, k, passage.low,
    )  # fmt: skip
    return _SetPosterior(
        time=np.array([times[0], times[1] - times[0] ** 2]),
        arrival_mean=mean,
        arrival_variance=second - mean**2,
        before=before,
        time_se=0.0,
        before_se=np.zeros((k, k)),
        method="exact",
    )


def _sampled(
    parameters: Parameters, items: NDArray[np.int64], sampling: Sampling, seed: int, index: int
) -> _SetPosterior:
    """Average over orders drawn by independent chains, one order a sweep."""
    columns = sampled_columns(parameters, items)
    k = columns.k
    m = columns.items.size
    Wc = np.exp(columns.effects)
    others = columns.rest + float(columns.rate[k:].sum())
    chains = sampling.chains
    times = np.zeros((chains, 2))
    mean = np.zeros((chains, k))
    second = np.zeros((chains, k))
    before = np.zeros((chains, k, k))
    scratch = np.empty(m)
    unused = np.zeros((k + 1, m + 1))
    kept = np.empty((sampling.sweeps, k), dtype=np.int64)
    never = np.iinfo(np.int64).max
    for chain in range(chains):
        rng = stream(seed, index, chain)
        order = draw_orders(columns.rate[:k], others + parameters.observation_rate, np.nan, rng)
        call(
            relocate, unused, kept, order, Wc, columns.rate, columns.rest,
            parameters.observation_rate, sampling.block, sampling.burn_in + FIRST_BURN_IN,
            sampling.sweeps,
            never, rng,
        )  # fmt: skip
        for drawn in kept:
            call(
                order_moments, times[chain], mean[chain], second[chain], before[chain], drawn,
                Wc, columns.rate, columns.rest, parameters.observation_rate, scratch,
            )  # fmt: skip
    for sums in (times, mean, second, before):
        sums /= sampling.sweeps

    def error(values: NDArray[np.float64]) -> NDArray[np.float64]:
        spread: NDArray[np.float64] = values.std(axis=0, ddof=1) / np.sqrt(chains)
        return spread

    time = times.mean(axis=0)
    return _SetPosterior(
        time=np.array([time[0], time[1] - time[0] ** 2]),
        arrival_mean=mean.mean(axis=0),
        arrival_variance=second.mean(axis=0) - mean.mean(axis=0) ** 2,
        before=before.mean(axis=0),
        time_se=float(error(times[:, 0])) if chains > 1 else np.nan,
        before_se=error(before) if chains > 1 else np.full((k, k), np.nan),
        method="relocation",
    )
