"""The mean log-likelihood of a data set and its gradient: one entry for all methods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import pandas as pd

from sequela.data.dataset import Dataset
from sequela.likelihood.budget import Budget, check_budget
from sequela.likelihood.exact import ExactSets, ExactTimed, plan_blocks
from sequela.likelihood.observations import Observations
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.sampled import (
    Chain,
    ChainRun,
    Sampling,
    check_sampling,
    combine,
    sampled_columns,
)
from sequela.support.errors import BudgetError, InputError
from sequela.support.random import RandomState, materialise_seed
from sequela.support.threads import resolve_threads, run_pieces
from sequela.support.validation import check_observation_rate, check_theta

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["METHODS", "Evaluation", "Likelihood", "evaluate", "log_likelihood"]

METHODS = ("auto", "exact", "relocation", "metropolis", "metropolis-uniform")


@dataclass(frozen=True)
class Evaluation:
    """Log-likelihood of a data set at one theta: values, gradient, errors, and how each was found.

    Attributes
    ----------
    value : float
        Mean log-likelihood over the samples (NaN if it was not asked for and some sets are
        sampled).
    value_se : float
        Monte Carlo standard error of `value`; 0 where everything is exact.
    gradient : array (n, n) or None
        Derivative of `value` by theta[i, j].
    gradient_se : array (n, n) or None
        Its Monte Carlo standard errors.
    seed : int
        What every draw was derived from.
    log_likelihoods, standard_errors, methods : arrays
        Of every sample; `samples` shows them as a table.
    data : Dataset
        The samples.
    """

    value: float
    value_se: float
    gradient: NDArray[np.float64] | None
    gradient_se: NDArray[np.float64] | None
    seed: int
    log_likelihoods: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    methods: NDArray[np.str_]
    data: Dataset

    @property
    def samples(self) -> pd.DataFrame:
        """One row a sample: size of the set, method, log-likelihood, standard error."""
        return pd.DataFrame(
            {
                "size": self.data.set_sizes,
                "method": self.methods,
                "log_likelihood": self.log_likelihoods,
                "standard_error": self.standard_errors,
            },
            index=pd.Index(self.data.samples, name="sample"),
        )

    def __repr__(self) -> str:
        names, counts = np.unique(self.methods, return_counts=True)
        chosen = ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))
        error = f" +- {self.value_se:.2g}" if self.value_se else ""
        return f"<Evaluation: {self.value:.8g}{error} a sample; {chosen}>"


class Likelihood:
    """A data set, ready to be evaluated at any number of thetas.

    Identical observations are evaluated once. Chains of sampled sets are kept from one evaluation
    to the next, so that later ones need little burn-in.

    Parameters
    ----------
    X : Dataset, DataFrame, array or list of sets
        The samples.
    times : array or None
        Observation times; NaN where unknown. None takes those of a `Dataset`, if it has any.
    method : {"auto", "exact", "relocation", "metropolis", "metropolis-uniform"}
        How sets are evaluated. "auto" is exact within the budget and samples beyond it: by block
        relocation, or, at known times, by Metropolis-Hastings.
    budget : Budget or None
        What an exact set may cost.
    sampling : Sampling or None
        How the others are sampled.
    observation_rate : float
        Rate of the observation.
    random_state : int, Generator or None
        Seed of the sampled sets.
    n_threads : int or None
        Threads; None for all cores that this process may use. Results do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> likelihood = Likelihood(np.array([[1, 0], [1, 1]]))
    >>> likelihood.evaluate(np.zeros((2, 2)))
    <Evaluation: -1.4451859 a sample; 2 exact>
    """

    def __init__(
        self,
        X: Any,
        *,
        times: Iterable[object] | None = None,
        method: str = "auto",
        budget: Budget | None = None,
        sampling: Sampling | None = None,
        observation_rate: float = 1.0,
        random_state: RandomState = None,
        n_threads: int | None = None,
    ) -> None:
        if method not in METHODS:
            raise InputError(
                f"method is {method!r}; expected one of "
                + ", ".join(repr(name) for name in METHODS)
            )
        self.data = Dataset.coerce(X, times=times)
        self.method = method
        self.budget = check_budget(budget)
        self.sampling = check_sampling(sampling)
        self.observation_rate = check_observation_rate(observation_rate)
        self.seed = materialise_seed(random_state)
        self.n_threads = resolve_threads(n_threads)
        self.observations = Observations.of(self.data)
        self._known = ~np.isnan(self.observations.times)
        self._surely_exact = self._fit_if_dense()
        self._chains: dict[int, list[Chain]] = {}
        self._blocks: tuple[bytes, list[NDArray[np.int64]]] = (b"", [])

    def _fit_if_dense(self) -> NDArray[np.bool_]:
        """Tell which observations fit the budget even if all items interact: most do."""
        sizes = self.observations.sizes
        # An order of at most one item needs no sampling, whatever the budget.
        return (sizes <= 1) | self.budget.exact_by_size(sizes, self._known, self.data.n_items)

    def _choose(self, parameters: Parameters) -> NDArray[np.bool_]:
        """Tell for every observation whether it is summed exactly; see `Budget`."""
        observations = self.observations
        timed = self._known
        if self.method not in ("auto", "exact"):
            sampled = observations.sizes > 1
            if self.method == "relocation" and (sampled & timed).any():
                raise InputError(
                    "method 'relocation' does not know observation times; use 'auto' or "
                    "'metropolis' for samples with known times"
                )
            return ~sampled
        exact = self._surely_exact.copy()
        for s in map(int, np.nonzero(~exact)[0]):
            k = int(observations.sizes[s])
            columns = parameters.columns(observations.items(s)).items.size
            exact[s] = self.budget.exact_fits(k, columns, timed=bool(timed[s]))
            if self.method == "exact" and not exact[s]:
                raise self._over_budget(int(observations.first[s]), k, columns, bool(timed[s]))
        return exact

    def _over_budget(self, row: int, size: int, columns: int, timed: bool) -> BudgetError:
        memory = Budget.exact_memory(size, columns, timed=timed)
        work = Budget.exact_work(size, columns, timed=timed)
        return BudgetError(
            f"sample {self.data.samples[row]!r} (row {row}) has {size} items: exact evaluation "
            f"needs {memory / 1e6:.4g} MB and {work:.2g} operations, the budget is "
            f"{self.budget.memory} and {self.budget.work:.2g}. Raise the budget, use "
            "method='auto', or leave the sample out"
        )

    def _sampler(self, index: int) -> str:
        if self.method != "auto":
            return self.method
        return "relocation" if np.isnan(self.observations.times[index]) else "metropolis"

    def evaluate(self, theta: Any, *, value: bool = True, gradient: bool = True) -> Evaluation:
        """Evaluate at `theta`.

        Parameters
        ----------
        theta : array, DataFrame or Model, (n, n)
            theta[i, j] is the log-effect of item i on the rate of item j, theta[j, j] the log
            base rate.
        value, gradient : bool
            What is wanted. Without `value` the (costly) values of sampled sets are left out.
        """
        observations = self.observations
        parameters = Parameters(check_theta(theta, self.data.items), self.observation_rate)
        exact = self._choose(parameters)
        known = self._known
        log_p = np.full(exact.size, np.nan)
        variance = np.zeros(exact.size)
        sets = ExactSets(
            parameters, observations, self._plan(np.nonzero(exact & ~known)[0]), log_p,
            want_gradient=gradient,
        )  # fmt: skip
        timed = ExactTimed(
            parameters, observations, np.nonzero(exact & known)[0], log_p, want_gradient=gradient
        )
        large = [int(s) for s in np.nonzero(~exact)[0]]
        chains = self._prepare_chains(parameters, large)
        # One pool for all kinds of work, the long pieces first; sums are made in a fixed order.
        pieces: list[tuple[Any, Any]] = [(sets.work, block) for block in sets.blocks]
        pieces += [(timed.work, block) for block in timed.blocks]
        pieces += [(partial(chain, value=value, gradient=gradient), None) for chain in chains]
        done = run_pieces(_do, pieces, self.n_threads)
        n_sets, n_exact = len(sets.blocks), len(sets.blocks) + len(timed.blocks)
        parts: list[NDArray[np.float64] | None] = []
        if sets.blocks:
            parts.append(sets.finish(done[:n_sets], self.n_threads))
        if timed.blocks:
            parts.append(timed.finish(done[n_sets:n_exact]))
        gradient_variance = np.zeros((parameters.n, parameters.n)) if gradient else None
        per_set = self.sampling.chains
        for at, s in enumerate(large):
            results = done[n_exact + at * per_set : n_exact + (at + 1) * per_set]
            columns = chains[at * per_set].columns
            log_p[s], variance[s], part, spread = combine(parameters, columns, results)
            weight = observations.weights[s]
            if part is not None and spread is not None and gradient_variance is not None:
                parts.append(weight * part)
                gradient_variance += weight**2 * spread
        sampler = np.full(exact.size, "exact", dtype=f"U{max(map(len, METHODS))}")
        sampler[large] = [self._sampler(s) for s in large]
        return Evaluation(
            value=float(np.sum(observations.weights * log_p)),
            value_se=float(np.sqrt(np.sum(observations.weights**2 * variance))),
            gradient=_add(parts) if gradient else None,
            gradient_se=None if gradient_variance is None else np.sqrt(gradient_variance),
            seed=self.seed,
            log_likelihoods=log_p[observations.inverse],
            standard_errors=np.sqrt(variance)[observations.inverse],
            methods=sampler[observations.inverse],
            data=self.data,
        )

    def skip(self, evaluations: int) -> None:
        """Let the chains' streams begin where they would after so many evaluations."""
        for s in range(self.observations.sizes.size):
            self._chains[s] = [Chain(steps_taken=evaluations) for _ in range(self.sampling.chains)]

    def _plan(self, chosen: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Share exact sets among blocks; the last plan is kept, for theta rarely changes it."""
        if not chosen.size:
            return []
        key = chosen.tobytes()
        if self._blocks[0] != key:
            self._blocks = (key, plan_blocks(self.observations.sizes, chosen, self.data.n_items))
        return self._blocks[1]

    def _prepare_chains(self, parameters: Parameters, large: list[int]) -> list[ChainRun]:
        """Return the chains of the sets `large`, set by set, each a piece of work of its own."""
        runs = []
        for s in large:
            columns = sampled_columns(parameters, self.observations.items(s))
            chains = self._chains.setdefault(s, [Chain() for _ in range(self.sampling.chains)])
            runs += [
                ChainRun(
                    parameters=parameters, columns=columns, chain=chain,
                    t=float(self.observations.times[s]), method=self._sampler(s),
                    sampling=self.sampling, seed=self.seed, index=(s, c),
                    resume=self.method == "auto",
                )
                for c, chain in enumerate(chains)
            ]  # fmt: skip
        return runs


def _add(parts: list[NDArray[np.float64] | None]) -> NDArray[np.float64]:
    """Add up gradients, in order."""
    given = [part for part in parts if part is not None]
    total: NDArray[np.float64] = given[0] if len(given) == 1 else np.sum(given, axis=0)
    return total


def _do(piece: tuple[Any, Any]) -> Any:
    work, argument = piece
    return work() if argument is None else work(argument)


def evaluate(
    theta: Any,
    X: Any,
    *,
    times: Iterable[object] | None = None,
    gradient: bool = True,
    method: str = "auto",
    budget: Budget | None = None,
    sampling: Sampling | None = None,
    observation_rate: float = 1.0,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> Evaluation:
    """Evaluate the mean log-likelihood of `X` at `theta` and tell how it was done.

    As `log_likelihood`, with more to set, and with an `Evaluation` in return that has standard
    errors, the method and the log-likelihood of every sample, and the seed. See `Likelihood` for
    the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> found = evaluate(np.zeros((2, 2)), np.array([[1, 0], [1, 1]]))
    >>> found.samples[["size", "method"]].to_dict("list")
    {'size': [1, 2], 'method': ['exact', 'exact']}
    """
    likelihood = Likelihood(
        X, times=times, method=method, budget=budget, sampling=sampling,
        observation_rate=observation_rate, random_state=random_state, n_threads=n_threads,
    )  # fmt: skip
    return likelihood.evaluate(theta, gradient=gradient)


@overload
def log_likelihood(
    theta: Any,
    X: Any,
    *,
    times: Iterable[object] | None = ...,
    return_gradient: Literal[False] = ...,
    method: str = ...,
    budget: Budget | None = ...,
    random_state: RandomState = ...,
    n_threads: int | None = ...,
) -> float: ...


@overload
def log_likelihood(
    theta: Any,
    X: Any,
    *,
    times: Iterable[object] | None = ...,
    return_gradient: Literal[True],
    method: str = ...,
    budget: Budget | None = ...,
    random_state: RandomState = ...,
    n_threads: int | None = ...,
) -> tuple[float, NDArray[np.float64]]: ...


def log_likelihood(
    theta: Any,
    X: Any,
    *,
    times: Iterable[object] | None = None,
    return_gradient: bool = False,
    method: str = "auto",
    budget: Budget | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> float | tuple[float, NDArray[np.float64]]:
    """Return the mean log-likelihood of the samples in `X`, and its gradient if wanted.

    Parameters
    ----------
    theta : array, DataFrame or Model, (n, n)
        theta[i, j] is the log-effect of item i on the rate of item j, theta[j, j] the log base
        rate of item j.
    X : Dataset, DataFrame, array or list of sets
        The samples.
    times : array or None
        Observation times; NaN where unknown. None: all unknown (Exp(1) distributed), unless `X`
        is a `Dataset` that has times.
    return_gradient : bool
        Also return the n x n gradient with respect to theta.
    method : {"auto", "exact", "relocation", "metropolis", "metropolis-uniform"}
        "auto" sums exactly over all orders where the budget allows and samples larger sets;
        "exact" refuses these; the others sample every set of two or more items.
    budget : Budget or None
        What the exact evaluation of a set may cost.
    random_state : int, Generator or None
        Seed of the sampled sets.
    n_threads : int or None
        Threads; None for all cores that this process may use. Results do not depend on it.

    Returns
    -------
    float, or float and array
        For standard errors and what was done with each sample see `evaluate`.

    Examples
    --------
    >>> import numpy as np
    >>> theta = np.array([[0.0, 4.0], [0.0, -4.0]])
    >>> X = np.array([[0, 0], [1, 0], [1, 1]])
    >>> value, gradient = log_likelihood(theta, X, return_gradient=True)
    >>> round(value, 6)
    -1.158311
    >>> gradient.shape
    (2, 2)
    """
    found = evaluate(
        theta, X, times=times, gradient=return_gradient, method=method, budget=budget,
        random_state=random_state, n_threads=n_threads,
    )  # fmt: skip
    if found.gradient is None:
        return found.value
    return found.value, found.gradient
