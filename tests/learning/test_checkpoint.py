"""Checkpoints are never incomplete, resume with the same bits, and refuse other fits."""

import json
import pickle
import sys
import zipfile

import numpy as np
import pytest
from sklearn.base import clone

from learning.problems import quiet, simulated
from sequela import Budget, Dataset, InputError, SetChain, SetChainCV
from sequela.learning import checkpoint as module
from sequela.learning import cross_validation, fitting
from sequela.learning.checkpoint import fingerprint
from sequela.observation import Exponential

SMALL = Budget(work=2.0**6 * (6.0 * 7 + 10.0 * 6) - 1.0)  # sets of 6 and 7 items are sampled
KINDS = {
    "exact": {},
    "several starts": {"n_starts": 3},
    "sampled": {"budget": SMALL, "chains": 3, "max_iter": 25, "n_starts": 2},
    "adagrad": {"solver": "adagrad", "max_iter": 8},
    "adagrad starts": {"solver": "adagrad", "max_iter": 3, "n_starts": 2},
}


class Killed(BaseException):
    """An exception that sequela does not catch. It simulates a process that is killed."""


@pytest.fixture(scope="module")
def data():
    return simulated(7, 60, 4, base=1.0).without_times()


def die_in(monkeypatch, function, call):
    """Make call number `call` of a function of the module `fitting` raise `Killed`."""
    original = getattr(fitting, function)
    calls = 0

    def counting(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls == call:
            raise Killed
        return original(*arguments, **options)

    monkeypatch.setattr(fitting, function, counting)


def run_until_killed(monkeypatch, learner, data, saves):
    """Run a fit that is killed after this many checkpoints; return whether it was killed."""
    original = module._write
    written = 0

    def write(*arguments):
        nonlocal written
        original(*arguments)
        written += 1
        if written == saves:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(module, "_write", write)
        try:
            with quiet():
                learner.fit(data)
        except Killed:
            return True
    return False


@pytest.fixture(scope="module")
def whole(data):
    """Return a fit of each kind that was never interrupted and that writes no checkpoint."""
    ends = {}
    for kind, options in KINDS.items():
        with quiet():
            ends[kind] = SetChain(0.02, random_state=5, **options).fit(data)
    return ends


def same(one, two):
    assert np.array_equal(one.theta_, two.theta_)
    assert one.objective_ == two.objective_
    assert one.objective_se_ == two.objective_se_
    assert one.kkt_residual_ == two.kkt_residual_
    assert one.kkt_floor_ == two.kkt_floor_
    assert one.n_evaluations_ == two.n_evaluations_
    assert one.n_iter_ == two.n_iter_
    assert one.message_ == two.message_
    for a, b in zip(one.starts_, two.starts_, strict=True):
        assert np.array_equal(a.theta, b.theta)
        assert a.objective == b.objective
    left, right = (learner.history_.drop(columns="seconds") for learner in (one, two))
    assert left.equals(right)


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_changes_nothing(kind, whole, data, tmp_path):
    with quiet():
        learner = SetChain(
            0.02, random_state=5, checkpoint=tmp_path / "fit", checkpoint_every=0.0, **KINDS[kind]
        ).fit(data)
    same(learner, whole[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("deaths", [(1,), (4, 3, 2), (24, 5)])
def test_a_resumed_fit_ends_with_the_same_bits(kind, deaths, whole, data, tmp_path, monkeypatch):
    learner = SetChain(
        0.02, random_state=5, checkpoint=tmp_path / "fit", checkpoint_every=0.0, **KINDS[kind]
    )
    killed = [run_until_killed(monkeypatch, clone(learner), data, saves) for saves in deaths]
    assert killed[0] or deaths[0] > 20
    with quiet():
        resumed = clone(learner).fit(data)
    same(resumed, whole[kind])
    assert [file.name for file in tmp_path.iterdir()] == ["fit"]


def meta_of(file):
    with np.load(file, allow_pickle=False) as archive:
        return json.loads(str(archive["meta"]))


# Each start of the paper's solver writes 51 checkpoints in its first phase, max_iter + 1 in its
# second phase, and one more when it has ended.
@pytest.mark.parametrize(
    ("saves", "state"),
    [
        (1, {"finished": 0, "phase": 0, "steps": 0}),
        (17, {"finished": 0, "phase": 0, "steps": 16}),
        (51, {"finished": 0, "phase": 0, "steps": 50}),
        (52, {"finished": 0, "phase": 1, "steps": 0}),
        (54, {"finished": 0, "phase": 1, "steps": 2}),
        (55, {"finished": 0, "phase": 1, "steps": 3}),
        (60, {"finished": 1, "phase": 0, "steps": 3}),
        (109, {"finished": 1, "phase": 1, "steps": 1}),
    ],
)
def test_the_papers_solver_resumes_in_both_phases(saves, state, whole, data, tmp_path, monkeypatch):
    file = tmp_path / "fit"
    learner = SetChain(
        0.02, random_state=5, checkpoint=file, checkpoint_every=0.0, **KINDS["adagrad starts"]
    )
    assert run_until_killed(monkeypatch, clone(learner), data, saves)
    meta = meta_of(file)
    assert state == {
        "finished": len(meta["finished"]),
        "phase": meta["running"]["phase"],
        "steps": meta["running"]["numbers"]["steps_taken"],
    }
    with quiet():
        resumed = clone(learner).fit(data)
    same(resumed, whole["adagrad starts"])


def test_a_fit_with_times_resumes(tmp_path, monkeypatch):
    data = simulated(5, 40, 2)
    times = data.times.copy()
    times[::3] = np.nan
    data = Dataset(data.values, times=times)
    learner = SetChain(0.02, random_state=1, checkpoint=tmp_path / "fit", checkpoint_every=0.0)
    assert run_until_killed(monkeypatch, clone(learner), data, 5)
    expected = SetChain(0.02, random_state=1).fit(data)
    same(learner.fit(data), expected)


def test_a_fit_without_a_given_seed_resumes(data, tmp_path, monkeypatch):
    """If no seed is given, a seed is drawn and stored in the checkpoint, and then used again."""
    file = tmp_path / "fit"
    learner = SetChain(0.02, n_starts=3, checkpoint=file, checkpoint_every=0.0)
    assert run_until_killed(monkeypatch, clone(learner), data, 15)
    with quiet():
        resumed = clone(learner).fit(data)
        expected = SetChain(0.02, n_starts=3, random_state=resumed.seed_).fit(data)
    same(resumed, expected)


def test_a_finished_fit_is_read_not_repeated(data, tmp_path, monkeypatch, whole):
    file = tmp_path / "fit"
    learner = SetChain(0.02, random_state=5, n_starts=3, checkpoint=file)
    with quiet():
        learner.fit(data)
    before = file.read_bytes()
    die_in(monkeypatch, "solve", 1)
    with quiet():
        again = clone(learner).fit(data)
    same(again, whole["several starts"])
    assert file.read_bytes() == before


def test_the_best_so_far_is_never_lost_to_a_failed_write(data, tmp_path, monkeypatch):
    """If writing a checkpoint is interrupted, the file of the previous checkpoint is kept."""
    file = tmp_path / "fit"
    learner = SetChain(0.02, random_state=5, checkpoint=file, checkpoint_every=0.0)
    assert run_until_killed(monkeypatch, clone(learner), data, 3)
    before = file.read_bytes()
    original = module.np.savez

    def half(target, **arrays):
        original(target, **arrays)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(module.np, "savez", half)
        with pytest.raises(Killed):
            clone(learner).fit(data)
    assert file.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["fit"]


def test_a_folder_that_is_not_there_is_told_before_the_fit(data, tmp_path, monkeypatch):
    """Before a fit begins, it checks that the folder of its checkpoint exists."""
    die_in(monkeypatch, "solve", 1)
    monkeypatch.setattr(cross_validation, "path", None)
    for learner in (SetChain(), SetChain(random_state=1), SetChainCV([0.1], random_state=1)):
        learner.set_params(checkpoint=tmp_path / "nowhere" / "fit")
        with pytest.raises(InputError, match=r"checkpoint is .*there is no folder .*nowhere"):
            learner.fit(data)


def test_how_often_is_in_seconds(data, tmp_path, monkeypatch):
    written = []
    original = module._write
    monkeypatch.setattr(module, "_write", lambda *a: (written.append(1), original(*a))[1])
    with quiet():
        SetChain(0.01, checkpoint=tmp_path / "a", checkpoint_every=1e9, n_starts=2).fit(data)
    assert len(written) == 2  # one checkpoint at the end of each start
    written.clear()
    with quiet():
        often = SetChain(0.01, checkpoint=tmp_path / "b", checkpoint_every=0.0).fit(data)
    assert len(written) == len(often.history_) + 1


# --- The file -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def good(data, tmp_path_factory):
    """Return an estimator, and the content of a checkpoint of its unfinished fit."""
    file = tmp_path_factory.mktemp("good") / "fit"
    learner = SetChain(0.02, random_state=5, n_starts=2, checkpoint=file, checkpoint_every=0.0)
    with pytest.MonkeyPatch.context() as patch:
        assert run_until_killed(patch, clone(learner), data, 40)
    return learner, file.read_bytes()


def test_it_holds_arrays_and_json_and_no_pickle(good, tmp_path):
    _, content = good
    file = tmp_path / "fit"
    file.write_bytes(content)
    with np.load(file, allow_pickle=False) as archive:
        for name in archive.files:
            assert archive[name].dtype.kind in "fiuU"
    meta = meta_of(file)
    assert meta["format"] == "sequela checkpoint"
    assert meta["options"]["seed"] == 5
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None


def refused(learner, data, file, words):
    before = file.read_bytes()
    with pytest.raises(InputError, match=words) as told:
        clone(learner).set_params(checkpoint=file).fit(data)
    assert str(file) in str(told.value)
    assert "allow_pickle" not in str(told.value)
    assert file.read_bytes() == before
    return str(told.value)


def write_zip(file):
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("readme.txt", "hello")


def write_npz(**arrays):
    return lambda file: np.savez(file.open("wb"), **arrays)


FOREIGN = {
    "empty": lambda file: file.write_bytes(b""),
    "json": lambda file: file.write_text('{"format": "sequela checkpoint", "version": 1}'),
    "text": lambda file: file.write_text("sample,TP53\ns1,1\n"),
    "pickle": lambda file: file.write_bytes(pickle.dumps({"theta": [1.0]})),
    "npz": write_npz(theta=np.eye(3)),
    "npy": lambda file: np.save(file.open("wb"), np.eye(3)),
    "zip": write_zip,
    "another npz": write_npz(meta=np.array('{"format": "another program", "version": 1}')),
    "a number": write_npz(meta=np.array("3")),
    "objects": write_npz(meta=np.array([{"format": 1}], dtype=object)),
    "model": lambda file: SetChain(0.1).fit([[1, 0], [0, 1], [1, 1], [0, 0]]).model_.save(file),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_a_foreign_file_is_refused_and_left_alone(kind, data, tmp_path):
    file = tmp_path / "file"
    FOREIGN[kind](file)
    refused(SetChain(random_state=1), data, file, "is not a checkpoint|damaged or not a checkpoint")


def test_a_folder_in_its_place_is_refused(data, tmp_path):
    with pytest.raises(InputError, match=r"checkpoint is .*, a folder"):
        SetChain(checkpoint=tmp_path).fit(data)
    with pytest.raises(InputError, match=r"checkpoint is 3 \(int\)"):
        SetChain(checkpoint=3).fit(data)


def test_a_truncated_file_is_refused(good, data, tmp_path):
    learner, content = good
    file = tmp_path / "fit"
    for length in np.linspace(1, len(content) - 1, 12, dtype=int):
        file.write_bytes(content[:length])
        refused(learner, data, file, "damaged")


def test_a_flipped_bit_is_refused_or_harmless(good, data, tmp_path):
    """A changed bit anywhere in the file gives a clear error, or it changes nothing."""
    learner, content = good
    file = tmp_path / "fit"
    file.write_bytes(content)
    fitter = clone(learner).set_params(checkpoint=file)._fitter(data, learner.penalty, 5)
    checkpoint, objective = fitter.checkpoint, fitter.objective
    finished, running = checkpoint.load(objective)
    assert len(finished) == 1
    assert running is not None
    meta, arrays = module._read(file)
    rng = np.random.default_rng(0)
    harmless = 0
    wrong = []
    for _ in range(500):
        place, bit = int(rng.integers(len(content))), int(rng.integers(8))
        bad = bytearray(content)
        bad[place] ^= 1 << bit
        file.write_bytes(bytes(bad))
        try:
            checkpoint.load(objective)
            found_meta, found = module._read(file)
        except InputError:
            continue
        except Exception as error:  # noqa: BLE001 - unexpected errors are recorded
            wrong.append((place, bit, repr(error)))
            continue
        equal = found_meta == meta and found.keys() == arrays.keys()
        if equal and all(np.array_equal(found[name], arrays[name]) for name in arrays):
            harmless += 1
        else:
            wrong.append((place, bit, "other content"))
    assert wrong == []
    assert harmless < 60


# With these kinds of damage, the readers of NumPy and zipfile raise unusual exceptions. They were
# found by changing each bit of a file.
@pytest.mark.parametrize("damage", ["compression method", "name of an array", "header of an array"])
def test_damage_that_zip_files_do_not_notice(damage, good, data, tmp_path):
    learner, content = good
    bad = bytearray(content)
    directory = content.rindex(b"PK\x01\x02")
    if damage == "compression method":
        bad[directory + 10] = 77
    elif damage == "name of an array":
        bad[directory + 46] ^= 1
    else:
        header = content.index(b"{'descr'")
        bad[header] = ord("(")
    file = tmp_path / "fit"
    file.write_bytes(bytes(bad))
    refused(learner, data, file, "damaged")


def test_a_checkpoint_that_lacks_something_is_refused(good, data, tmp_path):
    learner, content = good
    file = tmp_path / "fit"
    file.write_bytes(content)
    with np.load(file) as archive:
        arrays = dict(archive)
    solver = ("theta", "gradient", "steps", "changes")
    for missing in (*(f"state_{name}" for name in solver), "finished_0_theta", "draws"):
        rest = {name: value for name, value in arrays.items() if name != missing}
        with file.open("wb") as opened:
            np.savez(opened, **rest)
        refused(learner, data, file, "damaged")


def test_other_data_are_refused(good, data, tmp_path):
    learner, content = good
    file = tmp_path / "fit"
    file.write_bytes(content)
    changed = data.values.copy()
    changed[3, 2] = ~changed[3, 2]
    for other in (
        changed,
        data.values[1:],
        Dataset(data, times=np.ones(data.n_samples)),
        Dataset(data.values, items=[f"item {i}" for i in range(7)]),
    ):
        refused(learner, other, file, "belongs to another fit: its data")


@pytest.mark.parametrize(
    "change",
    [
        {"penalty": 0.03},
        {"n_starts": 3},
        {"tol": 1e-3},
        {"max_iter": 7},
        {"random_state": 6},
        {"observation": Exponential(2.0)},
        {"chains": 4},
        {"budget": SMALL},
        {"start_widths": (1.0,)},
        {"solver": "adagrad"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_options_are_refused_and_named(change, good, data, tmp_path):
    learner, content = good
    file = tmp_path / "fit"
    file.write_bytes(content)
    other = clone(learner).set_params(**change)
    name = {"random_state": "seed"}.get(next(iter(change)), next(iter(change)))
    told = refused(other, data, file, f"belongs to another fit: its options differ: {name} was")
    assert told.count(", here it is ") == 1


def test_what_does_not_change_the_result_may_change(good, data, tmp_path, whole):
    learner, content = good
    file = tmp_path / "fit"
    file.write_bytes(content)
    other = clone(learner).set_params(
        checkpoint=str(file), n_threads=2, checkpoint_every=7.0, progress=False, solver="newton"
    )
    with quiet():
        resumed = other.fit(data)
        expected = SetChain(0.02, random_state=5, n_starts=2).fit(data)
    same(resumed, expected)


def rewritten(content, file, change):
    """Write a checkpoint again with a header that the function `change` has changed."""
    file.write_bytes(content)
    with np.load(file) as archive:
        arrays = dict(archive)
    meta = json.loads(str(arrays.pop("meta")))
    change(meta)
    arrays["meta"] = np.array(json.dumps(meta))
    sign(arrays)
    with file.open("wb") as opened:
        np.savez(opened, **arrays)
    return file


def sign(arrays):
    """Replace the stored checksum of a checkpoint by the right one for its arrays."""
    arrays.pop("checksum")
    arrays["checksum"] = np.array(module._checksum(arrays))


@pytest.mark.parametrize(
    "lacking",
    [("numbers", "loss"), ("numbers", "kept"), ("info",), ("info", "evaluations"), ("phase",)],
    ids=" ".join,
)
def test_a_header_that_lacks_something_is_refused(lacking, good, data, tmp_path):
    """An entry that is missing must not get a default value: this could change the fit."""
    learner, content = good

    def leave_out(meta):
        place = meta["running"]
        for name in lacking[:-1]:
            place = place[name]
        del place[lacking[-1]]

    file = rewritten(content, tmp_path / "fit", leave_out)
    refused(learner, data, file, rf"'running.{'.'.join(lacking)}' is missing, expected")


WRONG = {
    "seed": (lambda meta: meta["options"].update(seed=None), "belongs to another fit"),
    "phase": (lambda meta: meta["running"].update(phase=2), "'running.phase' is 2, expected one"),
    "true": (lambda meta: meta["running"]["numbers"].update(kept=True), "is True, expected an int"),
    "text": (lambda meta: meta["running"]["info"].update(objective="1"), "'1', expected a number"),
    "status": (lambda meta: meta["running"]["info"].update(status="A"), "'A', expected the name"),
    "history": (lambda meta: meta["running"].update(history=[[1]]), "expected a list of 5 entries"),
    "running": (lambda meta: meta.update(running=[]), "'running' is a list with 0 entries"),
    "finished": (lambda meta: meta.update(finished=None), "'finished' is null, expected a list"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_header_with_something_else_is_refused(kind, good, data, tmp_path):
    learner, content = good
    change, words = WRONG[kind]
    refused(learner, data, rewritten(content, tmp_path / "fit", change), words)


CHANGED = {
    "integers": lambda theta: theta.astype(int),
    "single": lambda theta: theta.astype(np.float32),
    "smaller": lambda theta: theta[1:, 1:],
    "NaN": lambda theta: np.where(theta == theta[0, 0], np.nan, theta),
}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("kind", CHANGED)
def test_a_changed_theta_is_refused(kind, signed, good, data, tmp_path):
    learner, content = good
    file = tmp_path / "fit"
    file.write_bytes(content)
    with np.load(file) as archive:
        arrays = dict(archive)
    arrays["state_theta"] = CHANGED[kind](arrays["state_theta"])
    if signed:
        sign(arrays)
    with file.open("wb") as opened:
        np.savez(opened, **arrays)
    refused(learner, data, file, "'state_theta' (is|has)" if signed else "the checksum differs")


def test_a_newer_format_is_refused(good, data, tmp_path):
    learner, content = good
    file = rewritten(
        content, tmp_path / "fit", lambda meta: meta.update(version=meta["version"] + 1)
    )
    refused(learner, data, file, "format version 4, but this version of sequela reads 3")


@pytest.mark.parametrize("seed", [5, None], ids=["given", "recorded"])
@pytest.mark.parametrize("under_way", [False, True])
def test_a_checkpoint_of_version_0_1_is_refused_with_what_to_do(under_way, seed, data, tmp_path):
    """A fit of the solver of version 0.1 cannot be resumed, so the message says what to do."""
    file = tmp_path / "fit"
    options = {
        "penalty": 0.02, "solver": "newton", "n_starts": 1, "start_widths": [0.2, 2.0],
        "independent_start": True, "tol": 1e-4, "max_iter": 1000, "observation_rate": 1.0,
        "budget": {"memory": "200MB", "work": 2e9, "total_work": 1e12}, "chains": 16, "seed": 5,
    }  # fmt: skip
    meta = {
        "format": "sequela checkpoint", "version": 1, "data": fingerprint(data),
        "options": options, "sequela": "0.1.0", "finished": [], "running": None,
    }  # fmt: skip
    arrays = {}
    if under_way:
        meta["running"] = {
            "loss": 3.0, "objective": -3.0, "residual": 0.1, "evaluations": 1, "iterations": 0,
            "floor": 0.0, "kept": 0, "rounds": 0, "phase": 0,
        }  # fmt: skip
        meta["history"] = [[1, -3.0, 0.1, 0, 0.5]]
        nothing = np.zeros((7, 7))
        arrays = {
            "theta": nothing, "gradient": nothing, "steps": np.zeros((0, 49)),
            "changes": np.zeros((0, 49)), "draws": np.array(0), "start": np.array(0),
            "effective": np.array(1.0),
        }  # fmt: skip
    with file.open("wb") as opened:
        np.savez(opened, meta=np.array(json.dumps(meta)), **arrays)
    refused(
        SetChain(0.02, random_state=seed), data, file,
        "format version 1, but this version of sequela reads 3. Finish the fit with the version "
        "of sequela that began it, or delete the file",
    )  # fmt: skip


def test_what_is_written_is_what_is_read(tmp_path):
    file = tmp_path / "any"
    arrays = {"a": np.array([np.pi, -0.0, np.inf, np.nan]), "b": np.arange(3)}
    module._write(file, {"data": "x", "value": float("nan"), "n": 2**70}, arrays)
    meta, found = module._read(file)
    assert meta["data"] == "x"
    assert meta["n"] == 2**70
    assert np.isnan(meta["value"])
    assert all(found[name].tobytes() == arrays[name].tobytes() for name in arrays)
    assert module._read(tmp_path / "nothing") is None


def test_fingerprints_tell_data_apart():
    X = np.eye(9, dtype=bool)
    prints = {
        fingerprint(Dataset(X)),
        fingerprint(Dataset(~X)),
        fingerprint(Dataset(X, items=list("abcdefghi"))),
        fingerprint(Dataset(X, samples=list("abcdefghi"))),
        fingerprint(Dataset(X, times=np.ones(9))),
        fingerprint(Dataset(X, times=np.full(9, np.nan))),
        fingerprint(Dataset(X[:, :8])),
    }
    assert len(prints) == 7
    assert fingerprint(Dataset(X)) == fingerprint(Dataset(X.astype(int)))


@pytest.mark.parametrize("seed", [1, None])
def test_cross_validation_has_a_checkpoint_for_its_final_fit(seed, data, tmp_path, monkeypatch):
    learner = SetChainCV([0.1, 0.03], folds=2, random_state=seed, checkpoint=tmp_path / "fit")
    with quiet():
        first = clone(learner).fit(data)
        die_in(monkeypatch, "solve", 1)
        again = clone(learner).fit(data)
    same(again, first)
    assert again.seed_ == first.seed_
    assert again.cv_results_.equals(first.cv_results_)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_colleagues_may_read_it(data, tmp_path):
    import os
    import stat

    before = os.umask(0o022)
    try:
        SetChain(0.1, checkpoint=tmp_path / "fit").fit(data)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fit").stat().st_mode) == 0o644
