"""Kill a checkpointed fit with SIGKILL at random moments, 20 times; does it end the same?

Run by hand: ``python verification/kill_and_resume.py``. Each round starts the fit in a process of
its own, kills it after a random time, starts it again from the checkpoint, and so on until it
ends; theta must equal that of a fit that was never stopped, bit for bit. Exact and sampled fits.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

KILLS = 20

FIT = """
import sys, warnings
import numpy as np
from sequela import Budget, SetChain, example_theta, simulate

warnings.simplefilter("ignore")
kind, checkpoint, result = sys.argv[1:4]
sets = simulate(example_theta(), 600, random_state=4).to_dataset().without_times()
options = {"n_starts": 40} if kind == "exact" else {"budget": Budget(work=2e4), "n_starts": 3}
chain = SetChain(
    penalty=0.005, random_state=7, tol=1e-4 if kind == "exact" else 1e-3, n_threads=1,
    checkpoint=None if checkpoint == "-" else checkpoint, checkpoint_every=0.02, **options,
)
chain.fit(sets)
np.save(result, np.stack([start.theta for start in chain.starts_]))
"""


def start(kind, checkpoint, result):
    return subprocess.Popen([sys.executable, "-c", FIT, kind, str(checkpoint), str(result)])  # noqa: S603


def verify(kind, folder):
    """Return (kills that hit, whether theta is the same)."""
    whole = folder / f"{kind}-whole.npy"
    began = time.monotonic()
    start(kind, "-", whole).wait()
    took = time.monotonic() - began
    expected = np.load(whole)
    chance = random.Random(1)  # noqa: S311 - moments, not secrets
    kills = rounds = 0
    same = True
    while kills < KILLS // 2:
        rounds += 1
        checkpoint = folder / f"{kind}-{rounds}.npz"
        result = folder / f"{kind}-{rounds}.npy"
        while not result.exists():
            process = start(kind, checkpoint, result)
            try:
                process.wait(chance.uniform(0.4, 1.0) * took)
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                kills += 1
            else:
                if process.returncode != 0:
                    sys.exit(f"a resumed {kind} fit failed with code {process.returncode}")
        same = same and np.array_equal(np.load(result), expected)
        print(f"{kind}: round {rounds}, {kills} kills so far, same theta: {same}", flush=True)
    return same


def main():
    with tempfile.TemporaryDirectory() as name:
        results = [verify(kind, Path(name)) for kind in ("exact", "sampled")]
    sys.exit(0 if all(results) else "a resumed fit ended elsewhere")


if __name__ == "__main__":
    main()
