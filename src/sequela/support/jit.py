"""Compile kernels with Numba: the options, the disk cache, and the notice during compilation.

Functions that Python calls have the decorator `kernel`. Functions that only kernels call have the
decorator `helper` or `inlined`. No other decorator of Numba is used, so that all options are in
this module. These are the options and the reasons for them:

- ``nogil``: our own threads run kernels at the same time. We never use ``parallel=True``, because
two threading layers of Numba can end the process: workqueue aborts if two threads call such a
kernel, and OpenMP crashes after a fork.
- ``cache``: a kernel is compiled once per machine, not once per process.
- ``fastmath`` may only ignore the sign of zero (``nsz``). The compiler often makes two versions of
a loop, with and without vector instructions. The addresses of the arrays, which differ between runs
and threads, decide which version runs. So both versions must compute the same bits. Three other
options could make their results differ: ``reassoc`` (terms of a sum in another sequence),
``contract`` (a product and a sum joined to one operation) and ``arcp`` (a product with the inverse
instead of a division). Without ``reassoc``, the compiler does not use vector instructions for a
simple sum. Therefore long sums are written as several partial sums (`gemm.lane_sum`), which one
vector instruction can update. Products and sums are joined explicitly by `multiply_add`.
- ``fastmath`` without ``nnan`` and ``ninf``: NaN and infinity keep their meaning, because range
checks rely on them.
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
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numba.extending
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["call", "helper", "inlined", "kernel", "multiply_add"]

_log = logging.getLogger("sequela")

# Numba defines the next two names at run time, so type checkers do not know them.
config: Any = numba.config
typeof: Any = numba.typeof

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"nsz"},
}

_INSIDE_ONLY: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# Numba has its own lock for compilation. Our lock ensures that only one thread at a time reports
# that a kernel is compiled.
_compiling = threading.Lock()

# If compilation takes longer than this many seconds, a message says so.
_NOTICE_AFTER = 1.0
# Seconds between the first two messages about compilation, and the longest time between two
# messages. After each message, the time to the next one doubles, up to the longest time.
_FIRST_GAP, _LONGEST_GAP = 10.0, 60.0


def _private_cache_folder() -> str | None:
    """Return a cache folder for a read-only installation, or None if no folder is safe.

    Numba reads its cache with pickle, which can run code of whoever wrote the file. So a folder in
    a shared temporary directory is used only if nobody else could have written to it.
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
    """Compile `function` with the options of this module when it is first called.

    The cache is next to the source file. If that folder cannot be written to (containers, shared
    installations), Numba raises an error, and this function uses a private temporary folder for the
    cache. If there is no safe temporary folder, every process compiles the kernel again.
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
    """Compile `function` as a part of the kernels that call it.

    A helper has no wrapper for Python and no separate cache entry, which saves a tenth of the time
    for compilation. Python code must not call a helper. Numba does not check this, and the process
    would crash.
    """
    return numba.njit(**_OPTIONS, **_INSIDE_ONLY)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Copy `function` into the kernels and helpers that call it.

    Use this for a function that calls a large kernel and that other kernels call. Numba optimises a
    function together with everything that it calls. Without inlining, compiling each such function
    would take as long as compiling the large kernel itself.
    """
    return numba.njit(inline="always", **_OPTIONS, **_INSIDE_ONLY)(function)


@numba.extending.intrinsic
def multiply_add(typing: Any, a: Any, b: Any, c: Any) -> Any:  # noqa: ARG001 - Numba passes it
    """Return a * b + c as one operation, or as two on a processor that has no such operation."""

    def lower(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        double = ir.DoubleType()
        function = builder.module.declare_intrinsic(
            "llvm.fmuladd", [double], ir.FunctionType(double, [double, double, double])
        )
        return builder.call(function, values)

    return numba.float64(numba.float64, numba.float64, numba.float64), lower


class _Progress:
    """Tells the user that kernels are compiled, with messages at longer and longer intervals.

    A command may compile twenty kernels. One message per kernel would hide the other output.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done = 0
        self._spent = 0.0  # seconds of finished compilations
        self._due: float | None = None  # when the next message may be logged
        self._gap = _FIRST_GAP

    def count(self, seconds: float) -> None:
        """Count one more kernel as compiled."""
        with self._lock:
            self._done += 1
            self._spent += seconds

    def tell(self, name: str, seconds: float) -> None:
        """Log for how many seconds kernel `name` has been compiling, if a message is due."""
        with self._lock:
            now = time.monotonic()
            if self._due is None:
                text = "compiling numerical code (%s). This is done once on this machine and can "
                text += "take a few minutes"
                said: tuple[object, ...] = (name,)
            elif now >= self._due:
                text = "still compiling numerical code (%s): %d functions done, %.0f s so far"
                said = (name, self._done, self._spent + seconds)
            else:
                return
            self._due = now + self._gap
            self._gap = min(2 * self._gap, _LONGEST_GAP)
        _log.warning(text, *said)


_progress = _Progress()


def call(function: Any, *args: Any) -> Any:
    """Call a kernel; log a message if it must be compiled first and the compilation takes long.

    Nothing is logged if the kernel is read from the disk cache.
    """
    # `overloads` is faster than `signatures`, which makes a new list at every call
    if not function.overloads:
        with _compiling:
            _compile(function, args)
    return function(*args)


class _Notice(event.Listener):
    """Reports a compilation that takes long. Numba calls `on_start` when a compilation begins.

    Numba sends no such event when it reads a kernel from the cache.
    """

    def __init__(self, name: str) -> None:
        self._name = name.strip("_")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._begun: float | None = None

    def on_start(self, event: Any) -> None:  # noqa: ARG002 - Numba passes it
        if self._begun is None:  # later events belong to helpers of the same kernel
            self._begun = time.monotonic()
            self._thread.start()

    def on_end(self, event: Any) -> None:
        """Do nothing: the end of a helper is not the end of the kernel."""

    def _watch(self) -> None:
        wait = _NOTICE_AFTER
        while not self._over.wait(wait):
            _progress.tell(self._name, self._seconds())
            wait = 1.0

    def cancel(self) -> None:
        self._over.set()
        if self._begun is not None:
            self._thread.join()
            _progress.count(self._seconds())

    def _seconds(self) -> float:
        return 0.0 if self._begun is None else time.monotonic() - self._begun


def _load_without_scipy() -> None:
    """Load the modules of Numba without importing ``scipy.linalg``.

    Before its first compilation, or its first read from the cache, Numba loads all its modules and
    tests whether ``scipy.linalg`` can be imported. This takes 0.2 s and 20 to 60 MB, which is more
    than a fit of 20 items takes. The test is not needed, because our kernels call no linear algebra
    and sequela requires SciPy. If a user's own code needs ``scipy.linalg``, Numba imports it when
    that code is compiled.
    """
    if "numba.np.arraymath" in sys.modules or "scipy.linalg" in sys.modules:
        return
    importlib.import_module("numba.cpython.builtins")  # Numba itself also imports this module first
    linalg: Any = importlib.import_module("numba.np.linalg")
    probe = getattr(linalg, "ensure_blas", None)
    if probe is None:  # this version of Numba has no such test
        return
    linalg.ensure_blas = lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = probe


def _compile(function: Any, args: tuple[Any, ...]) -> None:
    if not function.overloads:  # another thread may have compiled the kernel in the meantime
        _load_without_scipy()
        notice = _Notice(function.__name__)
        try:
            with event.install_listener("numba:compile", notice):
                function.compile(tuple(typeof(a) for a in args))
        finally:
            notice.cancel()
