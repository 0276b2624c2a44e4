"""Small tasks for tests of repeats. Some of them fail, or kill their process, on purpose."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from sequela import SetChain, example_theta, simulate
from sequela.learning.interrupt import graceful_stop
from sequela.repeats.fit_task import learn as learn_of_a_plan
from sequela.repeats.work import where
from sequela.support.threads import resolve_threads


def draw(n, seed):
    return {"mean": float(np.random.default_rng(seed).normal(size=n).mean())}


def draw_slowly(n, seed):
    time.sleep(0.2)
    return draw(n, seed)


def learn(penalty, seed):
    data = simulate(example_theta(), 60, random_state=seed).to_dataset().without_times()
    learner = SetChain(penalty, random_state=seed).fit(data)
    return {"objective": learner.objective_, "theta": learner.theta_.ravel().tolist()}


def linear_algebra_threads():
    from threadpoolctl import threadpool_info

    return max(library["num_threads"] for library in threadpool_info())


def threads(seed):
    """Return the number of threads that this repeat may use, its process, and when it ran."""
    start = time.time()
    time.sleep(0.1)
    return {
        "threads": resolve_threads(None),
        "linear_algebra": linear_algebra_threads(),
        "process": os.getpid(),
        "start": start,
        "end": time.time(),
    }


def fail_once(folder, number, seed):
    mark = Path(folder) / f"{number}"
    if number % 2 and not mark.exists():
        mark.touch()
        raise RuntimeError("a bad moment")
    return {"number": number}


def fail_on_one_worker(folder, number, seed):
    """Repeat 0 always fails on the worker that first ran it. On other workers it succeeds."""
    mark = Path(folder) / "sick"
    if number == 0 and not mark.exists():
        mark.write_text(where())
    if number == 0 and mark.read_text() == where():
        raise RuntimeError("this worker is sick")
    return {"where": where()}


def fail(number, seed):
    if number == 1:
        raise ValueError("never works")
    return {"number": number}


def leave(number, seed):
    if number == 1:
        sys.exit(3)
    return {"number": number}


class StubbornError(Exception):
    """An error that cannot be unpickled, so it cannot be sent to another process."""

    def __init__(self, one, two):
        super().__init__(one + two)


def raise_what_does_not_travel(number, seed):
    if number == 1:
        raise StubbornError("st", "ay")
    return {"number": number}


def return_what_does_not_travel(number, seed):
    return {"number": (lambda: 1) if number == 1 else number}


def kill_the_worker_once(folder, number, seed):
    mark = Path(folder) / "killed"
    if number == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return {"value": float(np.random.default_rng(seed).random())}


def kill_the_worker(number, seed):
    if number == 2:
        time.sleep(1.0)  # so that the other worker can finish most of the other repeats
        os.kill(os.getpid(), signal.SIGKILL)
    return {"number": number}


def be_stopped(number, seed):
    """Handle signals as a fit does. Repeat 1 gets an interrupt signal while it runs."""
    with graceful_stop():
        if number == 1:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
    return {"number": number}


def not_a_dictionary(seed):
    return [1, 2]


def with_data(data, number, seed):
    return {"items": list(data.items), "ones": int(data.values.sum()), "id": id(data)}


def kernels():
    """Return the compiled functions in the modules of sequela that this process has loaded."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("sequela"):
            for value in vars(module).values():
                if hasattr(value, "stats") and hasattr(value, "signatures"):
                    found[id(value)] = value
    return list(found.values())


def learn_and_count_compilations(**case):
    """Run a fit of a plan. Also return which kernels this process compiled and used so far."""
    result = learn_of_a_plan(**case)
    compiled = [k.__name__ for k in kernels() if sum(k.stats.cache_misses.values())]
    used = [k.__name__ for k in kernels() if k.signatures]
    return {
        "objective": result["objective"], "compiled": compiled, "used": used,
        "process": os.getpid(),
    }  # fmt: skip
