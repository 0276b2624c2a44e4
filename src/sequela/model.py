"""A learned or given chain: theta with the labels of its items and how it came about."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pandas as pd

from sequela import __version__
from sequela._errors import InputError
from sequela._files import replacing
from sequela._validation import check_theta
from sequela.data._reading import read_labels

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

    from numpy.typing import NDArray

__all__ = ["Model"]

_FORMAT = "sequela model"
_VERSION = 1  # to be raised when a reader of the older version would misread the file
_CORNER = "row acts on column"  # the first cell of our CSV; mhn has none and acts the other way
# What a spreadsheet takes for a formula or lets slip into the next cell, in full width too.
_LIVE = r"(?:\s*[=+\-@＝＋－＠]|[\t\r\n])"


class Model:
    """The parameters of a chain over sets, with the labels of the items.

    Parameters
    ----------
    theta : array or DataFrame, (n, n)
        theta[i, j] is the log-effect of item i on the rate of item j, theta[j, j] the log base
        rate of item j.
    items : sequence of str or None
        Labels; None takes those of a DataFrame, or "0", "1", ...
    metadata : mapping or None
        How the model came about: penalty, seed, versions. Plain JSON values.

    Examples
    --------
    >>> Model([[0.0, 4.0], [0.0, -4.0]], ["first", "second"])
    <Model: 2 items, 1 interaction>
    """

    def __init__(
        self,
        theta: Any,
        items: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        if items is None and isinstance(theta, pd.DataFrame):
            items = [str(label) for label in theta.columns]
        if items is not None:
            items = read_labels("items", items)
        matrix = check_theta(theta, items)
        matrix.flags.writeable = False
        self._theta = matrix
        self._items = tuple(map(str, range(len(matrix)))) if items is None else tuple(items)
        self.metadata: dict[str, Any] = dict(metadata or {})

    @property
    def theta(self) -> NDArray[np.float64]:
        """The n x n parameters (read-only)."""
        return self._theta

    @property
    def items(self) -> tuple[str, ...]:
        """Labels of the items."""
        return self._items

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self._items)

    def to_frame(self) -> pd.DataFrame:
        """Return theta as a table: rows act on columns, the diagonal holds log base rates."""
        return pd.DataFrame(self._theta, index=list(self._items), columns=list(self._items))

    def interactions(self) -> pd.DataFrame:
        """Return the interactions that are not zero, the strongest first.

        Examples
        --------
        >>> Model([[0.0, 4.0], [0.0, -4.0]], ["first", "second"]).interactions()
            from      to  effect
        0  first  second     4.0
        """
        off = self._theta.copy()
        np.fill_diagonal(off, 0.0)
        i, j = np.nonzero(off)
        order = np.argsort(-np.abs(off[i, j]), kind="stable")
        labels = np.array(self._items, dtype=object)
        return pd.DataFrame(
            {
                "from": labels[i[order]],
                "to": labels[j[order]],
                "effect": off[i, j][order],
            }
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, with its labels and metadata.

        The file is a NumPy archive (a zip file) that opens without pickle, in other programs too:
        ``theta`` holds the parameters, ``meta`` a JSON text with the items, the metadata, and the
        version of the format. An existing file is replaced only once the new one is whole.

        Parameters
        ----------
        path : str or path
            The file, exactly as named: no suffix is added. ".npz" is customary.

        Examples
        --------
        >>> import tempfile
        >>> model = Model([[0.0, 4.0], [0.0, -4.0]], ["first", "second"], {"penalty": 0.01})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.npz")
        ...     again = Model.load(f"{folder}/model.npz")
        >>> again == model, again.metadata
        (True, {'penalty': 0.01})
        """
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "sequela": __version__,
            "items": self._items,
            "metadata": _plain_metadata(self.metadata),
        }
        # Not np.savez(path): it appends a suffix of its own to the name of a path.
        with _writing(path) as file:
            np.savez_compressed(
                file, theta=self._theta.astype("<f8"), meta=np.array(json.dumps(header))
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; a damaged or foreign file is an `InputError`.

        Parameters
        ----------
        path : str or path
            The file.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Model([[-1.0]], ["only"]).save(f"{folder}/model.npz")
        ...     Model.load(f"{folder}/model.npz").items
        ('only',)
        """
        header, theta = _unpack(_content(path), path)
        with _naming(path):
            return cls(theta, header["items"], header["metadata"])

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write theta as a labelled table: rows act on columns.

        Numbers are written with all their digits, the metadata is not written. A label that a
        spreadsheet would run as a formula (one that begins with =, +, -, @, a tab or a new line)
        gets an apostrophe in front, which makes it plain text there; `from_csv` takes it away.

        Parameters
        ----------
        path : str or path
            The file, in UTF-8, exactly as named.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "theta.csv")
        ...     Model([[0.0, 4.0], [0.0, -4.0]], ["first", "=second"]).to_csv(path)
        ...     print(path.read_text())
        "row acts on column","first","'=second"
        "first",0.0,4.0
        "'=second",0.0,-4.0
        <BLANKLINE>
        """
        # Labels that already look like guarded ones are guarded as well, so that none is lost.
        guarded = [f"'{x}" if re.match(f"'*{_LIVE}", x) else x for x in self._items]
        table = _table_text(_CORNER, guarded, self._theta)
        with _writing(path) as file:
            file.write(table)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Self:
        """Read a labelled table of theta, rows acting on columns, as `to_csv` writes it.

        Parameters
        ----------
        path : str or path
            A comma-separated file in UTF-8 with the items in its first row and first column.

        Returns
        -------
        Model
            Without metadata.

        Examples
        --------
        >>> import tempfile
        >>> model = Model([[0.1, 4.0], [0.0, -1 / 3]], ["first", "=second"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.to_csv(f"{folder}/theta.csv")
        ...     Model.from_csv(f"{folder}/theta.csv") == model
        True
        """
        _, labels, theta = _read_table(path)
        with _naming(path):
            return cls(theta, [x[1:] if re.match(f"'+{_LIVE}", x) else x for x in labels])

    def to_mhn(self, path: str | os.PathLike[str]) -> None:
        """Write the files that the Python package `mhn` saves and loads.

        Its theta is the transpose of ours: row i, column j is the effect of j on i. The metadata
        goes beside it into ``<name>_meta.json``. Labels are written as they are, because `mhn`
        takes them literally: do not open the table of a stranger's labels in a spreadsheet.

        Parameters
        ----------
        path : str or path
            The CSV file, exactly as named; `mhn` finds it only if the name ends in ".csv".

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "model.csv")
        ...     Model([[0.0, 4.0], [0.0, -4.0]], ["first", "second"]).to_mhn(path)
        ...     print(path.read_text())
        "","first","second"
        "first",0.0,0.0
        "second",4.0,-4.0
        <BLANKLINE>
        """
        rest = _plain_metadata(self.metadata)
        theirs = rest.pop("mhn", {})
        # What from_mhn put under "mhn" goes back to where it was.
        meta = {**theirs, **rest} if isinstance(theirs, dict) else {"mhn": theirs, **rest}
        table = _table_text("", self._items, self._theta.T)
        with _writing(path) as file:
            file.write(table)
        with _writing(_mhn_meta(path)) as file:
            file.write(json.dumps(meta, indent=4).encode())

    @classmethod
    def from_mhn(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that the Python package `mhn` saved (a classical one, ``MHN``, ``cMHN``).

        Parameters
        ----------
        path : str or path
            The CSV file, with its suffix. If ``<name>_meta.json`` is beside it, its content
            becomes ``metadata["mhn"]``.

        Returns
        -------
        Model
            With theta transposed to our convention: rows act on columns.

        Examples
        --------
        >>> import os, tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "model.csv")
        ...     lines = [",first,second", "first,0.0,0.0", "second,4.0,-4.0"]
        ...     _ = path.write_text(os.linesep.join(lines))
        ...     Model.from_mhn(path).interactions()
            from      to  effect
        0  first  second     4.0
        """
        corner, labels, theta = _read_table(path)
        if corner == _CORNER:
            raise InputError(
                f"{str(path)!r} is a table of sequela, whose rows act on columns; mhn's is its "
                "transpose. Read it with Model.from_csv"
            )
        beside = _mhn_meta(path)
        metadata = {}
        if beside.exists():
            with _naming(beside):
                metadata["mhn"] = _json_object(_content(beside))
        with _naming(path):
            return cls(theta.T, labels, metadata)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return self._items == other._items and bool(np.array_equal(self._theta, other._theta))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        count = int(np.count_nonzero(self._theta) - np.count_nonzero(np.diagonal(self._theta)))
        plural = "" if count == 1 else "s"
        return f"<Model: {self.n_items} items, {count} interaction{plural}>"


# --- Files ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Replace `path` when the block ends well; say why if the system will not."""
    try:
        with replacing(path) as file:
            yield file
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be written ({error.strerror or error}); name a file in a folder "
            "that exists and that you may write to"
        ) from error


