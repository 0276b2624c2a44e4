"""Write valid files, damage them, and check the readers; see the docstring of the package."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from verification.attack.by_hand import cases
from verification.attack.damage import (
    damaged_arrays,
    damaged_bytes,
    damaged_json,
    hostile_text,
    unusual_text,
)
from verification.attack.judges import Tally

from sequela import Dataset, Model, SetChain
from sequela.cli import main as command
from sequela.data.cbioportal import read_cbioportal
from sequela.data.maf import read_maf
from sequela.data.tables import read_table
from sequela.posteriors.result import Posterior
from sequela.posteriors.sampling import posterior
from sequela.repeats import fit_table, models, plan_fits, run
from sequela.repeats.data_file import read_data
from sequela.report.fit_options import FitRunOptions
from sequela.report.run import Run
from sequela.support.labels import visible

TABLE = "sample,LABEL,b,c\ns1,1,0,1\ns2,0,1,0\ns3,1,1,0\n"
MAF = "Hugo_Symbol\tTumor_Sample_Barcode\tVariant_Classification\n" + "".join(
    f"{gene}\t{sample}\tMissense_Mutation\n"
    for gene, sample in [("LABEL", "s1"), ("B", "s1"), ("B", "s2"), ("C", "s3")]
)
CNA = "Hugo_Symbol\ts1\ts2\ts3\nLABEL\t2\t0\t-2\nB\t0\t2\t0\nC\t-2\t-2\t1\n"
MUTATIONS = (
    "STUDY_ID\tx\tx\tx\nSAMPLE_ID\ts1\ts2\ts3\nLABEL\tR1K\tWT\tNS\nB\tWT\tR2K\tWT\nC\tWT\tWT\tWT\n"
)
TEXTS: dict[str, tuple[str, str, Any]] = {
    "table": ("t.csv", TABLE, read_table),
    "MAF": ("t.maf", MAF, read_maf),
    "cBioPortal copies": ("cna.txt", CNA, lambda path: read_cbioportal(cna=path)),
    "cBioPortal mutations": ("m.txt", MUTATIONS, lambda path: read_cbioportal(mutations=path)),
}


def small() -> Dataset:
    rng = np.random.default_rng(3)
    return Dataset(rng.random((40, 4)) < [0.7, 0.5, 0.3, 0.2], items=["a", "b", "c", "d"])


class Attack:
    """Attacks on all kinds of files, in one temporary folder."""

    def __init__(self, folder: Path, rounds: int, seed: int) -> None:
        self.folder = folder
        self.rounds = rounds
        self.chance = random.Random(seed)  # noqa: S311 - damage, not secrets
        self.tally = Tally()

    def text_files(self) -> None:
        for kind, (name, text, read) in TEXTS.items():
            path = self.folder / name

            def attempt(content: bytes, path: Path = path, read: Any = read) -> None:
                path.write_bytes(content)
                read(path)

            for what, content in damaged_bytes(text.encode(), self.chance, 10 * self.rounds):
                self.tally.judge(kind, what, lambda c=content: attempt(c))
            for what, content in hostile_text(text, "LABEL"):
                self.tally.judge(kind, what, lambda c=content: attempt(c), expected="refused")
            for what, content in unusual_text(text, "LABEL"):
                self.tally.judge(kind, what, lambda c=content: attempt(c), expected="read")

    def parquet(self) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            return
        path = self.folder / "t.parquet"
        columns = {"sample": ["s1", "s2"], "a": [1, 0], "b": [0, 1]}
        pq.write_table(pa.table(columns), path)
        good = path.read_bytes()
        for what, content in damaged_bytes(good, self.chance, 3 * self.rounds):
            path.write_bytes(content)
            self.tally.judge("Parquet", what, lambda: read_table(path))
        wrong = {
            "text": ["x", "y"], "2": [2, 0],
            "lists": [[1], [0]], "bytes": [b"1", b"\xff"],
        }  # fmt: skip
        for what, cells in wrong.items():
            pq.write_table(pa.table({**columns, "b": cells}), path)
            self.tally.judge("Parquet", what, lambda: read_table(path), expected="refused")
        pq.write_table(pa.table({"sample": ["s1", "s2"], "a\x1b": [1, 0], "b": [0, 1]}), path)
        self.tally.judge("Parquet", "label", lambda: read_table(path), expected="refused")

    def models(self) -> None:
        path = self.folder / "model.npz"
        good = Model(np.arange(9.0).reshape(3, 3) / 10, ["a", "b", "c"], {"penalty": 0.1})
        good.save(path)
        content = path.read_bytes()
        for what, damaged in damaged_bytes(content, self.chance, 4 * self.rounds):
            path.write_bytes(damaged)
            self.tally.judge("model", what, lambda: Model.load(path), same_as=good)
        for what, damaged in damaged_arrays(content, self.chance, 6 * self.rounds):
            path.write_bytes(damaged)
            self.tally.judge("model", what, lambda: Model.load(path).theta.dtype.str)
        table = self.folder / "theta.csv"
        good.to_csv(table)
        for what, damaged in damaged_bytes(table.read_bytes(), self.chance, 4 * self.rounds):
            table.write_bytes(damaged)
            self.tally.judge("theta.csv", what, lambda: Model.from_csv(table))
        text = 'row acts on column,"LABEL"\n"LABEL",1.0\n'
        for generate, expected in ((hostile_text, "refused"), (unusual_text, "read")):
            for what, damaged in generate(text.replace("LABEL", "L"), "L"):
                table.write_bytes(damaged)
                self.tally.judge(
                    "theta.csv", what, lambda: Model.from_csv(table), expected=expected
                )

    def checkpoints(self) -> None:
        path = self.folder / "fit.npz"
        learner = SetChain(0.02, random_state=1, n_starts=2, checkpoint=path, progress=False)
        data = small()
        learner.set_params(checkpoint_every=0.0).fit(data)
        good, content = learner.theta_.tolist(), path.read_bytes()
        kinds = (
            damaged_bytes(content, self.chance, 3 * self.rounds),
            damaged_arrays(content, self.chance, 5 * self.rounds),
        )
        for damages in kinds:
            for what, damaged in damages:
                path.write_bytes(damaged)
                expected = "" if what in ("repeated", "inserted", "flipped") else "refused"
                expected = "" if damaged == content else expected
                self.tally.judge(
                    "checkpoint", what, lambda: learner.fit(data).theta_.tolist(),
                    expected=expected, same_as=good,
                )  # fmt: skip
                path.write_bytes(content)

    def runs(self) -> None:
        folder = self.folder / "run"
        folder.mkdir()
        data = {"path": "t.csv", "sha256": "0" * 64, "samples": 3, "items": 3}
        options = FitRunOptions(seed=1, starts=2).to_json()
        Run("fit", options, data, {"objective": -1.0, "theta_sha256": "0" * 64}).write(folder)
        content = json.loads((folder / "run.json").read_text())

        def read() -> None:
            FitRunOptions.from_json(Run.read(folder).options)

        for what, text in damaged_json(content, self.chance, 25 * self.rounds):
            (folder / "run.json").write_text(text)
            self.tally.judge("run.json", what, read)

    def repeats(self) -> None:
        folder = self.folder / "repeats"
        plan = plan_fits(small(), bootstraps=2, penalty=0.05, seed=1, orders=["a", "b"])
        run(plan, folder, backend="threads", workers=1)
        good = {k: m.theta.tolist() for k, m in models(folder).items()}

        def read() -> Any:
            read_data.cache_clear()
            fit_table(folder)
            return {k: m.theta.tolist() for k, m in models(folder).items()}

        for name, kind in (("plan.json", "plan"), ("000001.json", "record")):
            path = folder / name
            text = path.read_text()
            for what, damaged in damaged_json(json.loads(text), self.chance, 8 * self.rounds):
                path.write_text(damaged)
                self.tally.judge(kind, what, read, same_as=good)
            for what, content in damaged_bytes(text.encode(), self.chance, 2 * self.rounds):
                path.write_bytes(content)
                self.tally.judge(kind, what, read, same_as=good)
            path.write_text(text)
        path = folder / "data.npz"
        content = path.read_bytes()
        for what, damaged in damaged_bytes(content, self.chance, 2 * self.rounds):
            path.write_bytes(damaged)
            self.tally.judge("data of a plan", what, read, same_as=good)

    def posteriors(self) -> None:
        path = self.folder / "posterior.npz"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior(small(), draws=8, warm_up=10, chains=2, random_state=1).save(path)
        good, content = Posterior.load(path).theta.tolist(), path.read_bytes()

        def read() -> Any:
            return Posterior.load(path).theta.tolist()

        for what, damaged in damaged_bytes(content, self.chance, 4 * self.rounds):
            path.write_bytes(damaged)
            self.tally.judge("posterior", what, read, same_as=good)
        import zipfile

        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        header = json.loads(members["header.json"])
        for what, text in damaged_json(header, self.chance, 10 * self.rounds):
            with zipfile.ZipFile(path, "w") as archive:
                for name, one in {**members, "header.json": text.encode()}.items():
                    archive.writestr(name, one)
            self.tally.judge("posterior", what, read, expected="refused")

    def command_line(self) -> None:
        """Pass hostile content to commands, and check that no control character is printed."""
        from click.testing import CliRunner

        runner = CliRunner()
        table, maf = self.folder / "cli.csv", self.folder / "cli.maf"
        for what, content in hostile_text(TABLE, "LABEL"):
            table.write_bytes(content)
            maf.write_bytes(MAF.encode().replace(b"Hugo_Symbol", content[7:20]))
            for arguments in (
                ["import", "--table", str(table), "-o", str(self.folder / "o.csv"), "--force"],
                ["import", "--maf", str(maf), "-o", str(self.folder / "o.csv"), "--force"],
                ["order", str(table), "a", "b"],
            ):
                result = runner.invoke(command, arguments)
                kind = "command line"
                self.tally.tried[kind] += 1
                self.tally.refused[kind] += result.exit_code != 0
                shown = re.sub(r"\x1b\[\d*m", "", result.output)  # colours of sequela itself
                if visible(shown) != shown or "unexpected" in shown or result.exit_code != 2:
                    self.tally.findings.append(f"{kind}, {what}: {result.output!a:.300}")

    def by_hand(self) -> None:
        """Run commands on the files that were written by hand (`by_hand.py`)."""
        from click.testing import CliRunner

        folder = self.folder / "by_hand"
        folder.mkdir()
        runner = CliRunner()
        kind = "by hand, commands"
        with contextlib.chdir(folder), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, what, arguments, expected in cases(
                folder, lambda given: runner.invoke(command, given)
            ):
                result = runner.invoke(command, arguments)
                self.tally.tried[kind] += 1
                self.tally.refused[kind] += result.exit_code != 0
                shown = re.sub(r"\x1b\[\d*m", "", result.output)  # colours of sequela itself
                wrong = "This error is unexpected" in shown or visible(shown) != shown
                if wrong or result.exit_code != (2 if expected == "refused" else 0):
                    found = f"{kind}, {name}, {what}: {result.exit_code} {result.output!a:.300}"
                    self.tally.findings.append(found)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    began = time.process_time()
    with tempfile.TemporaryDirectory() as name:
        attack = Attack(Path(name), rounds, seed)
        for part in (
            attack.text_files, attack.parquet, attack.models, attack.checkpoints, attack.runs,
            attack.repeats, attack.posteriors, attack.command_line, attack.by_hand,
        ):  # fmt: skip
            part()
            print(f"{part.__name__}: {time.process_time() - began:.0f} CPU seconds", flush=True)
    attack.tally.show()
    sys.exit(1 if attack.tally.findings else 0)


if __name__ == "__main__":
    main()
