"""Read and write the files of a model, with an error message for each kind of damaged file."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import zipfile
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np

from sequela import __version__
from sequela.observation import take_recorded_observation
from sequela.support.errors import InputError
from sequela.support.files import replacing
from sequela.support.schema import Place, parse_json, read_fields

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = [
    "FORMAT",
    "OBSERVATION_ROW",
    "VERSION",
    "content",
    "json_object",
    "mhn_meta_path",
    "naming",
    "plain_metadata",
    "read_mhn_table",
    "read_table",
    "table_text",
    "unpack",
    "writing",
]

FORMAT = "sequela model"
_REMEDY = "Model.save does not write such a file. Save the model again with Model.save"
# In a table of mhn, this row contains the effects of the items on the observation rate.
OBSERVATION_ROW = "Observation"
VERSION = 2  # increase this number if older versions of sequela would misread new files


@contextlib.contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Replace the file `path` if the block succeeds; raise `InputError` if writing fails."""
    try:
        with replacing(path) as file:
            yield file
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be written ({error.strerror or error}); name a file in a folder "
            "that exists and in which you have permission to write"
        ) from error


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add the name of the file to the message of an `InputError` about its content."""
    try:
        yield
    except InputError as error:
        raise InputError(f"the file {str(path)!r} cannot be used: {error}") from None


def content(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file, or raise an `InputError` that says why it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        # The functions of mhn add the suffix ".csv" to a name. So users of mhn may give a path
        # without this suffix.
        other = Path(f"{path}.csv")
        hint = f"did you mean {str(other)!r}?" if other.is_file() else _similar(Path(path))
        raise InputError(
            f"{str(path)!r} cannot be read ({error.strerror or error}); {hint}"
        ) from None


def _similar(path: Path) -> str:
    """Return a hint with a file or folder that has a similar name, if there is one."""
    try:
        there = [entry.name for entry in path.absolute().parent.iterdir()]
    except OSError:
        there = []
    close = get_close_matches(path.name, there, n=1)
    return f"did you mean {str(path.with_name(close[0]))!r}?" if close else "check the name"


def json_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object in `content`; raise an `InputError` if there is no JSON object."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        found = error
    if not isinstance(found, dict):
        raise InputError(f"found {found!r:.200}, expected a JSON object; repair or remove the file")
    return found


@dataclass(frozen=True)
class _Header:
    """The fields of the JSON text in a model file."""

    version: Literal[1, 2]
    items: list[str]
    metadata: dict[str, Any]
    observation: dict[str, Any] | None = None


def plain_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata as plain JSON values; raise an error if an entry cannot be saved."""
    plain = {}
    for key, value in metadata.items():
        if not isinstance(key, str):
            raise InputError(
                f"metadata has the key {key!r}, which cannot be saved; expected keys that are text"
            )
        try:
            plain[key] = json.loads(json.dumps(value, default=_plain_scalar))
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(
                f"metadata[{key!r}] cannot be saved ({error}); expected plain JSON values: "
                "numbers, text, true, false, None, lists and dictionaries of these"
            ) from None
    return plain


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    raise TypeError(f"it contains a {type(value).__name__}")


def unpack(content: bytes, path: str | os.PathLike[str]) -> tuple[dict[str, Any], NDArray[Any]]:
    """Return the header and theta of a model file. `Model` itself checks the values of theta."""
    name = repr(str(path))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            if len(set(names)) < len(names):
                raise InputError(  # noqa: TRY301 - users get the same advice as for other damage
                    f"{name} is damaged: two of its members have the same name. {_REMEDY}"
                )
            known = "meta.npy" in names
            place = Place(path, _REMEDY)
            header: Any = parse_json(str(_member(archive, "meta.npy")), place) if known else {}
            _refuse_header(header, name)
            theta = _member(archive, "theta.npy")
        read_fields(_Header, header, place)
        if header["version"] == 1:
            # A file of format version 1 stores the rate of the observation in the metadata.
            with naming(path):
                header["observation"] = take_recorded_observation(header["metadata"]).to_json()
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged archive can raise any exception
        raise InputError(
            f"{name} cannot be read as a model ({type(error).__name__}: {error}); it is damaged, "
            "incomplete or not a model file. Copy it again, or save the model again"
        ) from None
    if theta.dtype != np.float64:
        raise place.at("theta").error(f"is an array of {theta.dtype}", "float64")
    return header, theta


def _member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    # Read the whole member before its content is used, because this verifies its checksum.
    return np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)


def _refuse_header(header: Any, name: str) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(
            f"{name} is not a model of sequela; give a file that was written by Model.save"
        )
    if isinstance(header.get("version"), int) and header["version"] > VERSION:
        raise InputError(
            f"{name} has format version {header['version']} (sequela "
            f"{header.get('sequela')} wrote it). This is sequela {__version__}, which reads "
            f"versions up to {VERSION}. Install a newer sequela: pip install --upgrade sequela"
        )


