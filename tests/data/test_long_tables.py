"""Long tables: the reader agrees with a slow version in pandas, and presets select lines."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sequela import InputError
from sequela.cli import main
from sequela.data import read_long

SAMPLES, ITEMS = ["p1", "p2", "p3", "p4"], ["a", "b", "c"]
line = st.tuples(
    st.sampled_from(SAMPLES), st.sampled_from(ITEMS), st.sampled_from(["0", "1", "NA", "yes"])
)


def put(tmp_path, text, name="long.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def written(tmp_path, rows, header, mark="\t"):
    return put(tmp_path, "\n".join(mark.join(row) for row in [header, *rows]) + "\n")


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.lists(line, min_size=1, max_size=25), mark=st.sampled_from("\t,;"))
def test_the_stream_is_its_slow_twin(tmp_path, rows, mark):
    path = written(tmp_path, rows, ["sample", "item", "value"], mark)
    frame = pd.DataFrame(rows, columns=["sample", "item", "value"])
    code = frame["value"].map({"0": 0.0, "1": 1.0, "yes": 1.0, "NA": np.nan})
    cells = (
        frame.assign(code=code).groupby(["sample", "item"])["code"].max()
    )  # the maximum is NaN only if all values are NaN
    twin = {who: {what for what in ITEMS if cells.get((who, what), 0) == 1} for who in SAMPLES}
    unknown = {who for (who, _), value in cells.items() if np.isnan(value)}
    seen = list(dict.fromkeys(frame["sample"]))
    complete = [who for who in seen if who not in unknown]
    if not complete:
        return
    imported = read_long(path, incomplete="samples")
    assert list(imported.data.samples) == complete
    assert [set(found) for found in imported.data.sets()] == [twin[who] for who in complete]
    assert imported.summary.items_read == frame["item"].nunique()


def test_without_values_every_line_says_present_and_profiled_adds_the_empty(tmp_path):
    path = written(tmp_path, [("x", "g1"), ("y", "g2"), ("x", "g1"), ("z", "g1")], ["id", "gene"])
    imported = read_long(path, profiled=["y", "w", "x"])
    assert imported.data.samples == ("y", "w", "x")
    assert imported.data.sets() == [{"g2"}, set(), {"g1"}]
    assert imported.summary.dropped_samples[0].names == ("z",)
    assert "1 line repeat" in " ".join(imported.summary.notes)


def test_present_names_the_values_that_count(tmp_path):
    rows = [("i1", "cipro", "R"), ("i1", "genta", "S"), ("i2", "cipro", "I"), ("i2", "genta", "R")]
    path = written(tmp_path, rows, ["isolate", "drug", "result"])
    columns = {"item": "drug", "value": "result"}
    assert read_long(path, present=["r"], **columns).data.sets() == [{"cipro"}, {"genta"}]
    assert read_long(path, present=["R", "I"], **columns).data.sets() == [
        {"cipro"},
        {"cipro", "genta"},
    ]


def test_lines_that_contradict_each_other_count_as_present_and_are_told(tmp_path):
    path = written(tmp_path, [("x", "a", "1"), ("x", "a", "0")], ["id", "item", "value"])
    imported = read_long(path)
    assert imported.data.sets() == [{"a"}]
    assert "1 pair of sample and item have lines" in " ".join(imported.summary.notes)


# --- Presets --------------------------------------------------------------------------------------

# The columns of AMRFinderPlus 4 and 3: https://github.com/ncbi/amr/wiki/Running-AMRFinderPlus
AMR_4 = (
    "Name\tProtein id\tContig id\tStart\tStop\tStrand\tElement symbol\tElement name\tScope\tType\t"
    "Subtype\tClass\tSubclass\tMethod\tTarget length"
)
AMR_3 = (
    "Name\tProtein identifier\tContig id\tStart\tStop\tStrand\tGene symbol\tSequence name\tScope\t"
    "Element type\tElement subtype\tClass\tSubclass\tMethod\tTarget length"
)
HITS = [
    ("i1", "blaTEM-1", "AMR", "BETA-LACTAM", "EXACTX"),
    ("i1", "gyrA_S83L", "AMR", "QUINOLONE", "POINTX"),
    ("i1", "merA", "STRESS", "MERCURY", "EXACTX"),
    ("i2", "aac(6')-Ib-cr5", "AMR", "AMINOGLYCOSIDE/QUINOLONE", "ALLELEX"),
    ("i2", "tet(A)", "AMR", "TETRACYCLINE", "PARTIALX"),
    ("i2", "sul1", "AMR", "SULFONAMIDE", "PARTIAL_CONTIG_ENDX"),
    ("i3", "stxA2", "VIRULENCE", "NA", "BLASTX"),
]


def amr_table(tmp_path, header=AMR_4, hits=HITS, name="amr.tsv"):
    rows = [
        f"{who}\tNA\tc1\t1\t9\t+\t{gene}\tsome\tcore\t{kind}\t{kind}\t{drug}\t{drug}\t{how}\t9"
        for who, gene, kind, drug, how in hits
    ]
    return put(tmp_path, "\n".join([header, *rows]) + "\n", name)


@pytest.mark.parametrize("header", [AMR_4, AMR_3])
def test_amrfinderplus(tmp_path, header):
    path = amr_table(tmp_path, header)
    imported = read_long(path, preset="amrfinderplus")
    # Isolate i3 was tested, but has no resistance.
    assert imported.data.samples == ("i1", "i2", "i3")
    assert imported.data.sets() == [
        {"blaTEM-1", "gyrA_S83L"},
        {"aac(6')-Ib-cr5", "sul1"},
        set(),
    ]
    notes = " ".join(imported.summary.notes)
    assert "2 lines left out" in notes
    assert "1 line left out, Method is" in notes
    classes = read_long(path, preset="amrfinderplus", item="Class").data.sets()
    assert classes[1] == {"AMINOGLYCOSIDE", "QUINOLONE", "SULFONAMIDE"}
    everything = read_long(path, preset="amrfinderplus", where={})
    assert everything.data.n_items == 7


def test_amrfinderplus_without_names_takes_those_of_the_files(tmp_path):
    paths = []
    for who in ("i1", "i2", "none"):
        hits = [hit for hit in HITS if hit[0] == who]
        text = amr_table(tmp_path, hits=hits).read_text()
        rows = [row.partition("\t")[2] for row in text.splitlines()]
        paths.append(put(tmp_path, "\n".join(rows) + "\n", f"{who}.tsv"))
    imported = read_long(paths, preset="amrfinderplus")
    assert imported.data.samples == ("i1", "i2", "none")
    assert imported.data.sets()[2] == set()  # the file of an isolate without hits has only a header
    with pytest.raises(InputError, match="'i1', which another file also has"):
        read_long([paths[0], paths[0]], preset="amrfinderplus")


def test_hamronization(tmp_path):
    # https://github.com/pha4ge/hAMRonization
    header = [
        *("input_file_name", "gene_symbol", "gene_name", "reference_database_name"),
        *("analysis_software_name", "genetic_variation_type", "drug_class", "amino_acid_mutation"),
    ]
    rows = [
        ("i1", "gyrA", "g", "db", "one", "protein_variant_detected", "quinolone", "p.Ser83Leu"),
        ("i1", "gyrA", "g", "db", "two", "gene_presence_detected", "quinolone; other", ""),
        ("i2", "tetA", "g", "db", "one", "gene_presence_detected", "", ""),
    ]
    path = written(tmp_path, rows, header)
    imported = read_long(path, preset="hamronization")
    assert imported.data.sets() == [{"gyrA", "gyrA p.Ser83Leu"}, {"tetA"}]
    classes = read_long(path, preset="hamronization", item="drug_class")
    assert classes.data.sets() == [{"quinolone", "other"}, set()]
    assert "drug_class is missing" in " ".join(classes.summary.notes)


def test_diagnoses_with_a_file_of_groups(tmp_path):
    path = written(
        tmp_path,
        [("p1", "E11.9"), ("p1", "e1122"), ("p2", "I10"), ("p2", "Z00.0"), ("p3", "I13.0")],
        ["patient_id", "icd10_code"],
        ",",
    )
    groups = put(
        tmp_path,
        "code;group\nE11;diabetes\nE11.2;diabetes\nE112;kidney disease\nI1*;hypertension\n"
        "I13;hypertension\nI13;kidney disease\n",
        "groups.csv",
    )
    imported = read_long(path, preset="diagnoses", groups=groups)
    assert imported.data.sets() == [
        {"diabetes", "kidney disease"},
        {"hypertension"},
        {"hypertension", "kidney disease"},
    ]
    assert imported.summary.merged["diabetes"] == ("E11.9", "e1122")
    assert imported.summary.dropped_items[0].names == ("Z00.0",)
    assert (imported.summary.items_read, imported.summary.items_kept) == (5, 3)
    assert len(imported.summary.files) == 2
    with pytest.raises(InputError, match="needs groups="):
        read_long(path, preset="diagnoses")


# --- Bad input ------------------------------------------------------------------------------------

BAD = {
    "empty": ("", {}, ["empty"]),
    "header only": ("id,item\n", {}, ["no lines below its header"]),
    "no such column": ("id,item\nx,a\n", {"item": "itm"}, ["line 1", "item names", "did you mean"]),
    "no ids": ("who,item\nx,a\n", {}, ["line 1", "samples", "sample="]),
    "no items": ("id,thing\nx,a\n", {}, ["line 1", "items", "item="]),
    "twice the same column": ("id,item\nx,a\n", {"item": "id"}, ["'id' occurs twice"]),
    "a short line": ("id,item\nx,a\ny\n", {}, ["line 3", "1 cells, expected 2"]),
    "no id": ("id,item\nx,a\nNA,b\n", {}, ["line 3", "'id'", "no id"]),
    "no item": ("id,item\nx,a\ny,\n", {}, ["line 3", "'item'", "no item"]),
    "a strange value": (
        "id,item,value\nx,a,1\nx,b,R\n",
        {},
        ["line 3", "'value'", "'R'", "present="],
    ),
    "present without values": ("id,item\nx,a\n", {"present": ["R"]}, ["value="]),
    "a date in words": (
        "id,item,on\nx,a,2020-02-01\nx,b,March\n",
        {"date": "on"},
        ["line 3", "'on'", "'March'", "2021-03-28"],
    ),
    "no such day": ("id,item,on\nx,a,2021-02-30\n", {"date": "on"}, ["line 2", "2021-02-30"]),
    "dates and numbers": (
        "id,item,on\nx,a,2020-02-01\nx,b,17\n",
        {"date": "on"},
        ["line 3", "'17'", "earlier lines have dates"],
    ),
    "an unknown preset": ("id,item\nx,a\n", {"preset": "amr"}, ["'amr'", "'amrfinderplus'"]),
    "unlisted": ("id,item\nx,a\n", {"unlisted": "zero"}, ["unlisted", "'zero'"]),
    "where a column is not": ("id,item\nx,a\n", {"where": {"kind": ["b"]}}, ["where names 'kind'"]),
    "other samples": ("id,item\nx,a\n", {"profiled": ["y"]}, ["none of its 1 samples"]),
    "nothing counts": ("id,item,kind\nx,a,b\n", {"where": {"kind": ["c"]}}, ["no items are left"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_refused_with_line_and_column(tmp_path, name):
    text, options, words = BAD[name]
    path = put(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_long(path, **options)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("E11,diabetes\nE12\n", ["line 2", "1 cells"]),
        ("E11,diabetes\n,diabetes\n", ["line 2", "expected a code and a group"]),
        ("E11,diabetes\nE10-E14,diabetes\n", ["line 2", "'E10-E14'", "range"]),
        ("code,group\n", ["no codes"]),
    ],
)
def test_bad_files_of_groups_are_refused_with_their_line(tmp_path, text, words):
    path = put(tmp_path, "id,code\nx,E11\n")
    groups = put(tmp_path, text, "groups.csv")
    with pytest.raises(InputError) as caught:
        read_long(path, groups=groups)
    for word in ["groups.csv", *words]:
        assert word in str(caught.value), str(caught.value)


def test_compressed_and_quoted(tmp_path):
    path = tmp_path / "long.csv.gz"
    path.write_bytes(gzip.compress(b'id,item\n"x","a, b"\n'))
    assert read_long(path).data.items == ("a, b",)


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["import", *map(str, arguments)])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def test_the_command(tmp_path):
    path = amr_table(tmp_path)
    out = tmp_path / "out.csv"
    done = run("--long", path, "--preset", "amrfinderplus", "-o", out)
    assert "1 sample has none" in done.stdout
    assert pd.read_csv(out, index_col=0).loc["i1", "blaTEM-1"] == 1
    wrong = run("--table", path, "--preset", "amrfinderplus", "-o", out, "--force", code=2)
    assert "--preset belongs to --long, not to --table" in wrong.stderr
    refused = run("--long", path, "--item-column", "Gene", "-o", out, "--force", code=2)
    assert "--item-column names 'Gene'" in refused.stderr


def test_dates_become_orders(tmp_path):
    rows = [
        ("p1", "a", "2020-03-01"), ("p1", "b", "2020-01-15"), ("p1", "b", "2020-05-01"),
        ("p1", "c", "2020-03-01"), ("p2", "a", "2021-01-01"), ("p2", "b", "NA"),
        ("p2", "c", "2021-01-02T10:00:00"),
    ]  # fmt: skip
    path = written(tmp_path, rows, ["patient", "item", "on"], ",")
    imported = read_long(path, date="on")
    found = [[(a, b) for a, b, _ in row] for row in imported.data.orders]
    assert found == [[("b", "a"), ("b", "c")], [("a", "c")]]
    notes = " ".join(imported.summary.notes)
    assert "1 pair of sample and item without a date" in notes
    assert "known orders in 2 samples" in notes
    merged = read_long(path, date="on", merge={"ab": ["a", "b"]})
    assert [[(a, b) for a, b, _ in row] for row in merged.data.orders] == [[("ab", "c")], []]
    assert read_long(path).data.orders is None
    out, orders = tmp_path / "out.csv", tmp_path / "orders.csv"
    run("--long", path, "--date-column", "on", "-o", out, "--orders", orders)
    assert pd.read_csv(orders).values.tolist()[0] == ["p1", "b", "a", 1.0]
    run("--long", path, "-o", out, "--force", "--orders", tmp_path / "x.csv", code=2)


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from(SAMPLES), st.sampled_from(ITEMS), st.integers(0, 4)),
        min_size=1,
        max_size=15,
    )
)
def test_the_order_is_that_of_the_first_dates(tmp_path, rows):
    path = written(tmp_path, [(a, b, str(c)) for a, b, c in rows], ["id", "item", "age"])
    data = read_long(path, date="age").data
    first = pd.DataFrame(rows, columns=["id", "item", "age"]).groupby(["id", "item"])["age"].min()
    for who, statements in zip(data.samples, data.orders or [()] * len(data), strict=True):
        ages = first[who]
        told = {(a, b) for a, b, _ in statements}
        # If a is before b and b is before d, then a is before d.
        for _ in ITEMS:
            told |= {(a, d) for a, b in told for c, d in told if b == c}
        assert told == {(a, b) for a in ages.index for b in ages.index if ages[a] < ages[b]}


def test_what_was_not_tested_is_missing(tmp_path):
    rows = [("i1", "cipro", "R"), ("i1", "genta", "S"), ("i2", "cipro", "S")]
    path = written(tmp_path, rows, ["isolate", "drug", "result"])
    columns = {"item": "drug", "value": "result", "present": ["R"]}
    data = read_long(path, unlisted="missing", **columns).data
    assert data.missing.tolist() == [[False, False], [False, True]]
    assert read_long(path, **columns).data.missing is None
    out = tmp_path / "out.csv"
    run(
        "--long", path, "--item-column", "drug", "--value-column", "result", "--present", "R",
        "--unlisted", "missing", "-o", out,
    )  # fmt: skip
    assert out.read_text().splitlines()[2] == "i2,0,NA"
    from sequela import read_table

    assert read_table(out).data == data
