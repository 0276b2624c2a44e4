"""The scikit-learn estimator, and the short form `fit`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from sequela import __version__
from sequela.budget import Budget, check_budget
from sequela.data.dataset import Dataset
from sequela.learning.checkpoint import Checkpoint, check_place, recorded_seed
from sequela.learning.fit_values import FitOptions, RunOptions, Start
from sequela.learning.fitting import Fitter
from sequela.learning.optima import differing_entries, distinct_optima
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.solvers.contract import Status
from sequela.likelihood.evaluation import evaluate
from sequela.model import Model
from sequela.observation import as_observation
from sequela.samples import as_samples
from sequela.support.errors import InputError
from sequela.support.random import RandomState, materialise_seed
from sequela.support.validation import check_theta, check_tolerance, is_number, positive_integer

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike

    from sequela.data.dataset import DataLike
    from sequela.likelihood.evaluation import Evaluation
    from sequela.observation import Observation

__all__ = ["SOLVERS", "SeparationWarning", "SetChain", "SeveralOptimaWarning", "fit"]

SOLVERS = ("auto", "newton", "adagrad")


class SeveralOptimaWarning(UserWarning):
    """The starts ended at optima that differ: the data may not tell them apart."""


class SeparationWarning(UserWarning):
    """Some items leave entries of theta undetermined: always, never, or only together present."""


class SetChain(BaseEstimator):
    """A continuous-time Markov chain over sets, learned from samples that were each seen once.

    Maximises the mean log-likelihood minus `penalty` times the sum of the absolute interactions
    (eq. 3 of the paper).

    Parameters
    ----------
    penalty : float, default 0.01
        Weight lambda of the L1 penalty on interactions; base rates are not penalised.
    solver : {"auto", "newton", "adagrad"}, default "auto"
        "newton" (which "auto" takes) is a proximal quasi-Newton method that is exact where the
        budget allows and samples larger sets; "adagrad" is the paper's method, for comparison.
    n_starts : int, default 1
        The first start is the model without interactions, the others have random interactions
        around it. All ends are kept in `starts_`; the best is the result.
    start_widths : tuple of float, default (0.2, 2.0)
        Random interactions are uniform in [-width, width], the widths in turn; the paper has 0.2.
    independent_start : bool, default True
        Whether the first start is the model without interactions; otherwise all are random.
    max_iter : int, default 1000
        Most iterations of a start.
    tol : float, default 1e-4
        KKT residual at which a start has converged: the largest distance of an entry of the
        gradient from the subdifferential of the penalty.
    observation : Observation or None
        How samples come to be observed; None: at an exponential time with rate 1.
    budget : Budget or None
        What the exact evaluation of a set may cost; larger ones are sampled.
    chains : int, default 16
        Chains of each sampled set.
    random_state : int, Generator or None
        Seed of random starts and sampled sets; recorded as `seed_`.
    n_threads : int or None
        Threads; None for all cores that this process may use. Results do not depend on it.
    checkpoint : path or None
        File to save the fit to as it goes on, and to resume from if it exists.
    checkpoint_every : float, default 30
        Seconds between two writes of it.
    progress : bool, "lines" or None
        Show a progress bar; "lines": plain lines for a batch log, one every few seconds; None: a
        bar in a terminal or a notebook.

    Attributes
    ----------
    theta_ : array (n, n)
        The learned parameters: theta_[i, j] is the log-effect of item i on the rate of item j.
    model_ : Model
        The same with labels and how it was learned.
    objective_, objective_se_ : float
        Penalised mean log-likelihood, and its Monte Carlo standard error (0: exact).
    kkt_residual_, kkt_floor_ : float
        Distance from optimality, and its Monte Carlo error (0: exact).
    n_iter_, n_evaluations_ : int
        Iterations and evaluations of the best start.
    status_, message_ : Status, str
        How the fit ended, as a value and in words; ``Status.INTERRUPTED`` after a signal.
    converged_ : bool
        Whether the best start ended at an optimum.
    history_ : DataFrame
        Every iteration of the best start.
    starts_ : list of Start
        The end of every start, theta included.
    optima_ : DataFrame
        The distinct ends among them, the best first; where all starts of a row have converged, it
        is an optimum.
    seed_ : int
        What everything random was derived from.
    n_features_in_, feature_names_in_ : int, array of str
        Number and labels of the items.

    Examples
    --------
    >>> from sequela import example_theta, simulate
    >>> sets = simulate(example_theta(), 400, random_state=1).to_dataset().without_times()
    >>> learner = SetChain(penalty=0.02).fit(sets)
    >>> learner.converged_
    True
    >>> learner.model_.interactions().head(1)[["from", "to"]].to_dict("list")
    {'from': ['step 2'], 'to': ['step 3']}
    """

    def __init__(
        self,
        penalty: float = 0.01,
        *,
        solver: str = "auto",
        n_starts: int = 1,
        start_widths: Sequence[float] = (0.2, 2.0),
        independent_start: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
        observation: Observation | None = None,
        budget: Budget | None = None,
        chains: int = 16,
        random_state: RandomState = None,
        n_threads: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
        progress: bool | str | None = None,
    ) -> None:
        self.penalty = penalty
        self.solver = solver
        self.n_starts = n_starts
        self.start_widths = start_widths
        self.independent_start = independent_start
        self.max_iter = max_iter
        self.tol = tol
        self.observation = observation
        self.budget = budget
        self.chains = chains
        self.random_state = random_state
        self.n_threads = n_threads
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.progress = progress

    def fit(self, X: DataLike, y: object = None, *, times: Iterable[object] | None = None) -> Self:  # noqa: ARG002
        """Learn theta from the samples in `X`.

        Parameters
        ----------
        X : Dataset, DataFrame, array or list of sets
            The samples.
        y : ignored
            For scikit-learn's sake.
        times : array or None
            Observation times; NaN where unknown. None takes those of a `Dataset`, if any.
        """
        fitter = self._fitter(Dataset.coerce(X, times=times), self.penalty, self._seed())
        return self._store(fitter, fitter.run())

    def add_start(
        self, X: DataLike, theta: ArrayLike, *, times: Iterable[object] | None = None
    ) -> Self:
        """Learn once more, from `theta`; if that ends at a better model, it becomes the result.

        Parameters
        ----------
        X, times
            What the learner was fitted to.
        theta : array (n, n)
            Where the new start begins, such as a rival that `questions.order_ranges` found.

        Examples
        --------
        >>> from sequela import example_samples
        >>> data = example_samples().most_frequent(3)
        >>> learner = SetChain(0.02, random_state=1).fit(data)
        >>> len(learner.add_start(data, np.eye(3)).starts_)
        2
        """
        check_is_fitted(self)
        start = check_theta(theta)
        if start.shape != self.theta_.shape:
            raise InputError(
                f"theta has shape {start.shape}; expected {self.theta_.shape}, that of the "
                "fitted model"
            )
        data = as_samples(self.model_, X, times)
        fitter = self._fitter(data, self.model_.metadata["penalty"], self.seed_)
        fitter.run_options = replace(fitter.run_options, checkpoint=None)
        fitter.checkpoint = Checkpoint(None, self.checkpoint_every, data, fitter.options)
        return self._store(fitter, fitter.go_on(start, self.starts_))

    def _fitter(self, data: Dataset, penalty: float, seed: int) -> Fitter:
        options = self._options(penalty, seed)
        run = RunOptions(
            n_threads=self.n_threads,
            progress=self.progress,
            checkpoint=self.checkpoint,
            checkpoint_every=float(self.checkpoint_every),
        )
        return Fitter(data, options, run)

    def score(
        self,
        X: DataLike,
        y: object = None,  # noqa: ARG002
        *,
        times: Iterable[object] | None = None,
    ) -> float:
        """Return the mean log-likelihood of `X` (without the penalty), larger is better."""
        check_is_fitted(self)
        return float(self._evaluate(X, times).value)

    def score_samples(self, X: DataLike, *, times: Iterable[object] | None = None) -> pd.Series:
        """Return the log-likelihood of every sample."""
        check_is_fitted(self)
        samples: pd.Series = self._evaluate(X, times).samples["log_likelihood"]
        return samples

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Dataset:
        """Draw new sets from the learned model, with their observation times."""
        from sequela.simulation import simulate

        check_is_fitted(self)
        drawn = simulate(
            self.model_, n_samples, random_state=random_state, n_threads=self.n_threads
        )
        return drawn.to_dataset()

    def differences(self, within: float = np.inf, max_entries: int = 20) -> pd.DataFrame:
        """Return the entries of theta that differ most between starts.

        Parameters
        ----------
        within : float
            Only starts whose objective is at most this far below the best.
        max_entries : int
            Return at most this many entries.
        """
        check_is_fitted(self)
        near = [s.theta for s in self.starts_ if self.objective_ - s.objective <= within]
        return differing_entries(near, self.model_.items, max_entries)

    def _evaluate(self, X: DataLike, times: Iterable[object] | None) -> Evaluation:
        data = as_samples(self.model_, X)
        return evaluate(
            self.model_, data, times=times, gradient=False, budget=self.budget,
            random_state=self.seed_, n_threads=self.n_threads,
        )  # fmt: skip

    def _seed(self) -> int:
        """Return the seed; where none is given, that of the fit which the checkpoint goes on."""
        if self.random_state is None and self.checkpoint is not None:
            check_place(self.checkpoint)
            recorded = recorded_seed(self.checkpoint)
            if recorded is not None:
                return recorded
        return materialise_seed(self.random_state)

    def _options(self, penalty: float, seed: int) -> FitOptions:
        """Check the parameters; the estimator itself keeps them as given."""
        if self.solver not in SOLVERS:
            raise InputError(
                f"solver is {self.solver!r}; expected one of "
                + ", ".join(repr(name) for name in SOLVERS)
            )
        check_tolerance(self.tol)
        widths = tuple(self.start_widths) if isinstance(self.start_widths, (tuple, list)) else ()
        if not widths or not all(is_number(w) and 0.0 < w < np.inf for w in widths):
            raise InputError(
                f"start_widths is {self.start_widths!r}; expected positive numbers such as "
                "(0.2, 2.0)"
            )
        if not (is_number(self.checkpoint_every) and self.checkpoint_every >= 0):
            raise InputError(
                f"checkpoint_every is {self.checkpoint_every!r}; expected a number of seconds, "
                "at least 0"
            )
        if self.checkpoint is not None:
            check_place(self.checkpoint)
        return FitOptions(
            penalty=float(OffDiagonalL1(penalty).strength),
            solver="newton" if self.solver == "auto" else self.solver,
            n_starts=positive_integer("n_starts", self.n_starts),
            start_widths=tuple(float(width) for width in widths),
            independent_start=bool(self.independent_start),
            tol=float(self.tol),
            max_iter=positive_integer("max_iter", self.max_iter),
            observation=as_observation(self.observation),
            budget=check_budget(self.budget),
            chains=positive_integer("chains", self.chains, least=2),
            seed=seed,
        )

    def _store(self, fitter: Fitter, starts: list[Start]) -> Self:
        """Keep the result, and warn of what the user should know."""
        data, options = fitter.data, fitter.options
        self.starts_ = starts
        best: Start = max(starts, key=lambda start: start.objective)
        self.theta_ = best.theta
        self.objective_ = best.objective
        self.objective_se_ = best.objective_se
        self.kkt_residual_ = best.kkt_residual
        self.kkt_floor_ = best.kkt_floor
        self.n_iter_ = best.n_iterations
        self.n_evaluations_ = best.n_evaluations
        self.status_ = starts[-1].status if fitter.interrupted else best.status
        self.converged_ = best.converged
        self.message_ = best.message
        self.history_ = pd.DataFrame(
            best.history,
            columns=["evaluations", "objective", "kkt_residual", "interactions", "seconds"],
        )
        self.optima_ = distinct_optima(self.starts_)
        self.seed_ = options.seed
        self.n_features_in_ = data.n_items
        self.feature_names_in_ = np.array(data.items, dtype=object)
        self.model_ = Model(
            best.theta,
            data.items,
            {
                "penalty": options.penalty,
                "solver": self.solver,
                "seed": options.seed,
                "samples": data.n_samples,
                "objective": best.objective,
                "kkt_residual": best.kkt_residual,
                "converged": best.converged,
                "starts": len(self.starts_),
                "sequela": __version__,
            },
            observation=options.observation,
        )
        self._warn(data)
        return self

    def _warn(self, data: Dataset) -> None:
        if self.status_ is Status.INTERRUPTED:
            rest = f"; resume from {str(self.checkpoint)!r}" if self.checkpoint else ""
            warnings.warn(
                f"the fit was interrupted ({self.starts_[-1].message}): this is the best so far, "
                f"at KKT residual {self.kkt_residual_:.1e}{rest}",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif not self.converged_:
            warnings.warn(self.message_, ConvergenceWarning, stacklevel=4)
        separated = _separation(data)
        if separated:
            warnings.warn(
                f"{separated}. Their entries of theta are finite only because the solver stops "
                "at its tolerance; leave these items out, or read them with care",
                SeparationWarning,
                stacklevel=4,
            )
        # Where a start did not converge there is no optimum, whatever its distance from others.
        ended = [start for start in self.starts_ if start.converged]
        optima = distinct_optima(ended)
        if len(optima) > 1:
            worst = float(optima["below_best"].max())
            top = differing_entries([s.theta for s in ended], data.items, 1).iloc[0]
            warnings.warn(
                f"{len(ended)} starts ended at {len(optima)} different optima, up "
                f"to {worst:.2g} below the best ({worst * data.n_samples:.2g} nats over all "
                f"samples); they differ most in {top['from']} -> {top['to']}: "
                f"{top['lowest']:.2f} to {top['highest']:.2f}. See optima_ and differences()",
                SeveralOptimaWarning,
                stacklevel=4,
            )


def _separation(data: Dataset) -> str:
    """Return what is wrong with items that the data cannot place, or nothing."""
    share = data.values.mean(axis=0)
    found = []
    for label, value in (("always", 1.0), ("never", 0.0)):
        names = [item for item, s in zip(data.items, share, strict=True) if s == value]
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            found.append(f"{', '.join(map(repr, names[:5]))}{more} {label} present")
    mixed = np.nonzero((share > 0.0) & (share < 1.0))[0]
    _, group, counts = np.unique(
        data.values[:, mixed].T, axis=0, return_inverse=True, return_counts=True
    )
    for number in np.nonzero(counts > 1)[0][:5]:
        names = [data.items[j] for j in mixed[group.ravel() == number]]
        found.append(f"{', '.join(map(repr, names[:5]))} only ever present together")
    return "; ".join(found)


def fit(data: DataLike, *, times: Iterable[object] | None = None, **options: Any) -> Model:
    """Learn a model: the short form of ``SetChain(**options).fit(data, times=times).model_``.

    Examples
    --------
    >>> from sequela import example_theta, simulate
    >>> sets = simulate(example_theta(), 300, random_state=1).to_dataset().without_times()
    >>> fit(sets, penalty=0.1)
    <Model: 10 items, 0 interactions>
    """
    model: Model = SetChain(**options).fit(data, times=times).model_
    return model
