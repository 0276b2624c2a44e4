"""Compute the mean log-likelihood of a data set and its gradient, by any method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from sequela.data.dataset import Dataset
from sequela.likelihood.components import ComponentSets
from sequela.likelihood.decomposition import decompose
from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.exact import ExactWork, plan_blocks
from sequela.likelihood.orders import OrderSampler, sampled_columns
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.passage import out_of_range
from sequela.likelihood.plan import Plan
from sequela.likelihood.sampled import Chain, ChainRun, combine
from sequela.likelihood.ways import Way, is_exact
from sequela.model import as_model
from sequela.settings import read_settings
from sequela.support.threads import run_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Unpack

    import pandas as pd
    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.likelihood.completions import SampledCompletions
    from sequela.model import ModelLike
    from sequela.observation import Observation
    from sequela.settings import SettingsKeywords

__all__ = ["Evaluation", "Likelihood", "evaluate", "log_likelihood"]


@dataclass(frozen=True)
class Evaluation:
    """Log-likelihood of a data set at one theta: values, gradient, errors and methods.

    Attributes
    ----------
    value : float
        Mean log-likelihood over the samples. It is NaN if the orders of some sets are sampled and
        `Likelihood.evaluate` was called with ``value=False``.
    value_se : float
        Monte Carlo standard error of `value`; 0 if all sets are evaluated exactly.
    gradient : array (n, n) or None
        Derivative of `value` with respect to theta[i, j].
    gradient_se : array (n, n) or None
        Monte Carlo standard errors of the gradient.
    seed : int
        The seed from which all draws were derived.
    log_likelihoods, standard_errors, methods : arrays
        One entry per sample; `samples` shows them as a table.
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
        """A table with one row per sample: set size, method, log-likelihood, standard error."""
        import pandas as pd

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
        return f"<Evaluation: {self.value:.8g}{error} per sample; {chosen}>"


