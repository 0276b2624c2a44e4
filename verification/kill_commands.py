"""Check that commands that are stopped by signals give the same result as uninterrupted commands.

Run by hand: ``python -m verification.kill_commands [kills] [command ...] [--seed N]``. The default
is 30 kills of each of the commands fit, sampled, posterior, repeat and import. A command is
started, and a signal (SIGKILL, SIGTERM, SIGHUP or SIGINT) is sent to it at a random moment. Then
the command is run again. After at most three signals it is run to its end. The result must have the
same bits as the results of two commands that were never stopped. After every signal, the script
checks that no worker process is alive 10 seconds after the command has ended. While the commands
run and after every signal, it checks that every file with its final name is complete (JSON and
archives can be read, tables and pages have their last line). At the end it checks that no hidden
file and no unfinished folder is left.

There are three kinds of moments, and each kind is chosen for a third of the signals:

- at any time while the command runs,
- within a step that the command announces (reading, learning, the check of the orders, each table,
  the report); all steps are chosen equally often,
- while a file is being written.

The commands save checkpoints more often than by default, so that each run writes several of them.
The script prints one line per signal, and at the end the number of signals that arrived during each
step. It exits with 1 if a condition is violated.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import random
import re
import shutil
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
_STEP = re.compile(r"sequela: (.+) \.\.\.")
_SAVED = "work, saved at least once"
_DATES = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.+]+")
MOST_SIGNALS = 3
# By default, commands save every half minute. The commands of this script take less time, so
# FITTING and SAMPLING save more often.
_MAIN = "\nfrom sequela.cli import main\nmain(prog_name='sequela')"
SEQUELA = (sys.executable, "-c", _MAIN)
FITTING = (
    sys.executable, "-c",
    "from sequela.learning.learner import Learner\n"
    "Learner.__init__.__kwdefaults__['checkpoint_every'] = 0.1" + _MAIN,
)  # fmt: skip
SAMPLING = (
    sys.executable, "-c",
    "import sequela.posteriors.sampling as sampling\n"
    "sampling._BETWEEN_CHECKPOINTS = 0.2" + _MAIN,
)  # fmt: skip
SAMPLED = """
import sys, warnings
print("sequela: start-up of Python ...", file=sys.stderr)
import numpy as np
from sequela import Budget, SetChain, read_table
from sequela.learning import Status

warnings.simplefilter("ignore")
data = read_table("table.csv").data
print("sequela: learning ...", file=sys.stderr)
learner = SetChain(
    0.01, random_state=7, n_threads=2, progress=False, n_starts=2, tol=2e-3, chains=8,
    budget=Budget(work=2e4), checkpoint="fit.npz", checkpoint_every=0.2,
).fit(data)
if learner.status_ is Status.INTERRUPTED:
    sys.exit(130)
