"""The scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator

from sequela.learning.learner import Learner

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from sequela.data.dataset import DataLike, Dataset
    from sequela.support.random import RandomState

__all__ = ["SetChain"]


class SetChain(Learner, BaseEstimator):
    """A continuous-time Markov chain over sets, learned from samples that were each observed once.

    The fit maximises the mean log-likelihood minus `penalty` times the sum of the absolute
    interactions (eq. 3 of the paper).

    Parameters
    ----------
    penalty : float, default 0.01
        Weight lambda of the L1 penalty on interactions; base rates are not penalised.
    solver : {"auto", "newton", "adagrad"}, default "auto"
        "newton" is a proximal quasi-Newton method. It evaluates sets within the budget exactly
        and samples the others. "auto" chooses "newton". "adagrad" is the method of the paper, for
        comparison.
    n_starts : int, default 1
        Number of starts. The first is the model without interactions; the others have random
        interactions. The results of all starts are kept in `starts_`. The best of them is the
        result of the fit.
    start_widths : tuple of float, default (0.2, 2.0)
        Random interactions are uniform in [-width, width]. The random starts use these widths one
        after another, and then begin again with the first. The paper uses 0.2.
    independent_start : bool, default True
        Whether the first start is the model without interactions. If False, all starts are random.
    max_iter : int, default 1000
        Largest number of iterations per start.
    tol : float, default 1e-4
        The KKT residual at which a start has converged. The KKT residual is the largest distance of
        an entry of the gradient from the subdifferential of the penalty; it is 0 at an optimum.
    observation : Observation or None
        The distribution of the observation time. None means exponential with rate 1.
    budget : Budget or None
        The largest cost of exact evaluation. Sets that need more are sampled.
    chains : int, default 16
        Number of Markov chains per sampled set.
    random_state : int, Generator or None
        Seed of random starts and sampled sets; recorded as `seed_`.
    n_threads : int or None
        Number of threads. None means all cores that this process may use. Results do not depend on
        the number of threads.
    fixed : DataFrame, array, list of pairs or None
        Interactions that are not learned. A pair (from, to) fixes an interaction at 0, and a triple
        (from, to, value) fixes it at a value. A table of theta, or an array in the order of the
        items, has NaN where an entry is free. Fixed interactions are not penalised.
    checkpoint : path or None
        File to which the fit is saved while it runs. If the file exists, the fit resumes from it.
    checkpoint_every : float, default 30
        Seconds between two writes of the checkpoint.
    progress : bool, "lines" or None
        True: show a progress bar. "lines": write a plain line every few seconds, for a batch log.
        None: show a bar in a terminal or a notebook only.

    Attributes
    ----------
    theta_ : array (n, n)
        The learned parameters: theta_[i, j] is the log-effect of item i on the rate of item j.
    model_ : Model
        The learned model: theta with labels, the observation, and metadata of the fit.
    objective_, objective_se_ : float
        Penalised mean log-likelihood, and its Monte Carlo standard error. The error is 0 if all
        sets are evaluated exactly.
    kkt_residual_, kkt_floor_ : float
        The KKT residual (the distance from an optimum), and its Monte Carlo error. The error is 0
        if all sets are evaluated exactly.
    n_iter_, n_evaluations_ : int
        Number of iterations, and number of evaluations of the likelihood, in the best start.
    status_, message_ : Status, str
        How the fit ended, as a value and in words. If a signal such as Ctrl-C stopped the fit,
        `status_` is ``Status.INTERRUPTED``.
    converged_ : bool
        Whether the best start ended at an optimum.
    history_ : DataFrame
        One row per iteration of the best start.
    starts_ : list of Start
        The result of every start, with its theta.
    optima_ : DataFrame
        The different models at which starts ended, the best first. A row is an optimum if all
        starts that ended there converged.
    misfit_ : FitCheck
        Whether the model describes the data, and what to try if it does not. It is computed when
        it is first used. See `questions.check_fit`.
    seed_ : int
        The seed from which all random numbers were derived.
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

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickle, without the samples, which may be confidential."""
        state = dict(super().__getstate__())
        if "_samples_" in state:
            state["_samples_"] = None
        return state

    def score(
        self,
        X: DataLike,
        y: object = None,  # noqa: ARG002
        sample_weight: Iterable[object] | None = None,
        *,
        times: Iterable[object] | None = None,
    ) -> float:
        """Return the mean log-likelihood of `X` without the penalty; a larger value is better."""
        self._require_fit()
        return float(self.evaluate(X, times, sample_weight).value)

    def score_samples(self, X: DataLike, *, times: Iterable[object] | None = None) -> pd.Series:
        """Return the log-likelihood of every sample."""
        self._require_fit()
        samples: pd.Series = self.evaluate(X, times).samples["log_likelihood"]
        return samples

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Dataset:
        """Draw new sets from the learned model, with their observation times."""
        from sequela.simulation import simulate

        self._require_fit()
        drawn = simulate(
            self.model_, n_samples, random_state=random_state, n_threads=self.n_threads
        )
        return drawn.to_dataset()
