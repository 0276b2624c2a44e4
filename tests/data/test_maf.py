"""MAF files: compare with a slow reader in pandas. Profiled samples may have no mutations."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sequela import InputError
from sequela.data.maf import read_maf

CLASSES = [
    *("Missense_Mutation", "Nonsense_Mutation", "Frame_Shift_Del", "Splice_Site"),
    *("Silent", "Intron", "3'UTR", "5'UTR", "3'Flank", "5'Flank", "IGR", "RNA", "lincRNA"),
]
SILENT = set(CLASSES[4:])
mutation = st.tuples(
    st.sampled_from(["TP53", "EGFR", "TERT", "IDH1", "TTN"]),
    st.sampled_from(CLASSES),
    st.sampled_from(["a", "b", "c", "d"]),
    st.sampled_from(["Somatic", "", "Germline", "Wildtype"]),
)


def put(tmp_path, rows, header=None, name="some.maf", before=""):
    path = tmp_path / name
    header = header or [
        *("Hugo_Symbol", "Variant_Classification", "Tumor_Sample_Barcode", "Mutation_Status")
    ]
    lines = ["\t".join(row) for row in [header, *rows]]
    path.write_text(before + "\n".join(lines) + "\n")
    return path


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.lists(mutation, max_size=30), germline=st.booleans(), promoter=st.booleans())
def test_the_stream_is_its_slow_twin(tmp_path, rows, germline, promoter):
    path = put(tmp_path, rows)
    frame = pd.DataFrame(rows, columns=["gene", "kind", "who", "status"])
    counts = ~frame["kind"].isin(SILENT)
    if promoter:
        counts |= (frame["gene"] == "TERT") & (frame["kind"] == "5'Flank")
    counts &= frame["status"] != "Wildtype"
    if not germline:
        counts &= frame["status"] != "Germline"
    frame = frame[counts]
    options = {"germline": germline, "promoters": ["TERT"] if promoter else []}
    everybody = ["d", "c", "b", "a", "nobody"]
    if frame.empty:
        with pytest.raises(InputError, match="no items"):
            read_maf(path, profiled=everybody, **options)
        return
    twin = [frozenset(frame.loc[frame["who"] == who, "gene"]) for who in everybody]
    data = read_maf(path, profiled=everybody, **options).data
    assert data.samples == tuple(everybody)
    assert data.items == tuple(sorted(set().union(*twin)))
    assert data.sets() == twin


def test_the_order_of_lines_does_not_matter(tmp_path):
    rng = np.random.default_rng(5)
    rows = [
        (f"G{rng.integers(9)}", "Missense_Mutation", f"s{rng.integers(9)}", "") for _ in range(60)
    ]
    first = read_maf(put(tmp_path, rows)).data
    second = read_maf(put(tmp_path, [rows[k] for k in rng.permutation(60)])).data
    assert first == second


def test_columns_in_any_order_and_case_with_remarks_and_quotation_marks(tmp_path):
    rows = [('"s1"', "x", '"TP53"', '"Missense_Mutation"'), ("s2", "x", " TP53 ", "Silent")]
    header = ["TUMOR_SAMPLE_BARCODE", "Centre", '"hugo_symbol"', "variant_classification"]
    path = put(tmp_path, rows, header, before="#version 2.4\n\n# more\n")
    read = read_maf(path)
    assert read.data.samples == ("s1", "s2")
    assert read.data.sets() == [frozenset({"TP53"}), frozenset()]
    assert any("2 lines, 1 of them silent" in note for note in read.summary.notes)


def test_joined_files_have_headers_in_the_middle(tmp_path):
    one = put(tmp_path, [("A", "Missense_Mutation", "s1", "")]).read_text()
    path = tmp_path / "joined.maf"
    path.write_text("#version 2.4\n" + one + "\n#version 2.4\n" + one.replace("s1", "s2"))
    assert read_maf(path).data.samples == ("s1", "s2")


def test_several_files(tmp_path):
    first = put(tmp_path, [("A", "Missense_Mutation", "s1", "")], name="1.maf")
    header = ["Tumor_Sample_Barcode", "Hugo_Symbol", "Variant_Classification"]
    second = put(tmp_path, [("s2", "B", "Splice_Site")], header, name="2.maf")
    packed = tmp_path / "2.maf.gz"
    packed.write_bytes(gzip.compress(second.read_bytes()))
    read = read_maf([first, packed])
    assert read.data.sets() == [frozenset({"A"}), frozenset({"B"})]
    assert len(read.summary.files) == 2


def test_consequences(tmp_path):
    path = put(tmp_path, [("A", kind, f"s{k}", "") for k, kind in enumerate(CLASSES)])
    assert int(read_maf(path).data.values.sum()) == 4
    assert int(read_maf(path, consequences=["all"]).data.values.sum()) == len(CLASSES)
    chosen = read_maf(path, consequences=["silent", "INTRON", "made_up"])
    assert int(chosen.data.values.sum()) == 2
    assert any("made_up" in note for note in chosen.summary.notes)


def test_odd_consequences_count_and_are_noted(tmp_path):
    path = put(tmp_path, [("A", "Oddity", "s1", ""), ("B", "", "s2", "")])
    read = read_maf(path)
    assert read.data.sets() == [frozenset({"A"}), frozenset({"B"})]
    assert any("'Oddity' (1)" in note for note in read.summary.notes)


def test_no_class_needed_if_all_count(tmp_path):
    path = put(tmp_path, [("A", "s1")], ["Hugo_Symbol", "Tumor_Sample_Barcode"])
    assert read_maf(path, consequences=["all"]).data.sets() == [frozenset({"A"})]


def test_profiled_from_a_file(tmp_path):
    path = put(
        tmp_path, [("A", "Missense_Mutation", "s2", ""), ("A", "Missense_Mutation", "zz", "")]
    )
    ids = tmp_path / "ids.txt"
    ids.write_text("\ufeffsample_id\r\n# remark\r\ns1\r\ns2\r\n\r\ns1\r\n", encoding="utf-8")
    read = read_maf(path, profiled=ids)
    assert read.data.samples == ("s1", "s2")
    assert read.data.sets() == [frozenset(), frozenset({"A"})]
    (dropped,) = read.summary.dropped_samples
    assert dropped.names == ("zz",)
    assert read.summary.samples_read == 3
    assert any("repeats 1 sample id" in note for note in read.summary.notes)


def test_without_profiled_the_summary_says_what_is_missing(tmp_path):
    read = read_maf(put(tmp_path, [("A", "Missense_Mutation", "s1", "")]))
    assert any("profiled=" in note for note in read.summary.notes)


def test_sequenced_samples_in_the_file(tmp_path):
    path = put(
        tmp_path,
        [("A", "Missense_Mutation", "s2", "")],
        before="#sequenced_samples: s1 s2 s3\n",
    )
    assert read_maf(path).data.samples == ("s1", "s2", "s3")


def test_barcodes_are_cut(tmp_path):
    rows = [("A", "Missense_Mutation", f"TCGA-02-0001-01{x}-11D", "") for x in "AB"]
    read = read_maf(put(tmp_path, rows), barcode_length=15, profiled=["TCGA-02-0001-01A"])
    assert read.data.samples == ("TCGA-02-0001-01",)


def test_genes_that_were_asked_for(tmp_path):
    path = put(tmp_path, [(g, "Missense_Mutation", "s1", "") for g in ("A", "B", "Unknown", ".")])
    assert read_maf(path).data.items == ("A", "B")
    read = read_maf(path, items=["B", "C"])
    assert read.data.items == ("B", "C")
    assert read.data.sets() == [frozenset({"B"})]
    assert any("C" in note and "items has" in note for note in read.summary.notes)
    again = read_maf(path, items=(gene for gene in [" B ", "C"]))
    assert again.data == read.data


def test_lines_that_are_short_but_have_what_is_needed(tmp_path):
    header = ["Hugo_Symbol", "Variant_Classification", "Tumor_Sample_Barcode", "x"]
    rows = [("A", "Splice_Site", "s1"), ("B", "Splice_Site", "s1", "y")]
    read = read_maf(put(tmp_path, rows, header))
    assert read.data.sets() == [frozenset({"A", "B"})]
    assert any("fewer cells" in note for note in read.summary.notes)


def test_a_table_that_would_not_fit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("sequela.data.importing.LARGEST_TABLE", 3)
    rows = [("A", "Splice_Site", "s1", ""), ("B", "Splice_Site", "s2", "")]
    with pytest.raises(InputError, match="2 samples and 2 items"):
        read_maf(put(tmp_path, rows))


def test_selection(tmp_path):
    rows = [("A", "Splice_Site", s, "") for s in "xyz"] + [("B", "Splice_Site", "x", "")]
    path = put(tmp_path, rows)
    assert read_maf(path, at_least=2).data.items == ("A",)
    assert read_maf(path, at_least=2, keep=["B"]).data.items == ("A", "B")
    assert read_maf(path, merge={"AB": ["A", "B"]}).data.items == ("AB",)
