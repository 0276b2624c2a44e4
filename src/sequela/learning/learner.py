"""The function `fit` and the base class of `SetChain`, without scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sequela import __version__
from sequela.budget import Budget, check_budget
from sequela.data.dataset import Dataset
from sequela.learning.checkpoint import Checkpoint, check_place, recorded_seed
from sequela.learning.fit_values import FitOptions, RunOptions, Start
from sequela.learning.fitting import Fitter
from sequela.learning.fixed import fixed_entries, read_fixed
from sequela.learning.optima import differing_entries, distinct_optima, group_starts
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.solvers.contract import Status
from sequela.model import Model
from sequela.observation import as_observation
from sequela.support.errors import InputError
from sequela.support.naming import argument, either
from sequela.support.random import RandomState, materialise_seed
from sequela.support.validation import check_theta, check_tolerance, is_number, positive_integer

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    import pandas as pd
    from numpy.typing import ArrayLike

    from sequela.data.dataset import DataLike
    from sequela.learning.fit_check import FitCheck
    from sequela.learning.fixed import FixedLike
    from sequela.likelihood.evaluation import Evaluation
    from sequela.observation import Observation

__all__ = ["Learner", "SeparationWarning", "SeveralOptimaWarning", "fit", "weighted_data"]

SOLVERS = ("auto", "newton", "adagrad")


class SeveralOptimaWarning(UserWarning):
    """Starts ended at different optima. The data may not show which of them is right."""


class SeparationWarning(UserWarning):
    """The data do not determine some entries of theta.

    The reason is that some items are always present, are never present, or are present only
    together.
    """


class Learner:
    """The parameters of a fit and its result; `SetChain` documents both.

    This class does not import scikit-learn, because the import takes longer than a small fit.
    """

    seed_: int
    _samples_: Dataset | None
    _misfit_: FitCheck | None

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
        fixed: FixedLike | None = None,
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
        self.fixed = fixed
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.progress = progress

    def fit(
        self,
        X: DataLike,
        y: object = None,  # noqa: ARG002
        sample_weight: Iterable[object] | None = None,
        *,
        times: Iterable[object] | None = None,
    ) -> Self:
        """Learn theta from the samples in `X`.

        Parameters
        ----------
        X : Dataset, DataFrame, array or list of sets
            The samples.
        y : ignored
            Present for compatibility with scikit-learn.
        sample_weight : array or None
            The weight of each sample. A sample of weight 2 counts as two samples, and a sample of
            weight 0 is left out. None uses the weights of a `Dataset`, if any.
        times : array or None
            Observation times; NaN where unknown. None uses the times of a `Dataset`, if any.
        """
        data = weighted_data(X, times, sample_weight)
        fitter = self._fitter(data, self.penalty, self._seed())
        return self._store(fitter, fitter.run())

    def _fitter(self, data: Dataset, penalty: float, seed: int) -> Fitter:
        fixed = fixed_entries(read_fixed(self.fixed, data.items), data.items)
        options = replace(self._options(penalty, seed), fixed=tuple(fixed))
        run = RunOptions(
            n_threads=self.n_threads,
            progress=self.progress,
            checkpoint=self.checkpoint,
            checkpoint_every=float(self.checkpoint_every),
        )
        return Fitter(data, options, run)

    def evaluate(
        self,
        X: DataLike,
        times: Iterable[object] | None = None,
        sample_weight: Iterable[object] | None = None,
    ) -> Evaluation:
        """Return the log-likelihood of samples under the learned model."""
        from sequela.likelihood.evaluation import evaluate
        from sequela.samples import as_samples

        data = as_samples(self.model_, X)
        return evaluate(
            self.model_, data, times=times, sample_weight=sample_weight, gradient=False,
            budget=self.budget, random_state=self.seed_, n_threads=self.n_threads,
        )  # fmt: skip

    def add_start(
        self,
        X: DataLike,
        theta: ArrayLike,
        *,
        times: Iterable[object] | None = None,
        sample_weight: Iterable[object] | None = None,
    ) -> Self:
        """Run one more start from `theta`. If its model is the best, it becomes the result.

        Parameters
        ----------
        X, times, sample_weight
            The data to which the learner was fitted.
        theta : array (n, n)
            The theta at which the new start begins, such as one from `questions.order_ranges`.

        Examples
        --------
        >>> from sequela import example_samples
        >>> data = example_samples().most_frequent(3)
        >>> learner = Learner(0.02, random_state=1).fit(data)
        >>> len(learner.add_start(data, np.eye(3)).starts_)
        2
        """
        from sequela.samples import as_samples

        self._require_fit()
        start = check_theta(theta)
        if start.shape != self.theta_.shape:
            raise InputError(
                f"theta has shape {start.shape}; expected {self.theta_.shape}, the shape of the "
                "fitted theta"
            )
        data = weighted_data(as_samples(self.model_, X, times), None, sample_weight)
        fitter = self._fitter(data, self.model_.metadata["penalty"], self.seed_)
        fitter.run_options = replace(fitter.run_options, checkpoint=None)
        fitter.checkpoint = Checkpoint(None, self.checkpoint_every, data, fitter.options)
        return self._store(fitter, fitter.go_on(start, self.starts_))

    @property
    def misfit_(self) -> FitCheck:
        """Tests of whether the model describes the data of the fit: see `check_fit`."""
        from sequela.learning.fit_check import check_fit

        self._require_fit()
        if self._misfit_ is None:
            if self._samples_ is None:
                raise InputError(
                    "a learner that was read from a file has no samples; use "
                    "sequela.questions.check_fit(learner, data)"
                )
            self._misfit_ = check_fit(
                self.model_, self._samples_, random_state=self.seed_, n_threads=self.n_threads
            )
        return self._misfit_

    @property
    def history_(self) -> pd.DataFrame:
        """A table with one row per iteration of the best start."""
        import pandas as pd

        best = max(self.starts_, key=lambda start: start.objective)
        return pd.DataFrame(
            best.history,
            columns=["evaluations", "objective", "kkt_residual", "interactions", "seconds"],
        )

    @property
    def optima_(self) -> pd.DataFrame:
        """A table of the distinct models at which the starts ended, the best first."""
        return distinct_optima(self.starts_)

    def differences(self, within: float = np.inf, max_entries: int = 20) -> pd.DataFrame:
        """Return a table of the entries of theta that differ most between starts.

        Parameters
        ----------
        within : float
            Compare only starts whose objective is at most this far below the best objective.
        max_entries : int
            Return at most this many entries.
        """
        self._require_fit()
        near = [s.theta for s in self.starts_ if self.objective_ - s.objective <= within]
        return differing_entries(near, self.model_.items, max_entries)

    def _require_fit(self) -> None:
        """Raise an error if this learner has not been fitted."""
        if not hasattr(self, "theta_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"this {type(self).__name__} instance is not fitted yet; call fit() first"
            )

    def _seed(self) -> int:
        """Return the given seed, else the seed of an existing checkpoint, else a new seed."""
        if self.random_state is None and self.checkpoint is not None:
            check_place(self.checkpoint)
            recorded = recorded_seed(self.checkpoint)
            if recorded is not None:
                return recorded
        return materialise_seed(self.random_state)

    def _options(self, penalty: float, seed: int) -> FitOptions:
        """Check the parameters and return them; the attributes of the estimator do not change."""
        if self.solver not in SOLVERS:
            raise InputError(
                f"{argument('solver')} is {self.solver!r}; expected one of "
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

    def _keep_best(self, data: Dataset, starts: list[Start], seed: int) -> Start:
        """Store all starts, and the results of the best one as attributes; return the best one."""
        self._samples_ = data
        self._misfit_ = None
        self.starts_ = starts
        best: Start = max(starts, key=lambda start: start.objective)
        self.theta_ = best.theta
        self.objective_ = best.objective
        self.objective_se_ = best.objective_se
        self.kkt_residual_ = best.kkt_residual
        self.kkt_floor_ = best.kkt_floor
        self.n_iter_ = best.n_iterations
        self.n_evaluations_ = best.n_evaluations
        self.converged_ = best.converged
        self.message_ = best.message
        self.seed_ = seed
        self.n_features_in_ = data.n_items
        self.feature_names_in_ = np.array(data.items, dtype=object)
        return best

    def _store(self, fitter: Fitter, starts: list[Start]) -> Self:
        """Store the result as attributes, and warn of problems."""
        data, options = fitter.data, fitter.options
        best = self._keep_best(data, starts, options.seed)
        self.status_ = starts[-1].status if fitter.interrupted else best.status
        self.model_: Model = Model(
            best.theta,
            data.items,
            {
                "penalty": options.penalty,
                "solver": self.solver,
                "seed": options.seed,
                "samples": data.n_samples,
                **_more_metadata(data, options),
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
                f"the fit was interrupted ({self.starts_[-1].message}): this is the best result "
                f"so far, with KKT residual {self.kkt_residual_:.1e}{rest}",
                _convergence_warning(),
                stacklevel=4,
            )
        elif not self.converged_:
            warnings.warn(self.message_, _convergence_warning(), stacklevel=4)
        separated = _separation(data)
        if separated:
            warnings.warn(
                f"{separated}. The entries of theta of these items are finite only because the "
                "solver stops at its tolerance; leave these items out, or interpret these entries "
                "with caution",
                SeparationWarning,
                stacklevel=4,
            )
        # If a start did not converge, it did not end at an optimum.
        ended = [start for start in self.starts_ if start.converged]
        optima = group_starts(ended)
        if len(optima) > 1:
            worst = ended[optima[0][0]].objective - ended[optima[-1][0]].objective
            total = f"{worst * data.total_weight:.2g}"
            unit = "nat" if total == "1" else "nats"
            top = differing_entries([s.theta for s in ended], data.items, 1).iloc[0]
            warnings.warn(
                f"{len(ended)} starts ended at {len(optima)} different optima. The objective of "
                f"the worst optimum is {worst:.2g} below that of the best optimum ({total} {unit} "
                "over all samples). The optima differ most in the effect "
                f"{top['from']} -> {top['to']}, which is between {top['lowest']:.2f} and "
                f"{top['highest']:.2f}. See "
                + either("optima_ and differences()", "optima.csv in the folder of the fit"),
                SeveralOptimaWarning,
                stacklevel=4,
            )


def weighted_data(
    X: DataLike, times: Iterable[object] | None, sample_weight: Iterable[object] | None
) -> Dataset:
    """Return the samples with a positive weight, and their weights."""
    data = Dataset.coerce(X, times=times)
    if sample_weight is not None:
        data = data.with_weights(sample_weight)
    if data.weights is None or data.weights.all():
        return data
    return data.select_samples(data.weights > 0.0)


def _more_metadata(data: Dataset, options: FitOptions) -> dict[str, Any]:
    """Return the metadata of models with sample weights or fixed interactions."""
    more: dict[str, Any] = {}
    if data.weights is not None:
        more["total_weight"] = data.total_weight
    if options.fixed:
        more["fixed"] = [list(entry) for entry in options.fixed]
    return more


def _convergence_warning() -> type[Warning]:
    from sklearn.exceptions import ConvergenceWarning

    found: type[Warning] = ConvergenceWarning
    return found


def _separation(data: Dataset) -> str:
    """Describe the items whose effects the data do not determine; return "" if there are none."""
    share = data.known_shares
    found = []
    for label, value in (("always", 1.0), ("never", 0.0)):
        names = [item for item, s in zip(data.items, share, strict=True) if s == value]
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            verb = "is" if len(names) == 1 else "are"
            found.append(f"{', '.join(map(repr, names[:5]))}{more} {verb} {label} present")
    if data.missing is not None:
        # Two columns may also be equal because both items are missing in the same samples. So do
        # not compare columns here.
        return "; ".join(found)
    mixed = np.nonzero((share > 0.0) & (share < 1.0))[0]
    # Convert each column to one byte string, so that equal columns can be found quickly.
    columns = np.packbits(data.values[:, mixed].T, axis=1)
    keys = np.ascontiguousarray(columns).view(f"V{columns.shape[1]}").ravel()
    _, group, counts = np.unique(keys, return_inverse=True, return_counts=True)
    for number in np.nonzero(counts > 1)[0][:5]:
        names = [data.items[j] for j in mixed[group.ravel() == number]]
        found.append(f"{', '.join(map(repr, names[:5]))} are present only together")
    return "; ".join(found)


def fit(
    data: DataLike,
    *,
    times: Iterable[object] | None = None,
    sample_weight: Iterable[object] | None = None,
    **options: Any,
) -> Model:
    """Learn a model and return it: short for ``SetChain(**options).fit(data, times=times).model_``.

    This function does not load scikit-learn.

    Examples
    --------
    >>> from sequela import example_theta, simulate
    >>> sets = simulate(example_theta(), 300, random_state=1).to_dataset().without_times()
    >>> fit(sets, penalty=0.1)
    <Model: 10 items, 0 interactions>
    """
    return Learner(**options).fit(data, sample_weight=sample_weight, times=times).model_