@contextlib.contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the name of the file in front of what is wrong with its content."""
    try:
        yield
    except InputError as error:
        raise InputError(f"the file {str(path)!r} cannot be used: {error}") from None


def _content(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        # mhn's own load adds the suffix, so its users leave it out.
        other = Path(f"{path}.csv")
        hint = f"did you mean {str(other)!r}?" if other.is_file() else "check the name"
        raise InputError(
            f"{str(path)!r} cannot be read ({error.strerror or error}); {hint}"
        ) from None


def _json_object(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        found = error
    if not isinstance(found, dict):
        raise InputError(f"found {found!r:.200}, expected a JSON object; mend it or take it away")
    return found


def _plain_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata as JSON will give it back; an error names the key that it cannot hold."""
    plain = {}
    for key, value in metadata.items():
        if not isinstance(key, str):
            raise InputError(f"metadata has the key {key!r}; keys must be text to be saved")
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


def _unpack(content: bytes, path: str | os.PathLike[str]) -> tuple[dict[str, Any], NDArray[Any]]:
    """Return the header and theta of a model file; the constructor checks what they contain."""
    name = repr(str(path))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            known = "meta.npy" in archive.namelist()
            header: Any = json.loads(str(_member(archive, "meta.npy"))) if known else {}
            _refuse_header(header, name)
            theta = _member(archive, "theta.npy")
        whole = isinstance(header["items"], list) and isinstance(header["metadata"], dict)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged archive raises whatever its parts raise
        raise InputError(
            f"{name} cannot be read as a model ({type(error).__name__}: {error}); it is damaged, "
            "incomplete or something else. Copy it again from where it was saved, or save anew"
        ) from None
    if not whole or theta.dtype != np.float64:
        raise InputError(
            f"{name} has items, metadata or theta of the wrong type (theta: {theta.dtype}, "
            "expected float64); it was not written by Model.save. Make it anew with that"
        )
    return header, theta