np.save("theta.npy", learner.theta_)
"""
MAF = "Hugo_Symbol\tTumor_Sample_Barcode\tVariant_Classification\n"


@dataclass(frozen=True)
class Command:
    """The arguments that start and continue a command, and the files of its result to compare."""

    begin: tuple[str, ...]
    again: tuple[str, ...]
    results: tuple[str, ...] = field(default=())
    saves: str = ""  # the pattern of the files that the command saves while it works

    def digest(self, folder: Path) -> str:
        found = hashlib.sha256()
        for pattern in self.results:
            for path in sorted(folder.glob(pattern)):
                found.update(path.relative_to(folder).as_posix().encode())
                found.update(_content(path))
        return found.hexdigest()


def _content(path: Path) -> bytes:
    """Return the content of a file of a result, without the parts that differ between runs.

    These parts are dates and durations.
    """
    if path.suffix == ".json":
        return json.dumps(json.loads(path.read_text())["result"]).encode()
    if path.suffix == ".html":
        return _DATES.sub(b"", path.read_bytes())
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            names = sorted(archive.namelist())
            return b"".join(name.encode() + archive.read(name) for name in names)
    return path.read_bytes()


FIT = (
    "fit", "table.csv", "-o", "out", "--seed", "1", "--figures", "none", "--penalty", "0.02",
    "--checkpoint", "fit.npz", "--threads", "2", "--most-frequent", "7", "--starts", "4",
)  # fmt: skip
POSTERIOR = (
    "posterior", "table.csv", "-o", "out", "--threads", "2",
)  # fmt: skip
SHORT = ("--draws", "120", "--chains", "2")
REPEAT = (
    "repeat", "table.csv", "-o", "out", "--bootstraps", "6", "--penalty", "0.02", "--seed", "1",
    "--backend", "processes", "--workers", "2",
)  # fmt: skip
IMPORT = ("import", "--maf", "table.maf", "-o", "imported.csv", "--force")
COMMANDS = {
    "fit": Command((*FITTING, *FIT), (*FITTING, *FIT), ("out/*",), "fit.npz"),
    "sampled": Command(
        (sys.executable, "-c", SAMPLED), (sys.executable, "-c", SAMPLED), ("theta.npy",), "fit.npz"
    ),
    "posterior": Command(
        (*SAMPLING, *POSTERIOR, "--most-frequent", "3", "--seed", "1", *SHORT),
        (*SAMPLING, *POSTERIOR, "--continue"),
        ("out/*",),
        "out/posterior.npz",
    ),
    "repeat": Command(
        (*SEQUELA, *REPEAT), (*SEQUELA, *REPEAT), ("out/[0-9]*.json",), "out/0*.json"
    ),
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
        for g, s in zip(
            rng.integers(0, 300, 1_200_000), rng.integers(0, 3000, 1_200_000), strict=True
        )
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
    """Wait until all processes of a session have ended, but at most `PATIENCE` seconds.

    Return whether all processes have ended, and the seconds that it took.
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
        if hidden or path.suffix not in (".json", ".npz", ".csv", ".html", ".npy"):
            continue
        try:
            if path.suffix == ".json":
                json.loads(path.read_text())
            elif path.suffix == ".npz":
                with zipfile.ZipFile(path) as archive:
                    assert archive.testzip() is None
            elif path.suffix == ".npy":
                np.load(path)
            else:
                end = "\n" if path.suffix == ".csv" else "</html>"
                assert path.read_text().rstrip(" \r\n").endswith(end.strip())
                assert path.suffix != ".csv" or path.read_text().endswith(end)
        except FileNotFoundError:
            continue  # meanwhile the file was replaced, or its folder got its final name
        except Exception as error:  # noqa: BLE001 - any failure is a finding
            found.append(f"{path.name}: {type(error).__name__}")
    return found


def leftovers(folder: Path) -> list[str]:
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.name.startswith(".") or ".incomplete" in path.name
    ]


class Steps:
    """The steps that a process has announced in its log, and the time at which each began."""

    def __init__(self, folder: Path, saves: str = "") -> None:
        self.log = folder / "log.txt"
        self.folder, self.saves = folder, saves
        self.before = self.saved()
        self.from_byte = self.log.stat().st_size if self.log.exists() else 0
        self.read = self.from_byte
        self.began = time.monotonic()
        self.seen: list[tuple[str, float]] = [("start-up", 0.0)]

    def saved(self) -> list[tuple[str, int]]:
        found = self.folder.glob(self.saves) if self.saves else ()
        return [(path.name, path.stat().st_ino) for path in found]

    def _new_lines(self) -> list[str]:
        size = self.log.stat().st_size if self.log.exists() else 0
        if size == self.read:
            return []
        self.read = size
        with self.log.open("rb") as file:
            file.seek(self.from_byte)
            return file.read().decode(errors="replace").splitlines()

    def look(self) -> str:
        """Read the log, and return the step that the process is doing now."""
        lines = self._new_lines()
        known = {name for name, _ in self.seen}
        if _SAVED not in known and self.saved() != self.before:
            self.seen.append((_SAVED, time.monotonic() - self.began))
        for line in lines:
            found = _STEP.fullmatch(line)
            if found and found[1] not in known:
                self.seen.append((found[1], time.monotonic() - self.began))
        return self.seen[-1][0]


