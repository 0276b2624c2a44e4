"""Writing files so that a reader sees the old content or the new one, never half of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from sequela.support.owners import sweep, temporary_prefix, temporary_suffix

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["replacing"]


def _mode(target: Path) -> int:
    """Return the permissions that the new file gets: those of the old one, or the usual ones.

    A temporary file can be read by its owner alone, which is not what colleagues expect.
    """
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        pass
    usual = os.umask(0)
    os.umask(usual)
    return 0o666 & ~usual


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path` that takes its place when the block ends well.

    The content is on disk (fsync) before the rename, so that a crash leaves one of the two whole.
    If the block fails, the temporary file is removed and `path` is as it was. The first file that
    a process writes to a folder also removes what killed processes left there (`owners.sweep`).
    """
    target = Path(path)
    sweep(target.parent)
    handle, name = tempfile.mkstemp(
        prefix=temporary_prefix(target.name), suffix=temporary_suffix, dir=target.parent
    )
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(_mode(target))
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    # The rename itself is safe only once the folder is on disk; not all systems can do that.
    with contextlib.suppress(OSError):
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