def _member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    # Reading a whole member compares its checksum before anything is made of it.
    return np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)


def _refuse_header(header: Any, name: str) -> None:
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise InputError(f"{name} is not a model of sequela; give a file that Model.save wrote")
    if header["version"] > _VERSION:
        raise InputError(
            f"{name} has format version {header['version']} (written by sequela "
            f"{header.get('sequela')}); this is sequela {__version__}, which reads version "
            f"{_VERSION}. Install a newer sequela: pip install --upgrade sequela"
        )


# --- Tables ---------------------------------------------------------------------------------------


def _table_text(corner: str, labels: Sequence[str], matrix: NDArray[np.float64]) -> bytes:
    buffer = io.StringIO(newline="")
    # All text in quotation marks: before Python 3.13 a carriage return would go without.
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow([corner, *labels])
    writer.writerows([label, *row] for label, row in zip(labels, matrix.tolist(), strict=True))
    try:
        return buffer.getvalue().encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"a label cannot be written as UTF-8 ({error.reason}: {error.object[error.start]!r}); "
            "rename the item, or use Model.save"
        ) from None


def _read_table(path: str | os.PathLike[str]) -> tuple[str, list[str], NDArray[np.float64]]:
    """Return (first cell, labels, numbers) of a square comma-separated table."""
    name = repr(str(path))
    try:
        text = _content(path).decode("utf-8-sig")  # spreadsheets put a mark in front
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
                # Python also takes 1_000 for a number, a table does not mean that.
                values[i, j] = float(cell.replace("_", "?"))
            except ValueError:
                raise InputError(
                    f"{name}, line {line}, row {row[0]!r}, column {columns[j]!r}: found {cell!r}, "
                    "expected a number such as -1.5"
                ) from None
    rows = [row[0] for _, row in lines[1:]]
    if len(rows) == len(columns) + 1:
        raise InputError(
            f"{name} has one row more than columns ({rows[-1]!r}). If it is a model of mhn with "
            "effects on the observation (oMHN): sequela does not support observation effects; in "
            "mhn, get_equivalent_classical_mhn() gives a model with the same distribution of sets"
        )
    if rows != columns:
        k = next((k for k, x in enumerate(rows) if [x] != columns[k : k + 1]), len(rows))
        raise InputError(
            f"{name} has {len(rows)} rows and {len(columns)} columns, from number {k + 1} on the "
            f"rows {rows[k : k + 3]} and the columns {columns[k : k + 3]}; expected the same items "
            "in the same order. The file may be incomplete"
        )
    return corner, rows, values


def _mhn_meta(path: str | os.PathLike[str]) -> Path:
    """Where mhn keeps the metadata of the model in `path`."""
    return Path(path).with_name(Path(path).name.removesuffix(".csv") + "_meta.json")
