"""Temporary files of killed processes are removed. Those of running processes are kept."""

import subprocess
import sys
import time

import pytest

from sequela.support import owners
from sequela.support.files import replacing
from sequela.support.folders import new_folder
from sequela.support.owners import is_gone, owner_mark, sweep


@pytest.fixture(autouse=True)
def forget():
    owners._swept.clear()


def ended(code):
    """Run code in a process that kills itself at the end; return what the code printed."""
    code = f"import os, signal\n{code}\nos.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=False)  # noqa: S603
    return done.stdout.decode()


def test_a_mark_tells_whether_its_process_runs():
    mark = ended("from sequela.support.owners import owner_mark\nprint(owner_mark(), flush=True)")
    assert is_gone(mark.strip())
    assert not is_gone(owner_mark())
    host, pid, start = owner_mark().split("-")
    # the same pid, but another start time: another process
    assert is_gone(f"{host}-{pid}-{int(start) + 1}")
    assert not is_gone(f"{'0' * 8}-{pid}-{start}")  # a process of another machine may still run
    assert not is_gone("anything")


def test_what_a_killed_write_leaves_is_swept_at_the_next_write(tmp_path):
    target = tmp_path / "a.txt"
    ended(
        "from sequela.support.files import replacing\n"
        f"context = replacing({str(target)!r})\n"
        "file = context.__enter__()\nfile.write(b'half')\nfile.flush()"
    )
    mine = tmp_path / f".b.txt.{owner_mark()}.x.tmp"
    mine.write_text("under way")
    others = [tmp_path / name for name in (".a.txt.hidden", ".profile", "x.tmp")]
    for path in others:
        path.write_text("of somebody else")
    assert len(list(tmp_path.iterdir())) == 5
    with replacing(target) as file:
        file.write(b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([target, mine, *others])


def test_a_folder_that_was_put_aside_comes_back(tmp_path):
    mark = ended("from sequela.support.owners import owner_mark\nprint(owner_mark(), flush=True)")
    aside = tmp_path / f".out.old.{mark.strip()}.x.tmp"
    (aside / "out").mkdir(parents=True)
    (aside / "out" / "model.npz").write_text("the only copy")
    sweep(tmp_path)
    assert (tmp_path / "out" / "model.npz").read_text() == "the only copy"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_unfinished_folders_of_killed_runs_are_removed_when_a_run_ends_well(tmp_path):
    ended(
        "from sequela.support.folders import new_folder\n"
        f"context = new_folder({str(tmp_path / 'out')!r}, keep_with='m')\n"
        "made = context.__enter__()\n(made / 'm').write_text('a model')"
    )
    assert (tmp_path / "out.incomplete" / "m").exists()
    (tmp_path / "out.incomplete-notes").mkdir()  # a folder that sequela did not make
    with new_folder(tmp_path / "out", keep_with="m") as made:
        # this unfinished folder is kept until `out` is complete
        assert (tmp_path / "out.incomplete" / "m").exists()
        (made / "m").write_text("another")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.incomplete-notes"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["m"]


def test_a_worker_ends_with_its_parent():
    child = (
        "import os, time\nfrom sequela.repeats.work import end_with\n"
        "end_with(os.getppid())\nprint(os.getpid(), flush=True)\ntime.sleep(60)"
    )
    pid = int(
        ended(
            f"import subprocess, sys\nPopen = subprocess.Popen\n"
            f"child = Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)\n"
            "print(int(child.stdout.readline()), flush=True)"
        )
    )
    for _ in range(100):
        if not owners._is_running(pid):
            break
        time.sleep(0.1)
    assert not owners._is_running(pid)


def test_a_worker_whose_parent_has_ended_before_it_begins_ends_at_once():
    code = "import time\nfrom sequela.repeats.work import end_with\nend_with(-1)\ntime.sleep(60)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 1  # noqa: S603
