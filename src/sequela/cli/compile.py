"""``sequela compile``: pay for the compilation of all kernels now, on all cores.

A kernel is compiled when it is first used and then kept on disk. For a container image, or before
an array of jobs that would all compile the same code, it is better done at a chosen moment. Numba
compiles under one lock, so the work is shared among processes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from sequela.cli.output import json_option, make_console, print_json

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PARTS", "compile_kernels"]


@click.command("compile", epilog="\b\nExample:\n  sequela compile")
@json_option
def compile_kernels(as_json: bool) -> None:
    """Compile all numerical kernels now instead of at their first use.

    Useful in a container image, and before many jobs start at once on a cluster.
    """
    report = make_report()
    if as_json:
        print_json(report)
        return
    make_console().print(
        f"{report['cached_kernels']} kernels are ready in {report['numba_cache']} "
        f"({report['seconds']:.0f} s)"
        if report["numba_cache"]
        else "There is no folder to keep compiled code in; set NUMBA_CACHE_DIR to one."
    )


def make_report() -> dict[str, Any]:
    """Run every part in a process of its own; return what `sequela info` says of the cache."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from sequela.cli.info import make_report as make_info
    from sequela.support.threads import resolve_threads

    start = time.perf_counter()
    workers = min(resolve_threads(None), len(PARTS))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for done in [pool.submit(part) for part in PARTS]:
            done.result()
    report = make_info()
    kept = {name: report[name] for name in ("numba_cache", "cached_kernels")}
    return {**kept, "seconds": time.perf_counter() - start}


def _example() -> tuple[Any, Any]:
    import numpy as np

    theta = np.zeros((3, 3))
    theta[0, 1] = 1.0
    return theta, np.array([[True, True, False], [True, False, True]])


def use_exact_sets() -> None:
    """Use the lattice, plain and in logarithms."""
    import numpy as np

    from sequela.likelihood import evaluate

    theta, X = _example()
    evaluate(theta, X, n_threads=1)
    evaluate(np.where(theta > 0, 450.0, -200.0), X, n_threads=1)


def use_relocation() -> None:
    """Draw orders by relocation, and learn from them."""
    import warnings

    import numpy as np

    from sequela.learning.estimator import SetChain
    from sequela.likelihood import Budget, evaluate

    theta, X = _example()
    evaluate(theta, X, method="relocation", random_state=1, n_threads=1)
    none_exact = Budget(work=40.0)
    chain = SetChain(0.1, random_state=1, max_iter=2, n_threads=1, budget=none_exact)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two steps on two samples: nobody reads the result
        chain.fit(np.array([[True, True, True], [True, True, False]]))


def use_metropolis() -> None:
    """Draw orders by Metropolis-Hastings."""
    from sequela.likelihood import evaluate

    theta, X = _example()
    evaluate(theta, X, method="metropolis", random_state=1, n_threads=1)


def use_times_and_sequences() -> None:
    """Use known times, sequences, posteriors and the simulation."""
    from sequela.likelihood import evaluate, sample_posteriors
    from sequela.likelihood.sequences import sequence_log_likelihood
    from sequela.simulation import simulate

    theta, X = _example()
    evaluate(theta, X, times=[0.5, 1.0], n_threads=1)
    sequence_log_likelihood(theta, [[0, 1]], return_gradient=True)
    sample_posteriors(theta, X, n_threads=1)
    simulate(theta, 10, random_state=1, n_threads=1)


# The longest first.
PARTS: tuple[Callable[[], None], ...] = (
    use_exact_sets,
    use_relocation,
    use_times_and_sequences,
    use_metropolis,
)
