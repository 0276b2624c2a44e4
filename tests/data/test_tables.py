"""Tables from files: the same table is read, however the file is written (its dialect)."""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import io
import lzma
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sequela
from cli.invoking import run as run_command
from label_strategies import distinct
from label_strategies import labels as any_labels
from sequela import InputError
from sequela.data._table_columns import _ID_NAMES
from sequela.data.tables import read_table
from sequela.report.reading import read_samples, read_to_learn

REAL = Path(os.environ.get("SEQUELA_DATA", Path(__file__).parents[3] / "shared" / "data"))
real = pytest.mark.skipif(not REAL.is_dir(), reason=f"no real data in {REAL}")

# Labels as users write them, without control characters (which are refused) and without spaces
# (which are removed at both ends of a label).
labels = (
    any_labels(alphabet=st.characters(codec="utf-8", exclude_categories=["C", "Z"]))
    .filter(lambda x: x.casefold() not in {"0", "1", "true", "false", "yes", "no", "0.0", "1.0"})
    # A label that could be the name of the column of ids is left out; other tests have such labels.
    .filter(lambda x: x.casefold().lstrip("#") not in _ID_NAMES and not x.startswith("sep="))
)
SPELLINGS = [("0", "1"), ("FALSE", "TRUE"), ("no", "yes"), ("0.0", "1.0"), ("False", "True")]


@st.composite
def tables(draw):
    n, k = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    items = draw(distinct(labels, min_size=k, max_size=k))
    samples = draw(distinct(labels, min_size=n, max_size=n))
    cells = draw(st.lists(st.lists(st.booleans(), min_size=k, max_size=k), min_size=n, max_size=n))
    return samples, items, cells


@st.composite
def dialects(draw):
    return {
        "separator": draw(st.sampled_from([",", "\t", ";"])),
        "spelling": draw(st.sampled_from(SPELLINGS)),
        "end": draw(st.sampled_from(["\n", "\r\n", "\r"])),
        "mark": draw(st.booleans()),
        "corner": draw(st.sampled_from([None, "", "sample", "Sample_ID"])),
        "pack": draw(st.sampled_from([bytes, gzip.compress, bz2.compress, lzma.compress])),
        "last_end": draw(st.booleans()),
    }


def written(table, dialect):
    samples, items, cells = table
    buffer = io.StringIO(newline="")
    writer = csv.writer(
        buffer,
        delimiter=dialect["separator"],
        lineterminator=dialect["end"],
        quoting=csv.QUOTE_ALL,
    )
    corner = [] if dialect["corner"] is None else [dialect["corner"]]
    writer.writerow(corner + items)
    for sample, row in zip(samples, cells, strict=True):
        writer.writerow([sample, *(dialect["spelling"][cell] for cell in row)])
    text = buffer.getvalue()
    if not dialect["last_end"]:
        text = text[: -len(dialect["end"])]
    return dialect["pack"](text.encode("utf-8-sig" if dialect["mark"] else "utf-8"))


