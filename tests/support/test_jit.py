"""Compilation: its options, the cache if the installation is read-only, and its notice."""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba import config
from numba.core import event

from sequela.support import jit as _jit


@pytest.fixture(autouse=True)
def nothing_compiled_yet(monkeypatch):
    """Reset the record of the kernels that other tests compiled."""
    monkeypatch.setattr(_jit, "_progress", _jit._Progress())


def add_one(x):
    return x + 1.0


def divide(x, y):
    return x / y


def is_nan(x):
    return x != x


def with_njit(monkeypatch, njit):
    """Replace njit only in the module `_jit`: Numba itself needs the real njit to compile."""
    monkeypatch.setattr(_jit, "numba", SimpleNamespace(njit=njit))


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Let `_jit` make its private cache folder in `tmp_path` instead of the temporary directory."""
    monkeypatch.setattr(_jit.tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


@pytest.fixture
def uncached(monkeypatch):
    """Compile kernels without the disk cache, so that no files are written next to the tests."""
    with_njit(monkeypatch, lambda **options: numba.njit(**{**options, "cache": False}))


def refuse(monkeypatch, times):
    """Let njit fail in its first `times` calls, as in a read-only folder; return all its calls."""
    asked = []

    def njit(**options):
        asked.append({"folder": config.CACHE_DIR, **options})
        if options.get("cache") and len(asked) <= times:

            def decorate(function):
                raise RuntimeError("cannot cache function: no locator available")

            return decorate
        return numba.njit(**options)

    with_njit(monkeypatch, njit)
    return asked


# --- Options --------------------------------------------------------------------------------------


def test_kernels_are_compiled_and_keep_nan(uncached):
    compiled = _jit.kernel(is_nan)
    assert compiled(np.nan)
    assert not compiled(1.0)
    # a division by zero raises no exception in a kernel
    assert _jit.kernel(divide)(1.0, 0.0) == np.inf
    assert compiled.targetoptions["nogil"]
    assert "nnan" not in compiled.targetoptions["fastmath"]
    assert "ninf" not in compiled.targetoptions["fastmath"]


# --- The cache, if the folder of the source is read-only ------------------------------------------


def test_a_read_only_installation_uses_a_private_folder(temporary, monkeypatch):
    before = config.CACHE_DIR
    asked = refuse(monkeypatch, times=1)
    compiled = _jit.kernel(add_one)
    assert compiled(1.0) == 2.0
    folder = temporary / f"sequela-numba-{os.getuid()}"
    assert [options["folder"] for options in asked] == [before, str(folder)]
    assert before == config.CACHE_DIR
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.rglob("*.nbi"))  # the cache was written to this folder


def test_nowhere_to_write_means_no_cache(temporary, monkeypatch):
    before = config.CACHE_DIR
    asked = refuse(monkeypatch, times=2)
    assert _jit.kernel(add_one)(1.0) == 2.0
    assert [bool(options.get("cache")) for options in asked] == [True, True, False]
    assert before == config.CACHE_DIR
    assert all(options["nogil"] for options in asked)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o705])
def test_a_folder_that_others_can_write_to_is_not_trusted(temporary, monkeypatch, mode):
    """Numba unpickles the files of its cache. Someone who can write there could run any code."""
    folder = temporary / f"sequela-numba-{os.getuid()}"
    folder.mkdir()
    folder.chmod(mode)
    assert _jit._private_cache_folder() is None
    asked = refuse(monkeypatch, times=1)
    assert _jit.kernel(add_one)(1.0) == 2.0
    assert [bool(options.get("cache")) for options in asked] == [True, False]


def test_a_link_to_a_folder_is_not_trusted(temporary):
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (temporary / f"sequela-numba-{os.getuid()}").symlink_to(elsewhere)
    assert _jit._private_cache_folder() is None


def test_a_folder_of_somebody_else_is_not_trusted(temporary, monkeypatch):
    mine = os.getuid()
    (temporary / f"sequela-numba-{mine + 1}").mkdir(mode=0o700)
    monkeypatch.setattr(_jit.os, "getuid", lambda: mine + 1)
    assert _jit._private_cache_folder() is None


def test_a_file_in_the_way_is_no_folder(temporary):
    (temporary / f"sequela-numba-{os.getuid()}").write_text("")
    assert _jit._private_cache_folder() is None


def test_without_user_ids_there_is_no_private_folder(monkeypatch):
    monkeypatch.delattr(_jit.os, "getuid")
    assert _jit._private_cache_folder() is None


# --- The notice about compilation -----------------------------------------------------------------


class SlowKernel:
    """A kernel with only the attributes that `call` uses. Its compilation takes a given time."""

    __name__ = "_slow_kernel"

    def __init__(self, seconds):
        self.seconds = seconds
        self.overloads = []
        self.compiled = 0

    def compile(self, types):
        self.compiled += 1
        with event.trigger_event("numba:compile"):  # Numba triggers this event whenever it compiles
            time.sleep(self.seconds)
        self.overloads.append(types)

    def __call__(self, x):
        return x + 1.0


class CachedKernel(SlowKernel):
    """A kernel that is read from the disk cache, slowly, instead of being compiled."""

    def compile(self, types):
        time.sleep(self.seconds)
        self.overloads.append(types)


def test_a_kernel_that_is_read_slowly_from_the_cache_is_silent(monkeypatch, caplog):
    monkeypatch.setattr(_jit, "_NOTICE_AFTER", 0.01)
    with caplog.at_level(logging.INFO, logger="sequela"):
        assert _jit.call(CachedKernel(0.2), 1.0) == 2.0
    assert not caplog.records


def test_slow_compilation_is_announced_once(monkeypatch, caplog):
    monkeypatch.setattr(_jit, "_NOTICE_AFTER", 0.01)
    slow = SlowKernel(0.3)
    with caplog.at_level(logging.INFO, logger="sequela"):
        assert _jit.call(slow, 1.0) == 2.0
        assert _jit.call(slow, 2.0) == 3.0
    assert slow.compiled == 1
    assert len(caplog.records) == 1
    assert "compiling" in caplog.text
    assert "slow_kernel" in caplog.text
    assert "once" in caplog.text


def test_fast_compilation_is_silent(monkeypatch, caplog):
    monkeypatch.setattr(_jit, "_NOTICE_AFTER", 60.0)
    with caplog.at_level(logging.DEBUG, logger="sequela"):
        assert _jit.call(SlowKernel(0.0), 1.0) == 2.0
    assert not caplog.records
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if "_watch" in name]  # no thread waits for the notice


def test_many_kernels_share_one_line_which_is_repeated_ever_more_rarely(monkeypatch, caplog):
    monkeypatch.setattr(_jit, "_NOTICE_AFTER", 0.0)
    clock = [100.0]
    monkeypatch.setattr(_jit.time, "monotonic", lambda: clock[0])
    said = []
    with caplog.at_level(logging.INFO, logger="sequela"):
        for second in range(200):
            clock[0] = 100.0 + second
            before = len(caplog.records)
            _jit._progress.tell(f"kernel_{second}", 0.5)
            _jit._progress.count(0.5)
            said += [second] * (len(caplog.records) - before)
    assert said == [0, 10, 30, 70, 130, 190]
    assert "kernel_0" in caplog.messages[0]
    assert "once on this machine" in caplog.messages[0]
    assert caplog.messages[2].endswith("(kernel_30): 30 functions done, 16 s so far")


def test_a_real_kernel_is_announced_while_it_compiles(monkeypatch, caplog, uncached):
    monkeypatch.setattr(_jit, "_NOTICE_AFTER", 0.0)
    compiled = _jit.kernel(add_one)
    with caplog.at_level(logging.INFO, logger="sequela"):
        assert _jit.call(compiled, 1.0) == 2.0
        assert _jit.call(compiled, 1.0) == 2.0
    assert [record.name for record in caplog.records] == ["sequela"]
    assert "add_one" in caplog.text
    assert len(compiled.signatures) == 1


def test_threads_that_come_together_compile_and_announce_once(monkeypatch, caplog):
    monkeypatch.setattr(_jit, "_NOTICE_AFTER", 0.01)
    slow = SlowKernel(0.2)
    with caplog.at_level(logging.INFO, logger="sequela"):
        threads = [threading.Thread(target=_jit.call, args=(slow, 1.0)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert slow.compiled == 1
    assert len(caplog.records) == 1


def test_a_failed_compilation_leaves_no_timer(monkeypatch, caplog):
    monkeypatch.setattr(_jit, "_NOTICE_AFTER", 0.05)

    class Broken(SlowKernel):
        def compile(self, types):  # noqa: ARG002 - the signature of Numba
            raise TypeError("no such type")

    with pytest.raises(TypeError):
        _jit.call(Broken(0.0), 1.0)
    time.sleep(0.15)
    assert not caplog.records
    assert _jit.call(SlowKernel(0.0), 1.0) == 2.0  # works only if the lock was released
