"""Checkpoints of a fit: one file with arrays and JSON, no pickle, written atomically."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.support.errors import InputError
from sequela.support.files import replacing

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset

__all__ = [
    "check_place",
    "damaged",
    "fingerprint",
    "read_checkpoint",
    "recorded_seed",
    "write_checkpoint",
]

_FORMAT = "sequela checkpoint"
_VERSION = 1


def fingerprint(data: Dataset) -> str:
    """Return a checksum of the samples, their labels and times."""
    digest = hashlib.sha256()
    digest.update(json.dumps([list(data.items), list(data.samples)]).encode())
    digest.update(np.packbits(data.values, axis=1).tobytes())
    digest.update(b"" if data.times is None else np.ascontiguousarray(data.times).tobytes())
    return digest.hexdigest()


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuse a place where no file can be written: before the fit, not after hours of it."""
    try:
        place = Path(path)
    except TypeError:
        raise InputError(
            f"checkpoint is {path!r} ({type(path).__name__}); expected the path of a file, or None"
        ) from None
    if place.is_dir():
        raise InputError(f"checkpoint is {str(path)!r}, a folder; expected the path of a file")
    if not place.parent.is_dir():
        raise InputError(
            f"checkpoint is {str(path)!r}, but there is no folder {str(place.parent)!r}; make it, "
            "or name another file"
        )


def damaged(path: str | os.PathLike[str], reason: str) -> InputError:
    """Return the error that says that a checkpoint cannot be used."""
    return InputError(
        f"the checkpoint {str(path)!r} cannot be read ({reason}); it is damaged or not a "
        "checkpoint. Delete it, or name another file"
    )


def write_checkpoint(
    path: str | os.PathLike[str], meta: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> None:
    """Write a checkpoint; the one before stays whole until this one is."""
    header = json.dumps({"format": _FORMAT, "version": _VERSION, **meta})
    with replacing(path) as file:
        # Arrays of objects would be pickled; there are none here, and reading refuses them.
        content: dict[str, Any] = {"meta": np.array(header), **arrays}
        np.savez(file, **content)


def read_checkpoint(
    path: str | os.PathLike[str], expected: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
    """Return (meta, arrays) of a checkpoint that belongs to this fit; None if there is no file.

    `expected` are the entries of the meta data that must be the same: data and options.
    """
    found = _read(path)
    if found is None:
        return None
    meta, arrays = found
    for name, value in expected.items():
        if meta.get(name) != value:
            raise InputError(
                f"the checkpoint {str(path)!r} belongs to another fit: its {name} "
                f"{_difference(meta.get(name), value)}. Give the same data and options, or name "
                "another file"
            )
    return meta, arrays


def recorded_seed(path: str | os.PathLike[str]) -> int | None:
    """Return the seed of the fit that a checkpoint belongs to; None if there is no file."""
    found = _read(path)
    if found is None:
        return None
    try:
        return int(found[0]["options"]["seed"])
    except (KeyError, TypeError, ValueError):
        raise damaged(path, "its seed is missing") from None


def _difference(found: Any, expected: Any) -> str:
    """Say where two entries differ; of options, only those that do."""
    if isinstance(found, dict) and isinstance(expected, dict):
        names = [n for n in {**expected, **found} if found.get(n) != expected.get(n)]
        return "differ: " + ", ".join(
            f"{name} was {found.get(name)!r}, here it is {expected.get(name)!r}" for name in names
        )
    return f"is {found!r}, here it is {expected!r}"


def _read(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
    """Return (meta, arrays) of a checkpoint of any fit; None if there is no file."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise damaged(path, str(error.strerror or error)) from None
    # NumPy would take anything that is not a zip file for a pickle, and say so.
    if not content.startswith(b"PK\x03\x04"):
        raise damaged(path, "it does not begin as a checkpoint does")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(str(arrays.pop("meta")))
    except Exception as error:  # noqa: BLE001 - a flipped bit can raise anything on the way
        raise damaged(path, type(error).__name__) from None
    if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
        raise InputError(
            f"{str(path)!r} is not a checkpoint of a fit; name another file for the checkpoint"
        )
    if meta.get("version") != _VERSION:
        raise InputError(
            f"the checkpoint {str(path)!r} has format version {meta.get('version')}, this "
            f"version of sequela reads {_VERSION}. Finish the fit with the version that began "
            "it, or delete the file"
        )
    return meta, arrays
