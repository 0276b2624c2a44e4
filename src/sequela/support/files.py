"""Write files so that a reader sees either all the old content or all the new content."""

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
    """Return the permissions of the old file or, if there is no old file, the default permissions.

    A new temporary file can be read only by its owner. But when it becomes the file `target`, other
    users of a shared folder must be able to read it.
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
    """Yield a new temporary file, open for writing; it replaces `path` if the block succeeds.

    The temporary file is in the same folder as `path`. Its content is written to disk (fsync)
    before it is renamed to `path`. Therefore, even after a crash, `path` is either the complete old
    file or the complete new file. If the block fails, the temporary file is removed and `path` is
    unchanged. Before a process writes its first file to a folder, it removes the temporary files
    that killed processes left there (`owners.sweep`).
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
    # To make sure that the new name survives a crash, the folder must be written to disk, too. Some
    # operating systems cannot write a folder to disk, and raise an OSError.
    with contextlib.suppress(OSError):
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
