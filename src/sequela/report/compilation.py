"""Compile all kernels in advance, on all cores.

A kernel is compiled when it is first used and then kept on disk. For a container image, or before
an array of jobs that would all compile the same code, it is better to compile in advance. Numba
compiles one kernel at a time in each process, because it uses a lock. Therefore several processes
share the work.
"""

from __future__ import annotations

import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.report.environment import describe_environment
from sequela.report.json_values import plain_values
from sequela.support.threads import resolve_threads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["PARTS", "Compilation", "compile_kernels"]


@dataclass(frozen=True)
class Compilation:
    """The result of `compile_kernels`.

    Attributes
    ----------
    numba_cache : Path or None
        Folder of the compiled kernels. None if there is no such folder; then no kernel was kept.
    cached_kernels : int
        Number of compiled kernels in the folder.
    seconds : float
        Duration in seconds.
    """

    numba_cache: Path | None
    cached_kernels: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values for JSON."""
        found: dict[str, Any] = plain_values(self)
        return found


def compile_kernels() -> Compilation:
    """Compile all numerical kernels now instead of at their first use.

    This function starts new processes. A script must therefore call it under ``if __name__ ==
    "__main__":``.

    Examples
    --------
    >>> compile_kernels().seconds > 0
    True
    """
    start = time.perf_counter()
    workers = min(resolve_threads(None), len(PARTS))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for done in [pool.submit(part) for part in PARTS]:
            done.result()
    found = describe_environment()
    seconds = time.perf_counter() - start
    return Compilation(found.numba_cache, found.cached_kernels, seconds)


def _example() -> tuple[Any, Any]:
    theta = np.zeros((3, 3))
    theta[0, 1] = 1.0
    return theta, np.array([[True, True, False], [True, False, True]])


def use_exact_sets() -> None:
    """Evaluate sets on the lattice, with and without logarithms."""
    from sequela.likelihood import evaluate

    theta, X = _example()
    evaluate(theta, X, n_threads=1)
    evaluate(np.where(theta > 0, 450.0, -200.0), X, n_threads=1)


def use_components() -> None:
    """Evaluate sets by components: values, gradients, histories, and quick components."""
    from sequela.likelihood import evaluate
    from sequela.likelihood.component_histories import ComponentHistory
    from sequela.likelihood.decomposition import decompose
    from sequela.likelihood.parameters import Parameters
    from sequela.likelihood.quick_components import Posterior, QuickComponents

    theta, X = _example()
    evaluate(theta, X, method="components", n_threads=1)
    _ = ComponentHistory(Parameters(theta), np.arange(3)).before
    wide = np.zeros((16, 16))
    wide[0, 1] = 1.0
    sets = [np.arange(15)]
    quick = QuickComponents(decompose(wide != 0.0, sets), sets, [Posterior(0.8, 0.35)])
    quick.evaluate(Parameters(wide), np.ones(1), 1)


def use_relocation() -> None:
    """Evaluate sets with orders drawn by relocation, and learn from such sets."""
    from sequela.budget import Budget
    from sequela.learning.estimator import SetChain
    from sequela.likelihood import evaluate

    theta, X = _example()
    evaluate(theta, X, method="relocation", random_state=1, n_threads=1)
    none_exact = Budget(work=40.0)
    learner = SetChain(0.1, random_state=1, max_iter=2, n_threads=1, budget=none_exact)
    with warnings.catch_warnings():
        # After two iterations the fit warns that it has not converged. Its result is not used.
        warnings.simplefilter("ignore")
        learner.fit(np.array([[True, True, True], [True, True, False]]))


def use_metropolis() -> None:
    """Evaluate sets with orders drawn by the Metropolis-Hastings algorithm."""
    from sequela.likelihood import evaluate

    theta, X = _example()
    evaluate(theta, X, method="metropolis", random_state=1, n_threads=1)


def use_times_and_sequences() -> None:
    """Evaluate samples at known times, sequences, and posteriors of samples; simulate samples."""
    from sequela.likelihood import evaluate, sample_posteriors
    from sequela.likelihood.sequences import sequence_log_likelihood
    from sequela.simulation import simulate

    theta, X = _example()
    evaluate(theta, X, times=[0.5, 1.0], n_threads=1)
    sequence_log_likelihood(theta, [[0, 1]], return_gradient=True)
    sample_posteriors(theta, X, n_threads=1)
    simulate(theta, 10, random_state=1, n_threads=1)


def use_other_samples() -> None:
    """Evaluate gamma-distributed times and missing cells, and learn from missing cells."""
    from sequela.budget import Budget
    from sequela.learning.estimator import SetChain
    from sequela.likelihood import evaluate
    from sequela.model import Model
    from sequela.observation_times import Gamma

    theta, X = _example()
    evaluate(Model(theta, observation=Gamma(2.0)), X, n_threads=1)
    missing = np.where([[0, 0, 1], [0, 1, 0]], np.nan, X)
    none_exact = Budget(work=1.0)
    evaluate(theta, missing, random_state=1, n_threads=1, budget=none_exact)
    learner = SetChain(0.1, random_state=1, max_iter=2, n_threads=1, budget=none_exact)
    with warnings.catch_warnings():
        # After two iterations the fit warns that it has not converged. Its result is not used.
        warnings.simplefilter("ignore")
        learner.fit(missing)


def use_questions() -> None:
    """Compute orders and times of arrival."""
    from sequela import questions
    from sequela.budget import Budget
    from sequela.data.dataset import Dataset

    theta, X = _example()
    questions.order_matrix(theta, n_threads=1)
    questions.order_matrix(theta, method="simulation", random_state=1, n_threads=1)
    questions.pseudo_times(theta, X, n_threads=1)
    questions.likely_orders(theta, [0, 1])
    stated = Dataset([[1, 1, None]], orders=[[("0", "1")]])
    acting = np.zeros((3, 3))
    acting[2, 0] = 1.0  # the missing item matters, so the sample is beyond the smallest budget
    questions.likely_orders(acting, stated, draws=8, random_state=1, budget=Budget(work=1.0))
    questions.time_posterior(theta, [0, 1]).quantile([0.5])
    questions.time_posterior(theta, [0, 1], random_state=1, budget=Budget(work=1.0))


def use_posterior() -> None:
    """Draw from posteriors, with and without known orders, and plan a study."""
    from sequela.data.dataset import Dataset
    from sequela.posteriors import posterior
    from sequela.questions import plan_study

    sets = [[True, True], [True, False]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these few draws cannot converge
        draws = posterior(sets, draws=20, random_state=1, n_threads=1)
        posterior(Dataset(sets, orders=[[("0", "1")], []]), draws=20, random_state=1, n_threads=1)
        plan_study(draws, sets, "0", "1", samples=[0], clocks=[2], studies=2, random_state=1)


# The part that takes longest comes first, so that all processes end at about the same time. The
# last parts also use kernels of earlier parts, which are then often compiled already.
PARTS: tuple[Callable[[], None], ...] = (
    use_posterior,
    use_exact_sets,
    use_relocation,
    use_components,
    use_times_and_sequences,
    use_metropolis,
    use_other_samples,
    use_questions,
)
