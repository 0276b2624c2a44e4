"""Check that a fit that is killed and resumed gives the same result as an uninterrupted fit.

Run by hand: ``python verification/kill_at_random.py [kills]`` (20 kills by default). A fit of each
kind is killed with SIGKILL repeatedly, and continued from its checkpoint. Each kill comes at a
random moment after the fit has written a new checkpoint, so that the fit makes progress. At the
end, theta, the objective and the number of evaluations of every start must be the same, bit for
bit, as those of a fit that was never stopped and had no checkpoint. If a fit ends before all kills
are done, the next fit begins with an empty folder.

For each kill, the script prints a line with the seconds since the start of the process, the size of
the checkpoint, the number of finished starts (or why the checkpoint cannot be read), and the number
of temporary files that are left because the kill interrupted a write. It exits with 1 if a result
differs.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

KINDS = {
    "exact": "n_starts=30, checkpoint_every=0.05",
    "sampled": "n_starts=2, checkpoint_every=0.05, budget=Budget(work=2e4), tol=2e-3, chains=8",
    "adagrad": "n_starts=2, checkpoint_every=0.02, solver='adagrad', max_iter=40",
}

FIT = """
import sys, warnings
import numpy as np
from sequela import Budget, SetChain, example_theta, simulate

warnings.simplefilter("ignore")
checkpoint, result = sys.argv[1:3]
sets = simulate(example_theta(), 800, random_state=4).to_dataset().without_times()
learner = SetChain(
    0.004, random_state=7, n_threads=2, progress=False,
    checkpoint=None if checkpoint == "none" else checkpoint, {options},
)
learner.fit(sets)
np.savez(
    result,
    thetas=np.stack([start.theta for start in learner.starts_]),
    objectives=[start.objective for start in learner.starts_],
    evaluations=[start.n_evaluations for start in learner.starts_],
)
"""


def begin(kind: str, checkpoint: Path | str, result: Path) -> subprocess.Popen[bytes]:
    code = FIT.replace("{options}", KINDS[kind])
    return subprocess.Popen([sys.executable, "-c", code, str(checkpoint), str(result)])  # noqa: S603


def stamp(path: Path) -> tuple[int, int]:
    """Return the inode and the time of a file. They change with every write of the checkpoint."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (found.st_ino, found.st_mtime_ns)


def finished(checkpoint: Path) -> str:
    """Return the number of finished starts, or why the checkpoint cannot be read."""
    try:
        with np.load(checkpoint, allow_pickle=False) as archive:
            return str(len(json.loads(str(archive["meta"]))["finished"]))
    except Exception as error:  # noqa: BLE001 - any failure is a finding
        return f"UNREADABLE ({type(error).__name__})"


def equal(one: Path, two: Path) -> bool:
    with np.load(one) as a, np.load(two) as b:
        return all(a[name].tobytes() == b[name].tobytes() for name in a.files)


def verify(kind: str, kills: int, folder: Path, chance: random.Random) -> bool:
    whole = folder / f"{kind}-whole.npz"
    clock = time.monotonic()
    if begin(kind, "none", whole).wait() != 0:
        print(f"{kind}: the fit failed")
        return False
    print(f"\n{kind}: {time.monotonic() - clock:.1f} s uninterrupted, start of Python included")
    print(f"{'kill':>4} {'after s':>8} {'bytes':>8} {'finished':>9} {'left over':>10}")
    done = ends = 0
    good = True
    place = folder / kind
    while done < kills or not ends:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        checkpoint, result = place / "fit.npz", place / "result.npz"
        while True:
            before = stamp(checkpoint)
            clock = time.monotonic()
            process = begin(kind, checkpoint, result)
            while process.poll() is None and stamp(checkpoint) == before:
                time.sleep(0.002)
            # The kill can come between two writes or during a write.
            until = time.monotonic() + chance.uniform(0.0, 0.3)
            while process.poll() is None and time.monotonic() < until:
                time.sleep(0.0005)
            if process.poll() is None and done < kills:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                done += 1
                left = sum(entry.name.startswith(".fit.npz.") for entry in place.iterdir())
                starts = finished(checkpoint)
                good = good and starts.isdigit()
                print(
                    f"{done:>4} {time.monotonic() - clock:>8.2f} {checkpoint.stat().st_size:>8} "
                    f"{starts:>9} {left:>10}",
                    flush=True,
                )
                continue
            if process.wait() != 0:
                print(f"{kind}: a resumed fit failed with code {process.returncode}")
                return False
            break
        ends += 1
        same = equal(result, whole)
        good = good and same
        print(f"{kind}: end {ends} after {done} kills: {'same bits' if same else 'DIFFERENT'}")
    return good


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seed = int.from_bytes(os.urandom(4), "little")
    print(f"seed of the moments: {seed}")
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    with tempfile.TemporaryDirectory() as name:
        results = {kind: verify(kind, kills, Path(name), chance) for kind in KINDS}
    print("\n" + ", ".join(f"{kind}: {'ok' if ok else 'FAILED'}" for kind, ok in results.items()))
    sys.exit(0 if all(results.values()) else 1)


if __name__ == "__main__":
    main()
