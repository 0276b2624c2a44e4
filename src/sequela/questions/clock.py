"""When was this sample taken: the posterior of the observation time given a set.

Exact on the lattice, where the time is a mixture of sums of exponential phases; from drawn orders
beyond it. Mean and variance come from recursions, density and quantiles from the Laplace
transform (`inversion`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.kernels.contour import tilted_moments
from sequela.kernels.passage import LANES, laplace_transform
from sequela.likelihood.budget import check_budget
from sequela.likelihood.exact import Passage
from sequela.likelihood.observations import Observations
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.posterior import OrderMoments, chain_error, sampled_orders
from sequela.likelihood.sampled import Sampling, sampled_columns
from sequela.questions.arguments import as_model, as_samples, rate_of
from sequela.questions.inversion import Inverse
from sequela.questions.precision import until_precise
from sequela.questions.samples import MOST_ORDERS, one_sample
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.random import materialise_seed
from sequela.support.threads import resolve_threads, run_pieces
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from sequela.likelihood.budget import Budget
    from sequela.questions.inversion import Transform
    from sequela.support.random import RandomState

__all__ = ["TimePosterior", "pseudo_times", "time_posterior"]

# Orders drawn for one sample beyond the budget; in a table of many samples.
DEFAULT_ORDERS = 320
_TABLE_ORDERS = 160
# Closer to 1 rounding would decide about the quantile.
_HIGHEST_CHANCE = 1.0 - 1e-9


@dataclass(frozen=True, eq=False)
class TimePosterior:
    """The posterior of the observation time given one sample's set.

    Attributes
    ----------
    mean, variance : float
        Of the time. Its unit is the mean observation time if the observation rate is 1.
    mean_se : float
        Monte Carlo standard error of the mean; 0 where exact.
    method : str
        "exact" or "relocation".
    draws : int
        Orders drawn; 0 where exact.
    seed : int or None
        What every draw was derived from; None where exact.
    """

    mean: float
    variance: float
    mean_se: float
    method: str
    draws: int
    seed: int | None
    _transform: Transform
    _first_pole: float
    _at_zero: float

    @cached_property
    def _inverse(self) -> Inverse:
        return Inverse(
            self._transform, self.mean, float(np.sqrt(self.variance)), self._first_pole,
            self._at_zero,
        )  # fmt: skip

    def density(self, times: Sequence[float] | None = None) -> pd.DataFrame:
        """Return the density at `times`, or on a grid that holds all of it.

        The grid is closer where the density changes fast.

        Returns
        -------
        DataFrame
            Indexed by time: "density", its Monte Carlo standard error "se" (0 where exact), and
            "cumulative", the chance that the sample was taken before.
        """
        at = self._inverse.grid() if times is None else _read_times(times)
        values, before = self._inverse.evaluate(at)
        return pd.DataFrame(
            {
                "density": values.mean(axis=0),
                "se": self._error(values),
                "cumulative": before.mean(axis=0),
            },
            index=pd.Index(at, name="time"),
        )

    def quantile(self, chances: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> pd.DataFrame:
        """Return the times before which the sample was taken with the given chances.

        Returns
        -------
        DataFrame
            Indexed by chance: "time" and its Monte Carlo standard error "se" (0 where exact).
        """
        wanted = _read_chances("chances", chances)
        # The spread of the chains is needed only if there are chains.
        each = np.empty((1, wanted.size))
        if self.method != "exact":
            each = self._inverse.quantiles(wanted)
        return pd.DataFrame(
            {"time": self._inverse.pooled_quantiles(wanted), "se": self._error(each)},
            index=pd.Index(wanted, name="chance"),
        )

    def _error(self, each: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.zeros(each.shape[1]) if self.method == "exact" else chain_error(each)

    def __repr__(self) -> str:
        error = "" if self.method == "exact" else f" ± {self.mean_se:.2g}"
        return (
            f"<TimePosterior: mean {self.mean:.4g}{error}, "
            f"sd {np.sqrt(self.variance):.4g}, {self.method}>"
        )


def time_posterior(
    model: Any,
    sample: Iterable[Any],
    *,
    draws: int | None = None,
    target_se: float | None = None,
    observation_rate: float | None = None,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> TimePosterior:
    """Return the posterior of the time at which one sample was observed, given its set.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    sample : set of labels, or a true/false row
        What was observed.
    draws : int or None
        Orders drawn if the set is beyond the budget (default 320).
    target_se : float or None
        Instead of `draws`: the standard error that is wanted of the mean time.
    observation_rate, budget, random_state
        As in `Likelihood`.

    Returns
    -------
    TimePosterior
        Mean and variance; ``density()`` and ``quantile()`` give tables.

    Examples
    --------
    >>> import sequela
    >>> found = sequela.time_posterior(sequela.example_theta(), {"first", "second"})
    >>> found
    <TimePosterior: mean 0.746, sd 0.4342, exact>
    >>> found.quantile([0.5])["time"].round(3).tolist()
    [0.663]
    """
    chain = as_model(model)
    present, _ = one_sample(chain, sample)
    parameters = Parameters(chain.theta, rate_of(chain, observation_rate))
    limits = check_budget(budget)
    seed = materialise_seed(random_state)
    return until_precise(
        lambda size: _posterior(parameters, present, limits, size, seed, 0),
        lambda found: found.mean_se,
        draws,
        target_se,
        default=DEFAULT_ORDERS,
        first=DEFAULT_ORDERS,
        most=MOST_ORDERS,
    )


def pseudo_times(
    model: Any,
    data: Any,
    *,
    quantiles: Sequence[float] = (0.05, 0.5, 0.95),
    draws: int | None = None,
    observation_rate: float | None = None,
    budget: Budget | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> pd.DataFrame:
    """Return a pseudo-time for every sample: the posterior of its observation time as a table.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta
        The chain.
    data : Dataset, DataFrame, array or list of sets
        The samples. Observation times of the data are not used.
    quantiles : sequence of float
        Which quantiles of the posterior; none of them if empty, which is faster.
    draws : int or None
        Orders drawn of each distinct set beyond the budget (default 160).
    observation_rate, budget, random_state, n_threads
        As in `Likelihood`.

    Returns
    -------
    DataFrame
        One row for each sample: "size" of its set, posterior "mean" and "sd" of its time, Monte
        Carlo error "se" of the mean, the quantiles ("q05", "q50", "q95"), "method". ``attrs``
        holds "draws" and "seed" (0 and None if all is exact).

    Examples
    --------
    >>> import sequela
    >>> theta = sequela.example_theta()
    >>> found = sequela.pseudo_times(theta, [{"first"}, {"first", "second"}])
    >>> found["mean"].round(3).tolist(), found["q50"].round(3).tolist()
    ([0.453, 0.746], [0.38, 0.663])
    """
    chain = as_model(model)
    read = as_samples(chain, data)
    parameters = Parameters(chain.theta, rate_of(chain, observation_rate))
    limits = check_budget(budget)
    seed = materialise_seed(random_state)
    wanted = _read_chances("quantiles", quantiles)
    names = _quantile_names(wanted)
    observations = Observations.of(read.without_times())
    size = positive_integer("draws", _TABLE_ORDERS if draws is None else draws, least=2)

    def work(s: int) -> tuple[float, float, float, str, int, NDArray[np.float64]]:
        # Numbers only: a posterior holds its lattice, and there may be many sets.
        found = _posterior(parameters, observations.items(s), limits, size, seed, s)
        chances = found.quantile(wanted.tolist())["time"].to_numpy() if wanted.size else wanted
        return found.mean, found.variance, found.mean_se, found.method, found.draws, chances

    pieces = [int(s) for s in np.argsort(-observations.sizes, kind="stable")]
    done = run_pieces(work, pieces, resolve_threads(n_threads), "times of samples")
    sets = [done[place] for place in np.argsort(pieces, kind="stable")]
    mean, variance, error, method, drawn, times = zip(*sets, strict=True)
    inverse = observations.inverse
    table = pd.DataFrame(
        {
            "size": read.set_sizes,
            "mean": np.array(mean)[inverse],
            "sd": np.sqrt(variance)[inverse],
            "se": np.array(error)[inverse],
        },
        index=pd.Index(read.samples, name="sample"),
    )
    for column, name in enumerate(names):
        table[name] = np.array([each[column] for each in times])[inverse]
    table["method"] = np.array(method)[inverse]
    most = max(drawn)
    table.attrs.update(draws=most, seed=seed if most else None)
    return table


def _posterior(
    parameters: Parameters,
    items: NDArray[np.int64],
    budget: Budget,
    draws: int,
    seed: int,
    index: int,
) -> TimePosterior:
    columns = parameters.columns(items).items.size
    if items.size <= 1 or budget.exact_fits(items.size, columns):
        return _exact(Passage(parameters, items))
    return _sampled(parameters, items, draws, seed, index)


def _exact(passage: Passage) -> TimePosterior:
    k = passage.k
    z = passage.parameters.observation_rate
    passage.log_p()
    steps = np.zeros((1 << k, max(k, 1)))
    mean, variance = call(
        tilted_moments, np.empty(1 << k), np.empty(1 << k), steps, passage.log_F, passage.Q, z,
        passage.low_log, passage.high_log, k, passage.low,
    )  # fmt: skip
    exits = passage.Q + z
    scratch = np.empty((1 << k, 2 * LANES))

    def transform(points: NDArray[np.complex128]) -> NDArray[np.complex128]:
        padded = np.zeros(-(-points.size // LANES) * LANES, dtype=np.complex128)
        padded[: points.size] = points
        values = np.empty((1, padded.size), dtype=np.complex128)
        found = np.empty(2 * LANES)
        for first in range(0, padded.size, LANES):
            here = padded[first : first + LANES]
            shifts = np.concatenate([here.real, here.imag])
            call(laplace_transform, found, shifts, steps, exits, scratch, k)
            values[0, first : first + LANES] = found[:LANES] + 1j * found[LANES:]
        values = values[:, : points.size]
        return values

    return TimePosterior(
        mean=float(mean), variance=float(variance), mean_se=0.0, method="exact", draws=0, seed=None,
        _transform=transform, _first_pole=float(exits.min()),
        _at_zero=0.0 if k else float(exits[0]),
    )  # fmt: skip


def _sampled(
    parameters: Parameters, items: NDArray[np.int64], draws: int, seed: int, index: int
) -> TimePosterior:
    sampling = Sampling(sweeps=max(1, -(-draws // Sampling().chains)))
    columns = sampled_columns(parameters, items)
    orders = sampled_orders(parameters, columns, sampling, seed, index)
    found = OrderMoments.of(parameters, columns, orders)
    mean, second = found.times.mean(axis=0)

    def transform(points: NDArray[np.complex128]) -> NDArray[np.complex128]:
        values = np.empty((sampling.chains, points.size), dtype=np.complex128)
        for chain, exits in enumerate(found.exits):
            # Far from 0 a product of many ratios leaves the range of a double; its inverse is 0.
            with np.errstate(over="ignore", invalid="ignore"):
                product = (1.0 + points[:, None, None] / exits).prod(axis=2)
                inverse = np.where(np.isfinite(product), 1.0 / product, 0.0)
            values[chain] = inverse.mean(axis=1)
        return values

    return TimePosterior(
        mean=float(mean), variance=float(second - mean**2),
        mean_se=float(chain_error(found.times[:, 0])), method="relocation",
        draws=sampling.chains * sampling.sweeps, seed=seed, _transform=transform,
        _first_pole=float(found.exits.min()), _at_zero=0.0,
    )  # fmt: skip


def _numbers(given: Any) -> NDArray[np.float64]:
    """Return a list of numbers, or NaN for what is none."""
    try:
        read = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        read = np.full(1, np.nan)
    return read if read.ndim == 1 else np.full(1, np.nan)


def _read_times(times: Sequence[float]) -> NDArray[np.float64]:
    read = _numbers(times)
    if not np.all(np.isfinite(read)) or np.any(read < 0.0):
        raise InputError(
            f"times are {times!r}; expected finite numbers that are not negative, such as [0.5, 1]"
        )
    return read


def _read_chances(name: str, chances: Sequence[float]) -> NDArray[np.float64]:
    read = _numbers(chances)
    if not np.all((read > 0.0) & (read <= _HIGHEST_CHANCE)):
        raise InputError(f"{name} are {chances!r}; expected numbers above 0 and at most 1 - 1e-9")
    return read


def _quantile_names(chances: NDArray[np.float64]) -> list[str]:
    """Return q05, q50, q97.5 and so on, with as many digits as tell the chances apart."""
    names = []
    for chance in chances:
        whole, _, rest = f"{100.0 * chance:.10f}".rstrip("0").partition(".")
        names.append(f"q{whole:0>2}{'.' if rest else ''}{rest}")
    if len(set(names)) < len(names):
        raise InputError(f"quantiles are {chances.tolist()}; expected each of them once")
    return names
