"""Everything about Numba in one place: options, disk cache, and the notice while it compiles.

Compiled functions that Python calls are decorated with `kernel`, those that only kernels call with
`helper` or `inlined`, and nothing else, so that a change of option is one line. The options and
their reasons:

- ``nogil``: our own threads run kernels side by side (never ``parallel=True``, which aborts when
  two threads call it under the workqueue layer, and dies after a fork under OpenMP);
- ``cache``: compile once a machine, not once a process;
- ``fastmath`` without ``nnan`` and ``ninf``: products may be fused with sums, but NaN and infinity
  keep their meaning, because range checks rely on them; and without ``reassoc``: a loop whose sum
  may be reordered has a vectorised and a plain version, and which one runs depends on where its
  arrays lie in memory, so that threads would change the last bit. Long sums have lanes of their
  own instead (`gemm.lane_sum`);
- ``error_model="numpy"``: a division by zero gives infinity, not an exception inside a kernel.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import stat
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba.core import event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["call", "helper", "inlined", "kernel"]

_log = logging.getLogger("sequela")

# Both are made at run time and unknown to type checkers.
config: Any = numba.config
typeof: Any = numba.typeof

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "nsz", "arcp"},
}

_INSIDE_ONLY: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# Numba compiles under a lock of its own; ours makes sure that only one thread gives notice.
_compiling = threading.Lock()

# Compilation that takes longer than this many seconds is announced.
_NOTICE_AFTER = 1.0


def _private_cache_folder() -> str | None:
    """Return a cache folder for a read-only installation, or None if there is no safe one.

    Numba reads its cache with pickle, so a folder in a shared temporary directory is used only
    if nobody else could have written to it.
    """
    if not hasattr(os, "getuid"):
        return None
    folder = Path(tempfile.gettempdir()) / f"sequela-numba-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return str(folder) if ours and not found.st_mode & 0o077 else None


@contextlib.contextmanager
def _cache_folder(folder: str) -> Iterator[None]:
    before = config.CACHE_DIR
    config.CACHE_DIR = folder
    try:
        yield
    finally:
        config.CACHE_DIR = before


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` with the house options when it is first called.

    The cache lies beside the source. Where that cannot be written (containers, shared
    installations), Numba raises on decoration; then a private temporary folder serves, and if
    there is none, no cache.
    """
    try:
        return numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:
        folder = _private_cache_folder()
    if folder is not None:
        with contextlib.suppress(RuntimeError), _cache_folder(folder):
            return numba.njit(cache=True, **_OPTIONS)(function)
    return numba.njit(**_OPTIONS)(function)


def helper(function: Callable[..., Any]) -> Any:
    """Compile `function` as a part of the kernels that call it, never called from Python.

    Without an entry for Python and a place of its own in the cache a tenth of the compile time is
    saved. Python must not call it: Numba does not check, the process would crash.
    """
    return numba.njit(**_OPTIONS, **_INSIDE_ONLY)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Copy `function` into the kernels and helpers that call it.

    For what lies between a large kernel and its callers: Numba optimises everything that a function
    calls once more for that function, so that each layer in between would cost as much compile time
    as the large kernel itself.
    """
    return numba.njit(inline="always", **_OPTIONS, **_INSIDE_ONLY)(function)


def _announce(name: str) -> None:
    _log.warning(
        "compiling the numerical kernels (%s); this is done once on this machine and takes "
        "some seconds",
        name.strip("_"),
    )


def call(function: Any, *args: Any) -> Any:
    """Call a kernel; if it must be compiled first and that takes long, say so.

    Loading from the disk cache stays silent.
    """
    if not function.overloads:  # `signatures` would make a list of them at every call
        with _compiling:
            _compile(function, args)
    return function(*args)


class _Notice(event.Listener):
    """Gives notice if compilation takes long; Numba tells it when a compilation really begins.

    A kernel that is read from the cache is not compiled, however long that takes.
    """

    def __init__(self, name: str) -> None:
        self._timer = threading.Timer(_NOTICE_AFTER, _announce, (name,))
        self._timer.daemon = True
        self._begun = False

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - what Numba passes
        if not self._begun:  # helpers are compiled inside
            self._begun = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        """Do nothing: the end of a helper is not the end of the kernel."""

    def cancel(self) -> None:
        self._timer.cancel()


def _load_without_scipy() -> None:
    """Load what Numba needs, without ``scipy.linalg``.

    Before its first compilation, or its first read from the cache, Numba loads all that it knows,
    and tries on that occasion whether ``scipy.linalg`` can be imported. That takes 0.2 s and 20 to
    60 MB, more than a fit of 20 items. Our kernels call no linear algebra, and SciPy is among our
    requirements, so the answer is known; where a user's own code needs it, Numba imports it then.
    """
    if "numba.np.arraymath" in sys.modules or "scipy.linalg" in sys.modules:
        return
    importlib.import_module("numba.cpython.builtins")  # Numba's own order
    linalg: Any = importlib.import_module("numba.np.linalg")
    probe = getattr(linalg, "ensure_blas", None)
    if probe is None:  # another version of Numba, which may look as it likes
        return
    linalg.ensure_blas = lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = probe


def _compile(function: Any, args: tuple[Any, ...]) -> None:
    if not function.overloads:  # another thread may have been first
        _load_without_scipy()
        notice = _Notice(function.__name__)
        try:
            with event.install_listener("numba:compile", notice):
                function.compile(tuple(typeof(a) for a in args))
        finally:
            notice.cancel()