# --- Tables ---------------------------------------------------------------------------------------


def table_text(
    corner: str,
    labels: Sequence[str],
    matrix: NDArray[np.float64],
    extra: tuple[str, NDArray[np.float64]] | None = None,
) -> bytes:
    """Return a labelled matrix as CSV with all digits. `extra` is added as the last row."""
    buffer = io.StringIO(newline="")
    # Quote all text, because before Python 3.13 the writer does not quote a carriage return.
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow([corner, *labels])
    writer.writerows([label, *row] for label, row in zip(labels, matrix.tolist(), strict=True))
    if extra is not None:
        writer.writerow([extra[0], *extra[1].tolist()])
    try:
        return buffer.getvalue().encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"a label cannot be written as UTF-8 ({error.reason}: {error.object[error.start]!r}); "
            "rename the item, or use Model.save"
        ) from None


def read_table(path: str | os.PathLike[str]) -> tuple[str, list[str], NDArray[np.float64]]:
    """Return (first cell, labels, numbers) of a square comma-separated table."""
    name = repr(str(path))
    corner, rows, columns, values = _read_cells(path)
    if len(rows) == len(columns) + 1:
        raise InputError(
            f"{name} has one more row ({rows[-1]!r}) than columns. If it is a model of mhn with "
            "effects on the observation (oMHN), read it with Model.from_mhn"
        )
    _check_square(name, rows, columns)
    return corner, rows, values


def read_mhn_table(
    path: str | os.PathLike[str],
) -> tuple[str, list[str], NDArray[np.float64], NDArray[np.float64] | None]:
    """Return (first cell, labels, numbers, effects on the observation) of a table of mhn.

    A table with effects on the observation (oMHN) has one more row, "Observation". For other
    tables, the effects are None. If a model has no labels, mhn numbers its rows and columns.
    """
    corner, rows, columns, values = _read_cells(path)
    omega = None
    if len(rows) == len(columns) + 1:
        if rows[-1] not in (OBSERVATION_ROW, str(len(columns))):
            raise InputError(
                f"{str(path)!r} has one more row than columns, {rows[-1]!r}; in a model of mhn "
                f"with effects on the observation, expected the last row {OBSERVATION_ROW!r}"
            )
        rows, values, omega = rows[:-1], values[:-1], values[-1]
    _check_square(repr(str(path)), rows, columns)
    return corner, rows, values, omega


def _read_cells(
    path: str | os.PathLike[str],
) -> tuple[str, list[str], list[str], NDArray[np.float64]]:
    """Return (first cell, rows, columns, numbers) of a comma-separated table."""
    name = repr(str(path))
    try:
        text = content(path).decode("utf-8-sig")  # spreadsheets write a byte order mark
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        lines = [(reader.line_num, row) for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{name} is not a comma-separated table in UTF-8 ({error}); save it as 'CSV UTF-8'"
        ) from None
    if len(lines) < 2 or len(lines[0][1]) < 2:
        raise InputError(
            f"{name} has no table of theta: expected the items in the first row and the first "
            "column, separated by commas"
        )
    corner, *columns = lines[0][1]
    values = np.empty((len(lines) - 1, len(columns)))
    for i, (line, row) in enumerate(lines[1:]):
        if len(row) != len(columns) + 1:
            raise InputError(
                f"{name}, line {line}: found {len(row)} cells, expected {len(columns) + 1} as in "
                "the first line; the file may be incomplete"
            )
        for j, cell in enumerate(row[1:]):
            try:
                # float() reads 1_000 as a number, but in a table this is a mistake.
                values[i, j] = float(cell.replace("_", "?"))
            except ValueError:
                raise InputError(
                    f"{name}, line {line}, row {row[0]!r}, column {columns[j]!r}: found {cell!r}, "
                    "expected a number such as -1.5"
                ) from None
    rows = [row[0] for _, row in lines[1:]]
    return corner, rows, columns, values


def _check_square(name: str, rows: list[str], columns: list[str]) -> None:
    if rows != columns:
        k = next((k for k, x in enumerate(rows) if [x] != columns[k : k + 1]), len(rows))
        raise InputError(
            f"{name} has {len(rows)} rows and {len(columns)} columns. From position {k + 1} on, "
            f"the rows are {rows[k : k + 3]} and the columns are {columns[k : k + 3]}; expected "
            "the same items in the same order. The file may be incomplete. If it is a table of "
            "samples, first learn a model from it (`sequela fit`)"
        )


def mhn_meta_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of the file in which mhn saves the metadata of the model in `path`."""
    return Path(path).with_name(Path(path).name.removesuffix(".csv") + "_meta.json")
