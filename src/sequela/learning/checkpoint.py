"""Checkpoints of a fit: one file with arrays and JSON, no pickle, written atomically."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela._errors import InputError
from sequela._files import replacing

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset

__all__ = ["fingerprint", "read_checkpoint", "write_checkpoint"]

_FORMAT = "sequela checkpoint"
_VERSION = 1


def fingerprint(data: Dataset) -> str:
    """Return a checksum of the samples, their labels and times."""
    digest = hashlib.sha256()
    digest.update(json.dumps([list(data.items), list(data.samples)]).encode())
    digest.update(np.packbits(data.values, axis=1).tobytes())
    digest.update(b"" if data.times is None else np.ascontiguousarray(data.times).tobytes())
    return digest.hexdigest()


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
    if not Path(path).exists():
        return None
    try:
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(str(arrays.pop("meta")))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            f"the checkpoint {str(path)!r} cannot be read ({error}); it is damaged or not a "
            "checkpoint. Delete it, or name another file"
        ) from None
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
    for name, value in expected.items():
        if meta.get(name) != value:
            raise InputError(
                f"the checkpoint {str(path)!r} belongs to another fit: its {name} is "
                f"{meta.get(name)!r}, here it is {value!r}. Give the same data and options, or "
                "name another file"
            )
    return meta, arrays