@dataclass
class Moment:
    """The moment at which a signal is sent: at any time, within a step, or during a write."""

    kind: str
    seconds: float
    step: str = ""
    writes: int = 1

    @classmethod
    def choose(
        cls,
        chance: random.Random,
        steps: list[tuple[str, float]],
        whole: float,
        most_writes: int,
    ) -> Moment:
        kind = chance.choice(("any time", "in a step", "while writing"))
        if kind == "in a step":
            at = chance.randrange(len(steps))
            ends = [begin for _, begin in steps[1:]] + [whole]
            length = max(ends[at] - steps[at][1], 0.0)
            return cls(kind, chance.uniform(0.0, length), steps[at][0])
        if kind == "while writing":
            return cls(kind, chance.uniform(0.0, 0.01), writes=chance.randint(1, most_writes))
        # Before its first step, the process only loads Python and its packages. A signal at that
        # time tests little, because there is no work to lose yet. So only a few signals are sent at
        # that time.
        first = steps[1][1] if len(steps) > 1 else 0.0
        return cls(kind, chance.uniform(0.8 * first, 1.05 * whole))

    def wait(self, process: subprocess.Popen[bytes], folder: Path, steps: Steps) -> list[str]:
        """Wait until the moment or the end of the process; return files that were incomplete."""
        bad: list[str] = []
        names: set[str] = set()
        rounds = 0
        while process.poll() is None:
            step = steps.look()
            now = time.monotonic() - steps.began
            if self.kind == "any time" and now >= self.seconds:
                break
            if self.kind == "in a step" and step == self.step:
                time.sleep(self.seconds)
                break
            if self.kind == "while writing":
                names |= {path.name for path in folder.rglob(".*.tmp")}
                if len(names) >= self.writes:
                    time.sleep(self.seconds)
                    break
            rounds += 1
            if rounds % 40 == 0:
                bad += broken(folder)
            time.sleep(0.002 if self.kind == "while writing" else 0.01)
        return bad


def run_whole(command: Command, folder: Path) -> tuple[str, list[tuple[str, float]], float]:
    """Run a command to its end; return the digest of its result, its steps and its seconds."""
    folder.mkdir(exist_ok=True)
    process, steps = start(command.begin, folder), Steps(folder, command.saves)
    while process.poll() is None:
        steps.look()
        time.sleep(0.005)
    if process.returncode:
        raise RuntimeError((folder / "log.txt").read_text()[-2000:])
    return command.digest(folder), steps.seen, time.monotonic() - steps.began


