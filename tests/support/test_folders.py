"""A new folder has a temporary name until it is complete. Then it gets its own name."""

from __future__ import annotations

import logging

import pytest

from sequela import InputError
from sequela.support.folders import check_folder, new_folder


def begin(path, name, failure, **options):
    """Begin a new folder, write one file into it, and then raise `failure`."""
    with new_folder(path, **options) as made:
        (made / name).write_text("half")
        raise failure


def test_it_appears_when_the_block_ends(tmp_path):
    with new_folder(tmp_path / "a") as made:
        (made / "x").write_text("1")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a" / "x").read_text() == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").stat().st_mode & 0o700 == 0o700


@pytest.mark.parametrize("failure", [OSError(28, "full"), KeyboardInterrupt()])
@pytest.mark.parametrize("keep_with", [None, "x"])
def test_a_failure_leaves_nothing_unless_the_file_is_there(failure, keep_with, tmp_path):
    with pytest.raises(type(failure)):
        begin(tmp_path / "a", "y", failure, keep_with=keep_with)
    assert list(tmp_path.iterdir()) == []


def test_what_is_worth_keeping_is_kept_beside_an_earlier_folder(tmp_path, caplog):
    caplog.set_level(logging.WARNING, logger="sequela")
    earlier = tmp_path / "a"
    earlier.mkdir()
    (earlier / "run.json").write_text("{}")
    for name in ("a.incomplete", "a.incomplete-2"):
        with pytest.raises(MemoryError):
            begin(earlier, "model", MemoryError(), force=True, keep_with="model")
        assert (tmp_path / name / "model").read_text() == "half"
        assert str(tmp_path / name) in caplog.records[-1].getMessage()
    assert (earlier / "run.json").read_text() == "{}"
    assert not (earlier / "model").exists()
    assert len(list(tmp_path.iterdir())) == 3
    with new_folder(earlier, force=True, keep_with="model") as made:
        (made / "model").write_text("whole")
    assert (earlier / "model").read_text() == "whole"
    assert (
        tmp_path / "a.incomplete" / "model"
    ).exists()  # the folder is kept, because it belongs to this process, which still runs


def test_a_folder_of_others_is_never_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="replace it with force=True"):
        check_folder(tmp_path, force=False)
    with pytest.raises(InputError, match="was not made by sequela"):
        check_folder(tmp_path, force=True)
