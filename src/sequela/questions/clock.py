"""The posterior of the observation time of a sample, given its set.

There are three ways to compute it. On the lattice of the set the posterior is exact: the time is a
mixture of sums of exponential times. With components it is also exact: the likelihood is then
an integral over the observation time, and its integrand is proportional to the posterior density.
For larger sets the posterior is estimated from drawn orders. On the lattice and for drawn orders,
recursions give the mean and the variance, and the Laplace transform gives the density and the
quantiles (module `inversion`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import pandas as pd

from sequela.kernels.contour import tilted_moments
from sequela.kernels.passage import LANES, laplace_transform
from sequela.likelihood.component_cost import has_small_components
from sequela.likelihood.components import ComponentSets
from sequela.likelihood.decomposition import decompose_by
from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.grid_distribution import GridDistribution, quantiles_on_grid
from sequela.likelihood.histories import OrderMoments, chain_error
from sequela.likelihood.orders import OrderSampler, draw_orders, sampled_columns
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.partial_plan import partial_passage
from sequela.likelihood.passage import Passage
from sequela.likelihood.plan import choose_way
from sequela.likelihood.ways import Way
from sequela.model import as_model
from sequela.observation import phases_of
from sequela.posteriors.result import Posterior, check_level
from sequela.questions.arguments import one_sample
from sequela.questions.inversion import Inverse
from sequela.questions.phase_times import phase_times
from sequela.questions.precision import settings_for_orders, until_precise
from sequela.questions.samples import MAX_ORDERS
from sequela.questions.time_arguments import quantile_names, read_probabilities, read_times
from sequela.questions.times_over_draws import times_over_draws
from sequela.samples import as_samples
from sequela.settings import read_settings
from sequela.support.jit import call
from sequela.support.linear_algebra import blas_on_one_thread
from sequela.support.threads import run_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.model import ModelLike
    from sequela.questions.arguments import SampleLike
    from sequela.settings import Settings, SettingsKeywords

__all__ = ["TimePosterior", "pseudo_times", "time_posterior"]

# Default number of orders that are drawn for a set beyond the budget, by `time_posterior` and by
# `pseudo_times`.
DEFAULT_ORDERS = 320
_TABLE_ORDERS = 160
# Number of small sets whose quantiles are computed together.
_SETS_TOGETHER = 64


class TimeDistribution(Protocol):
    """A distribution of times; results have one row per chain, or one row if they are exact."""

    def evaluate(
        self, times: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the density and the distribution function, as two arrays (chains, times)."""

    def quantiles(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the quantiles of each chain, as an array (chains, probabilities)."""

    def pooled_quantiles(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the quantiles of the mean distribution of all chains."""

    def grid(self) -> NDArray[np.float64]:
        """Return times, from 0 on, that cover the whole distribution."""


@dataclass(frozen=True, eq=False)
class TimePosterior:
    """The posterior of the observation time of one sample, given its set.

    Attributes
    ----------
    mean, variance : float
        Mean and variance of the time, in the unit of time of the rates of the model.
    mean_se : float
        Monte Carlo standard error of the mean; 0 if the mean is exact.
    method : str
        "exact", "components" (exact as well) or "relocation" (sampled).
    draws : int
        Number of orders drawn; 0 if the result is exact.
    seed : int or None
        The seed from which all draws were derived; None if the result is exact.
    """

    mean: float
    variance: float
    mean_se: float
    method: str
    draws: int
    seed: int | None
    _distribution: Callable[[], TimeDistribution]

    @cached_property
    def _inverse(self) -> TimeDistribution:
        # The distribution is computed only when a density or a quantile is needed, because the
        # mean and the variance do not need it.
        return self._distribution()

    def density(self, times: Sequence[float] | None = None) -> pd.DataFrame:
        """Return the density at `times`, or on a grid that covers the whole distribution.

        The grid is finer where the density changes fast.

        Returns
        -------
        DataFrame
            Indexed by time, with the columns "density", its Monte Carlo standard error "se" (0 if
            exact), and "cumulative", the probability that the sample was observed before this time.

        Examples
        --------
        >>> from sequela.data.examples import example_theta
        >>> posterior = time_posterior(example_theta(), {"first"})
        >>> posterior.density([0.5])["density"].round(3).tolist()
        [1.072]
        """
        at = self._inverse.grid() if times is None else read_times(times)
        values, before = self._inverse.evaluate(at)
        return pd.DataFrame(
            {
                "density": values.mean(axis=0),
                "se": self._error(values),
                "cumulative": before.mean(axis=0),
            },
            index=pd.Index(at, name="time"),
        )

    def quantile(
        self, probabilities: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)
    ) -> pd.DataFrame:
        """Return quantiles of the observation time.

        Returns
        -------
        DataFrame
            Indexed by probability, with the columns "time" and its Monte Carlo standard error "se"
            (0 if exact).

        Examples
        --------
        >>> from sequela.data.examples import example_theta
        >>> posterior = time_posterior(example_theta(), {"first"})
        >>> posterior.quantile([0.5])["time"].round(3).to_dict()
        {0.5: 0.38}
        """
        wanted = read_probabilities("probabilities", probabilities)
        # Quantiles of the single chains are needed only for the standard error.
        each = np.empty((1, wanted.size))
        if self.draws:
            each = self._inverse.quantiles(wanted)
        return pd.DataFrame(
            {"time": self._inverse.pooled_quantiles(wanted), "se": self._error(each)},
            index=pd.Index(wanted, name="probability"),
        )

    def _error(self, each: NDArray[np.float64]) -> NDArray[np.float64]:
        return chain_error(each) if self.draws else np.zeros(each.shape[1])

    def __repr__(self) -> str:
        error = f" ± {self.mean_se:.2g}" if self.draws else ""
        return (
            f"<TimePosterior: mean {self.mean:.4g}{error}, "
            f"sd {np.sqrt(self.variance):.4g}, {self.method}>"
        )


