"""Malformed files: each is read correctly, or refused with a clear message.

Every refusal is an InputError of at most ten lines that names the file and what is wrong with it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import unicodedata
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sequela import InputError
from sequela.data import _text_files
from sequela.data.cbioportal import read_cbioportal
from sequela.data.maf import read_maf
from sequela.data.merging import read_merges
from sequela.data.tables import read_table

TABLE = b"sample,A,B,C\ns1,1,0,1\ns2,0,0,0\ns3,1,1,0\n"
CELLS = [[1, 0, 1], [0, 0, 0], [1, 1, 0]]


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def flipped(content, place):
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


def long_zip(content):
    """Return a zip archive with a wrong checksum."""
    data = zipped(a=content)
    place = data.index(b"PK\x01\x02") + 16
    stored = data.index(b"PK\x03\x04") + 14
    return flipped(flipped(data, place), stored)


def refused(read, path, words, **options):
    with pytest.raises(InputError) as caught:
        read(path, **options)
    message = str(caught.value)
    # At most ten lines: a heading, eight kinds of mistakes, and the number of the other mistakes.
    assert message.count("\n") <= 9
    assert all(len(line) < 700 for line in message.splitlines()), message
    assert "Traceback" not in message
    for word in words:
        assert word in message, message


# --- Tables that cannot be read -----------------------------------------------------------------

BIG = b"sample," + b",".join(b"g%d" % j for j in range(2000)) + b"\n" + b"s,0" + b",0" * 1999

TABLES = {
    # files that are not text
    "empty": (b"", ["empty"]),
    "blank lines": (b"\n\n  \n", ["empty"]),
    "only a mark": (b"\xef\xbb\xbf", ["empty"]),
    "only remarks": (b"# nothing\n## here\n", ["empty"]),
    "gzip of nothing": (gzip.compress(b""), ["empty"]),
    "NUL bytes": (b"sample,A\ns1,1\ns2,\x000\n", ["line 3", "NUL"]),
    "NUL in the header": (b"sample,A\x00\ns1,1\n", ["line 1", "NUL"]),
    "only NUL": (b"\0" * 1000, ["NUL"]),
    "random bytes": (bytes(range(128, 256)), ["UTF-8"]),
    "UTF-16 without its mark": (TABLE.decode().encode("utf-16-le"), ["NUL", "utf-16-le"]),
    "UTF-16 big without its mark": (TABLE.decode().encode("utf-16-be"), ["NUL"]),
    "UTF-32": (TABLE.decode().encode("utf-32"), ["UTF-32"]),
    "half of UTF-16": (TABLE.decode().encode("utf-16")[:-1], ["not"]),
    "Latin-1": ("sample,Ä\ns1,1\n".encode("latin-1"), ["line 1", "latin-1"]),
    "Latin-1 below": ("sample,A\ns1,1\nsü,0\n".encode("latin-1"), ["line 3", "UTF-8"]),
    "Latin-1 below CR": ("sample,A\rs1,1\rsü,0\r".encode("latin-1"), ["line 3", "UTF-8"]),
    "half a character at the end": ("sample,A\ns1,1\nsü".encode()[:-1], ["line 3"]),
    "Excel": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, ["Excel", "CSV"]),
    "Excel, newer": (zipped(**{"[Content_Types].xml": "", "xl/workbook.xml": ""}), ["CSV"]),
    "OpenDocument": (zipped(mimetype="x", content="y"), ["CSV"]),
    "PDF": (b"%PDF-1.7\n...", ["PDF"]),
    "HDF5": (b"\x89HDF\r\n\x1a\n", ["HDF5"]),
    "SQLite": (b"SQLite format 3\0", ["database"]),
    "NumPy": (b"\x93NUMPY\x01\0", ["NumPy"]),
    "R workspace": (gzip.compress(b"RDX3\nX\n\0\0"), ["write.csv"]),
    "R object": (gzip.compress(b"X\n\0\0\0\x03"), ["write.csv"]),
    "web page": (b"<!DOCTYPE html><html></html>", ["web page"]),
    "web page, indented": (b"\n  <HTML><body>", ["web page"]),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", ["git lfs"]),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x00", ["zstd"]),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\0", ["7z"]),
    "rar": (b"Rar!\x1a\x07", ["RAR"]),
    "tar": (b"t.csv".ljust(257, b"\0") + b"ustar\x0000" + b"\0" * 500, ["tar"]),
    "tar.gz": (gzip.compress(b"t.csv".ljust(257, b"\0") + b"ustar\x0000"), ["tar"]),
    "PNG": (b"\x89PNG\r\n\x1a\n\0\0", ["a picture"]),
    # compressed and damaged
    "truncated gzip": (gzip.compress(TABLE * 50)[:-12], ["incomplete or damaged"]),
    "gzip without its checksum": (gzip.compress(TABLE)[:-8], ["incomplete or damaged"]),
    "gzip, half its checksum": (gzip.compress(TABLE)[:-3], ["incomplete or damaged"]),
    "two bytes of gzip": (b"\x1f\x8b", ["incomplete or damaged"]),
    "gzip with a wrong checksum": (flipped(gzip.compress(TABLE), -6), ["incomplete or damaged"]),
    "gzip damaged inside": (flipped(gzip.compress(TABLE), 20), ["damaged"]),
    "gzip with a tail": (gzip.compress(TABLE) + b"tail", ["damaged"]),
    "truncated bzip2": (bz2.compress(TABLE)[:-5], ["incomplete or damaged"]),
    "bzip2 damaged inside": (flipped(bz2.compress(TABLE), 30), ["damaged"]),
    "truncated xz": (lzma.compress(TABLE)[:-5], ["incomplete or damaged"]),
    "xz damaged inside": (flipped(lzma.compress(TABLE), 30), ["damaged"]),
    "truncated zip": (zipped(a=TABLE)[:-30], ["incomplete or damaged"]),
    "empty zip": (zipped(), ["0 files"]),
    "zip of two": (zipped(a=TABLE, b=TABLE), ["2 files", "unpack"]),
    "zip with a wrong checksum": (long_zip(TABLE), ["damaged"]),
    "zip of a folder": (zipped(**{"a/": ""}), ["0 files"]),
    "gzip of gzip": (gzip.compress(gzip.compress(TABLE)), ["not"]),
    # lines and separators
    "header only": (b"sample,A,B\n", ["one line only"]),
    "header and blanks": (b"sample,A,B\n\n\n", ["one line only"]),
    "a word": (b"hello", ["one line only"]),
    "a line too short": (b"sample,A,B\ns1,1,0\ns2,1\n", ["line 3", "2 cells", "expected 3"]),
    "a line too long": (b"sample,A,B\ns1,1,0\ns2,1,0,0\n", ["line 3", "4 cells"]),
    "first line too long by two": (b"sample,A\ns1,1,0,0\n", ["line 2", "4 cells"]),
    "all lines too short": (b"sample,A,B,C\ns1,1\ns2,0\n", ["line 2", "2 cells"]),
    "trailing separators": (b"sample,A,\ns1,1,\n", ["number 3", "no label"]),
    "trailing separators below": (b"sample,A\ns1,1,\n", ["missing"]),
    "mixed separators": (b"sample,A,B\ns1,1,0\ns2\t1\t0\n", ["line 3", "tabs"]),
    "mixed, semicolons": (b"sample,A,B\ns1,1,0\ns2;1;0\n", ["line 3", "semicolons"]),
    "header with commas, rows with tabs": (b"sample,A,B\ns1\t1\t0\n", ["line 2"]),
    "header with tabs, rows with commas": (b"sample\tA\tB\ns1,1,0\n", ["line 2"]),
    "ragged far below": (TABLE + b"t,0,0,0\n" * 0 + b"s4,1,0\n", ["line 5", "3 cells"]),
    "cut in the last line": (TABLE[:-4], ["line 4"]),
    "open quotation mark": (b'sample,"A,B\ns1,1,0\n', ["quotation mark"]),
    "quotation mark in the middle": (b'sample,"A"x,B\ns1,1,0\n', ["line 1", "quotation mark"]),
    "open quotation mark below": (b'sample,A\ns1,1\n"s2,0\n', ["line 3", "quotation mark"]),
    "line break in a label": (b'sample,"A\nB"\ns1,1\n', ["line break"]),
    "control character in a label": (b"sample,A\x07\ns1,1\n", ["cannot be printed"]),
    "escape in an id": (b"sample,A\ns\x1b[31m,1\n", ["cannot be printed"]),
    "one huge cell": (b"sample,A\ns1," + b"1" * 200_000 + b"\n", ["line 2", "131072"]),
    "one huge cell in quotation marks": (b'sample,A\ns1,"' + b"1" * 200_000 + b'"\n', ["line 2"]),
    "a blank line as a value": (b"A\n1\n\n0\n", ["line 3", "no value"]),
    # labels
    "label twice": (b"sample,A,A\ns1,1,0\n", ["line 1", "'A' occurs twice", "2 and 3"]),
    "label twice but for spaces": (b"sample,A, A \ns1,1,0\n", ["'A' occurs twice"]),
    "label twice, ids not named": (b"A\tB\tA\ns1\t1\t0\t1\n", ["'A' occurs twice"]),
    "no label": (b"sample,A,,B\ns1,1,0,1\n", ["number 3", "no label"]),
    "a label of spaces": (b"sample,A,  ,B\ns1,1,0,1\n", ["number 3", "no label"]),
    "a label too few": (b"sample,A\ns1,1,0\ns2,0,0\n", ["line 1", "2 labels", "3 cells"]),
    "no labels": (b",,\ns1,1,0\n", ["no label"]),
    "sample twice": (b"sample,A\ns1,1\ns2,1\ns1,0\n", ["'s1'", "lines 2 and 4"]),
    "sample twice but for spaces": (b"sample,A\ns1,1\n s1 ,0\n", ["'s1'", "lines 2 and 3"]),
    "no id": (b"sample,A\ns1,1\n,0\n", ["line 3", "no id"]),
    "all ids equal": (b"sample,A\nx,1\nx,0\n", ["'x'", "twice"]),
    "no header": (b"1,0,1\n0,0,1\n", ["header=False"]),
    "no header, two columns": (b"0,1\n1,1\n", ["header=False"]),
    "no header, one column": (b"1\n0\n", ["header=False"]),
    "no header, yes and no": (b"yes,no\nno,no\n", ["header=False"]),
    "no header but ids": (b"s1,0,1\ns2,1,1\n", ["header=False"]),
    "ids only": (b"sample\ns1\ns2\n", ["line 2", "'s1'"]),
    "ids only, not named": (b"\ns1\ns2\n", ["line 3"]),
    # cells
    "2": (b"sample,A,B\ns1,1,0\ns2,0,2\n", ["line 3", "'s2'", "'B'", "'2'", "expected 0 or 1"]),
    "-1": (b"sample,A\ns1,-1\n", ["line 2", "'-1'"]),
    "0.5": (b"sample,A\ns1,0.5\n", ["line 2", "'0.5'"]),
    "1e0": (b"sample,A\ns1,1e0\n", ["'1e0'"]),
    "01": (b"sample,A\ns1,01\n", ["'01'"]),
    "+1": (b"sample,A\ns1,+1\n", ["'+1'"]),
    "x": (b"sample,A\ns1,x\n", ["'x'"]),
    "WT": (b"sample,A\ns1,WT\n", ["'WT'"]),
    "Arabic one": ("sample,A\ns1,١\n".encode(), ["expected 0 or 1"]),
    "superscript one": ("sample,A\ns1,¹\n".encode(), ["expected 0 or 1"]),
    "inf": (b"sample,A\ns1,inf\n", ["'inf'"]),
    "comma as decimal point": (b"sample;A;B\ns1;1,0;0\n", ["'1,0'"]),
    "a formula as a cell": (b"sample,A\ns1,=1+0\n", ["'=1+0'"]),
    "an error of a spreadsheet": (b"sample,A\ns1,#REF!\n", ["'#REF!'"]),
    "age among the items": (b"sample,age,A\ns1,44,1\n", ["'age'", "times='age'"]),
    "a text among the items": (b"sample,A,stage\ns1,1,IV\n", ["'stage'", "drop="]),
    "numbered samples": (b"nr,A\n1,1\n2,0\n3,1\n", ["samples='nr'"]),
    "cells cut by spaces": (b"A B C\n1 0\n", ["line 2"]),
    "a bad cell far below": (TABLE + b"t4,0,7,0\n", ["line 5", "'t4'", "'B'", "'7'"]),
    "a bad cell in the last column": (BIG[:-1] + b"3", ["'g1999'", "'3'"]),
    "nothing known": (
        b"sample,A,B\ns1,1,0\ns2,NA,n/a\n",
        ["line 3", "'s2'", "all cells are missing"],
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_that_are_refused(tmp_path, kind):
    content, words = TABLES[kind]
    path = tmp_path / "given.csv"
    path.write_bytes(content)
    refused(read_table, path, ["given.csv", *words])


OPTIONS = {
    "no such times": ({"times": "tme"}, ["'tme'"]),
    "no such samples": ({"samples": "smple"}, ["did you mean 'sample'"]),
    "no such item": ({"items": ["A", "D"]}, ["'D'"]),
    "items as a text": ({"items": "A"}, ["list"]),
    "items of numbers": ({"items": [1]}, ["list of strings", "1 in it"]),
    "ids as items": ({"items": ["sample"]}, ["'sample'"]),
    "no such drop": ({"drop": ["D"]}, ["'D'"]),
    "drop all": ({"drop": ["A", "B", "C"]}, ["no column for items"]),
    "drop as a text": ({"drop": "A"}, ["list"]),
    "no such keep": ({"keep": ["D"]}, ["keep", "'D'"]),
    "keep of numbers": ({"keep": [3]}, ["keep"]),
    "keep and drop": ({"keep": ["A"], "drop": ["A"]}, ["'A'"]),
    "at_least too much": ({"at_least": 4}, ["at_least=4"]),
    "at_least of text": ({"at_least": "4"}, ["at_least"]),
    "at_least 0": ({"at_least": 0}, ["at_least"]),
    "most_frequent 0": ({"most_frequent": 0}, ["most_frequent"]),
    "most_frequent True": ({"most_frequent": True}, ["most_frequent"]),
    "merge of a number": ({"merge": 3}, ["merge"]),
    "merge of nothing there": ({"merge": {"X": ["Y"]}}, ["merge", "'Y'"]),
    "merge onto another": ({"merge": {"C": ["A", "B"]}}, ["'C'"]),
    "merge twice": ({"merge": {"X": ["A"], "Y": ["A"]}}, ["'A'", "two groups"]),
    "merge of a text": ({"merge": {"X": "A"}}, ["list of names"]),
    "merge without a name": ({"merge": {" ": ["A"]}}, ["name"]),
    "merge of nothing": ({"merge": {"X": []}}, ["list of names"]),
    "merge from no file": ({"merge": "no.json"}, ["no.json"]),
    "encoding unknown": ({"encoding": "utf-9"}, ["utf-9"]),
    "encoding that is none": ({"encoding": "hex"}, ["hex"]),
    "encoding that does not fit": ({"encoding": "utf-16"}, ["utf-16"]),
    "separator too long": ({"separator": "::"}, ["separator"]),
    "separator of another kind": ({"separator": "\t"}, ["line 2"]),
    "times and items in rows": ({"times": "A", "items_in_rows": True}, ["times"]),
    "times of ids": ({"times": "sample"}, ["'s1'", "time"]),
    "ids that are none": ({"samples": "A"}, ["'A'", "'1'"]),
    "no ids where there are": ({"samples": False}, ["'s1'", "samples='sample'"]),
    "no header where there is": ({"header": False}, ["line 1"]),
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_options_that_do_not_fit(tmp_path, kind):
    options, words = OPTIONS[kind]
    path = tmp_path / "given.csv"
    path.write_bytes(TABLE)
    if kind == "ids that are none":
        words = ["'1'"]
    refused(read_table, path, words, **options)


@pytest.mark.parametrize(
    ("cell", "word"),
    [(b"-1", "'-1'"), (b"soon", "'soon'"), (b"inf", "'inf'"), (b"1_0", "'1_0'"), (b"1,5", "'1,5'")],
)
def test_times_that_are_refused(tmp_path, cell, word):
    path = tmp_path / "given.tsv"
    path.write_bytes(b"sample\tt\tA\ns1\t1\t1\ns2\t" + cell + b"\t0\n")
    refused(read_table, path, ["line 3", "'t'", word], times="t")


# --- Paths ---------------------------------------------------------------------------------------

READERS = [read_table, read_maf, read_cbioportal, read_merges]


@pytest.mark.parametrize("read", READERS)
def test_paths_that_lead_nowhere(tmp_path, read):
    (tmp_path / "table.csv").write_bytes(TABLE)
    refused(read, tmp_path, ["folder"])
    refused(read, tmp_path / "tables.csv", ["did you mean 'table.csv'"])
    refused(read, tmp_path / "nothing" / "here.txt", ["cannot be read"])
    refused(read, tmp_path / "table.csv" / "inside", ["cannot be read"])
    refused(read, tmp_path / ("x" * 5000), ["cannot be read"])
    refused(read, "a\0b", ["cannot be read"])
    refused(read, "https://example.org/table.csv", ["download"])
    refused(read, "", [])
    refused(read, 3, ["3"])
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        refused(read, tmp_path / "pipe", ["not a regular file"])
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    refused(read, tmp_path / "loop", ["cannot be read"])


@pytest.mark.parametrize("read", READERS)
def test_no_permission(tmp_path, read, monkeypatch):
    path = tmp_path / "locked.csv"
    path.write_bytes(TABLE)

    def denied(self, *args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)  # chmod would not stop a superuser
    refused(read, path, ["Permission denied", "locked.csv"])


# --- Odd but valid tables -------------------------------------------------------------------------

ODD = {
    "as it should be": (TABLE, {}),
    "with a mark": (b"\xef\xbb\xbf" + TABLE, {}),
    "CRLF": (TABLE.replace(b"\n", b"\r\n"), {}),
    "CR": (TABLE.replace(b"\n", b"\r"), {}),
    "mixed ends of lines": (b"sample,A,B,C\r\ns1,1,0,1\rs2,0,0,0\ns3,1,1,0", {}),
    "no end of the last line": (TABLE.rstrip(), {}),
    "blank lines at the end": (TABLE + b"\n\n \n", {}),
    "blank lines before": (b"\n\n" + TABLE, {}),
    "remarks before": (b"# made by hand\n#\n##more\n" + TABLE, {}),
    "a marked header": (b"#" + TABLE, {}),
    "tabs": (TABLE.replace(b",", b"\t"), {}),
    "semicolons": (TABLE.replace(b",", b";"), {}),
    "spaces": (TABLE.replace(b",", b" "), {}),
    "several spaces": (TABLE.replace(b",", b"  "), {}),
    "separator told": (b"sep=|\r\n" + TABLE.replace(b",", b"|"), {}),
    "bars": (TABLE.replace(b",", b"|"), {"separator": "|"}),
    "spaces around": (TABLE.replace(b",", b" , "), {}),
    "quotation marks": (
        b'"' + TABLE.strip().replace(b",", b'","').replace(b"\n", b'"\n"') + b'"',
        {},
    ),
    "true and false": (TABLE.replace(b",1", b",TRUE").replace(b",0", b",False"), {}),
    "yes and no": (TABLE.replace(b",1", b",yes").replace(b",0", b",No"), {}),
    "1.0 and 0.0": (TABLE.replace(b",1", b",1.0").replace(b",0", b",0.0"), {}),
    "as R writes it": (TABLE.replace(b"sample,", b""), {}),
    "ids not named": (TABLE.replace(b"sample,", b","), {}),
    "ids with another name": (TABLE.replace(b"sample,", b"who,"), {}),
    "gzip": (gzip.compress(TABLE), {}),
    "two gzips in a row": (gzip.compress(TABLE[:20]) + gzip.compress(TABLE[20:]), {}),
    "bzip2": (bz2.compress(TABLE), {}),
    "xz": (lzma.compress(TABLE), {}),
    "zip": (zipped(inside=TABLE), {}),
    "zip of a Mac": (zipped(**{"inside": TABLE, "_" * 2 + "MACOSX/._inside": b"0"}), {}),
    "UTF-16": (TABLE.decode().encode("utf-16"), {}),
    "UTF-16, tabs": (TABLE.replace(b",", b"\t").decode().encode("utf-16"), {}),
    "UTF-16 as said": (TABLE.decode().encode("utf-16-le"), {"encoding": "utf-16-le"}),
    "Latin-1 as said": (TABLE, {"encoding": "latin-1"}),
    "a mark and UTF-8 as said": (b"\xef\xbb\xbf" + TABLE, {"encoding": "utf-8"}),
    "turned": (
        b"item,s1,s2,s3\nA,1,0,1\nB,0,0,1\nC,1,0,0\n",
        {"items_in_rows": True},
    ),
}


@pytest.mark.parametrize("kind", ODD)
def test_tables_that_look_odd_and_are_right(tmp_path, kind):
    content, options = ODD[kind]
    path = tmp_path / "given.dat"
    path.write_bytes(content)
    data = read_table(path, **options).data
    assert data.items == ("A", "B", "C")
    assert data.samples == ("s1", "s2", "s3")
    assert data.values.astype(int).tolist() == CELLS


LABELS = {
    "numbers": ["7", "8", "9"],
    "formulas": ["=A1+B1", "@SUM(A1)", "#REF!"],
    "dates": ["1-Mar", "2-Sep", "SEPT3"],
    "commas": ["PAOX,...(D)", "a,b", "c"],
    "Greek": ["α", "β", "γ"],
    "quotation marks": ['5"', "b'", "c"],
    "one differs in case": ["a", "A", "aa"],
    "spaces inside": ["a b", "b c", "c d"],
    "like a separator": ["a;b", "b;c", "c;d"],
}


@pytest.mark.parametrize("kind", LABELS)
def test_odd_labels_are_kept_as_they_are(tmp_path, kind):
    labels = LABELS[kind]
    quoted = ['"' + label.replace('"', '""') + '"' for label in labels]
    path = tmp_path / "given.csv"
    path.write_text("id," + ",".join(quoted) + "\ns1,1,0,1\ns2,0,0,0\ns3,1,1,0\n", encoding="utf-8")
    read = read_table(path)
    assert read.data.items == tuple(labels)
    assert read.data.values.astype(int).tolist() == CELLS
    if kind in ("formulas", "dates"):
        assert any("spreadsheet" in note for note in read.summary.notes)


def test_a_million_columns(tmp_path):
    """A table with a million columns can be read.

    If a label is misspelled, the search for similar labels must not take long.
    """
    path = tmp_path / "wide.csv"
    header = "sample," + ",".join(f"g{j}" for j in range(1_000_000))
    path.write_text(header + "\ns1" + ",0" * 999_999 + ",1\n")
    data = read_table(path).data
    assert data.n_items == 1_000_000
    assert data.sets() == [frozenset({"g999999"})]
    path.write_text("sample" + "".join(f",g{j}" for j in range(100_000)) + "\ns1" + ",0" * 100_000)
    refused(read_table, path, ["'h1'"], keep=["h1"])


def test_a_line_without_an_end_is_not_kept_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("sequela.data._text_files._LONGEST_LINE", 1 << 21)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"1" * (1 << 23)))
    refused(read_table, path, ["line 1", "longer"])


# --- MAF ------------------------------------------------------------------------------------------

HEAD = b"Hugo_Symbol\tVariant_Classification\tTumor_Sample_Barcode\n"
LINE = b"TP53\tMissense_Mutation\ts1\n"

MAFS = {
    "empty": (b"", ["empty"], {}),
    "remarks only": (b"#version 2.4\n", ["empty"], {}),
    "header only": (HEAD, ["no samples"], {}),
    "no tabs": (HEAD.replace(b"\t", b",") + LINE.replace(b"\t", b","), ["tabs"], {}),
    "no gene": (b"Gene\tTumor_Sample_Barcode\n", ["Hugo_Symbol"], {}),
    "no sample": (b"Hugo_Symbol\tVariant_Classification\n", ["Tumor_Sample_Barcode"], {}),
    "no class": (b"Hugo_Symbol\tTumor_Sample_Barcode\nA\ts\n", ["Variant_Classification"], {}),
    "gene twice": (b"Hugo_Symbol\tHUGO_SYMBOL\tTumor_Sample_Barcode\n", ["twice"], {}),
    "short line": (HEAD + b"TP53\tSilent\n" + LINE, ["line 2", "2 cells"], {}),
    "long line": (HEAD + LINE.strip() + b"\tmore\n", ["line 2", "4 cells"], {}),
    "cut at its end": (HEAD[:-1] + b"\tx\n" + LINE[:-1] + b"\ty\n" + LINE, ["line 3"], {}),
    "no id": (HEAD + b"TP53\tSilent\t\n", ["line 2", "Tumor_Sample_Barcode"], {}),
    "NUL": (HEAD + b"TP53\tSil\0ent\ts\n", ["line 2", "NUL"], {}),
    "Latin-1": (HEAD + LINE + b"TP53\tSilent\ts\xfc\n", ["line 3", "UTF-8"], {}),
    "truncated": (gzip.compress((HEAD + LINE) * 9)[:-9], ["incomplete"], {}),
    "all silent": (HEAD + b"TP53\tSilent\ts1\n", ["no items"], {}),
    "control character": (HEAD + b"TP\x0753\tMissense_Mutation\ts1\n", ["printed"], {}),
    "no such class": (HEAD + LINE, ["missense"], {"consequences": ["missense"]}),
    "class as a text": (HEAD + LINE, ["list"], {"consequences": "Silent"}),
    "class as a number": (HEAD + LINE, ["list"], {"consequences": [1]}),
    "nobody profiled": (HEAD + LINE, ["no sample ids"], {"profiled": []}),
    "others profiled": (HEAD + LINE, ["barcode_length"], {"profiled": ["s1-01"]}),
    "profiled by number": (HEAD + LINE, ["list of strings"], {"profiled": [1]}),
    "profiled is no list": (HEAD + LINE, ["profiled", "path"], {"profiled": 1}),
    "barcode of no length": (HEAD + LINE, ["barcode_length"], {"barcode_length": 0}),
    "genes as a text": (HEAD + LINE, ["list"], {"items": "TP53"}),
    "no such keep": (HEAD + LINE, ["did you mean 'TP53'"], {"keep": ["TP5"]}),
}


@pytest.mark.parametrize("kind", MAFS)
def test_mafs_that_are_refused(tmp_path, kind):
    content, words, options = MAFS[kind]
    path = tmp_path / "given.maf"
    path.write_bytes(content)
    refused(read_maf, path, words, **options)


def test_lists_of_profiled_samples_that_are_refused(tmp_path):
    maf, ids = tmp_path / "given.maf", tmp_path / "ids.txt"
    maf.write_bytes(HEAD + LINE)
    for content, word in ((b"", "no sample ids"), (b"s1,s2\n", "line 1"), (b"\xff", "UTF-8")):
        ids.write_bytes(content)
        refused(read_maf, maf, ["ids.txt", word], profiled=ids)
    refused(read_maf, maf, ["idz.txt"], profiled=tmp_path / "idz.txt")
    refused(read_maf, [], ["no MAF"])


# --- cBioPortal -----------------------------------------------------------------------------------

MUTATIONS = b"STUDY_ID\tx\tx\nSAMPLE_ID\ts1\ts2\nTP53\tR175H\tWT\nEGFR\tWT\tWT\n"
LEVELS = b"STUDY_ID\tx\tx\nSAMPLE_ID\ts1\ts2\nTP53\t-2\t0\nEGFR\t2\t1\n"

GENE_TABLES = {
    "empty": (b"", ["empty"]),
    "study only": (b"STUDY_ID\tx\tx\n", ["line 2", "SAMPLE_ID"]),
    "no ids": (b"STUDY_ID\tx\tx\nTP53\tWT\tWT\n", ["line 2", "SAMPLE_ID"]),
    "an id too few": (b"STUDY_ID\tx\tx\nSAMPLE_ID\ts1\n", ["line 2", "2 sample ids"]),
    "no genes": (b"STUDY_ID\tx\tx\nSAMPLE_ID\ts1\ts2\n", ["no lines below"]),
    "no samples": (b"Hugo_Symbol\tEntrez_Gene_Id\nTP53\t1\n", ["no samples"]),
    "another table": (TABLE, ["read_table"]),
    "a gene twice": (MUTATIONS + b"TP53\tWT\tWT\n", ["'TP53'", "lines 3 and 5"]),
    "a sample twice": (MUTATIONS.replace(b"s2", b"s1"), ["'s1' occurs twice"]),
    "a sample without id": (MUTATIONS.replace(b"s2", b""), ["no label"]),
    "a gene without name": (MUTATIONS + b"\tWT\tWT\n", ["line 5", "no name"]),
    "a line too short": (MUTATIONS + b"PTEN\tWT\n", ["line 5", "2 cells"]),
    "a line too long": (MUTATIONS + b"PTEN\tWT\tWT\tWT\n", ["line 5", "4 cells"]),
    "cut in the last line": (MUTATIONS[:-4], ["line 4"]),
    "commas": (MUTATIONS.replace(b"\t", b","), ["tabs"]),
    "levels as mutations": (LEVELS, ["line 3", "'s1'", "'-2'", "WT"]),
    "0 and 1 as mutations": (MUTATIONS.replace(b"WT", b"0"), ["'0'"]),
    "false as mutations": (MUTATIONS.replace(b"WT", b"false"), ["'false'"]),
    "an empty cell": (MUTATIONS.replace(b"R175H", b""), ["line 3", "''"]),
    "NUL": (MUTATIONS.replace(b"R175H", b"\0"), ["line 3", "NUL"]),
    "nobody profiled": (MUTATIONS.replace(b"WT", b"NS").replace(b"R175H", b"NS"), ["not profiled"]),
    "truncated": (gzip.compress(MUTATIONS * 9)[:-9], ["incomplete"]),
}

LEVEL_TABLES = {
    "mutations as levels": (MUTATIONS, ["line 3", "'s1'", "'R175H'", "GISTIC"]),
    "copy numbers": (LEVELS.replace(b"\t2\t", b"\t5\t"), ["line 4", "'5'"]),
    "logarithms": (LEVELS.replace(b"\t2\t", b"\t0.37\t"), ["'0.37'"]),
    "infinite": (LEVELS.replace(b"\t2\t", b"\tinf\t"), ["'inf'"]),
    "underscores": (LEVELS.replace(b"\t2\t", b"\t0_1\t"), ["'0_1'"]),
    "words": (LEVELS.replace(b"\t2\t", b"\tAMP\t"), ["'AMP'"]),
}


@pytest.mark.parametrize("kind", GENE_TABLES)
def test_tables_of_mutations_that_are_refused(tmp_path, kind):
    content, words = GENE_TABLES[kind]
    path = tmp_path / "given.txt"
    path.write_bytes(content)
    refused(read_cbioportal, path, ["given.txt", *words])


@pytest.mark.parametrize("kind", LEVEL_TABLES)
def test_tables_of_levels_that_are_refused(tmp_path, kind):
    content, words = LEVEL_TABLES[kind]
    path = tmp_path / "given.txt"
    path.write_bytes(content)
    refused(lambda p: read_cbioportal(cna=p), path, ["given.txt", *words])


def test_options_of_cbioportal_that_do_not_fit(tmp_path):
    mutations, levels = tmp_path / "mutations.txt", tmp_path / "cna.txt"
    mutations.write_bytes(MUTATIONS)
    levels.write_bytes(LEVELS)
    refused(lambda _: read_cbioportal(), None, ["nothing to read"])
    refused(read_cbioportal, mutations, ["together"], folder=tmp_path)
    refused(read_cbioportal, mutations, ["panel"], panel="x")
    refused(read_cbioportal, mutations, ["incomplete"], incomplete="both")
    refused(read_cbioportal, mutations, ["MAF"], consequences=["Silent"])
    refused(read_cbioportal, mutations, ["MAF"], profiled=["s1"])
    for wrong in ({"amplification": 0}, {"deletion": 1}, {"amplification": "2"}, {"deletion": -3}):
        refused(lambda p, w=wrong: read_cbioportal(cna=p, **w), levels, ["amplification"][:0])
    levels.write_bytes(LEVELS.replace(b"s1", b"t1").replace(b"s2", b"t2"))
    refused(read_cbioportal, mutations, ["no sample in common", "'s1'", "'t1'"], cna=levels)


MERGES = {
    "no JSON": (b"{", ["JSON"]),
    "a list": (b'["A"]', ["list"]),
    "a number": (b"3", ["int"]),
    "a text for a list": (b'{"X": "A"}', ["list of names"]),
    "numbers": (b'{"X": [1]}', ["list of names"]),
    "an object inside": (b'{"X": {"A": "B"}}', ["list of names"]),
    "a group twice": (b'{"X": ["A"], "X": ["B"]}', ["twice"]),
    "a name twice": (b'{"X": ["A"], "Y": ["A"]}', ["two groups"]),
    "too deep": (b"[" * 100_000, ["JSON"]),
    "binary": (b"\xff\xfe\x00", ["not"]),
    "empty": (b"", ["JSON"]),
}


@pytest.mark.parametrize("kind", MERGES)
def test_merges_that_are_refused(tmp_path, kind):
    content, words = MERGES[kind]
    path = tmp_path / "merge.json"
    path.write_bytes(content)
    refused(read_merges, path, ["merge.json", *words])


# --- Arbitrary content ----------------------------------------------------------------------------

PIECES = rb"""\t , ; " 0 1 NA sample A \xff # STUDY_ID SAMPLE_ID Hugo_Symbol Tumor_Sample_Barcode
    WT NS -2 Variant_Classification BZh9 =1 time 0.5 { [ PAR1 sep=; Silent
    Missense_Mutation 's1' 2 x yes"""
ODD_PIECES = (
    *(b"\t", b"\n", b"\r", b" ", b"\xff", b"\0", b"\xef\xbb\xbf", b"\x1f\x8b\x08", b"PK\x03\x04"),
    *(b"\xff\xfe", b"\xc3\xa9", b"\x0c", b"\xe2\x80\xa8", b"\n", b"\t"),
)
SHARDS = st.sampled_from([*PIECES.split(), *ODD_PIECES])
SHREDS = st.one_of(st.binary(max_size=200), st.lists(SHARDS, max_size=60).map(b"".join))
HARDER = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize(
    "read",
    [
        read_table,
        lambda p: read_table(p, header=False),
        lambda p: read_table(p, times="time", samples=False),
        lambda p: read_table(p, items_in_rows=True),
        read_maf,
        read_cbioportal,
        lambda p: read_cbioportal(cna=p),
        read_merges,
    ],
    ids=["table", "no header", "times", "turned", "maf", "mutations", "cna", "merge"],
)
@HARDER
@given(content=SHREDS)
def test_any_bytes_are_read_or_refused(tmp_path, read, content):
    path = tmp_path / "given"
    path.write_bytes(content)
    try:
        read(path)
    except InputError as error:
        message = str(error)
    else:
        message = ""
    assert all(len(line) < 1000 for line in message.splitlines())
    assert message.count("\n") <= 9


@pytest.mark.parametrize(
    "pack", [gzip.compress, bz2.compress, lzma.compress, lambda c: zipped(a=c)]
)
@HARDER
@given(data=st.data())
def test_a_damaged_archive_is_never_another_table(tmp_path, pack, data):
    """A file that is truncated or changed anywhere gives the same table or an error."""
    content = pack(TABLE)
    place = data.draw(st.integers(0, len(content) - 1))
    cut = data.draw(st.booleans())
    damaged = content[:place] if cut else flipped(content, place)
    path = tmp_path / "given.gz"
    path.write_bytes(damaged)
    try:
        read = read_table(path).data
    except InputError:
        return
    assert read.values.astype(int).tolist() == CELLS
    assert read.items == ("A", "B", "C")


def test_samples_of_which_none_is_complete(tmp_path):
    path = tmp_path / "given.txt"
    path.write_bytes(b"STUDY_ID\tx\tx\nSAMPLE_ID\ts1\ts2\nTP53\tNS\tWT\nEGFR\tWT\tNS\n")
    refused(read_cbioportal, path, ["given.txt", "incomplete='items'"], incomplete="samples")


@pytest.mark.parametrize(
    "word", [b"NA", b"NaN", b"nan", b"n/a", b"", b"null", b"None", b".", b"?", b"-", b" "]
)
def test_missing_values_are_missing(tmp_path, word):
    """A text that can only mean "unknown" is read as a missing cell.

    Another text for a missing value may also mean "absent", so the user must say what it means.
    """
    path = tmp_path / "given.csv"
    path.write_bytes(b"sample,A,B\ns1,1,0\ns2," + word + b",1\ns3,0,0\n")
    if word.lower() in (b"na", b"nan", b"n/a"):
        read = read_table(path)
    else:
        refused(read_table, path, ["line 3", "missing='keep'", "missing='absent'"])
        read = read_table(path, missing="keep")
    assert read.data.missing.tolist() == [[False, False], [True, False], [False, False]]
    assert read.data.values.tolist() == [[True, False], [False, True], [False, False]]
    assert "missing: 1 cell of 1 item and 1 sample, not profiled" in read.summary.notices()


@given(
    text=st.text(alphabet="ab \n\r\u0301e", max_size=40),
    size=st.integers(1, 6),
)
def test_lines_do_not_depend_on_the_blocks_in_which_a_file_is_read(tmp_path_factory, text, size):
    path = tmp_path_factory.mktemp("lines") / "file.txt"
    path.write_bytes(text.encode())
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    expected = [unicodedata.normalize("NFC", line) for line in plain.split("\n")]
    if not expected[-1]:
        expected.pop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_text_files, "_BLOCK", size)
        assert list(_text_files.text_lines(path)) == expected


def test_a_line_that_is_far_too_long_is_refused_in_whichever_block_it_grows(tmp_path, monkeypatch):
    path = tmp_path / "file.csv"
    monkeypatch.setattr(_text_files, "_BLOCK", 64)
    monkeypatch.setattr(_text_files, "_LONGEST_LINE", 1000)
    path.write_text("sample,a\n" + "x" * 990 + ",1\n")
    assert len(list(_text_files.text_lines(path))) == 2
    for text in ("x" * 2000, "sample,a\n" + "x" * 2000 + "\n", "sample,a\ns,1\n" + "x" * 1100):
        path.write_text(text)
        with pytest.raises(InputError, match=r"longer than .* the file is not a table"):
            list(_text_files.text_lines(path))


def test_a_folder_is_no_table_and_a_picture_neither(tmp_path):
    (tmp_path / "samples.cs").mkdir()
    with pytest.raises(InputError) as missing:
        read_table(tmp_path / "samples.csv")
    assert "did you mean" not in str(missing.value)
    (tmp_path / "figure.csv").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(InputError, match="is a picture"):
        read_table(tmp_path / "figure.csv")
