"""Read and write the file of a posterior: its draws and chain states, as arrays and JSON."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela import __version__
from sequela.support.errors import InputError
from sequela.support.files import replacing
from sequela.support.schema import Count, Digest, Place, parse_json, read_fields

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

__all__ = ["read_file", "write_file"]

_FORMAT = "sequela posterior"
# The states of chains differ between versions, so a file of another version cannot be continued.
# Version 4 has stretched coordinates of trajectories, and swaps.
_VERSION = 4
_REMEDY = "Copy it again, or start a new run"


@dataclass(frozen=True)
class _Header:
    """The fields that the header of every posterior file has."""

    version: Count
    checksum: Digest
    checksums: dict[str, Digest]


def write_file(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> None:
    """Write header and arrays as one file, with checksums of the content.

    If writing fails, an existing file stays as it is.
    """
    members = {f"{name}.npy": _bytes(array) for name, array in sorted(arrays.items())}
    full = {
        "format": _FORMAT,
        "version": _VERSION,
        "sequela": __version__,
        "checksums": {name: _checksum(content) for name, content in members.items()},
        **header,
    }
    full["checksum"] = _checksum(json.dumps(full).encode())
    try:
        with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("header.json", json.dumps(full))
            for name, content in members.items():
                archive.writestr(name, content)
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be written ({error.strerror or error}); choose a file in a "
            "folder that exists and that you may write to"
        ) from error


def read_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays of a file from `write_file`; raise an error for other files."""
    name = repr(str(path))
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{name} cannot be read ({error.strerror or error})") from None
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            header: Any = parse_json(archive.read("header.json"), Place(path, _REMEDY))
            _refuse(header, name)
            known = read_fields(_Header, header, Place(path, _REMEDY))
            del header["checksum"]
            if _checksum(json.dumps(header).encode()) != known.checksum:
                raise InputError(  # noqa: TRY301 - the same advice as for other damage
                    f"{name} is damaged: its header was changed since it was written. {_REMEDY}"
                )
            arrays = {}
            for member, checksum in known.checksums.items():
                raw = archive.read(member)
                if _checksum(raw) != checksum:
                    raise InputError(  # noqa: TRY301 - the same advice as for other damage
                        f"{name} is damaged: the content of {member!r} has changed. {_REMEDY}"
                    )
                arrays[member.removesuffix(".npy")] = np.lib.format.read_array(
                    io.BytesIO(raw), allow_pickle=False
                )
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged archive can raise any exception
        raise InputError(
            f"{name} cannot be read as a posterior ({type(error).__name__}: {error}); it is "
            "damaged or incomplete, or not a posterior. Copy it again, or start a new run"
        ) from None
    return header, arrays


def _refuse(header: Any, name: str) -> None:
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise InputError(
            f"{name} is not a posterior of sequela; give a file that Posterior.save wrote"
        )
    if header.get("version") != _VERSION:
        raise InputError(
            f"{name} has format version {header.get('version')!r:.40} (sequela "
            f"{header.get('sequela')} wrote it). This is sequela {__version__}, which reads only "
            f"format version {_VERSION}. Install the version of sequela that wrote the file, or "
            "start a new run"
        )


def _bytes(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
