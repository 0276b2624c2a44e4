"""Write an output folder completely or not at all. Replace an old folder only on request."""

from __future__ import annotations

import contextlib
import glob
import itertools
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sequela.support.errors import InputError
from sequela.support.naming import option
from sequela.support.owners import (
    is_gone,
    owner_mark,
    sweep,
    temporary_prefix,
    temporary_suffix,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_folder", "new_folder"]

_log = logging.getLogger("sequela")
# The name of a file in every unfinished folder. It says which process writes to the folder.
_OWNER = ".owner"


def check_folder(path: str | os.PathLike[str], *, force: bool) -> Path:
    """Return the path of an output folder; raise an error if the folder cannot be made.

    Callers check the folder before they compute results. Otherwise, results could be lost because
    they cannot be written. `force` says whether an existing output folder may be replaced.
    """
    target = Path(path)
    if target.exists() or target.is_symlink():
        if not target.is_dir() or target.is_symlink():
            raise InputError(f"{str(path)!r} is not a folder; choose another output folder")
        if not force and any(target.iterdir()):
            raise InputError(
                f"the folder {str(path)!r} exists and is not empty; choose another folder, or "
                f"replace it with {option('force', True)}"
            )
        if force and any(target.iterdir()) and not (target / "run.json").exists():
            raise InputError(
                f"the folder {str(path)!r} contains no run.json, so it was not made by sequela. "
                "Only folders that sequela made are replaced; choose another folder"
            )
    parent = target.absolute().parent
    if not parent.is_dir():
        raise InputError(
            f"the folder {str(parent)!r}, in which {target.name!r} should be made, does not exist; "
            "make it first"
        )
    if not os.access(parent, os.W_OK):
        raise InputError(
            f"you have no permission to write to the folder {str(parent)!r}; choose another output "
            "folder"
        )
    return target


@contextlib.contextmanager
def new_folder(
    path: str | os.PathLike[str], *, force: bool = False, keep_with: str | None = None
) -> Iterator[Path]:
    """Yield a temporary folder next to `path`, and rename it to `path` if the block succeeds.

    If the block fails, the temporary folder is removed, and an existing folder `path` is unchanged.
    There is one exception: if the block has already written the file `keep_with`, the unfinished
    folder is kept. If `keep_with` is given, the temporary folder is called ``NAME.incomplete`` from
    the beginning, so that users find it even if the process is killed. An unfinished folder is
    removed when a later run that writes to `path` succeeds.
    """
    target = check_folder(path, force=force)
    parent = target.absolute().parent
    sweep(parent)
    kept = keep_with is not None
    made = _make_incomplete(target) if kept else _temporary_folder(target.name, parent)
    try:
        yield made
        _open_to_others(made)
        (made / _OWNER).unlink(missing_ok=True)
        aside = None
        if target.exists():
            aside = _temporary_folder(f"{target.name}.old", parent)
            target.rename(aside / target.name)
        try:
            made.rename(target)
        except OSError:
            if aside is not None:
                (aside / target.name).rename(target)
            raise
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)
        _remove_incomplete(target)
    except BaseException as error:
        if keep_with is not None and (made / keep_with).exists():
            stopped = isinstance(error, KeyboardInterrupt)
            _log.warning(
                "%r %s; the files written before are in %r. The next run that writes %r removes "
                "this folder",
                str(target), "was interrupted" if stopped else "could not be finished", str(made),
                str(target),
            )  # fmt: skip
        else:
            shutil.rmtree(made, ignore_errors=True)
        raise


def _open_to_others(made: Path) -> None:
    """Set the default permissions, because only the owner can open a new temporary folder."""
    usual = os.umask(0)
    os.umask(usual)
    made.chmod(0o777 & ~usual)


def _make_incomplete(target: Path) -> Path:
    """Make the folder ``NAME.incomplete``; if this name is taken, add a number to it."""
    for number in itertools.count(1):
        made = target.with_name(f"{target.name}.incomplete{'' if number == 1 else f'-{number}'}")
        with contextlib.suppress(FileExistsError):
            made.mkdir()
            (made / _OWNER).write_text(owner_mark())
            return made
    raise AssertionError  # never reached: the loop has no end


def _remove_incomplete(target: Path) -> None:
    """Remove the unfinished folders of earlier runs with this `target`, if the runs have ended."""
    for old in target.absolute().parent.glob(f"{glob.escape(target.name)}.incomplete*"):
        with contextlib.suppress(OSError):
            mark = (old / _OWNER).read_text()
            if is_gone(mark):
                shutil.rmtree(old, ignore_errors=True)


def _temporary_folder(name: str, parent: Path) -> Path:
    made = tempfile.mkdtemp(prefix=temporary_prefix(name), suffix=temporary_suffix, dir=parent)
    return Path(made)