class Likelihood:
    """A data set whose log-likelihood can be evaluated under any number of models.

    Equal samples are evaluated only once. If the orders of a set are sampled, its Markov chains are
    kept between evaluations, so that later evaluations need only a short burn-in.

    Parameters
    ----------
    data : Dataset, DataFrame, array or list of sets
        The samples.
    times : array or None
        Observation times; NaN where unknown. None uses the times of a `Dataset`, if it has any.
    sample_weight : array or None
        The weight of each sample in the mean. None uses the weights of a `Dataset`, if it has any.
    method : {"auto", "exact", "components", "relocation", "metropolis", "metropolis-uniform", \
"completions", "histories"}
        How sets are evaluated. With "auto", sets within the budget are evaluated exactly, on their
        lattice or by components. For other sets, orders are drawn: by block relocation if the time
        is unknown, and by Metropolis-Hastings if it is known. If a sample with missing cells is
        beyond the budget, its missing cells are drawn. With "completions" and "histories", the
        missing cells of all samples whose order and time are unknown are drawn, even within the
        budget. With "histories", orders are drawn together with the cells.
    **settings
        `budget`, `sampling`, `random_state`, `n_threads`; see `Settings`.

    Examples
    --------
    >>> import numpy as np
    >>> likelihood = Likelihood(np.array([[1, 0], [1, 1]]))
    >>> likelihood.evaluate(np.zeros((2, 2)))
    <Evaluation: -1.4451859 per sample; 2 exact>
    """

    def __init__(
        self,
        data: DataLike,
        *,
        times: Iterable[object] | None = None,
        sample_weight: Iterable[object] | None = None,
        method: str = "auto",
        **settings: Unpack[SettingsKeywords],
    ) -> None:
        self.settings = read_settings(settings, unused=("draws", "target_se"))
        read = Dataset.coerce(data, times=times)
        self.data = read if sample_weight is None else read.with_weights(sample_weight)
        self.distinct = DistinctSamples.of(self.data, partial=True)
        self.plan = Plan(self.data, self.distinct, method, self.settings.budget)
        self._chains: dict[int, list[Chain]] = {}
        self._blocks: tuple[bytes, list[NDArray[np.int64]]] = (b"", [])

    def evaluate(
        self, model: ModelLike, *, value: bool = True, gradient: bool = True
    ) -> Evaluation:
        """Evaluate a model.

        Parameters
        ----------
        model : Model, fitted SetChain, or theta (n, n)
            theta[i, j] is the log-effect of item i on the rate of item j. theta[j, j] is the log
            base rate of item j.
        value, gradient : bool
            Whether to compute the log-likelihood, and whether to compute its gradient. If `value`
            is False, the log-likelihoods of sets whose orders are sampled are not computed, because
            they take long.
        """
        distinct = self.distinct
        read = as_model(model, self.data.items)
        observation = read.observation
        parameters = Parameters.for_sets(read)
        ways = self.plan.ways(parameters, full_gradient=gradient)
        exact = ExactWork(parameters, distinct, self._exact_blocks(ways), want_gradient=gradient)
        large = [int(s) for s in np.nonzero(~is_exact(ways) & ~self.distinct.partial)[0]]
        runs = self._prepare_chains(parameters, large, ways)
        # All kinds of work run in one pool of threads. Results are added up in a fixed order.
        pieces: list[Callable[[], Any]] = [*exact.pieces]
        pieces += [partial(run, value=value, gradient=gradient) for run in runs]
        done = run_all(pieces, self.settings.threads)[len(exact.pieces) :]
        total = exact.finish(self.settings.threads)
        if exact.beyond:
            s = exact.beyond[0]
            known = distinct.known(s)
            items = distinct.items(s)
            if known is not None:
                items = np.concatenate([items, known.that_matter(parameters.children)])
            raise out_of_range(parameters.columns(items.astype(int)), float(distinct.times[s]))
        log_p = exact.log_p
        self._add_components(parameters, ways, log_p, total)
        variance = np.zeros(len(distinct))
        total_variance = None if total is None else np.zeros_like(total)
        for places, drawn in self._draw_missing(
            parameters, observation, ways, value=value, gradient=gradient
        ):
            log_p[places], variance[places] = drawn.log_p, drawn.variance
            if drawn.gradient is not None and total is not None and total_variance is not None:
                total += drawn.gradient
                total_variance += np.asarray(drawn.gradient_variance)
        chains = self.settings.sampling.chains
        for at, s in enumerate(large):
            columns = runs[at * chains].sampler.columns
            mean = combine(parameters, columns, done[at * chains : (at + 1) * chains])
            log_p[s], variance[s] = mean.log_p, mean.log_p_variance
            weight = distinct.weights[s]
            if total is not None and total_variance is not None:
                total += weight * mean.gradient
                total_variance += weight**2 * mean.gradient_variance
        return Evaluation(
            value=float(np.sum(distinct.weights * log_p)),
            value_se=float(np.sqrt(np.sum(distinct.weights**2 * variance))),
            gradient=total,
            gradient_se=None if total_variance is None else np.sqrt(total_variance),
            seed=self.settings.seed,
            log_likelihoods=log_p[distinct.inverse],
            standard_errors=np.sqrt(variance)[distinct.inverse],
            methods=ways[distinct.inverse],
            data=self.data,
        )

    def _draw_missing(
        self,
        parameters: Parameters,
        observation: Observation,
        ways: NDArray[np.str_],
        *,
        value: bool,
        gradient: bool,
    ) -> Iterator[tuple[NDArray[np.int64], SampledCompletions]]:
        """Yield the positions of samples whose missing cells are drawn, with their estimates."""
        for way in (Way.COMPLETIONS, Way.HISTORIES):
            places = np.flatnonzero(ways == way)
            if not places.size:
                continue
            # These modules are imported here, because few data sets need them.
            from sequela.likelihood.completions import SampledCompletions
            from sequela.likelihood.drawn_histories import sample_histories

            partials = [k for s in places if (k := self.distinct.known(int(s))) is not None]
            weights = self.distinct.weights[places]
            if way is Way.COMPLETIONS:
                yield (
                    places,
                    SampledCompletions.of(
                        parameters, partials, weights, self.settings, value=value, gradient=gradient
                    ),
                )
            else:
                found = sample_histories(parameters, partials, weights, observation, self.settings)
                yield places, SampledCompletions(*found, [])

    def _add_components(
        self,
        parameters: Parameters,
        ways: NDArray[np.str_],
        log_p: NDArray[np.float64],
        gradient: NDArray[np.float64] | None,
    ) -> None:
        """Fill in log p of the sets that use components. Add their gradient if it is requested."""
        chosen = np.nonzero(ways == Way.COMPONENTS)[0]
        if not chosen.size:
            return
        sets = [self.distinct.items(int(s)) for s in chosen]
        solved = ComponentSets(parameters, decompose(parameters.theta != 0.0, sets), sets)
        threads = self.settings.threads
        solved.solve(threads)
        solved.require_accuracy()
        log_p[chosen] = solved.log_p
        if gradient is not None:
            weights = self.distinct.weights[chosen]
            gradient += solved.gradient(weights, threads)
            from sequela.likelihood.cross_gradient import CrossGradient  # only large sets need it

            gradient += CrossGradient(solved).gradient(weights, threads)

    def skip(self, evaluations: int) -> None:
        """Set the random streams of all chains to their state after this many evaluations."""
        for s in range(len(self.distinct)):
            self._chains[s] = [
                Chain(steps_taken=evaluations) for _ in range(self.settings.sampling.chains)
            ]

    def _exact_blocks(self, ways: NDArray[np.str_]) -> list[NDArray[np.int64]]:
        """Return the sets that are evaluated exactly, in blocks.

        The blocks are cached, because another theta rarely changes them.
        """
        chosen = np.nonzero(ways == Way.EXACT)[0]
        key = chosen.tobytes()
        if self._blocks[0] != key:
            self._blocks = (key, plan_blocks(self.distinct, chosen, self.data.n_items))
        return self._blocks[1]

    def _prepare_chains(
        self, parameters: Parameters, large: list[int], ways: NDArray[np.str_]
    ) -> list[ChainRun]:
        """Return one run per chain of the sets `large`, set by set. All runs are independent."""
        sampling = self.settings.sampling
        runs = []
        for s in large:
            sampler = OrderSampler(
                columns=sampled_columns(parameters, self.distinct.items(s)),
                sampling=sampling,
                way=str(ways[s]),
                t=float(self.distinct.times[s]),
                resume=self.plan.method == "auto",
            )
            chains = self._chains.setdefault(s, [Chain() for _ in range(sampling.chains)])
            runs += [
                ChainRun(sampler, chain, self.settings.seed, (s, c))
                for c, chain in enumerate(chains)
            ]
        return runs


