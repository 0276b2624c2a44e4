"""Files with mistakes that no generator of damage produces, and the commands that read them.

For each kind of file there is a command, the name of the file that the command reads, and a list of
contents of this file. The command must refuse some contents, with exit code 2 and a message, and
read the others.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

ESCAPE = "\x1b[31m"
TABLE = "sample,a,b,c\n" + "".join(f"s{k},{k % 2},{k // 2 % 2},{k // 3 % 2}\n" for k in range(40))
MAF = "Hugo_Symbol\tTumor_Sample_Barcode\tVariant_Classification\n"
CALLS = "A\ts1\tMissense_Mutation\nB\ts2\tMissense_Mutation\n"
CNA = "Hugo_Symbol\ts1\ts2\nA\t2\t0\nB\t0\t-2\n"
CLINICAL = "PATIENT_ID\tOS_STATUS\tOS_MONTHS\n" + "".join(
    f"s{k}\t{'1:DECEASED' if k % 2 else '0:LIVING'}\t{k + 1}\n" for k in range(40)
)
WEIGHTS = "sample,weight\n"
FIT = ("fit", "table.csv", "-o", "again", "--figures", "none", "--no-check", "--starts", "1",
       "--seed", "1", "--force")  # fmt: skip


def _weights(value: str) -> str:
    return WEIGHTS + "".join(f"s{k},{value}\n" for k in range(40))


def _zip(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, TABLE)
    return buffer.getvalue()


@dataclass(frozen=True)
class Kind:
    """A command, the file that it reads, and contents of this file to refuse or to read."""

    name: str
    command: tuple[str, ...]
    file: str
    refused: list[str | bytes]
    read: list[str | bytes] = field(default_factory=list)


def _import(name: str, source: str, file: str, *options: str, **contents: Any) -> Kind:
    command = ("import", source, file, "-o", "imported.csv", "--force", *options)
    return Kind(name, command, file, **contents)


GOOD_GZIP = gzip.compress(TABLE.encode())
DATES = ("--sample-column", "s", "--item-column", "i", "--date-column", "d", "--orders", "o.csv")
VALUES = ("--sample-column", "s", "--item-column", "i", "--value-column", "v")
TEXT_KINDS = [
    _import("table", "--table", "t.csv", refused=[
        "sample,a,b\n", "sample,a,b\nsample,a,b\ns1,1,0\n", "sample,a,b\ns1,１,0\n",
        "sample,a,b\ns1,0x1,1\n", 'sample,a,b\ns1,1,0\n"s2,0,1\n', "sample,   ,b\ns1,1,0\n",
        "sample,a b,a\u00a0b\ns1,1,0\n", "sample,a\u00adb,b\ns1,1,0\n",
        "sample,a\uffff,b\ns1,1,0\n",
        "sample,a\U000e0041,b\ns1,1,0\n", "sample,a\u200bb,ab\ns1,1,0\n",
        "sample,a,b\nne\u0301,1,0\nn\u00e9,0,1\n", TABLE.encode("utf-16-le"),
        TABLE.encode("utf-16") + b"x", "<!doctype html><table></table>", '{"a": [1, 0]}',
        "sample,a\n<<<<<<< HEAD\ns1,1\n=======\ns1,0\n>>>>>>> x\n", gzip.compress(GOOD_GZIP),
        GOOD_GZIP + b"junk", GOOD_GZIP[:-8] + b"\0\0\0\0" + GOOD_GZIP[-4:], _zip(),
        _zip(f"a{ESCAPE}.csv", "b.csv"),
    ], read=[
        TABLE.replace("1", "1.0").replace("s1.0", "s1"), "sample,+AGE-,b\ns1,1,0\ns2,0,1\n",
        gzip.compress(TABLE[:20].encode()) + gzip.compress(TABLE[20:].encode()), _zip("../t.csv"),
    ]),
    _import("MAF", "--maf", "t.maf", refused=[
        MAF, (MAF + CALLS).replace("\t", " "), (MAF + CALLS).replace("\t", ","),
        MAF + '"A\nB"\ts1\tMissense_Mutation\n' + CALLS, MAF + "A\ts\u202e1\tSilent\n" + CALLS,
        MAF + 'A\t""\tMissense_Mutation\n', MAF + CALLS + MAF.upper().replace("HUGO", "X\tHUGO"),
    ], read=[
        MAF + '"A"\t"s1"\t"Missense_Mutation"\n' + CALLS, MAF + CALLS + f"C\ts1\tMiss{ESCAPE}\n",
    ]),
    _import("copy numbers", "--cna", "c.txt", refused=[
        CNA.replace("\t2\t", f"\t{'9' * 5000}\t"), CNA.replace("s2", "s1"), CNA + "C\t0\n",
    ]),
    _import("long table", "--long", "l.tsv", *DATES, refused=[
        "s\ti\td\n", "s\ti\td\td\nx\ta\t1\t1\n", "s\ti\td\nx\ta\t2020-02-30\nx\tb\t2020-03-01\n",
        "s\ti\td\nx\ta\t0000-01-01\nx\tb\t2020-03-01\n", "s\ti\td\nx\ta\tinf\nx\tb\t3\n",
        "s\ti\td\nx\ta\t2020-01-01\nx\tb\t3\n", f"s\ti\td\nx\ta\t{ESCAPE}\n",
        "s\ti\td\nx\ta\u2066\t1\n",
    ], read=["s\ti\td\nx\ta\t1\nx\tb\t2\ny\ta\t1\n"]),
    _import("values of a long table", "--long", "l.tsv", *VALUES, refused=[
        "s\ti\tv\nx\ta\tmaybe\n", "s\ti\tv\nx\ta\t2\n",
    ], read=["s\ti\tv\nx\ta\t1\ny\tb\t1\ny\ta\t0\n"]),
    Kind("merge file", ("import", "--table", "table.csv", "--merge", "m.json", "-o", "i.csv",
         "--force"), "m.json", [
        "[]", '{"x": ["a"], "x": ["b"]}', '{"x": ["zz"]}', '{"x": ["a", "b"], "y": ["b", "c"]}',
        '{"x": [1]}', '{"x": "ab"}', '{"\\u001b[31m": ["a", "b"]}', '{"\\ud800": ["a", "b"]}',
        "[" * 100_000, '{"x": NaN}', '{"x": []}', '{"x": ' + "9" * 5000 + "}",
    ], ['{"x": ["a", "b"]}']),
    Kind("known orders", (*FIT, "--orders", "o.csv"), "o.csv", [
        "", "x,y\n1,2\n", "sample,before,after\ns7,a,b\ns7,b,a\n", "sample,before,after\ns3,a,a\n",
        "sample,before,after\ns0,a,b\n", "sample,before,after\nzz,a,b\n",
        f"sample,before,after\ns3,a,{ESCAPE}\n", "sample,before,after,probability\ns3,a,b,2\n",
    ], ["sample,before,after,probability\ns3,a,b,NA\n"]),
    Kind("weights", (*FIT, "--weights", "w.csv"), "w.csv", [
        *(_weights(value) for value in ("-1", "nan", "inf", "0", "1e308", "x")),
        WEIGHTS + "s1,1\n", _weights("1") + "s1,2\n", f"{WEIGHTS}s{ESCAPE},1\n",
    ], [_weights("0.5")]),
    Kind("fixed interactions", (*FIT, "--fixed", "f.csv"), "f.csv", [
        "", b"\xff\0", "from,to,value\nzz,a,1\n", "from,to,value\na,b,nan\n",
        "from,to,value\na,b,1e300\n", "from,to,value\na,b,1\na,b,2\n", "from,to,value\na,b,x\n",
        f"from,to,value\na,{ESCAPE},1\n",
    ], ["from,to\na,b\n"]),
    Kind("clinical data", ("report", "fit", "--clinical", "c.txt", "-o", "r.html"), "c.txt", [
        b"\0\xff", CLINICAL.splitlines()[0] + "\n", CLINICAL.replace("\t5\n", "\tinf\n"),
        CLINICAL + "s1\t0:LIVING\t7\n",
    ], [CLINICAL]),
    Kind("theta.csv", ("order", "th.csv", "a", "b"), "th.csv", [
        "x,a,b\na,1,2\n", "x,a,b\na,nan,2\nb,3,4\n", "x,a,b\na,0x10,2\nb,3,4\n",
        "x,a,b\na,1_0,2\nb,3,4\n", "x,a,a\na,1,2\na,3,4\n", "x,a,b\na,1e999,2\nb,3,4\n",
        f'x,a,b\na,"1{ESCAPE}",2\nb,3,4\n',
    ], ["x,a,b\na,-1,0.5\nb,0,-2\n"]),
    *(Kind(f"{name} of a fit", ("report", "fit", "-o", "r.html"), f"fit/{name}", [text])
      for name, text in [
        ("order_ranges.csv", f"first,second\na,{ESCAPE}\n"),
        ("orders.csv", "first,second,probability\na,b,x\n"), ("orders.csv", "\0\0\0"),
    ]),
]  # fmt: skip

RUNS: list[tuple[str, Any]] = [
    ("options.seed", -1), ("options.seed", 10**5000), ("options.penalty", 1e999),
    (f"options.x{ESCAPE}", 1), ("data.path", f"/x/{ESCAPE}"), ("data.path", "/x/\0y"),
    ("data.path", "/"), ("data.path", "/" + "x" * 5000), ("options.fixed", [["a"]]),
    ("options.observation", f"gamma:{ESCAPE}"), ("options.starts", 0), ("command", ESCAPE),
    ("result.fit_check", {"findings": 5, "tests": []}), ("options.times", ["a"]),
    ("options.most_frequent", "3"), ("options.orders", "/nowhere"),
]  # fmt: skip
OPTIONS = [
    ("--penalty", "nan"), ("--penalty", "-1"), ("--tol", "0"), ("--tol", "nan"),
    ("--seed", "9" * 5000), ("--checkpoint", "."), ("--checkpoint", "table.csv"),
    ("--checkpoint", "fit/model.npz"), ("--checkpoint", "no/x.npz"), ("--observation", "gamma:0"),
    ("--observation", ESCAPE), ("--figures", ESCAPE), ("--table-budget", "nan"),
]  # fmt: skip


def wrong_runs(good: str) -> list[tuple[str, str]]:
    """Return contents of run.json that a repetition must refuse."""
    contents = [("comment", f"// x\n{good}"), ("junk", good + "}{")]
    for name, value in RUNS:
        record = json.loads(good)
        *parents, last = name.split(".")
        place = record
        for parent in parents:
            place = place[parent]
        place[last] = "BIG" if isinstance(value, int) and value > 10**100 else value
        contents.append((name, json.dumps(record).replace('"BIG"', "9" * 5000)))
    return contents


def wrong_models(path: Path) -> list[tuple[str, bytes]]:
    """Return contents of a model.npz that every command must refuse."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    theta = np.load(path)["theta"]

    def packed(changed: dict[str, bytes], *more: tuple[str, bytes]) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, content in (*changed.items(), *more):
                archive.writestr(name, content)
        return buffer.getvalue()

    def with_theta(changed: np.ndarray) -> bytes:
        buffer = io.BytesIO()
        np.save(buffer, changed)
        return packed({**members, "theta.npy": buffer.getvalue()})

    claims = members["theta.npy"].replace(b"(3, 3)", b"(9**9, 9**9)".ljust(6))
    huge = members["theta.npy"].replace(b"(3, 3), }      ", b"(99999999, 99), }")
    encrypted = bytearray(path.read_bytes())
    for mark, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = encrypted.find(mark)
        while at >= 0:
            encrypted[at + flag] |= 1
            at = encrypted.find(mark, at + 4)
    return [
        ("complex", with_theta(theta + 0j)), ("text", with_theta(theta.astype(str))),
        ("records", with_theta(np.zeros((3, 3), dtype=[("x", "f8")]))),
        ("1e308", with_theta(theta * 0 + 1e308)), ("empty", with_theta(np.zeros((0, 0)))),
        ("twice", packed(members, ("theta.npy", members["theta.npy"]))),
        ("code", packed({**members, "theta.npy": claims})),
        ("huge", packed({**members, "theta.npy": huge})), ("encrypted", bytes(encrypted)),
    ]  # fmt: skip


