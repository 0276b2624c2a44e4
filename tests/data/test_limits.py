"""Files that are far too large are refused before they are read to the end.

Users can raise the limits.
"""

from __future__ import annotations

import gzip

import pytest

from sequela import InputError, read_table
from sequela.data import _limits, read_cbioportal, read_long, read_maf
from sequela.data._limits import Limit
from sequela.data.merging import read_merges

TABLE = "sample,a,b\ns1,1,0\ns2,0,1\ns3,1,1\n"
MAF = "Hugo_Symbol\tTumor_Sample_Barcode\tVariant_Classification\n" + "".join(
    f"{gene}\ts{k}\tMissense_Mutation\n" for k, gene in enumerate("ABC")
)
CNA = "Hugo_Symbol\ts1\ts2\nA\t2\t0\nB\t0\t-2\n"
LONG = "sample\titem\n" + "".join(f"s{k}\t{item}\n" for k, item in enumerate("ABC"))


def read(kind, path):
    return {
        "table": read_table, "maf": read_maf, "cna": lambda p: read_cbioportal(cna=p),
        "long": lambda p: read_long(p, sample="sample", item="item"),
    }[kind](path).data  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), [("table", TABLE), ("maf", MAF), ("long", LONG)])
def test_as_many_rows_as_the_limit_are_read_and_one_more_is_refused(
    tmp_path, monkeypatch, kind, text
):
    path = tmp_path / "file.txt"
    path.write_text(text)
    monkeypatch.setenv("SEQUELA_MAX_ROWS", "3")
    assert read(kind, path).n_samples == 3
    monkeypatch.setenv("SEQUELA_MAX_ROWS", "2")
    with pytest.raises(InputError, match=r"more than 2 rows.*SEQUELA_MAX_ROWS"):
        read(kind, path)


@pytest.mark.parametrize(("kind", "text"), [("table", TABLE), ("maf", MAF), ("long", LONG)])
def test_far_too_many_rows_are_seen_by_the_size_of_the_file(tmp_path, monkeypatch, kind, text):
    path = tmp_path / "file.txt"
    header, _, rows = text.partition("\n")
    # The last line is malformed, but the reader must refuse the file before it reads this line.
    path.write_text(header + "\n" + rows * 100 + "x" * 40 + "\n")
    monkeypatch.setenv("SEQUELA_MAX_ROWS", "100")
    with pytest.raises(InputError, match=r"about [23]\d\d rows; expected at most 100"):
        read(kind, path)
    path.write_bytes(gzip.compress((header + "\n" + rows * 100).encode()))
    with pytest.raises(InputError, match="more than 100 rows"):
        read(kind, path)


@pytest.mark.parametrize(("kind", "text"), [("table", TABLE), ("maf", MAF), ("cna", CNA)])
def test_too_many_columns(tmp_path, monkeypatch, kind, text):
    path = tmp_path / "file.txt"
    path.write_text(text)
    monkeypatch.setenv("SEQUELA_MAX_COLUMNS", "3")
    read(kind, path)
    monkeypatch.setenv("SEQUELA_MAX_COLUMNS", "2")
    with pytest.raises(InputError, match=r"more than 2 columns.*SEQUELA_MAX_COLUMNS"):
        read(kind, path)


def test_lines_that_are_no_rows_are_bounded_too(tmp_path, monkeypatch):
    path = tmp_path / "file.txt"
    path.write_text("# comment\n" * 1000 + MAF)
    assert read("maf", path).n_samples == 3
    monkeypatch.setattr(_limits, "ROWS", Limit("rows", 400, "SEQUELA_MAX_ROWS"))
    with pytest.raises(InputError, match="about 1,004 rows; expected at most 400"):
        read("maf", path)


def test_blank_lines_and_merge_files(tmp_path, monkeypatch):
    path = tmp_path / "file.csv"
    path.write_text("\n" * 3_000_000 + TABLE)
    assert read("table", path).n_samples == 3
    monkeypatch.setenv("SEQUELA_MAX_BLANK_BYTES", "2000000")
    with pytest.raises(InputError, match="SEQUELA_MAX_BLANK_BYTES"):
        read("table", path)
    merges = tmp_path / "merges.json"
    merges.write_text('{"A": ["a", "b"]}')
    assert read_merges(merges)[0]
    monkeypatch.setenv("SEQUELA_MAX_MERGE_BYTES", "3")
    with pytest.raises(InputError, match="SEQUELA_MAX_MERGE_BYTES"):
        read_merges(merges)


@pytest.mark.parametrize("value", ["x", "0", "-1", "1e9", "\x1b[2J"])
def test_a_limit_that_is_no_number_is_explained(tmp_path, monkeypatch, value):
    path = tmp_path / "file.csv"
    path.write_text(TABLE)
    monkeypatch.setenv("SEQUELA_MAX_ROWS", value)
    with pytest.raises(InputError, match="environment variable SEQUELA_MAX_ROWS is"):
        read("table", path)
