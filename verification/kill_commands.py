"""Check that commands that are stopped by signals give the same result as uninterrupted commands.

Run by hand: ``python -m verification.kill_commands [kills] [command ...]`` (by default 30 kills of
each of fit, sampled, posterior, repeat and import). A command is started, receives a signal at a
random moment (SIGKILL, SIGTERM, SIGHUP or SIGINT), and is run again until it ends. The result must
have the same bits as that of a command that was never stopped. After every signal,

- all processes of the command must have ended within 10 seconds,
- every file with its final name must be complete (JSON and archives can be read).

At the end, no hidden file and no unfinished folder may remain. The script prints one line per kill
and exits with 1 if a condition does not hold.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
PATIENCE = 10.0
SEQUELA = (sys.executable, "-m", "sequela")
SAMPLED = """
import sys, warnings
import numpy as np
from sequela import Budget, SetChain, read_table
from sequela.learning import Status

warnings.simplefilter("ignore")
learner = SetChain(
    0.01, random_state=7, n_threads=2, progress=False, n_starts=2, tol=2e-3, chains=8,
    budget=Budget(work=2e4), checkpoint="fit.npz", checkpoint_every=0.2,
).fit(read_table("table.csv").data)
if learner.status_ is Status.INTERRUPTED:
    sys.exit(130)
np.save("theta.npy", learner.theta_)
"""
MAF = "Hugo_Symbol\tTumor_Sample_Barcode\tVariant_Classification\n"


@dataclass(frozen=True)
class Command:
    """How to start a command, how to continue it, and which files of its result are compared."""

    begin: tuple[str, ...]
    again: tuple[str, ...]
    results: tuple[str, ...] = field(default=())

    def digest(self, folder: Path) -> str:
        found = hashlib.sha256()
        for pattern in self.results:
            for path in sorted(folder.glob(pattern)):
                found.update(path.relative_to(folder).as_posix().encode())
                found.update(_content(path))
        return found.hexdigest()


def _content(path: Path) -> bytes:
    """Return the content of a result that must be the same, without the measured seconds."""
    if path.suffix == ".json":
        return json.dumps(json.loads(path.read_text())["result"]).encode()
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            names = sorted(n for n in archive.namelist() if n.endswith(".npy") and n != "meta.npy")
            return b"".join(name.encode() + archive.read(name) for name in names)
    return path.read_bytes()


FIT = (
    "fit", "table.csv", "-o", "out", "--seed", "1", "--figures", "none", "--penalty", "0.02",
    "--checkpoint", "fit.npz", "--threads", "2",
)  # fmt: skip
POSTERIOR = (
    "posterior", "table.csv", "-o", "out", "--threads", "2", "--most-frequent", "4",
)  # fmt: skip
REPEAT = (
    "repeat", "table.csv", "-o", "out", "--bootstraps", "6", "--penalty", "0.02", "--seed", "1",
    "--backend", "processes", "--workers", "2",
)  # fmt: skip
IMPORT = ("import", "--maf", "table.maf", "-o", "imported.csv", "--force")
COMMANDS = {
    "fit": Command((*SEQUELA, *FIT), (*SEQUELA, *FIT), ("out/model.npz", "out/orders.csv")),
    "sampled": Command(
        (sys.executable, "-c", SAMPLED), (sys.executable, "-c", SAMPLED), ("theta.npy",)
    ),
    "posterior": Command(
        (*SEQUELA, *POSTERIOR, "--seed", "1", "--draws", "300", "--chains", "2"),
        (*SEQUELA, *POSTERIOR, "--continue"),
        ("out/posterior.npz", "out/orders.csv"),
    ),
    "repeat": Command((*SEQUELA, *REPEAT), (*SEQUELA, *REPEAT), ("out/[0-9]*.json",)),
    "import": Command((*SEQUELA, *IMPORT), (*SEQUELA, *IMPORT), ("imported.csv",)),
}


def prepare(folder: Path) -> None:
    """Write the tables that the commands read."""
    from sequela import example_theta, simulate

    data = simulate(example_theta(), 300, random_state=4).to_dataset().without_times()
    rows = ["sample," + ",".join(data.items)]
    rows += [f"s{k}," + ",".join(map(str, row.astype(int))) for k, row in enumerate(data.values)]
    (folder / "table.csv").write_text("\n".join(rows) + "\n")
    rng = np.random.default_rng(1)
    lines = [
        f"G{g}\tS{s}\tMissense_Mutation\n"
        for g, s in zip(rng.integers(0, 300, 400_000), rng.integers(0, 3000, 400_000), strict=True)
    ]
    (folder / "table.maf").write_text(MAF + "".join(lines))


def start(arguments: tuple[str, ...], folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - our own command
            arguments, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip


def family(session: int) -> list[int]:
    """Return the processes of a session that are still running."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(status[3]) == session and status[0] != "Z":
                found.append(int(entry.name))
    return found