@settings(
    deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(table=tables(), dialect=dialects())
def test_every_dialect_gives_the_table_back(tmp_path, table, dialect):
    samples, items, cells = table
    if dialect["corner"] is not None and dialect["corner"] in items:
        return
    path = tmp_path / "table"
    path.write_bytes(written(table, dialect))
    # Give the separator, because it cannot always be found if labels contain other separators.
    data = read_table(path, separator=dialect["separator"]).data
    assert data.items == tuple(items)
    assert data.samples == tuple(samples)
    assert data.values.tolist() == cells


@settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    cells=st.integers(2, 6).flatmap(
        lambda k: st.lists(st.lists(st.booleans(), min_size=k, max_size=k), min_size=1, max_size=5)
    ),
    separator=st.sampled_from([",", "\t", ";", " "]),
    odd=st.sampled_from(["PAOX,...(D)", "a;b", "x"]),
)
def test_the_separator_is_found(tmp_path, cells, separator, odd):
    """The separator is found even if a label contains another separator."""
    items = [f"g{j}" for j in range(len(cells[0]))]
    items[-1] = f'"{odd}"' if separator in odd else odd
    rows = [["id", *items]]
    rows += [[f"s{i}", *(str(int(cell)) for cell in row)] for i, row in enumerate(cells)]
    path = tmp_path / "table"
    path.write_text("\n".join(separator.join(row) for row in rows))
    data = read_table(path).data
    assert data.items == (*items[:-1], odd)
    assert data.values.tolist() == cells


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32 - 1))
def test_pandas_reads_the_same(tmp_path, seed):
    """If the file has no special features, pandas reads the same table, times and ids."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 40), rng.integers(2, 40)
    frame = pd.DataFrame(
        rng.integers(0, 2, shape),
        index=pd.Index([f"s{i}" for i in range(shape[0])], name="who"),
        columns=[f"g{j}" for j in range(shape[1])],
    )
    frame.insert(int(rng.integers(0, shape[1])), "when", rng.exponential(size=shape[0]))
    path = tmp_path / "table.csv"
    frame.to_csv(path)
    data = read_table(path, times="when", samples="who").data
    twin = pd.read_csv(path, index_col=0)
    assert data.times is not None
    assert np.allclose(data.times, twin.pop("when"), rtol=1e-12)
    assert data.samples == tuple(twin.index)
    assert data.items == tuple(twin.columns)
    assert np.array_equal(data.values, twin.to_numpy() == 1)


def put(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_ids(tmp_path):
    data = read_table(put(tmp_path, "A,B\n1,0\n0,0\n1,1\n")).data
    assert data.samples == ("0", "1", "2")
    assert data.items == ("A", "B")
    assert data.values.astype(int).tolist() == [[1, 0], [0, 0], [1, 1]]


def test_one_column(tmp_path):
    assert read_table(put(tmp_path, "A\n1\n0\n\n")).data.values.tolist() == [[True], [False]]


def test_without_header(tmp_path):
    data = read_table(put(tmp_path, "1,0\n0,1\n0,0\n"), header=False).data
    assert data.items == ("0", "1")
    assert data.values.astype(int).tolist() == [[1, 0], [0, 1], [0, 0]]
    data = read_table(put(tmp_path, "s1,1,0\ns2,0,1\n"), header=False, samples="0").data
    assert data.samples == ("s1", "s2")
    assert data.items == ("1", "2")


def test_labels_that_look_like_cells_if_the_caller_says_so(tmp_path):
    data = read_table(put(tmp_path, ",0,1\na,1,1\nb,0,1\n"), header=True).data
    assert data.items == ("0", "1")
    assert data.samples == ("a", "b")


def test_times(tmp_path):
    text = "sample,time,A\ns1,0.5,1\ns2,NA,0\ns3,,1\ns4,3,0\n"
    data = read_table(put(tmp_path, text), times="time").data
    assert np.array_equal(data.times, [0.5, np.nan, np.nan, 3], equal_nan=True)
    assert data.items == ("A",)


def test_times_with_a_comma_where_cells_are_separated_by_semicolons(tmp_path):
    data = read_table(put(tmp_path, "sample;t;A\ns1;0,5;1\ns2;2;0\n"), times="t").data
    assert data.times.tolist() == [0.5, 2.0]


def test_only_some_columns(tmp_path):
    path = put(tmp_path, "sample,age,A,B,C\ns1,44,1,0,1\ns2,51,0,0,1\n")
    read = read_table(path, items=["C", "A"])
    assert read.data.items == ("C", "A")
    assert read.data.values.astype(int).tolist() == [[1, 1], [1, 0]]
    assert ("not among items", ("age", "B")) in [
        (part.reason, part.names) for part in read.summary.dropped_items
    ]
    read = read_table(path, drop=["age", "B"])
    assert read.data.items == ("A", "C")
    assert read.summary.items_read == 4
    assert read.summary.items_kept == 2


def test_a_column_of_ids_anywhere(tmp_path):
    data = read_table(put(tmp_path, "A,who,B\n1,x,0\n0,y,1\n"), samples="who").data
    assert data.samples == ("x", "y")
    assert data.items == ("A", "B")
    assert data.values.astype(int).tolist() == [[1, 0], [0, 1]]


def test_numbers_as_ids_need_a_word(tmp_path):
    path = put(tmp_path, "nr,A\n1,1\n2,0\n")
    with pytest.raises(InputError, match="samples='nr'"):
        read_table(path)
    assert read_table(path, samples="nr").data.samples == ("1", "2")


def test_items_in_rows(tmp_path):
    path = put(tmp_path, "gene,s1,s2\nA,1,0\nB,1,1\nC,0,0\n")
    read = read_table(path, items_in_rows=True, drop=["C"])
    assert read.data.sets() == [frozenset({"A", "B"}), frozenset({"B"})]


def test_the_file_is_recorded(tmp_path):
    path = put(tmp_path, "A\n1\n")
    (source,) = read_table(path).summary.files
    assert source.path == str(path)
    assert source.size == 4
    assert source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_lines_across_blocks(tmp_path, monkeypatch):
    """The reader reads a file in blocks. A block may end inside a character or a line end."""
    text = "sample,Ä,β\r\ns1,1,0\r\nsü,0,1\r\n"
    for size in range(1, 12):
        monkeypatch.setattr("sequela.data._text_files._BLOCK", size)
        path = tmp_path / "t.csv"
        path.write_bytes(text.encode())
        data = read_table(path).data
        assert data.items == ("Ä", "β")
        assert data.samples == ("s1", "sü")
        path.write_bytes(text.encode() + b"s3,1,\xff\r\n")
        with pytest.raises(InputError, match="line 4"):
            read_table(path)


# --- Parquet --------------------------------------------------------------------------------------


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    path.write_bytes(b"PAR1....PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r"pip install sequela\[parquet\]"):
        read_table(path)


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.float64, object])
def test_parquet(tmp_path, kind):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame([[1, 0], [1, 1]], index=["a", "b"], columns=["X", "Y"]).astype(kind)
    frame["time"] = [0.5, np.nan]
    path = tmp_path / "table.parquet"
    frame.to_parquet(path)
    data = read_table(path, times="time").data
    assert data.samples == ("a", "b")
    assert data.items == ("X", "Y")
    assert data.values.astype(int).tolist() == [[1, 0], [1, 1]]
    assert np.array_equal(data.times, [0.5, np.nan], equal_nan=True)


def test_parquet_with_text_stored_as_bytes_and_with_nested_cells(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "table.parquet"
    items = {"a": [1, 0], "b": [0, 1]}
    pq.write_table(pa.table({"sample": ["né".encode(), b"s2"], **items}), path)
    assert read_table(path).data.samples == ("né", "s2")
    for ids in ([b"s1", b"\xff\x1b"], [["s1"], ["s2"]], [{"x": 1}, {"x": 2}]):
        pq.write_table(pa.table({"sample": ids, **items}), path)
        with pytest.raises(InputError, match=r"row \d, column 'sample': found .*expected text"):
            read_table(path)


def test_parquet_that_is_damaged_or_has_gaps(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    path.write_bytes(b"PAR1....PAR1")
    with pytest.raises(InputError, match="damaged"):
        read_table(path)
    pd.DataFrame({"id": ["a", "b"], "X": [1, None]}).to_parquet(path)
    with pytest.raises(InputError, match="all cells are missing"):
        read_table(path)


# --- Real data ------------------------------------------------------------------------------------


@real
def test_the_older_glioblastoma_table():
    data = read_table(REAL / "gbm" / "schill20.csv").data
    assert (data.n_samples, data.n_items) == (261, 20)
    twin = pd.read_csv(REAL / "gbm" / "schill20.csv")
    assert np.array_equal(data.values, twin.to_numpy() == 1)


@real
def test_many_cancers():
    data = read_table(REAL / "pancancer" / "mutations.tsv").data
    assert (data.n_samples, data.n_items) == (8198, 201)
    twin = pd.read_csv(REAL / "pancancer" / "mutations.tsv", sep="\t")
    assert data.samples == tuple(twin.index)
    assert np.array_equal(data.values, twin.to_numpy() == 1)


@real
def test_draws_with_times():
    path = REAL / "synthetic" / "synth2.csv"
    data = read_table(path, times="time").data
    twin = pd.read_csv(path)
    assert (data.n_samples, data.n_items) == (500, 202)
    assert np.array_equal(data.times, twin["time"])
    assert np.array_equal(data.values, twin.drop(columns=["sample", "time"]) == 1)
    with pytest.raises(InputError, match="times='time'"):
        read_table(path)


def test_all_kinds_of_mistakes_are_shown_at_once(tmp_path):
    path = tmp_path / "given.csv"
    path.write_text("id,A,B,sex,when\ns1,1,0,m,2\ns2,0,,f,soon\ns3,1,1\ns4,7,1,f,1\ns4,1,1,m,-1\n")
    with pytest.raises(InputError) as caught:
        read_table(path, times="when")
    first, *lines = str(caught.value).splitlines()
    assert first.endswith("given.csv' has 6 kinds of mistakes:")
    starts = (
        "- line 2, sample 's1', column 'sex': found 'm'", "- line 3, sample 's2', column 'B': the",
        "- line 3, column 'when': found 'soon'", "- line 4: found 3 cells",
        "- line 5, sample 's4', column 'A': found '7'", "- the sample 's4' occurs twice",
    )  # fmt: skip
    assert len(lines) == len(starts)
    for line, start in zip(lines, starts, strict=True):
        assert line.startswith(start), line
    assert lines[0].endswith("(3 more like this.)")
    assert lines[2].endswith("(1 more like this.)")


def test_the_list_of_mistakes_is_limited(tmp_path):
    path = tmp_path / "given.csv"
    labels = [f"g{j}" for j in range(30)]
    rows = [",".join([f"s{i}", *["x"] * 30]) for i in range(3000)]
    path.write_text("\n".join([",".join(["id", *labels]), *rows]))
    with pytest.raises(InputError) as caught:
        read_table(path)
    lines = str(caught.value).splitlines()
    assert len(lines) == 10
    assert "at least" in lines[1]
    assert lines[-1] == "- and 22 more kinds"


def test_a_table_that_may_have_its_items_in_rows(tmp_path):
    path = tmp_path / "turned.csv"
    header = ",".join(f"P{k}" for k in range(60))
    path.write_text(f"item,{header}\n" + "".join(f"G{k}{60 * ',1'}\n" for k in range(9)), "utf-8")

    def warned(**options):
        return any("items_in_rows" in x for x in read_table(path, **options).summary.notices())

    assert warned()
    assert not warned(items_in_rows=True)
    assert not warned(most_frequent=5)


@pytest.mark.parametrize(
    ("samples", "items", "refused"),
    [(12, 300, True), (5, 50, True), (100, 500, False), (378, 410, False), (4, 49, False)],
)
def test_a_model_is_not_learned_from_a_table_that_clearly_has_its_items_in_rows(
    tmp_path, samples, items, refused
):
    path = tmp_path / "turned table.csv"
    values = np.random.default_rng(1).random((samples, items)) < 0.5
    frame = pd.DataFrame(values.astype(int), index=[f"G{i}" for i in range(samples)])
    frame.columns = [f"P{j}" for j in range(items)]
    frame.to_csv(path)
    if not refused:
        assert read_to_learn(path).data.n_items == items
        return
    with pytest.raises(InputError) as caught:
        read_to_learn(path)
    said = str(caught.value)
    assert f"{items} items, but only {samples} samples" in said
    command = f"`sequela import --table '{path}' --items-in-rows -o table.csv`"
    assert command in said
    # The user can continue anyway, and other commands read such a table.
    assert read_to_learn(path, most_frequent=items).data.n_items == items
    assert read_samples(path).data.n_items == items


def test_the_command_in_the_error_about_items_in_rows_turns_the_table(tmp_path, monkeypatch):
    drawn = sequela.simulate(sequela.example_theta(), 100, random_state=1).to_dataset()
    frame = drawn.without_times().to_frame().astype(int)
    frame.index = [f"S{i}" for i in range(100)]
    frame.T.to_csv(tmp_path / "turned.csv")
    monkeypatch.chdir(tmp_path)
    for command in (["fit", "turned.csv", "-o", "fit"], ["posterior", "turned.csv", "-o", "fit"],
                    ["path", "turned.csv"], ["subtypes", "turned.csv"]):  # fmt: skip
        said = run_command(*command, code=2).stderr
        assert "run `sequela import --table turned.csv --items-in-rows -o table.csv`" in said
        assert "--most-frequent 20" in said
    run_command("import", "--table", "turned.csv", "--items-in-rows", "-o", "table.csv")
    assert read_table("table.csv").data.n_items == drawn.n_items


@pytest.mark.parametrize("label", ["", "index", "Unnamed: 0"])
def test_the_index_of_a_pandas_table_is_not_read_as_ids(tmp_path, label):
    path = tmp_path / "table.csv"
    rows = [f"{row},P{row},{row % 2},1" for row in range(30)]
    path.write_text("\n".join([f"{label},patient_id,A,B", *rows]))
    read = read_table(path)
    assert read.data.items == ("A", "B")
    assert read.data.samples[:2] == ("P0", "P1")
    assert any("looks like the index of a pandas table" in x for x in read.summary.notices())
    assert not read.summary.dropped_items
    # If the column of ids has another label, it is not recognised. The error then names the reason.
    path.write_text("\n".join([f"{label},who,A,B", *rows]))
    with pytest.raises(InputError, match=r"looks like the index of a .* to_csv\(\.\.\., index=Fal"):
        read_table(path)
    # If the numbers of the column are not row numbers, they are read as ids.
    path.write_text(f"{label},A,B\n7,1,0\n9,0,1\n")
    assert read_table(path).data.samples == ("7", "9")


def test_ids_that_occur_twice_are_only_items_if_they_can_be_cells(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("sample,A\ns1,1\ns1,0\n")
    with pytest.raises(InputError) as caught:
        read_table(path)
    assert "samples=False" not in str(caught.value)
    path.write_text("sample,A\n1,1\n1,0\n")
    with pytest.raises(InputError, match="samples=False"):
        read_table(path)