def time_posterior(
    model: ModelLike, sample: SampleLike, **settings: Unpack[SettingsKeywords]
) -> TimePosterior:
    """Return the posterior of the observation time of one sample, given its set.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The model.
    sample : set of labels, or a true/false row
        The items that are present.
    **settings
        `budget`, `random_state`. If the set is beyond the budget, also `sampling`, and `draws`
        (number of orders drawn, default 320) or `target_se` (of the mean time). See `Settings`.

    Returns
    -------
    TimePosterior
        Mean and variance; ``density()`` and ``quantile()`` give tables.

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> time_posterior(example_theta(), {"first", "second"})
    <TimePosterior: mean 0.746, sd 0.4342, exact>
    """
    how = read_settings(settings)
    model = as_model(model, instead="pseudo_times(posterior, [sample])")
    present, data = one_sample(model, sample)
    parameters = Parameters.of(model)
    known = DistinctSamples.of(data.without_times(), partial=True).known(0)
    if known is not None:
        return _exact(partial_passage(parameters, known, how.budget))
    return until_precise(
        lambda draws: _posterior(parameters, present, settings_for_orders(how, draws), 0),
        lambda posterior: posterior.mean_se,
        how,
        default=DEFAULT_ORDERS,
        first=DEFAULT_ORDERS,
        max_draws=MAX_ORDERS,
    )


class _Summary(NamedTuple):
    """The numbers of one posterior that the table needs.

    The posterior itself is not kept, because its lattice needs much memory.
    """

    mean: float
    variance: float
    mean_se: float
    method: str
    draws: int
    quantiles: NDArray[np.float64]