def alone(session: int) -> tuple[bool, float]:
    """Wait until all processes of a session have ended.

    Return whether this was within the limit, and the seconds that it took.
    """
    began = time.monotonic()
    while family(session) and time.monotonic() - began < PATIENCE:
        time.sleep(0.1)
    left = family(session)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return not left, time.monotonic() - began


def broken(folder: Path) -> list[str]:
    """Return the files that have their final names but are not complete."""
    found = []
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if hidden or not path.is_file():
            continue
        try:
            if path.suffix == ".json":
                json.loads(path.read_text())
            elif path.suffix == ".npz":
                with zipfile.ZipFile(path) as archive:
                    assert archive.testzip() is None
        except Exception as error:  # noqa: BLE001 - any failure is a finding
            found.append(f"{path.name}: {type(error).__name__}")
    return found


def leftovers(folder: Path) -> list[str]:
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.name.startswith(".") or ".incomplete" in path.name
    ]


def verify(name: str, kills: int, root: Path, chance: random.Random) -> bool:
    command = COMMANDS[name]
    whole = root / f"{name}-whole"
    whole.mkdir()
    prepare(whole)
    began = time.monotonic()
    if start(command.begin, whole).wait() != 0:
        print(f"{name}: the command failed\n{(whole / 'log.txt').read_text()[-2000:]}")
        return False
    seconds = time.monotonic() - began
    expected = command.digest(whole)
    print(f"\n{name}: {seconds:.1f} s uninterrupted")
    good, done, round_number = True, 0, 0
    while done < kills:
        folder = root / f"{name}-{round_number}"
        folder.mkdir()
        round_number += 1
        for file in ("table.csv", "table.maf"):
            os.link(whole / file, folder / file)
        arguments, finished = command.begin, False
        while not finished:
            process = start(arguments, folder)
            started = time.monotonic()
            arguments = command.again
            until = time.monotonic() + chance.uniform(0.0, 1.1) * seconds
            while done < kills and process.poll() is None and time.monotonic() < until:
                time.sleep(0.005)
            if process.poll() is None and done < kills:
                number = chance.choice(SIGNALS)
                os.kill(process.pid, number)
                done += 1
                try:
                    process.wait(120.0)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                finished = process.returncode == 0
                soon, waited = alone(process.pid)
                bad = broken(folder)
                good = good and soon and not bad
                if not (folder / "out" / "run.json").exists() and name == "posterior":
                    arguments = command.begin  # the command had not started yet
                print(
                    f"{done:>4} {signal.Signals(number).name:8} code {process.returncode:>4} "
                    f"{'alone' if soon else 'WORKERS ALIVE'} after {waited:.1f} s "
                    f"{'; '.join(bad) or 'files whole'}",
                    flush=True,
                )
                continue
            finished = process.wait() == 0
            # The first run compiles kernels. A signal after the end of a command has no effect.
            seconds = min(seconds, max(time.monotonic() - started, 1.0))
            if not finished and process.returncode != 130:
                print(f"{name}: FAILED again\n{(folder / 'log.txt').read_text()[-1500:]}")
                return False
        same, left = command.digest(folder) == expected, leftovers(folder)
        good = good and same and not left
        print(
            f"{name}: end {round_number} after {done} kills: {'same bits' if same else 'DIFFERENT'}"
            f", {'nothing left over' if not left else 'LEFT OVER ' + ', '.join(left)}",
            flush=True,
        )
    return good


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    chosen = sys.argv[2:] or list(COMMANDS)
    seed = int.from_bytes(os.urandom(4), "little")
    print(f"seed of the moments: {seed}")
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    with tempfile.TemporaryDirectory() as name:
        results = {one: verify(one, kills, Path(name), chance) for one in chosen}
    print("\n" + ", ".join(f"{one}: {'ok' if ok else 'FAILED'}" for one, ok in results.items()))
    sys.exit(0 if all(results.values()) else 1)


if __name__ == "__main__":
    main()
