"""Name temporary files after the process that made them, and remove files of ended processes.

A process that is killed leaves its temporary files behind. The next process that writes to the same
folder removes them. It never removes files of a running process, or of another machine.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
from pathlib import Path

__all__ = ["is_gone", "owner_mark", "sweep", "temporary_prefix", "temporary_suffix"]

temporary_suffix = ".tmp"
_MARK = r"(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-(?P<start>\d+)"
_OURS = re.compile(rf"\..+\.{_MARK}\.[^.]+{re.escape(temporary_suffix)}", re.DOTALL)
_swept: set[tuple[int, str]] = set()


def owner_mark() -> str:
    """Return a text that identifies this process: machine, process id and start time.

    Examples
    --------
    >>> is_gone(owner_mark())
    False
    """
    return f"{_host()}-{os.getpid()}-{_start(os.getpid())}"


def temporary_prefix(name: str) -> str:
    """Return the beginning of the name of a temporary file for `name`."""
    # Shorten `name`, because file systems limit the name of a file to 255 bytes.
    return f".{name.encode()[:120].decode(errors='ignore')}.{owner_mark()}."


def is_gone(mark: str) -> bool:
    """Tell whether the process with this `owner_mark` ran on this machine and has ended.

    Examples
    --------
    >>> is_gone("00000000-1-0")
    False
    """
    found = re.fullmatch(_MARK, mark)
    if found is None or found["host"] != _host():
        return False
    pid, start = int(found["pid"]), found["start"]
    return not _is_running(pid) or (start != "0" and _start(pid) not in ("0", start))


def sweep(folder: str | os.PathLike[str]) -> None:
    """Remove temporary files and folders that ended processes left in a folder.

    Each process does this once per folder.
    """
    place = str(Path(folder).absolute())
    if (os.getpid(), place) in _swept:
        return
    _swept.add((os.getpid(), place))
    try:
        entries = list(os.scandir(place))
    except OSError:
        return
    for entry in entries:
        found = _OURS.fullmatch(entry.name)
        if found is None or not is_gone(f"{found['host']}-{found['pid']}-{found['start']}"):
            continue
        if entry.is_dir(follow_symlinks=False):
            _remove_folder(Path(entry.path))
        else:
            _remove_file(Path(entry.path))


def _remove_file(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return  # the file belongs to another user, and it does no harm


def _remove_folder(path: Path) -> None:
    """Remove a temporary folder.

    Before `folders.new_folder` replaces an old output folder, it moves the old folder into a
    temporary folder. If the process was killed before the new folder was in its place, the old
    folder is moved back.
    """
    inside = list(path.iterdir())
    if len(inside) == 1 and path.name.startswith(f".{inside[0].name}.old."):
        target = path.parent / inside[0].name
        if not target.exists():
            inside[0].rename(target)
    shutil.rmtree(path, ignore_errors=True)


def _host() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def _is_running(pid: int) -> bool:
    if os.name != "posix":
        return True  # do not test: on Windows, os.kill would end the process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return _status(pid)[:1] != ["Z"]  # Z: a zombie, which is a process that has ended


def _start(pid: int) -> str:
    """Return the start time of a process in clock ticks, as text; "0" if it is unknown."""
    status = _status(pid)
    return status[19] if len(status) > 19 else "0"


def _status(pid: int) -> list[str]:
    """Return what Linux says about a process: its state, then numbers; empty if unknown."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()