def pseudo_times(
    model: ModelLike | Posterior,
    data: DataLike,
    *,
    quantiles: Sequence[float] = (0.05, 0.5, 0.95),
    level: float = 0.9,
    **settings: Unpack[SettingsKeywords],
) -> pd.DataFrame:
    """Return the pseudo-time of every sample: a summary of the posterior of its observation time.

    Parameters
    ----------
    model : Model, fitted SetChain, theta, or Posterior
        The model.
    data : Dataset, DataFrame, array or list of sets
        The samples. Observation times of the data are not used.
    quantiles : sequence of float
        The probabilities of the quantiles to return. An empty list makes the computation faster.
    level : float
        Probability of the interval "low" to "high", for a posterior of models.
    **settings
        `budget`, `random_state`, `n_threads`. For sets beyond the budget, also `sampling` and
        `draws` (number of orders drawn per distinct set, default 160). For a posterior of models,
        also `max_models` (default 100). See `Settings`.

    Returns
    -------
    DataFrame
        One row per sample. "size" is the number of its items. "mean" and "sd" are the posterior
        mean and standard deviation of its time, and "se" is the Monte Carlo error of the mean.
        "q05", "q50" and "q95" are quantiles. ``attrs`` holds "draws" and "seed" (0 and None if all
        results are exact). For a posterior of models, "mean" is the average over the models, and
        "low" to "high" is the interval of the means under the single models. "effective" is the
        effective number of draws, and "r_hat" is R-hat. "sd" and the quantiles are then those of
        the mixture over all models, so they include the uncertainty about the model.

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> times = pseudo_times(example_theta(), [{"first"}, {"first", "second"}])
    >>> times["mean"].round(3).tolist(), times["q50"].round(3).tolist()
    ([0.453, 0.746], [0.38, 0.663])
    """
    how = read_settings(settings, unused=("target_se",), posterior=True)
    wanted = read_probabilities("quantiles", quantiles)
    names = quantile_names(wanted)
    if isinstance(model, Posterior):
        return times_over_draws(
            model, data, dict(zip(names, wanted.tolist(), strict=True)), how,
            level=check_level(level),
            ask=lambda one, sets, at, own: pseudo_times(one, sets, quantiles=at, settings=own),
        )  # fmt: skip
    model = as_model(model)
    samples = as_samples(model, data)
    if phases_of(model.observation) is not None:
        return phase_times(model, samples, dict(zip(names, wanted.tolist(), strict=True)), how)
    parameters = Parameters.of(model)
    distinct = DistinctSamples.of(samples.without_times(), partial=True)
    of_orders = settings_for_orders(how, _TABLE_ORDERS if how.draws is None else how.draws)

    def work(piece: NDArray[np.int64]) -> list[_Summary]:
        items = [distinct.items(int(s)) for s in piece]
        known = distinct.known(int(piece[0]))
        if known is not None:
            nothing = np.full(wanted.size, np.nan)
            exact = _exact(partial_passage(parameters, known, how.budget))
            return [_summary(exact, wanted, nothing)]
        times = np.full((piece.size, wanted.size), np.nan)
        if wanted.size and has_small_components(parameters, items[0]):
            times = quantiles_on_grid(parameters, items, wanted)
        return [
            _summary(_posterior(parameters, one, of_orders, int(s)), wanted, found)
            for s, one, found in zip(piece, items, times, strict=True)
        ]

    pieces = _pieces(parameters, distinct)
    with blas_on_one_thread():
        done = run_pieces(work, pieces, how.threads, "times of samples")
    flat = [summary for part in done for summary in part]
    in_order = [flat[i] for i in np.argsort(np.concatenate(pieces), kind="stable")]
    sets = [in_order[s] for s in distinct.inverse]
    table = pd.DataFrame(
        {
            "size": samples.set_sizes,
            "mean": [summary.mean for summary in sets],
            "sd": np.sqrt([summary.variance for summary in sets]),
            "se": [summary.mean_se for summary in sets],
        },
        index=pd.Index(samples.samples, name="sample"),
    )
    for column, name in enumerate(names):
        table[name] = [summary.quantiles[column] for summary in sets]
    table["method"] = [summary.method for summary in sets]
    draws = max(summary.draws for summary in sets)
    table.attrs.update(draws=draws, seed=how.seed if draws else None)
    return table


def _summary(
    posterior: TimePosterior, wanted: NDArray[np.float64], found: NDArray[np.float64]
) -> _Summary:
    """Return the numbers of a posterior for the table.

    `wanted` are the probabilities of the quantiles. `found` are the quantiles if they were computed
    before, or NaN. If they contain NaN, or if the posterior is sampled, this function computes all
    quantiles.
    """
    if posterior.draws or np.isnan(found).any():
        found = posterior.quantile(wanted.tolist())["time"].to_numpy()
    return _Summary(
        posterior.mean, posterior.variance, posterior.mean_se, posterior.method, posterior.draws,
        found,
    )  # fmt: skip


def _pieces(parameters: Parameters, distinct: DistinctSamples) -> list[NDArray[np.int64]]:
    """Divide the sets into pieces of work, the largest first; small sets share a piece."""
    pieces: list[NDArray[np.int64]] = []
    together: list[int] = []
    for s in distinct.largest_first():
        items = distinct.items(int(s))
        if distinct.partial[s] or not has_small_components(parameters, items):
            pieces.append(np.array([s]))
            continue
        together.append(int(s))
        if len(together) == _SETS_TOGETHER:
            pieces.append(np.array(together))
            together = []
    if together:
        pieces.append(np.array(together))
    return pieces