def cases(folder: Path, run: Any) -> Any:
    """Yield (kind, content, arguments, expected) for each case.

    `run` runs a command in the current folder. It is used to make the valid files.
    """
    (folder / "table.csv").write_text(TABLE)
    run([*FIT[:3], "fit", *FIT[4:]])
    for kind in TEXT_KINDS:
        path = folder / kind.file
        before = path.read_bytes() if path.exists() else None
        for expected, contents in (("refused", kind.refused), ("read", kind.read)):
            for content in contents:
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
                yield kind.name, f"{content!a:.80}", list(kind.command), expected
        path.unlink() if before is None else path.write_bytes(before)
    for options in OPTIONS:
        yield "options of a fit", f"{options!a:.80}", [*FIT, *options], "refused"
    record = folder / "fit" / "run.json"
    good = record.read_text()
    for what, text in wrong_runs(good):
        record.write_text(text)
        yield "run.json", what, ["fit", "--repeat", "fit", "-o", "again", "--force"], "refused"
    record.write_text(good)
    for what, content in wrong_models(folder / "fit" / "model.npz"):
        (folder / "m.npz").write_bytes(content)
        yield "model", what, ["order", "m.npz", "a", "b"], "refused"
    shutil.rmtree(folder / "again", ignore_errors=True)
