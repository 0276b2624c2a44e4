"""Files of cBioPortal: genes that were not profiled are missing, and no sample is lost silently."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sequela import InputError
from sequela.data.cbioportal import read_cbioportal

REAL = Path(os.environ.get("SEQUELA_DATA", Path(__file__).parents[3] / "shared" / "data"))
real = pytest.mark.skipif(not REAL.is_dir(), reason=f"no real data in {REAL}")
quick = settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def results_view(path, frame):
    """Write genes in rows and samples in columns, as the results view of cBioPortal does."""
    lines = [["STUDY_ID", *["x"] * frame.shape[1]], ["SAMPLE_ID", *frame.columns]]
    lines += [[gene, *row] for gene, row in zip(frame.index, frame.to_numpy(), strict=True)]
    path.write_text("\n".join("\t".join(line) for line in lines) + "\n")
    return path


def other_way_round(path, frame):
    lines = [["STUDY_ID", "SAMPLE_ID", *frame.index]]
    lines += [["x", sample, *frame[sample]] for sample in frame.columns]
    path.write_text("\n".join("\t".join(line) for line in lines) + "\n")
    return path


def cells(values):
    return st.integers(1, 5).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from(values), min_size=n, max_size=n), min_size=1, max_size=5
        )
    )


def framed(rows):
    return pd.DataFrame(
        rows,
        index=[f"G{i}" for i in range(len(rows))],
        columns=[f"s{j}" for j in range(len(rows[0]))],
    )


@quick
@given(rows=cells(["WT", "WT", "R132H", "A289V G598V", "NS"]), layout=st.booleans())
def test_mutations(tmp_path, rows, layout):
    frame = framed(rows)
    path = (results_view if layout else other_way_round)(tmp_path / "m.txt", frame)
    complete = [s for s in frame if "NS" not in set(frame[s])]
    some = [s for s in frame if set(frame[s]) != {"NS"}]
    genes = [g for g in frame.index if set(frame.loc[g, some]) != {"NS"}]
    twin = [s for s in some if "NS" not in set(frame.loc[genes, s])]
    if not twin:
        with pytest.raises(InputError, match="not profiled"):
            read_cbioportal(path, incomplete="samples")
        return
    kept = read_cbioportal(path)
    assert kept.data.samples == tuple(some)
    assert np.array_equal(
        np.zeros(kept.data.values.shape, bool) if kept.data.missing is None else kept.data.missing,
        (frame.loc[genes, some] == "NS").to_numpy().T,
    )
    assert sum(part.cells for part in kept.summary.missing) == kept.data.n_missing
    read = read_cbioportal(path, incomplete="samples")
    assert set(complete) <= set(twin)
    assert read.data.samples == tuple(twin)
    assert read.data.items == tuple(genes)
    assert np.array_equal(read.data.values, (frame.loc[genes, twin] != "WT").to_numpy().T)
    assert read.summary.samples_read == frame.shape[1]


@quick
@given(rows=cells(["-2", "-1", "0", "1", "2", "-1.5"]), layout=st.booleans(), loose=st.booleans())
def test_copy_numbers(tmp_path, rows, layout, loose):
    frame = framed(rows)
    path = (results_view if layout else other_way_round)(tmp_path / "c.txt", frame)
    up, down = (1, -1) if loose else (2, -2)
    data = read_cbioportal(cna=path, amplification=up, deletion=down).data
    levels = frame.astype(float)
    assert data.items == tuple(f"{g}({x})" for g in frame.index for x in "AD")
    assert np.array_equal(data.values[:, 0::2], (levels >= up).to_numpy().T)
    assert np.array_equal(data.values[:, 1::2], (levels <= down).to_numpy().T)


@pytest.mark.parametrize("word", ["NS", "NA", "NP", "ns", "NaN", "Not Profiled"])
def test_not_profiled_is_not_wild_type(tmp_path, word):
    frame = framed([["WT", word, "R1H"], ["WT", word, "WT"]])
    read = read_cbioportal(results_view(tmp_path / "m.txt", frame))
    assert read.data.samples == ("s0", "s2")
    (dropped,) = read.summary.dropped_samples
    assert dropped.names == ("s1",)
    assert "not profiled" in dropped.reason
    assert "1 sample dropped" in read.summary.text()


def test_partly_profiled(tmp_path):
    frame = framed([["WT", "NS", "R1H"], ["WT", "R2H", "WT"]])
    path = results_view(tmp_path / "m.txt", frame)
    assert read_cbioportal(path, incomplete="samples").data.samples == ("s0", "s2")
    kept = read_cbioportal(path)
    assert kept.data.missing.tolist() == [[False, False], [True, False], [False, False]]
    assert "Missing: 1 cell of 1 item and 1 sample, not profiled." in kept.summary.text()
    other = read_cbioportal(path, incomplete="items")
    assert other.data.samples == ("s0", "s1", "s2")
    assert other.data.items == ("G1",)
    # Without the gene G0, no cell is missing.
    assert read_cbioportal(path, drop=["G0"]).data.n_samples == 3
    # A merged item is present if one of its genes is altered, even if the other gene is missing.
    assert read_cbioportal(path, merge={"G": ["G0", "G1"]}).data.values[:, 0].tolist() == [0, 1, 1]


def test_samples_in_one_table_only(tmp_path):
    mutations = framed([["R1H", "WT", "WT", "NS"]])
    levels = framed([["0", "2", "-2", "0"]]).rename(columns={"s0": "t0", "s1": "t1"})
    levels = levels[["s3", "t1", "s2", "t0"]]
    read = read_cbioportal(
        results_view(tmp_path / "m.txt", mutations), results_view(tmp_path / "c.txt", levels)
    )
    assert read.data.samples == ("s2",)
    assert read.data.items == ("G0", "G0(A)", "G0(D)")
    assert read.data.sets() == [frozenset({"G0(D)"})]
    reasons = {name: p.reason for p in read.summary.dropped_samples for name in p.names}
    assert set(reasons) == {"s0", "s1", "s3", "t0", "t1"}
    assert "but not in" in reasons["s0"]
    assert "but not in" in reasons["t0"]
    assert "not profiled" in reasons["s3"]
    assert read.summary.samples_read == 6


def test_samples_are_matched_by_id_not_by_place(tmp_path):
    mutations = framed([["R1H", "WT"]])
    levels = framed([["0", "2"]])[["s1", "s0"]]
    read = read_cbioportal(
        results_view(tmp_path / "m.txt", mutations), results_view(tmp_path / "c.txt", levels)
    )
    assert read.data.sets() == [frozenset({"G0"}), frozenset({"G0(A)"})]


# --- Folders of studies ---------------------------------------------------------------------------


@pytest.fixture
def study(tmp_path):
    (tmp_path / "case_lists").mkdir()
    (tmp_path / "data_mutations.txt").write_text(
        "Hugo_Symbol\tVariant_Classification\tTumor_Sample_Barcode\n"
        "TP53\tMissense_Mutation\ta\nTTN\tSilent\tb\nTERT\t5'Flank\tb\n"
    )
    (tmp_path / "data_cna.txt").write_text(
        "Hugo_Symbol\tEntrez_Gene_Id\ta\tc\tb\nEGFR\t1956\t2\t-2\t0\nPTEN\t5728\t0\t0\t-2\n"
    )
    (tmp_path / "case_lists" / "cases_sequenced.txt").write_text(
        "cancer_study_identifier: x\ncase_list_ids: a\tb\tc\td\n"
    )
    (tmp_path / "case_lists" / "cases_all.txt").write_text("case_list_ids: a\tb\tc\td\te\n")
    (tmp_path / "data_clinical_sample.txt").write_text(
        "#Patient\tSample\n#x\ty\nPATIENT_ID\tSAMPLE_ID\n1\ta\n2\tb\n3\tf\n"
    )
    return tmp_path


def test_a_study(study):
    read = read_cbioportal(folder=study)
    assert read.data.samples == ("a", "b", "c")
    assert read.data.sets() == [
        frozenset({"TP53", "EGFR(A)"}),
        frozenset({"PTEN(D)"}),
        frozenset({"EGFR(D)"}),
    ]
    names = [p.names for p in read.summary.dropped_samples]
    assert names == [("d",)]
    assert any("cases_sequenced.txt" in note for note in read.summary.notes)
    assert {Path(file.path).name for file in read.summary.files} == {
        *("data_mutations.txt", "data_cna.txt", "cases_sequenced.txt")
    }
    promoter = read_cbioportal(folder=study, promoters=["TERT"])
    assert promoter.data.sets()[1] == {"TERT", "PTEN(D)"}


def test_who_was_sequenced(study):
    (study / "data_cna.txt").unlink()
    assert read_cbioportal(folder=study).data.samples == ("a", "b", "c", "d")
    assert read_cbioportal(folder=study, profiled=["b", "a"]).data.samples == ("b", "a")
    (study / "case_lists" / "cases_sequenced.txt").unlink()
    read = read_cbioportal(folder=study)
    assert read.data.samples == ("a", "b", "c", "d", "e")
    assert any("may not have been sequenced" in note for note in read.summary.notes)
    (study / "case_lists" / "cases_all.txt").unlink()
    assert read_cbioportal(folder=study).data.samples == ("a", "b", "f")
    text = (study / "data_mutations.txt").read_text()
    (study / "data_mutations.txt").write_text("#sequenced_samples: b a g\n" + text)
    assert read_cbioportal(folder=study).data.samples == ("b", "a", "g")
    (study / "data_mutations.txt").write_text(text)
    (study / "data_clinical_sample.txt").unlink()
    read = read_cbioportal(folder=study)
    assert read.data.samples == ("a", "b")
    assert any("profiled=" in note for note in read.summary.notes)


def test_a_study_with_copy_numbers_only(study):
    (study / "data_mutations.txt").unlink()
    assert read_cbioportal(folder=study).data.samples == ("a", "c", "b")


def test_gene_panels(study):
    matrix = study / "data_gene_panel_matrix.txt"
    matrix.write_text("SAMPLE_ID\tmutations\tcna\na\tP1\tP1\nb\tP2\tP2\nc\tP1\tP1\nd\tNA\tNA\n")
    with pytest.raises(InputError, match=r"2 panels .*panel='P1'"):
        read_cbioportal(folder=study)
    assert read_cbioportal(folder=study, panel="P1").data.samples == ("a", "c")
    with pytest.raises(InputError, match="P3"):
        read_cbioportal(folder=study, panel="P3")
    matrix.write_text("SAMPLE_ID\tmutations\na\tP1\nb\tP1\nc\tNA\n")
    read = read_cbioportal(folder=study)
    assert read.data.samples == ("a", "b")
    assert {n for p in read.summary.dropped_samples for n in p.names} == {"c", "d"}
    matrix.write_text("who\tmutations\na\tP1\n")
    with pytest.raises(InputError, match="SAMPLE_ID"):
        read_cbioportal(folder=study)
    matrix.unlink()
    with pytest.raises(InputError, match="panel"):
        read_cbioportal(folder=study, panel="P1")


def test_folders_that_are_none(study, tmp_path):
    with pytest.raises(InputError, match="is a file"):
        read_cbioportal(folder=study / "data_cna.txt")
    with pytest.raises(InputError, match="cannot be read"):
        read_cbioportal(folder=study / "nothing")
    with pytest.raises(InputError, match="neither"):
        read_cbioportal(folder=study / "case_lists")
    with pytest.raises(InputError, match="path"):
        read_cbioportal(folder=3)
    (study / "case_lists" / "cases_sequenced.txt").write_text("case_list_ids:\n")
    with pytest.raises(InputError, match="names no samples"):
        read_cbioportal(folder=study)
    (study / "case_lists" / "cases_sequenced.txt").write_text("a\tb\n")
    with pytest.raises(InputError, match="case_list_ids"):
        read_cbioportal(folder=study)


def test_a_maf_as_mutations(study):
    read = read_cbioportal(study / "data_mutations.txt", study / "data_cna.txt", profiled=["a"])
    assert read.data.samples == ("a",)


# --- Real data ------------------------------------------------------------------------------------


@real
def test_glioblastoma():
    folder = REAL / "gbm"
    read = read_cbioportal(
        folder / "mutations.txt", folder / "cna.txt", merge=folder / "merge.json", at_least=4
    )
    data = read.data
    assert (data.n_samples, data.n_items) == (378, 410)
    most = data.frequencies.sort_values(ascending=False)
    assert list(most.index[:3]) == ["CDKN2A(D)", "EGFR(A)", "PTEN"]
    assert most.iloc[:10].round(3).tolist() == [
        *(0.563, 0.474, 0.336, 0.317, 0.238, 0.159, 0.146, 0.122, 0.114, 0.108)
    ]
    assert data.set_sizes.max() == 267
    assert round(float(data.set_sizes.mean()), 1) == 10.9
    assert read.summary.samples_read == 378
    assert read.summary.items_read == 3 * 466
    assert sum(len(old) for old in read.summary.merged.values()) == 38
    assert read.summary.many_items[0].size == 267
    whole = read_cbioportal(
        folder / "mutations.txt", folder / "cna.txt", merge=folder / "merge.json"
    ).data
    assert whole.n_items == 1368
    assert int((whole.frequencies > 0).sum()) == 821