def _posterior(
    parameters: Parameters, items: NDArray[np.int64], settings: Settings, index: int
) -> TimePosterior:
    """Return the posterior of one set; `index` is its position in the data."""
    way = choose_way(parameters, items, settings.budget, components=True)
    if way is Way.COMPONENTS:
        solved = ComponentSets(parameters, decompose_by(parameters.children, [items]), [items])
        solved.solve(1)
        if solved.is_accurate:
            return _by_components(solved)
        way = choose_way(parameters, items, settings.budget)
    if way is Way.EXACT:
        return _exact(Passage.of(parameters, items))
    return _sampled(parameters, items, settings, index)


def _by_components(solved: ComponentSets) -> TimePosterior:
    distribution = GridDistribution(solved.grid, solved.posterior[0])
    return TimePosterior(
        mean=distribution.mean, variance=distribution.variance, mean_se=0.0,
        method=Way.COMPONENTS.value, draws=0, seed=None, _distribution=lambda: distribution,
    )  # fmt: skip


def _exact(passage: Passage) -> TimePosterior:
    k = passage.k
    z = passage.stop_rate
    passage.log_p()  # `log_p` also computes the forward weights, which are needed below
    steps = np.zeros((1 << k, max(k, 1)))
    first, second = np.empty((2, 1 << k))
    mean, variance = call(tilted_moments, first, second, steps, passage.log_F, passage.lattice, z)
    exits = passage.lattice.Q + z
    scratch = np.empty((1 << k, 2 * LANES))

    def transform(points: NDArray[np.complex128]) -> NDArray[np.complex128]:
        padded = np.zeros(-(-points.size // LANES) * LANES, dtype=np.complex128)
        padded[: points.size] = points
        values = np.empty((1, padded.size), dtype=np.complex128)
        lanes = np.empty(2 * LANES)
        for start in range(0, padded.size, LANES):
            here = padded[start : start + LANES]
            shifts = np.concatenate([here.real, here.imag])
            call(laplace_transform, lanes, shifts, steps, passage.lattice, z, scratch)
            values[0, start : start + LANES] = lanes[:LANES] + 1j * lanes[LANES:]
        return values[:, : points.size]

    return TimePosterior(
        mean=float(mean), variance=float(variance), mean_se=0.0, method=Way.EXACT.value, draws=0,
        seed=None,
        _distribution=lambda: Inverse(
            transform, float(mean), float(np.sqrt(variance)), float(exits.min()),
            # The density at time 0, which is positive only for the empty set.
            float(passage.end_shares()[0] * exits[0]),
        ),
    )  # fmt: skip


def _sampled(
    parameters: Parameters, items: NDArray[np.int64], settings: Settings, index: int
) -> TimePosterior:
    sampling = settings.sampling
    columns = sampled_columns(parameters, items)
    orders = draw_orders(OrderSampler(columns, sampling), settings.seed, index)
    moments = OrderMoments.of(columns, orders)
    mean, second = moments.times.mean(axis=0)

    def transform(points: NDArray[np.complex128]) -> NDArray[np.complex128]:
        values = np.empty((sampling.chains, points.size), dtype=np.complex128)
        for chain, exits in enumerate(moments.exits):
            # At points far from 0, a product of many ratios can overflow. Its inverse is then 0.
            with np.errstate(over="ignore", invalid="ignore"):
                product = (1.0 + points[:, None, None] / exits).prod(axis=2)
                inverse = np.where(np.isfinite(product), 1.0 / product, 0.0)
            values[chain] = inverse.mean(axis=1)
        return values

    return TimePosterior(
        mean=float(mean), variance=float(second - mean**2),
        mean_se=float(chain_error(moments.times[:, 0])), method=Way.RELOCATION.value,
        draws=sampling.chains * sampling.sweeps, seed=settings.seed,
        _distribution=lambda: Inverse(
            transform, float(mean), float(np.sqrt(second - mean**2)),
            float(moments.exits.min()), 0.0,
        ),
    )  # fmt: skip
