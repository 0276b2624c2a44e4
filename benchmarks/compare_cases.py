"""The cases of `benchmarks.compare`, and the script that measures one of them in its own process.

Old and new versions of sequela run the same cases. So this module uses only public names, and does
not pass options that a version does not have. All cases run on one thread.
"""

from __future__ import annotations

import inspect
import json
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

PENALTY = 0.01
SMALL_SET = 9  # size of the largest set of the older glioblastoma table of 20 items
# Number of measurements per process, after a first call that loads compiled code. The shortest time
# is used.
MEASUREMENTS = 5


@dataclass(frozen=True)
class Case:
    """One benchmark: the file that it needs, the function to measure, and how it is measured."""

    needs: str
    # given the folder of the data, returns the function to measure
    prepare: Callable[[Path], Callable[[], Any]]
    summary: Callable[[Any], float]  # turns a result into one number, to compare two versions
    calls: int = 1
    whole_process: bool = False  # whether to measure from the start of the process to its end


def call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function with those options that this version accepts."""
    parameters = inspect.signature(function).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        options = {name: value for name, value in options.items() if name in parameters}
    return function(*args, **options)


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return theta and the samples of a file."""
    with np.load(path) as arrays:
        return arrays["theta"], arrays["X"]


def gradient(path: Path) -> Callable[[], Any]:
    import sequela

    theta, X = load(path)
    return lambda: call(
        sequela.log_likelihood, theta, X, return_gradient=True, random_state=1, n_threads=1
    )


def fit(path: Path, items: int | None = None) -> Callable[[], Any]:
    import sequela

    X = load(path)[1][:, :items]
    return lambda: sequela.SetChain(penalty=PENALTY, n_threads=1, random_state=1).fit(X)


def orders(path: Path) -> Callable[[], Any]:
    import sequela

    theta = load(path)[0][:12, :12]
    return lambda: call(sequela.order_matrix, theta, random_state=1, n_threads=1)


def times(path: Path) -> Callable[[], Any]:
    import sequela

    theta, X = load(path)
    return lambda: call(sequela.pseudo_times, theta, X[:300], random_state=1, n_threads=1)


def simulate(path: Path) -> Callable[[], Any]:
    import sequela

    theta = load(path)[0]
    return lambda: call(sequela.simulate, theta, 200_000, random_state=1, n_threads=1)


def start(path: Path) -> Callable[[], Any]:
    def work() -> Any:
        import sequela

        frame = sequela.read_table(path).data.to_frame().iloc[:, :10]
        return sequela.SetChain(penalty=PENALTY, n_threads=1, random_state=1).fit(frame)

    return work


def first_fit(path: Path) -> Callable[[], Any]:
    def work() -> Any:
        import sequela

        data = sequela.read_table(path).data
        return sequela.fit(data, penalty=PENALTY, n_threads=1, random_state=1)

    return work


def bootstraps(path: Path, count: int = 100) -> Callable[[], Any]:
    def work() -> Any:
        import sequela
        from sequela import repeats

        data = sequela.read_table(path).data
        plan = repeats.plan_fits(data, bootstraps=count, penalty=PENALTY, seed=1)
        with tempfile.TemporaryDirectory() as folder:
            return repeats.run(plan, folder, backend="threads", workers=1)

    return work


def resampled(path: Path, count: int = 100) -> Callable[[], Any]:
    import sequela

    X = load(path)[1]
    X = X[X.sum(axis=1) <= SMALL_SET]  # large sets would take nearly all the time, in one kernel
    rng = np.random.default_rng(1)
    drawn = [X[rng.integers(len(X), size=len(X))] for _ in range(count)]

    def work() -> Any:
        learner = sequela.SetChain(penalty=PENALTY, n_threads=1, random_state=1, progress=False)
        return [learner.fit(samples).objective_ for samples in drawn]

    return work


def of_gradient(found: Any) -> float:
    return float(np.linalg.norm(found[1]))


def of_fit(found: Any) -> float:
    return float(found.objective_)


CASES = {
    "gradient, n = 20": Case("n20.npz", gradient, of_gradient, calls=10),
    "gradient, n = 100": Case("n100.npz", gradient, of_gradient, calls=2),
    "fit, n = 20": Case("n20.npz", fit, of_fit),
    "fit, n = 50": Case("example.npz", fit, of_fit),
    "orders of 12 items": Case(
        "n20.npz", orders, lambda found: float(np.nansum(np.triu(found.probability))), calls=50
    ),
    "times of 300 samples": Case("n20.npz", times, lambda found: float(found["mean"].mean())),
    "simulate 200,000": Case(
        "n20.npz", simulate, lambda found: float(found.to_dataset().set_sizes.mean()), calls=3
    ),
    "start, read and fit": Case("example.csv", start, of_fit, whole_process=True),
    "first fit, n = 20": Case(
        "n20.csv", first_fit, lambda model: model.metadata["objective"], whole_process=True
    ),
    "100 bootstraps, n = 20": Case(
        "n20.csv", bootstraps, lambda table: float(table["objective"].mean()), whole_process=True
    ),
    "100 resampled fits, n = 20": Case("n20.npz", resampled, lambda found: float(np.mean(found))),
    "glioblastoma gradient, n = 100": Case("glioblastoma.npz", gradient, of_gradient),
    "glioblastoma fit, n = 20": Case(
        "glioblastoma.npz", lambda path: fit(path, 20), of_fit, calls=3
    ),
    "glioblastoma fit, n = 50": Case("glioblastoma.npz", lambda path: fit(path, 50), of_fit),
}


def measure(case: Case, folder: Path, measurements: int = MEASUREMENTS) -> dict[str, Any]:
    """Return the wall and CPU seconds, the memory and the result of one call.

    Each time is the shortest of several measurements. With 0 measurements, the function is called
    once and not measured, so that its code is compiled and stored in the cache.
    """
    work = case.prepare(folder / case.needs)
    found = work()
    if case.whole_process:
        # The caller measures the wall time; the CPU time includes the start of Python.
        return {"cpu": time.process_time(), "memory": memory(), "result": case.summary(found)}
    if not measurements:
        return {"result": case.summary(found)}
    walls, cpus = [], []
    for _ in range(measurements):
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(case.calls):
            work()
        walls.append((time.perf_counter() - wall) / case.calls)
        cpus.append((time.process_time() - cpu) / case.calls)
    result = case.summary(found)
    return {"wall": min(walls), "cpu": min(cpus), "memory": memory(), "result": result}


def memory() -> float:
    """Return the peak memory of this process, in MB; NaN if the system does not report it.

    The function does not use getrusage, which includes the memory of the parent process.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return float("nan")
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024 / 1e6


def read_glioblastoma(source: Path) -> np.ndarray:
    """Return the glioblastoma samples with the 100 most frequent items, sorted by frequency."""
    import sequela

    read = sequela.read_cbioportal(
        source / "mutations.txt", source / "cna.txt", merge=source / "merge.json", at_least=1
    )
    X = read.data.to_frame().to_numpy(bool)
    return X[:, np.argsort(-X.sum(axis=0), kind="stable")[:100]]


def main(given: list[str]) -> None:
    """Run one task and print its result as JSON in the last line."""
    task, *arguments = given
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    if task == "measure":
        name, folder, measurements = arguments
        found = measure(CASES[name], Path(folder), int(measurements))
    elif task == "glioblastoma":
        source, target = arguments
        np.save(target, read_glioblastoma(Path(source)))
    import sequela

    print(json.dumps({**found, "package": str(Path(sequela.__file__).resolve().parent)}))


if __name__ == "__main__":
    main(sys.argv[1:])
