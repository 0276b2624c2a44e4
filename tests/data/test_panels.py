"""Gene panels: genes outside the panel are missing, but a gene with a mutation is present."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sequela import InputError
from sequela.cli import main
from sequela.data import read_cbioportal

GENES = ["APC", "KRAS", "TP53", "BRAF"]
PANELS = {"P1": ["APC", "KRAS", "TP53"], "P2": ["TP53", "BRAF"], "P3": ["KRAS"]}
SAMPLES = ["s1", "s2", "s3", "s4"]


def write_study(folder, calls, matrix, panels=PANELS, name="data_gene_panel_matrix.txt"):
    """Write a study. `calls` has pairs (gene, sample), `matrix` has the panel of each sample."""
    folder.mkdir(exist_ok=True)
    lines = ["Hugo_Symbol\tVariant_Classification\tTumor_Sample_Barcode"]
    lines += [f"{gene}\tMissense_Mutation\t{who}" for gene, who in calls]
    (folder / "data_mutations.txt").write_text("\n".join(lines) + "\n")
    (folder / "case_lists").mkdir(exist_ok=True)
    (folder / "case_lists" / "cases_sequenced.txt").write_text(
        "case_list_ids: " + "\t".join(matrix) + "\n"
    )
    rows = ["SAMPLE_ID\tmutations\tcna", *(f"{who}\t{what}\tNA" for who, what in matrix.items())]
    (folder / name).write_text("\n".join(rows) + "\n")
    for panel, genes in panels.items():
        (folder / f"data_gene_panel_{panel}.txt").write_text(
            f"stable_id: {panel}\ndescription: some genes\ngene_list: " + "\t".join(genes) + "\n"
        )
    return folder


@settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    calls=st.lists(
        st.tuples(st.sampled_from(GENES), st.sampled_from(SAMPLES)), min_size=1, max_size=8
    ),
    chosen=st.lists(st.sampled_from(["P1", "P2", "P3", "WES"]), min_size=4, max_size=4),
)
def test_the_slow_twin(tmp_path, calls, chosen):
    matrix = dict(zip(SAMPLES, chosen, strict=True))
    read = read_cbioportal(folder=write_study(tmp_path / "x", calls, matrix))
    data = read.data
    several = len(set(chosen)) > 1
    beyond = 0
    for i, who in enumerate(data.samples):
        for j, gene in enumerate(data.items):
            covered = matrix[who] == "WES" or gene in PANELS[matrix[who]]
            called = (gene, who) in calls
            assert data.values[i, j] == called
            missing = data.missing is not None and data.missing[i, j]
            assert missing == (several and not covered and not called)
            beyond += several and called and not covered
    notes = " ".join(read.summary.notes)
    assert (f"{beyond} call" in notes) == (beyond > 0)
    assert sum(part.cells for part in read.summary.missing) == data.n_missing


def test_the_summary_says_what_is_missing_and_why(tmp_path):
    calls = [("TP53", "s1"), ("KRAS", "s1"), ("APC", "s3"), ("APC", "s2")]
    matrix = {"s1": "P1", "s2": "P2", "s3": "P1", "s4": "NA"}
    read = read_cbioportal(folder=write_study(tmp_path / "x", calls, matrix))
    text = read.summary.text()
    assert "Missing: 1 cell of 1 item and 1 sample, not covered by the panel P2." in text
    assert (
        "1 call of mutations in genes that the panel of the sample does not list (APC in s2" in text
    )
    assert "mutations not profiled" in text  # sample s4 has no panel
    assert any("data_gene_panel_P2.txt" in file.path for file in read.summary.files)
    assert read_cbioportal(folder=tmp_path / "x", panel="P1").data.missing is None
    assert read_cbioportal(folder=tmp_path / "x", incomplete="samples").data.samples == ("s1", "s3")


def test_copy_numbers_have_panels_of_their_own(tmp_path):
    folder = write_study(tmp_path / "x", [("TP53", "s1")], {"s1": "P1", "s2": "P2"})
    (folder / "data_cna.txt").write_text("Hugo_Symbol\ts1\ts2\nKRAS\t2\t0\nTP53\t0\t-2\n")
    (folder / "data_gene_panel_matrix.txt").write_text(
        "SAMPLE_ID\tmutations\tcna\ns1\tP1\tP1\ns2\tP2\tP2\n"
    )
    data = read_cbioportal(folder=folder).data
    assert data.items == ("TP53", "KRAS(A)", "KRAS(D)", "TP53(A)", "TP53(D)")
    assert data.missing.tolist() == [[False] * 5, [False, True, True, False, False]]


def test_genie_has_regions_and_assays(tmp_path):
    """Studies of GENIE have all panels in the file genomic_information.txt.

    The panels of the samples are in the file data_gene_matrix.txt.
    """
    calls = [("TP53", "s1"), ("BRAF", "s2"), ("APC", "s2")]
    folder = write_study(
        tmp_path / "x", calls, {"s1": "DFCI-1", "s2": "MSK-2"}, {}, "data_gene_matrix.txt"
    )
    regions = [
        "Chromosome\tStart_Position\tEnd_Position\tHugo_Symbol\tID\tSEQ_ASSAY_ID\tFeature_Type\t"
        "includeInPanel\tclinicalReported",
        "17\t1\t2\tTP53\tTP53\tDFCI-1\texon\tTrue\tTrue",
        "7\t1\t2\tBRAF\tBRAF\tDFCI-1\texon\tFalse\tTrue",
        "7\t1\t2\tBRAF\tBRAF\tMSK-2\texon\tTrue\t",
        "5\t1\t2\tAPC\tAPC\tMSK-2\texon\tTrue\t",
        "5\t1\t2\t\tx\tMSK-2\tintergenic\tTrue\t",
    ]
    (folder / "genomic_information.txt").write_text("\n".join(regions) + "\n")
    data = read_cbioportal(folder=folder).data
    assert data.items == ("APC", "BRAF", "TP53")
    assert data.missing.tolist() == [[True, True, False], [False, False, True]]
    (folder / "data_gene_matrix.txt").unlink()
    (folder / "data_clinical_sample.txt").write_text(
        "PATIENT_ID\tSAMPLE_ID\tSEQ_ASSAY_ID\n1\ts1\tDFCI-1\n2\ts2\tMSK-2\n"
    )
    assert np.array_equal(read_cbioportal(folder=folder).data.missing, data.missing)
    (folder / "data_clinical_sample.txt").write_text(
        "PATIENT_ID\tSAMPLE_ID\tSEQ_ASSAY_ID\n1\ts1\tDFCI-1\n2\ts2\tMSK-3\n"
    )
    with pytest.raises(InputError, match=r"data_clinical_sample.txt', line 3: the panel 'MSK-3'"):
        read_cbioportal(folder=folder)


def test_panels_in_another_folder(tmp_path):
    folder = write_study(tmp_path / "x", [("TP53", "s1")], {"s1": "P1", "s2": "P2"}, {})
    write_study(tmp_path / "y", [("TP53", "s1")], {})
    with pytest.raises(InputError, match=r"2 panels .*panels="):
        read_cbioportal(folder=folder)
    data = read_cbioportal(folder=folder, panels=tmp_path / "y").data
    assert data.n_samples == 2
    files = [tmp_path / "y" / f"data_gene_panel_{name}.txt" for name in ("P1", "P2")]
    assert read_cbioportal(folder=folder, panels=files).data == data


def test_the_command(tmp_path):
    folder = write_study(tmp_path / "x", [("TP53", "s1"), ("APC", "s1")], {"s1": "P1", "s2": "P2"})
    out = tmp_path / "out.csv"

    def run(*more):
        arguments = ["import", "--study-folder", str(folder), "-o", str(out), "--force", *more]
        return CliRunner().invoke(main, arguments)

    done = run()
    assert done.exit_code == 0, done.output
    assert "Missing: 1 cell of 1 item and 1 sample, not covered by the panel P2." in done.output
    assert out.read_text() == "sample,APC,TP53\ns1,1,1\ns2,NA,0\n"
    assert run("--panel", "P1").exit_code == 0
    assert out.read_text() == "sample,APC,TP53\ns1,1,1\n"
    assert run("--incomplete", "items").exit_code == 0
    assert out.read_text() == "sample,TP53\ns1,1\ns2,0\n"
    (folder / "data_gene_panel_P2.txt").unlink()
    refused = run()
    assert refused.exit_code == 2
    assert "line 3: the panel 'P2'" in refused.output


def bad(tmp_path, change):
    folder = write_study(tmp_path / "x", [("TP53", "s1")], {"s1": "P1", "s2": "P2"})
    change(folder)
    with pytest.raises(InputError) as caught:
        read_cbioportal(folder=folder)
    return str(caught.value)


def test_a_panel_that_is_not_defined_is_refused_with_file_and_line(tmp_path):
    message = bad(tmp_path, lambda folder: (folder / "data_gene_panel_P2.txt").unlink())
    assert "data_gene_panel_matrix.txt', line 3: the panel 'P2'" in message
    assert "panels=" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("stable_id: P2\n", ["data_gene_panel_P2.txt", "gene_list"]),
        ("gene_list: TP53\n", ["stable_id"]),
        ("stable_id: P2\nTP53 BRAF\n", ["line 2", "'TP53 BRAF'"]),
        ("stable_id: P2\ngene_list: 7157\t673\n", ["line 2", "Entrez"]),
        ("stable_id: P1\ngene_list: BRAF\n", ["'P1'", "also defined"]),
        ("", ["stable_id"]),
    ],
)
def test_bad_lists_of_genes_are_refused(tmp_path, content, words):
    message = bad(tmp_path, lambda x: (x / "data_gene_panel_P2.txt").write_text(content))
    for word in words:
        assert word in message, message


def test_two_panels_of_one_sample_are_refused(tmp_path):
    def change(folder):
        with (folder / "data_gene_panel_matrix.txt").open("a") as file:
            file.write("s1\tP2\tNA\n")

    message = bad(tmp_path, change)
    assert "line 4: the sample 's1' has the panel 'P2' here, and 'P1' in an earlier line" in message


def test_bad_regions_are_refused_with_their_line(tmp_path):
    def change(folder):
        (folder / "genomic_information.txt").write_text("Hugo_Symbol\tSEQ_ASSAY_ID\nTP53\n")

    message = bad(tmp_path, change)
    assert "genomic_information.txt', line 2: found 1 cells" in message
