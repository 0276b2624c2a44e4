"""A folder that appears whole or not at all, and that replaces another only on request."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sequela.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_folder", "new_folder"]

_log = logging.getLogger("sequela")


def check_folder(path: str | os.PathLike[str], *, force: bool) -> Path:
    """Refuse a folder that cannot be made: before the work, not after it."""
    target = Path(path)
    if target.exists() or target.is_symlink():
        if not target.is_dir() or target.is_symlink():
            raise InputError(f"{str(path)!r} is not a folder; name another output folder")
        if not force and any(target.iterdir()):
            raise InputError(
                f"the folder {str(path)!r} exists and is not empty; name another one, or replace "
                "it with --force (in Python: force=True)"
            )
        if force and any(target.iterdir()) and not (target / "run.json").exists():
            raise InputError(
                f"the folder {str(path)!r} holds no run.json, so sequela did not make it and does "
                "not replace it; name another one"
            )
    parent = target.absolute().parent
    if not parent.is_dir():
        raise InputError(
            f"there is no folder {str(parent)!r} to make {target.name!r} in; make it first"
        )
    if not os.access(parent, os.W_OK):
        raise InputError(f"the folder {str(parent)!r} cannot be written to")
    return target


@contextlib.contextmanager
def new_folder(
    path: str | os.PathLike[str], *, force: bool = False, keep_with: str | None = None
) -> Iterator[Path]:
    """Give a temporary folder beside `path` that takes its name when the block ends well.

    If the block fails, nothing is left and an existing folder is as it was. Only if the block had
    written the file `keep_with` by then, the unfinished folder is kept. It is called
    ``NAME.incomplete`` from the beginning, so that it is found even if the process is killed.
    """
    target = check_folder(path, force=force)
    parent = target.absolute().parent
    if keep_with is None:
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=parent))
    else:
        made = _make_incomplete(target)
    try:
        yield made
        _open_to_others(made)
        aside = None
        if target.exists():
            aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=parent))
            target.rename(aside / target.name)
        try:
            made.rename(target)
        except OSError:
            if aside is not None:
                (aside / target.name).rename(target)
            raise
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)
    except BaseException:
        if keep_with is not None and (made / keep_with).exists():
            _log.warning(
                "%r could not be finished; what was made before the error is in %r",
                str(target), str(made),
            )  # fmt: skip
        else:
            shutil.rmtree(made, ignore_errors=True)
        raise


def _open_to_others(made: Path) -> None:
    """Give the usual permissions: a temporary folder can be entered by its owner alone."""
    usual = os.umask(0)
    os.umask(usual)
    made.chmod(0o777 & ~usual)


def _make_incomplete(target: Path) -> Path:
    """Make a folder for what is not finished yet, under a name that is free."""
    for number in itertools.count(1):
        made = target.with_name(f"{target.name}.incomplete{'' if number == 1 else f'-{number}'}")
        with contextlib.suppress(FileExistsError):
            made.mkdir()
            return made
    raise AssertionError  # the numbers do not end
