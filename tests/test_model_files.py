"""Files of models: reading returns the same model, and damaged files are refused."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
import sequela
from label_strategies import distinct, labels
from sequela import InputError, Model, ObservationEffects
from sequela.observation import Exponential

quick = settings(max_examples=80, deadline=None, derandomize=True, database=None)
formulas = ["=1+1", "+a", "-a", "@a", "'=a", "''=a", "'a", " =a", "＝a", "''"]
others = ['"', '"",', "a,b", "é", "日本", "🧬", "👩\u200d🔬", "NA", "nan", "1.0"]
nasty = st.sampled_from([*formulas, *others])
values = st.floats(-500.0, 500.0)
observations = st.builds(Exponential, st.floats(0.0, exclude_min=True, allow_infinity=False))


@st.composite
def models(draw, observation=st.just(Exponential())):  # noqa: B008 - a strategy is a constant
    items = draw(distinct(labels() | nasty, min_size=1, max_size=4))
    n = len(items)
    theta = draw(st.lists(values, min_size=n * n, max_size=n * n))
    return Model(np.reshape(theta, (n, n)), items, observation=draw(observation))


def small(metadata=None, rate=1.0):
    theta = [[0.5, 4.0], [-0.25, -4.0]]
    return Model(theta, ["first", "second"], metadata, observation=Exponential(rate))


def same(a, b):
    """Return whether two models are equal to the last bit, including the sign of zeros."""
    return a == b and a.theta.tobytes() == b.theta.tobytes() and a.items == b.items


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


# --- One file -------------------------------------------------------------------------------------


@quick
@given(model=models(observations))
def test_save_and_load(folder, model):
    model.save(folder / "model.npz")
    assert same(Model.load(folder / "model.npz"), model)


def test_metadata_travels(tmp_path):
    metadata = {
        "penalty": 0.01,
        "seed": 2**80,
        "converged": np.bool_(True),
        "count": np.int64(3),
        "se": np.float32(0.5),
        "nested": {"starts": [1, None, "ä🧬"], "range": (1, 2)},
    }
    small(metadata).save(tmp_path / "m.npz")
    found = Model.load(tmp_path / "m.npz").metadata
    assert found == {
        **metadata,
        "nested": {"starts": [1, None, "ä🧬"], "range": [1, 2]},
    }
    assert type(found["count"]) is int


def test_a_learned_model_travels(tmp_path):
    sets = sequela.simulate(small().to_frame(), 200, random_state=1).to_dataset().without_times()
    model = sequela.fit(sets, penalty=0.05, random_state=1)
    model.save(tmp_path / "m.npz")
    again = Model.load(tmp_path / "m.npz")
    assert same(again, model)
    assert again.metadata == model.metadata
    assert {"penalty", "seed", "sequela"} <= again.metadata.keys()


@pytest.mark.parametrize("name", ["model", "model.npz", "model.v2", "モデル.dat", ".hidden"])
@pytest.mark.parametrize("kind", [str, Path])
def test_the_name_is_kept(tmp_path, name, kind):
    small().save(kind(tmp_path / name))
    assert os.listdir(tmp_path) == [name]  # noqa: PTH208 - the name, not the path
    assert Model.load(kind(tmp_path / name)) == small()


def test_the_file_is_open(tmp_path):
    """The format is open: NumPy reads the file without pickle, and the array `meta` is JSON."""
    small({"seed": 7}, rate=2.0).save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as file:
        assert sorted(file.files) == ["meta", "theta"]
        np.testing.assert_array_equal(file["theta"], small().theta)
        assert file["theta"].dtype == np.float64
        header = json.loads(str(file["meta"]))
    assert header == {
        "format": "sequela model",
        "version": 2,
        "sequela": sequela.__version__,
        "items": ["first", "second"],
        "observation": {"kind": "exponential", "rate": 2.0},
        "metadata": {"seed": 7},
    }


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, b"x", np.zeros(2), {"a": {"b": 1j}}, {(1,): 2}]
)
def test_metadata_that_json_cannot_hold(tmp_path, value):
    (tmp_path / "m.npz").write_bytes(b"as it was")
    for write in (Model.save, Model.to_mhn):
        with pytest.raises(InputError, match=r"metadata\['bad'\] cannot be saved .*plain JSON"):
            write(small({"good": 1, "bad": value}), tmp_path / "m.npz")
    assert (tmp_path / "m.npz").read_bytes() == b"as it was"


def test_metadata_with_other_keys_or_a_circle(tmp_path):
    with pytest.raises(InputError, match="metadata has the key 3, which cannot be saved"):
        small({3: 1}).save(tmp_path / "m.npz")
    circle = []
    circle.append(circle)
    with pytest.raises(InputError, match=r"metadata\['round'\] cannot be saved"):
        small({"round": circle}).save(tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_whole(tmp_path, monkeypatch, failure):
    path = tmp_path / "m.npz"
    small().save(path)
    before = path.read_bytes()

    def half(file, **arrays):
        file.write(b"PK half")
        raise failure

    monkeypatch.setattr(np, "savez_compressed", half)
    with pytest.raises((InputError, KeyboardInterrupt)) as caught:
        Model([[1.0]]).save(path)
    if isinstance(failure, OSError):
        assert "m.npz" in str(caught.value)
        assert "No space left" in str(caught.value)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("write", [Model.save, Model.to_csv, Model.to_mhn])
def test_where_nothing_can_be_written(tmp_path, write):
    with pytest.raises(InputError, match=r"nowhere.*m\.x.*cannot be written.*folder that exists"):
        write(small(), tmp_path / "nowhere" / "m.x")
    (tmp_path / "taken.csv").mkdir()
    with pytest.raises(InputError, match=r"taken\.csv' cannot be written"):
        write(small(), tmp_path / "taken.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["taken.csv"]


@pytest.mark.parametrize("read", [Model.load, Model.from_csv, Model.from_mhn])
def test_no_such_file(tmp_path, read):
    with pytest.raises(
        InputError, match=r"none\.npz' cannot be read \(No such file.*check the name"
    ):
        read(tmp_path / "none.npz")
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path)


# --- Files that are not models --------------------------------------------------------------------


def test_every_truncation_is_refused(tmp_path):
    path = tmp_path / "m.npz"
    small({"note": "x"}).save(path)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match=r"m\.npz' cannot be read.*damaged"):
            Model.load(path)


def test_no_damaged_byte_gives_another_model(tmp_path):
    """A damaged file is refused, unless the damage is harmless (as in a time stamp)."""
    path = tmp_path / "m.npz"
    model = small({"note": "x"})
    model.save(path)
    content = path.read_bytes()
    refused = []
    for place in range(len(content)):
        for flip in (0x06, 0xFF):  # 0x06 changes the compression method to LZMA
            damaged = bytearray(content)
            damaged[place] ^= flip
            path.write_bytes(damaged)
            try:
                found = Model.load(path)
            except InputError as error:
                refused.append(str(error))
            else:
                assert same(found, model)
                assert found.metadata == model.metadata
    assert len(refused) > len(content)
    assert all("m.npz" in message for message in refused)


def write_npz(path, header, theta=None, **arrays):
    text = header if isinstance(header, str) else json.dumps(header)
    theta = np.zeros((2, 2)) if theta is None else theta
    with path.open("wb") as file:
        np.savez(file, meta=np.array(text), theta=theta, **arrays)


GOOD = {
    "format": "sequela model",
    "version": 2,
    "sequela": "0.2.0",
    "items": ["a", "b"],
    "observation": {"kind": "exponential", "rate": 0.5},
    "metadata": {},
}
OLD = {key: value for key, value in GOOD.items() if key != "observation"} | {"version": 1}


def test_what_is_written_by_hand_is_read(tmp_path):
    """The header GOOD is accepted. The next tests change it, and show that it is refused then."""
    write_npz(tmp_path / "m.npz", GOOD, extra=np.ones(3))
    expected = Model(np.zeros((2, 2)), ["a", "b"], observation=Exponential(0.5))
    assert Model.load(tmp_path / "m.npz") == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"format": "sequela checkpoint"},
            "is not a model of sequela; give a file that was written by Model.save",
        ),
        ({"format": None}, "is not a model of sequela"),
        ({"version": "one"}, "'version' is 'one', expected one of 1, 2"),
        ({"items": ["a", "a"]}, "each label may occur only once.*'a' at positions 0 and 1"),
        ({"items": ["a", ""]}, "a string that is not empty, or a number"),
        ({"items": ["a"]}, "2 x 2|1 x 1"),
        ({"items": "ab"}, "'items' is 'ab', expected a list"),
        ({"metadata": 3}, "'metadata' is 3, expected an object"),
        (
            {"observation": {"kind": "clockwork", "rate": 1.0}},
            "the observation is .*'clockwork'.*kind is one of 'exponential'.*newer version",
        ),
        ({"observation": None}, "the observation is None; expected .*kind is one of 'exponential'"),
        ({"observation": 2.0}, "'observation' is 2.0, expected an object"),
        ({"observation": {"kind": ["exponential"]}}, "kind is one of 'exponential'"),
        ({"observation": {"kind": "exponential", "rate": 0.0}}, "0.0; expected a positive finite"),
        ({"observation": {"kind": "exponential", "rate": "2"}}, "'2'; expected a positive finite"),
        (
            {"observation": {"kind": "exponential", "pace": 2.0}},
            "'pace'.*observation of kind 'exponential' has other parameters",
        ),
    ],
)
def test_wrong_headers(tmp_path, change, message):
    write_npz(tmp_path / "m.npz", {**GOOD, **change})
    with pytest.raises(InputError, match=rf"m\.npz'.*{message}"):
        Model.load(tmp_path / "m.npz")


@pytest.mark.parametrize("missing", ["format", "version", "items", "metadata", "observation"])
def test_missing_entries(tmp_path, missing):
    write_npz(tmp_path / "m.npz", {k: v for k, v in GOOD.items() if k != missing})
    with pytest.raises(InputError, match=r"m\.npz' (is not a model|cannot be (read|used))"):
        Model.load(tmp_path / "m.npz")


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        (np.zeros((2, 3)), "expected a square"),
        (np.zeros(4), "expected a square"),
        (np.zeros((3, 3)), "expected 2 x 2"),
        (np.full((2, 2), np.nan), "expected finite"),
        (np.zeros((2, 2), dtype=np.float32), "'theta' is an array of float32"),
        (np.array([["a", "b"], ["c", "d"]]), "'theta' is an array of <U1"),
    ],
)
def test_wrong_theta(tmp_path, theta, message):
    write_npz(tmp_path / "m.npz", GOOD, theta)
    with pytest.raises(InputError, match=rf"m\.npz'.*{message}"):
        Model.load(tmp_path / "m.npz")


def test_a_newer_format(tmp_path):
    """The message must not depend on the arrays, because a newer version may have other arrays."""
    header = {"format": "sequela model", "version": 3, "sequela": "9.9"}
    with (tmp_path / "m.npz").open("wb") as file:
        np.savez(file, meta=np.array(json.dumps(header)))
    with pytest.raises(InputError) as caught:
        Model.load(tmp_path / "m.npz")
    for part in ("m.npz", "format version 3", "sequela 9.9", "versions up to 2", "newer sequela"):
        assert part in str(caught.value)


# --- Files of version 0.1 -------------------------------------------------------------------------

# Files of format 1 contain no observation. If the rate of observation was not 1, it is in the
# metadata, as `observation_rate`.


def test_an_old_file_has_the_rate_of_its_metadata(tmp_path):
    metadata = {"observation_rate": 2.0, "penalty": 0.01}
    write_npz(tmp_path / "m.npz", {**OLD, "metadata": metadata})
    found = Model.load(tmp_path / "m.npz")
    assert found.observation == Exponential(2.0)
    assert found.metadata == {"penalty": 0.01}
    # If the model is saved again, the new file has the current format and the same content.
    found.save(tmp_path / "again.npz")
    again = Model.load(tmp_path / "again.npz")
    assert same(again, found)
    assert again.metadata == {"penalty": 0.01}


def test_an_old_file_without_a_rate_has_that_of_the_paper(tmp_path):
    write_npz(tmp_path / "m.npz", OLD)
    found = Model.load(tmp_path / "m.npz")
    assert found == Model(np.zeros((2, 2)), ["a", "b"])
    assert found.observation == Exponential(1.0)


@pytest.mark.parametrize("rate", ["fast", 0.0, -1.0, None, [2.0]])
def test_an_old_file_with_a_rate_that_is_none(tmp_path, rate):
    write_npz(tmp_path / "m.npz", {**OLD, "metadata": {"observation_rate": rate}})
    with pytest.raises(InputError, match=r"m\.npz'.*expected a positive finite number"):
        Model.load(tmp_path / "m.npz")


@pytest.mark.parametrize("change", [{"metadata": 3}, {"items": "ab"}])
def test_an_old_file_with_content_of_the_wrong_type(tmp_path, change):
    write_npz(tmp_path / "m.npz", {**OLD, **change})
    with pytest.raises(InputError, match=r"m\.npz'.*(an object|a list)"):
        Model.load(tmp_path / "m.npz")


def test_the_metadata_of_a_new_file_are_left_alone(tmp_path):
    """In files of the current format, `observation_rate` in the metadata has no effect."""
    small({"observation_rate": 7.0}, rate=2.0).save(tmp_path / "m.npz")
    found = Model.load(tmp_path / "m.npz")
    assert found.observation == Exponential(2.0)
    assert found.metadata == {"observation_rate": 7.0}


# --- Files of other programs ----------------------------------------------------------------------


def test_foreign_files(tmp_path):
    path = tmp_path / "m.npz"
    np.savez(path, weights=np.ones(3))
    with pytest.raises(InputError, match=r"m\.npz' is not a model of sequela"):
        Model.load(path)
    np.savez(path, meta=np.array("[1, 2]"))
    with pytest.raises(InputError, match=r"m\.npz' is not a model of sequela"):
        Model.load(path)
    for content in (b"", b"a,b\n1,2\n", b"PK\x03\x04" + bytes(100)):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"m\.npz' cannot be read as a model"):
            Model.load(path)


class Trap:
    """An object that makes a folder when it is unpickled. An attack could run any other code."""

    def __reduce__(self):
        return (os.mkdir, ("sprung",))


def test_pickles_are_not_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("meta", "theta"):
        buffer = io.BytesIO()
        np.save(buffer, np.array([Trap()], dtype=object), allow_pickle=True)
        write_npz(tmp_path / "m.npz", GOOD)
        with zipfile.ZipFile(tmp_path / "m.npz") as archive:
            parts = {x: archive.read(x) for x in archive.namelist()}
        parts[f"{name}.npy"] = buffer.getvalue()
        with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
            for member, content in parts.items():
                archive.writestr(member, content)
        with pytest.raises(InputError, match="cannot be read as a model"):
            Model.load(tmp_path / "m.npz")
    assert not (tmp_path / "sprung").exists()


# --- Checks of labels -----------------------------------------------------------------------------


def test_a_model_has_every_label_once():
    with pytest.raises(InputError, match="each label may occur only once"):
        Model(np.zeros((2, 2)), ["a", "a"])
    with pytest.raises(InputError, match="each label may occur only once"):
        Model(pd.DataFrame(np.zeros((2, 2)), index=["a", "a"], columns=["a", "a"]))
    with pytest.raises(InputError, match=r"expected a label \(a string"):
        Model(np.zeros((2, 2)), ["a", " "])
    assert Model(np.zeros((2, 2)), [1, 2]).items == ("1", "2")


# --- Labelled tables ------------------------------------------------------------------------------


@quick
@given(model=models())
def test_csv_round_trip(folder, model):
    model.to_csv(folder / "theta.csv")
    assert same(Model.from_csv(folder / "theta.csv"), model)


@quick
@given(model=models())
def test_no_cell_is_a_formula(folder, model):
    model.to_csv(folder / "theta.csv")
    with (folder / "theta.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    for cell in [*header, *(row[0] for row in rows)]:
        assert cell[0] not in "=+-@＝＋－＠\t\r\n"
        assert cell.strip()[0] not in "=+-@＝＋－＠"
    for row in rows:
        for cell in row[1:]:
            float(cell)


def test_csv_rows_act_on_columns(tmp_path):
    small().to_csv(tmp_path / "theta.csv")
    frame = pd.read_csv(tmp_path / "theta.csv", index_col=0)
    assert frame.loc["first", "second"] == 4.0
    assert frame.index.name == "row acts on column"
    pd.testing.assert_frame_equal(frame.rename_axis(None), small().to_frame())


def test_csv_of_pandas_and_of_a_spreadsheet(tmp_path):
    path = tmp_path / "theta.csv"
    small().to_frame().to_csv(path)
    assert Model.from_csv(path) == small()
    path.write_text(f"\ufeff{path.read_text()}\n\n".replace("\n", "\r\n"), encoding="utf-8")
    assert Model.from_csv(path) == small()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no table of theta"),
        (",a\n", "has no table of theta"),
        (";a;b\na;1;2\nb;3;4\n", "separated by commas"),
        (",a,b\na,1,2\nb,3\n", "line 3: found 2 cells, expected 3"),
        (
            ",a,b\na,1,2\n",
            r"1 rows and 2 columns\. From position 2 on, the rows are \[\].*incomplete",
        ),
        (",a,b\nb,1,2\na,3,4\n", r"From position 1 on, the rows are \['b', 'a'\] .*same order"),
        (",a\na,1\nb,2\nc,3\n", r"3 rows and 1 columns\. .* 2 on, the rows are \['b', 'c'\]"),
        (",a,b\na,1,2\nb,3,x\n", "line 3, row 'b', column 'b': found 'x', expected a number"),
        (",a,b\na,1,2\nb,,4\n", "line 3, row 'b', column 'a': found ''"),
        (",a,b\na,1,1_0\nb,3,4\n", "found '1_0'"),
        (",a,b\na,1,nan\nb,3,4\n", "expected finite numbers"),
        (",a,b\na,1,700\nb,3,4\n", "Was a matrix of rates given"),
        (",a,a\na,1,2\na,3,4\n", "each label may occur only once"),
        (",'=a,=a\n'=a,1,2\n=a,3,4\n", "each label may occur only once"),
        (',"a,b\na,1,2\nb,3,4\n', "is not a comma-separated table"),
        (",a,b\na,1,2\nb,3,4\nObservation,5,6\n", "one more row .* than columns.*Model.from_mhn"),
    ],
)
def test_tables_that_are_not_theta(tmp_path, text, message):
    path = tmp_path / "theta.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=rf"theta\.csv'.*{message}"):
        Model.from_csv(path)


def test_tables_in_other_encodings(tmp_path):
    path = tmp_path / "theta.csv"
    path.write_bytes(",é\né,1\n".encode("latin-1"))
    with pytest.raises(
        InputError, match=r"theta\.csv' is not .* in UTF-8 .*save it as 'CSV UTF-8'"
    ):
        Model.from_csv(path)


def test_a_label_that_utf8_cannot_hold(tmp_path):
    with pytest.raises(InputError, match=r"items, position 0: .*a lone surrogate"):
        Model([[0.0]], ["\ud800"])
    small().save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as archive:
        header, theta = json.loads(str(archive["meta"])), archive["theta"]
    header["items"][0] = "\ud800"
    np.savez(tmp_path / "m.npz", theta=theta, meta=np.array(json.dumps(header)))
    with pytest.raises(InputError, match=r"items\[0\]' is '.ud800', expected text .*without lone"):
        Model.load(tmp_path / "m.npz")


@pytest.mark.parametrize("label", ["a\x1b]0;owned\x07", "a\x9bm", "\u202ea", "a\nb", "a\u2028"])
def test_labels_that_act_on_a_terminal_are_refused(label, tmp_path):
    path = tmp_path / "theta.csv"
    path.write_text(f'row acts on column,"{label}"\n"{label}",1.0\n', encoding="utf-8")
    with pytest.raises(InputError, match="which cannot be printed") as caught:
        Model.from_csv(path)
    assert str(caught.value).isprintable()


# --- The package mhn ------------------------------------------------------------------------------

# A file that mhn 1.2.3 wrote with pandas. The entry in row i and column j is the effect of j on i.
MHN = ",TP53,IDH1\nTP53,-0.32,1.5\nIDH1,-0.0,-1.89\n"


def test_mhn_is_transposed(tmp_path):
    (tmp_path / "m.csv").write_text(MHN)
    model = Model.from_mhn(tmp_path / "m.csv")
    assert model.items == ("TP53", "IDH1")
    assert model.to_frame().loc["IDH1", "TP53"] == 1.5
    assert model.theta[0, 0] == -0.32
    assert model.metadata == {}


def test_mhn_metadata_is_read(tmp_path):
    """File names may have several dots, as in the examples of mhn. Only .csv is the suffix."""
    path = tmp_path / "final_lam-0.0125_reltol-1e-07.csv"
    path.write_text(MHN)
    meta = {"lambda": 0.0125, "init": None, "message": "CONVERGENCE", "nit": 218}
    (tmp_path / "final_lam-0.0125_reltol-1e-07_meta.json").write_text(json.dumps(meta))
    assert Model.from_mhn(str(path)).metadata == {"mhn": meta}


@pytest.mark.parametrize("content", [b"{", b"", b"[1]", b"3", b"\xff\xfe\x00", b"[" * 100_000])
def test_mhn_metadata_that_is_malformed(tmp_path, content):
    (tmp_path / "m.csv").write_text(MHN)
    (tmp_path / "m_meta.json").write_bytes(content)
    with pytest.raises(InputError, match=r"m_meta\.json' cannot be used: found .*JSON object"):
        Model.from_mhn(tmp_path / "m.csv")


@quick
@given(model=models())
def test_mhn_round_trip(folder, model):
    model.to_mhn(folder / "mhn.csv")
    assert same(Model.from_mhn(folder / "mhn.csv"), model)


def test_mhn_reads_what_we_write(tmp_path):
    """Read files with the same three statements as the function `load` of mhn."""
    model = Model([[0.1, 4.0], [-1 / 3, -4.0]], ["=first", "second"], {"penalty": 0.01})
    model.to_mhn(tmp_path / "m.csv")
    frame = pd.read_csv(f"{tmp_path / 'm'}.csv", index_col=0)
    assert frame.columns.to_list() == list(model.items)
    np.testing.assert_allclose(np.array(frame), model.theta.T, rtol=1e-15)
    assert json.loads(Path(f"{tmp_path / 'm'}_meta.json").read_text()) == {"penalty": 0.01}


@pytest.mark.parametrize(
    ("metadata", "written"),
    [
        ({}, {}),
        ({"mhn": {"lambda": 0.1}}, {"lambda": 0.1}),
        ({"mhn": {"lambda": 0.1}, "note": "ä"}, {"lambda": 0.1, "note": "ä"}),
        ({"mhn": 3}, {"mhn": 3}),
    ],
)
def test_mhn_metadata_goes_back(tmp_path, metadata, written):
    small(metadata).to_mhn(tmp_path / "m.csv")
    assert json.loads((tmp_path / "m_meta.json").read_text()) == written
    assert Model.from_mhn(tmp_path / "m.csv").metadata == {"mhn": written}


@quick
@given(
    st.floats(-20.0, 20.0),
    st.sampled_from([0.25, 2.0, 1e6]),
    st.lists(values, min_size=2, max_size=2),
)
def test_mhn_counts_time_in_mean_observation_times(folder, base, rate, effects):
    """In mhn the rate of observation is 1, so base rates are divided by our rate of observation."""
    theta = np.array([[base, effects[0]], [effects[1], -base]])
    Model(theta, ["a", "b"], observation=Exponential(rate)).to_mhn(folder / "rate.csv")
    frame = pd.read_csv(folder / "rate.csv", index_col=0)
    np.testing.assert_allclose(np.diag(frame), np.diag(theta) - np.log(rate), rtol=1e-14)
    assert frame.loc["b", "a"] == pytest.approx(effects[0], rel=1e-15)
    assert frame.loc["a", "b"] == pytest.approx(effects[1], rel=1e-15)
    assert Model.from_mhn(folder / "rate.csv").observation == Exponential(1.0)


def test_what_mhn_gets_has_the_same_distribution_of_sets(tmp_path):
    model = small(rate=2.0)
    model.to_mhn(tmp_path / "m.csv")
    theirs = Model.from_mhn(tmp_path / "m.csv")
    np.testing.assert_allclose(
        ref.set_distribution(theirs.theta), ref.set_distribution(model.theta, 2.0), rtol=1e-13
    )


def test_mhn_has_no_observation_of_another_kind(tmp_path):
    class Slowing(Exponential):
        kind = "slowing"
        constant_rate = None

    with pytest.raises(
        InputError, match=r"mhn has no observation of kind 'slowing'.*constant rate"
    ):
        Model([[0.0]], observation=Slowing()).to_mhn(tmp_path / "m.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("last", ["Observation", "2"])
def test_observation_effects_of_mhn_are_read(tmp_path, last):
    (tmp_path / "m.csv").write_text(f"{MHN}{last},0.1,0.2\n")
    assert Model.from_mhn(tmp_path / "m.csv").observation == ObservationEffects((0.1, 0.2))


def test_another_last_row_is_not_taken_for_observation_effects(tmp_path):
    (tmp_path / "m.csv").write_text(f"{MHN}else,0.1,0.2\n")
    with pytest.raises(InputError, match=r"m\.csv'.*one more row.*'else'.*'Observation'"):
        Model.from_mhn(tmp_path / "m.csv")


def test_our_table_is_not_mistaken_for_theirs(tmp_path):
    small().to_csv(tmp_path / "theta.csv")
    with pytest.raises(InputError, match=r"theta\.csv' is a table of sequela.*Model\.from_csv"):
        Model.from_mhn(tmp_path / "theta.csv")


def test_mhn_users_leave_the_suffix_out(tmp_path):
    (tmp_path / "m.csv").write_text(MHN)
    with pytest.raises(InputError, match=r"m' cannot be read .*did you mean '.*m\.csv'\?"):
        Model.from_mhn(tmp_path / "m")


# --- After a file is read -------------------------------------------------------------------------


def test_another_process_reads_it(tmp_path):
    small().save(tmp_path / "m.npz")
    script = "import sys, sequela; print(repr(sequela.Model.load(sys.argv[1])))"
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", script, str(tmp_path / "m.npz")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == repr(small()) == "<Model: 2 items, 2 interactions>"


def test_theta_stays_read_only(tmp_path):
    small().save(tmp_path / "m.npz")
    with pytest.raises(ValueError, match="read-only"):
        Model.load(tmp_path / "m.npz").theta[0, 0] = 1.0
