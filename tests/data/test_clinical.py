"""Survival times from the clinical files of cBioPortal."""

import math

import pytest

from sequela import InputError
from sequela.data import read_clinical

PATIENTS = """#Patient Identifier\tOverall Survival (Months)\tOverall Survival Status\tAge
#Identifier\tMonths\tStatus\tAge
#STRING\tNUMBER\tSTRING\tNUMBER
#1\t1\t1\t1
PATIENT_ID\tOS_MONTHS\tOS_STATUS\tDFS_MONTHS\tDFS_STATUS\tAGE
p1\t12.5\t1:DECEASED\t3\t1:Recurred/Progressed\t60
p2\t30\t0:LIVING\t30\t0:DiseaseFree\t51
p3\tNA\t[Not Available]\t\t\t44
p4\t7.25\tDECEASED\t7\t0:DiseaseFree
"""
SAMPLES = """#Sample\tPatient
SAMPLE_ID\tPATIENT_ID
p1-01\tp1
p2-01\tp2
p2-02\tp2
p9-01\tp9
"""
DOWNLOAD = """Study ID\tPatient ID\tSample ID\tOverall Survival (Months)\tOverall Survival Status
gbm\tp1\tp1-01\t12.5\t1:DECEASED
gbm\tp2\tp2-01\t30\t0:LIVING
"""


@pytest.fixture
def write(tmp_path):
    def writing(text, name="data_clinical_patient.txt"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return writing


def test_patients_of_a_study_folder(write):
    found = read_clinical(write(PATIENTS))
    assert found.index.tolist() == ["p1", "p2", "p3", "p4"]
    assert found.loc[["p1", "p2", "p4"], "time"].tolist() == [12.5, 30.0, 7.25]
    assert found.loc[["p1", "p2", "p4"], "event"].tolist() == [True, False, True]
    assert math.isnan(found.loc["p3", "time"])
    assert found["event"].isna().tolist() == [False, False, True, False]
    assert found.attrs == {"endpoint": "OS", "unit": "months"}


def test_another_endpoint(write):
    found = read_clinical(write(PATIENTS), endpoint="dfs")
    assert found["time"].tolist()[:2] == [3.0, 30.0]
    assert found["event"].tolist()[:2] == [True, False]
    with pytest.raises(InputError, match=r"its endpoints are DFS, OS"):
        read_clinical(write(PATIENTS), endpoint="PFS")


def test_samples_get_the_times_of_their_patients(write):
    found = read_clinical(write(PATIENTS), write(SAMPLES, "data_clinical_sample.txt"))
    assert found.index.tolist() == ["p1-01", "p2-01", "p2-02", "p9-01"]
    assert found["patient"].tolist() == ["p1", "p2", "p2", "p9"]
    assert found["time"].tolist()[:3] == [12.5, 30.0, 30.0]
    assert math.isnan(found.loc["p9-01", "time"])


def test_the_download_of_the_study_view(write):
    found = read_clinical(write(DOWNLOAD, "gbm_clinical_data.tsv"))
    assert found.index.tolist() == ["p1-01", "p2-01"]
    assert found["event"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("12.5", "long", r"line 6: the time is 'long'"),
        ("12.5", "-3", r"line 6: the time is '-3'"),
        ("0:LIVING", "perhaps", r"line 7: the status is 'perhaps'"),
        ("p2\t", "p1\t", r"sample 'p1' occurs twice"),
        ("PATIENT_ID", "WHO", r"no column PATIENT_ID"),
        ("OS_MONTHS", "OS_DAYS", r"no columns OS_MONTHS and OS_STATUS"),
        ("\t60", "\t60\textra", r"line 6: found 7 cells, expected 6"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(write, old, new, message):
    with pytest.raises(InputError, match=message):
        read_clinical(write(PATIENTS.replace(old, new, 1)))


def test_files_without_times_are_refused(write):
    with pytest.raises(InputError, match="is empty"):
        read_clinical(write("#only\n#comments\n"))
    with pytest.raises(InputError, match="has no time for the endpoint"):
        read_clinical(write("PATIENT_ID\tOS_MONTHS\tOS_STATUS\np1\tNA\tNA\n"))