def evaluate(
    model: ModelLike,
    data: DataLike,
    *,
    times: Iterable[object] | None = None,
    sample_weight: Iterable[object] | None = None,
    gradient: bool = True,
    method: str = "auto",
    **settings: Unpack[SettingsKeywords],
) -> Evaluation:
    """Evaluate the log-likelihood of `data` under `model`, with details.

    This function is `log_likelihood` with more results. The returned `Evaluation` contains standard
    errors, the method and the log-likelihood of every sample, and the seed. See `Likelihood` for
    the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> evaluation = evaluate(np.zeros((2, 2)), np.array([[1, 0], [1, 1]]))
    >>> evaluation.samples[["size", "method"]].to_dict("list")
    {'size': [1, 2], 'method': ['exact', 'exact']}
    """
    likelihood = Likelihood(
        data, times=times, sample_weight=sample_weight, method=method, **settings
    )
    return likelihood.evaluate(model, gradient=gradient)


@overload
def log_likelihood(
    model: ModelLike,
    data: DataLike,
    *,
    times: Iterable[object] | None = ...,
    return_gradient: Literal[False] = ...,
    method: str = ...,
    **settings: Unpack[SettingsKeywords],
) -> float: ...


@overload
def log_likelihood(
    model: ModelLike,
    data: DataLike,
    *,
    times: Iterable[object] | None = ...,
    return_gradient: Literal[True],
    method: str = ...,
    **settings: Unpack[SettingsKeywords],
) -> tuple[float, NDArray[np.float64]]: ...


def log_likelihood(
    model: ModelLike,
    data: DataLike,
    *,
    times: Iterable[object] | None = None,
    return_gradient: bool = False,
    method: str = "auto",
    **settings: Unpack[SettingsKeywords],
) -> float | tuple[float, NDArray[np.float64]]:
    """Return the mean log-likelihood of the samples in `data` and, on request, its gradient.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta (n, n)
        theta[i, j] is the log-effect of item i on the rate of item j. theta[j, j] is the log base
        rate of item j. If only theta is given, the observation time is exponential with rate 1.
    data : Dataset, DataFrame, array or list of sets
        The samples.
    times : array or None
        Observation times; NaN where unknown. None uses the times of a `Dataset`, if it has any.
        Otherwise all times are unknown.
    return_gradient : bool
        Whether to also return the n x n gradient with respect to theta.
    method : {"auto", "exact", "components", "relocation", "metropolis", "metropolis-uniform", \
"completions", "histories"}
        How sets are evaluated. With "auto", sets within the budget are evaluated exactly: the sum
        over all orders is computed on the lattice of a set or by components. Sets beyond the budget
        are sampled. With "exact", a set beyond the budget raises an error. "components" uses
        components only. "completions" and "histories" draw missing cells if possible. The other
        methods sample every set of two or more items.
    **settings
        `budget`, `sampling`, `random_state`, `n_threads`; see `Settings`.

    Returns
    -------
    float, or float and array
        The mean log-likelihood, and its gradient if `return_gradient` is True. `evaluate` also
        returns standard errors and the method of each sample.

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
    evaluation = evaluate(
        model, data, times=times, gradient=return_gradient, method=method, **settings
    )
    if evaluation.gradient is None:
        return evaluation.value
    return evaluation.value, evaluation.gradient
