"""After any write, even if it fails, a file has its old content or its complete new content."""

import os
import stat
import sys

import pytest

from sequela.support.files import replacing


def only(folder):
    return [entry.name for entry in folder.iterdir()]


def test_the_content_takes_its_place(tmp_path):
    path = tmp_path / "model.npz"
    with replacing(path) as file:
        file.write(b"first")
        assert not path.exists()
    assert path.read_bytes() == b"first"
    with replacing(str(path)) as file:
        file.write(b"second")
        assert path.read_bytes() == b"first"
    assert path.read_bytes() == b"second"
    assert only(tmp_path) == ["model.npz"]


class Stopped(BaseException):
    """An error that is not a subclass of Exception, like KeyboardInterrupt."""


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, Stopped])
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_failure_leaves_what_was_there(tmp_path, failure, old):
    path = tmp_path / "fit"
    if old is not None:
        path.write_bytes(old)

    def write():
        with replacing(path) as file:
            file.write(b"half of")
            file.flush()
            raise failure

    with pytest.raises(failure):
        write()
    assert only(tmp_path) == ([] if old is None else ["fit"])
    assert old is None or path.read_bytes() == old


@pytest.mark.parametrize("where", ["fsync", "rename"])
def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch, where):
    path = tmp_path / "fit"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    if where == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(type(path), "replace", fail)
    with pytest.raises(OSError, match="No space"), replacing(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    assert only(tmp_path) == ["fit"]


def test_the_content_is_on_disk_before_the_name(tmp_path, monkeypatch):
    events = []
    sync, rename = os.fsync, type(tmp_path).replace
    monkeypatch.setattr(os, "fsync", lambda handle: (events.append("fsync"), sync(handle))[1])
    monkeypatch.setattr(
        type(tmp_path),
        "replace",
        lambda self, target: (events.append("rename"), rename(self, target))[1],
    )
    with replacing(tmp_path / "fit") as file:
        file.write(b"new")
    assert events[:2] == ["fsync", "rename"]


def test_the_temporary_file_is_in_the_same_folder(tmp_path):
    """The temporary file must be in the same folder as the file that it replaces.

    Moving it from another file system would copy it, and a copy can be incomplete.
    """
    with replacing(tmp_path / "fit") as file:
        file.write(b"new")
        assert len(only(tmp_path)) == 1
        assert only(tmp_path)[0].startswith(".fit.")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "nowhere" / "fit"):
        pass


def test_a_relative_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with replacing("fit") as file:
        file.write(b"here")
    assert (tmp_path / "fit").read_bytes() == b"here"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_permissions_are_the_usual_ones_or_those_of_before(tmp_path):
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "new") as file:
            file.write(b"x")
        (tmp_path / "old").write_bytes(b"y")
        (tmp_path / "old").chmod(0o604)
        with replacing(tmp_path / "old") as file:
            file.write(b"z")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o604
