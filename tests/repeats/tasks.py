"""Tasks for the tests of repeats: small, and some of them misbehave."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from sequela import SetChain, example_theta, simulate
from sequela._threads import resolve_threads


def draw(n, seed):
    return {"mean": float(np.random.default_rng(seed).normal(size=n).mean())}


def learn(penalty, seed):
    data = simulate(example_theta(), 60, random_state=seed).to_dataset().without_times()
    chain = SetChain(penalty, random_state=seed).fit(data)
    return {"objective": chain.objective_, "theta": chain.theta_.ravel().tolist()}


def threads(seed):
    return {"threads": resolve_threads(None), "process": os.getpid()}


def fail_once(folder, number, seed):
    mark = Path(folder) / f"{number}"
    if number % 2 and not mark.exists():
        mark.touch()
        raise RuntimeError("a bad moment")
    return {"number": number}


def fail(number, seed):
    if number == 1:
        raise ValueError("never works")
    return {"number": number}


def kill_the_worker_once(folder, number, seed):
    mark = Path(folder) / "killed"
    if number == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return {"value": float(np.random.default_rng(seed).random())}


def not_a_dictionary(seed):
    return [1, 2]