class Trial:
    """The test of one command. The command is first run to its end, and then stopped many times."""

    def __init__(self, name: str, kills: int, root: Path, chance: random.Random) -> None:
        self.name, self.kills, self.root, self.chance = name, kills, root, chance
        self.command = COMMANDS[name]
        self.hit: collections.Counter[str] = collections.Counter()
        self.by_signal: collections.Counter[str] = collections.Counter()
        self.longest = 0.0
        self.done = self.ends = self.same = 0
        self.good = True

    def folder(self, label: str) -> Path:
        made = self.root / f"{self.name}-{label}"
        made.mkdir()
        for file in ("table.csv", "table.maf"):
            os.link(self.root / file, made / file)
        return made

    def run(self) -> bool:
        """Stop the command `kills` times, and return whether all conditions were satisfied."""
        # The first run also compiles kernels. So the times are taken from the second run.
        first, _, _ = run_whole(self.command, self.folder("first"))
        expected, self.steps, self.seconds = run_whole(self.command, self.folder("whole"))
        print(f"\n{self.name}: {self.seconds:.1f} s uninterrupted; steps", end=" ")
        print(", ".join(f"{step} from {begin:.1f} s" for step, begin in self.steps), flush=True)
        if first != expected:
            print(f"{self.name}: TWO RUNS DIFFER")
            return False
        while self.done < self.kills:
            place = self.folder(str(self.ends))
            if not self.one(place):
                return False
            same, left = self.command.digest(place) == expected, leftovers(place)
            self.ends += 1
            self.same += same
            self.good = self.good and same and not left
            print(
                f"{self.name}: end {self.ends} after {self.done} signals: "
                f"{'same bits' if same else 'DIFFERENT'}, "
                f"{'nothing left over' if not left else 'LEFT OVER ' + ', '.join(left)}",
                flush=True,
            )
            if same and not left:
                shutil.rmtree(place)
        print(
            f"{self.name}: {self.done} signals ({_counts(self.by_signal)}), {self.same} of "
            f"{self.ends} ends with the same bits, longest time until all processes were gone "
            f"{self.longest:.1f} s; signals hit {_counts(self.hit)}"
        )
        return self.good

    def one(self, folder: Path) -> bool:
        """Stop a command up to three times, then let it end."""
        arguments = self.command.begin
        for attempt in range(MOST_SIGNALS + 1):
            process, steps = start(arguments, folder), Steps(folder, self.command.saves)
            arguments = self.command.again
            if attempt < MOST_SIGNALS and self.done < self.kills:
                moment = Moment.choose(
                    self.chance, self.steps, self.seconds, 1 if self.name == "import" else 12
                )
                bad = moment.wait(process, folder, steps)
                if process.poll() is None:
                    finished = self.stop(process, folder, steps, moment, bad)
                    if self.name == "posterior" and not (folder / "out" / "run.json").exists():
                        arguments = self.command.begin  # there is no run to continue yet
                    if finished:
                        return True
                    continue
            code = process.wait()
            if code != 0:
                print(f"{self.name}: FAILED again\n{(folder / 'log.txt').read_text()[-1500:]}")
                return False
            return True
        raise AssertionError

    def stop(
        self,
        process: subprocess.Popen[bytes],
        folder: Path,
        steps: Steps,
        moment: Moment,
        bad: list[str],
    ) -> bool:
        """Send a signal, check what is left, and return whether the command ended with code 0."""
        number = self.chance.choice(SIGNALS)
        step = steps.look()
        os.kill(process.pid, number)
        self.done += 1
        sent = time.monotonic()
        try:
            process.wait(120.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        soon, _ = alone(process.pid)
        waited = time.monotonic() - sent
        bad = bad + broken(folder)
        writing = bool(list(folder.rglob(".*.tmp")))
        self.hit[step + (" (a file half written)" if writing else "")] += 1
        self.by_signal[signal.Signals(number).name] += 1
        self.longest = max(self.longest, waited)
        self.good = self.good and soon and not bad
        print(
            f"{self.done:>4} {signal.Signals(number).name:8} {moment.kind}, in {step}: code "
            f"{process.returncode:>4} {'all ended' if soon else 'STILL RUNNING'} after "
            f"{waited:.1f} s, {'; '.join(bad) or 'files complete'}"
            f"{', temporary file left' if writing else ''}",
            flush=True,
        )
        if process.returncode not in (0, 130, -number):
            print((folder / "log.txt").read_text()[-600:])
        return process.returncode == 0


def _counts(counter: collections.Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kills", type=int, nargs="?", default=30)
    parser.add_argument("commands", nargs="*", choices=[*COMMANDS, []])
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    given = parser.parse_args()
    # A job in the background of a shell ignores SIGINT, and a job of nohup ignores SIGHUP. Without
    # these lines, the commands would ignore these signals too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    print(f"seed of the moments: {given.seed}")
    results = {}
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        for one in given.commands or COMMANDS:
            chance = random.Random(f"{given.seed} {one}")  # noqa: S311 - moments, not secrets
            results[one] = Trial(one, given.kills, Path(name), chance).run()
    print("\n" + ", ".join(f"{one}: {'ok' if ok else 'FAILED'}" for one, ok in results.items()))
    sys.exit(0 if all(results.values()) else 1)


if __name__ == "__main__":
    main()
