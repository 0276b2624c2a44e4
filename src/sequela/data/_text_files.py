"""Read text files of users, which may be compressed and have different encodings.

If a file cannot be read correctly, an error names the file and the line and says what to do.
Compression is recognised by the content, because file names may be wrong.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import csv
import difflib
import gzip
import hashlib
import lzma
import os
import re
import stat
import zipfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from sequela.data._limits import BLANK_LIMIT, refuse_lines
from sequela.support.errors import InputError
from sequela.support.labels import compose_all
from sequela.support.naming import argument, option
from sequela.support.progress import WorkProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import BufferedReader

__all__ = [
    "BLANK",
    "CellCodes",
    "SourceFile",
    "bare_cell",
    "cell_rows",
    "file_name",
    "guess_separator",
    "source_file",
    "starts_with",
    "stored_size",
    "text_lines",
]

_BLOCK = 1 << 20
# The largest number of characters in a line; a line of a million long cells has fewer. A file with
# a longer line is not a table, and the line would fill the memory: a few megabytes of gzip can
# expand to one line of several gigabytes.
_LONGEST_LINE = 1 << 28

# Files that users give by mistake: the first bytes, the kind of file, and what to do.
_UNREADABLE: tuple[tuple[bytes, str, str], ...] = (
    (b"PAR1", "a Parquet file", "read it with read_table"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook", "save the sheet as 'CSV UTF-8'"),
    (b"\x89PNG", "a picture", "give the table of samples"),
    (b"\xff\xd8\xff", "a picture", "give the table of samples"),
    (b"%PDF", "a PDF document", "find the table as text"),
    (b"\x89HDF", "an HDF5 file", "export the table as CSV"),
    (b"SQLite format 3", "a database", "export the table as CSV"),
    (b"\x93NUMPY", "a NumPy array", "load it with numpy.load and use Dataset"),
    (b"RDX", "an R workspace", "write the table with R's write.csv"),
    (b"RDA", "an R workspace", "write the table with R's write.csv"),
    (b"X\n\0\0\0", "an R object", "write the table with R's write.csv"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "decompress it with 'unzstd'"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first"),
    (b"Rar!", "a RAR archive", "unpack it first"),
    (b"version https://git-lfs", "a Git LFS pointer, not the data", "fetch it with 'git lfs pull'"),
    (b"<!doctype", "a web page", "download the file itself, not the page that shows it"),
    (b"<html", "a web page", "download the file itself, not the page that shows it"),
)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that was read: its path, size in bytes and SHA-256."""

    path: str
    size: int
    sha256: str


def file_name(path: object) -> str:
    """Return the path as messages show it."""
    text = str(path)
    return repr(text if len(text) <= 200 else f"...{text[-197:]}")


@contextlib.contextmanager
def _binary(path: str | os.PathLike[str]) -> Iterator[BufferedReader]:
    """Open a regular file; if this fails, raise an error that gives the reason."""
    name = file_name(path)
    if not isinstance(path, str) and not hasattr(path, "__fspath__"):
        raise InputError(f"a path is text or a pathlib.Path; found {path!r:.80}.")
    try:
        mode = Path(path).stat().st_mode
        # A pipe is refused: opening it could block, and its content cannot be read twice.
        file = Path(path).open("rb") if stat.S_ISREG(mode) else None  # noqa: SIM115 - closed below
    except (OSError, ValueError, TypeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{name} cannot be read ({why}); {_opening_hint(path)}") from None
    if file is None:
        what = "a folder; name a file in it" if stat.S_ISDIR(mode) else "not a regular file"
        raise InputError(f"{name} is {what}.")
    with file:
        yield file


def _opening_hint(path: str | os.PathLike[str]) -> str:
    if re.match(r"(https?|ftp|s3)://", str(path)):
        return "it is a URL: download the file first and give its path."
    with contextlib.suppress(OSError, ValueError, TypeError):
        there = [
            entry.name for entry in islice(Path(path).parent.iterdir(), 2000) if entry.is_file()
        ]
        if Path(path).name not in there:
            close = difflib.get_close_matches(Path(path).name, there, n=1)
            return f"did you mean {close[0]!r}?" if close else "check the name and the folder."
    return "check the name and the permissions."


def source_file(path: str | os.PathLike[str]) -> SourceFile:
    """Return the path, size and SHA-256 of a file; a compressed file is not decompressed."""
    with _binary(path) as file:
        try:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return SourceFile(str(path), file.tell(), digest)
        except OSError as error:
            raise InputError(
                f"{file_name(path)} cannot be read to its end ({error.strerror or error}); copy it "
                "again."
            ) from None


def stored_size(path: str | os.PathLike[str]) -> int:
    """Return the size of a file in bytes, or 0 if it is compressed or its size is unknown.

    The size of a compressed file says too little about the number of its rows. With 0,
    `refuse_size` accepts the file.
    """
    with _binary(path) as file:
        size = _size(file)
        return size if _decompressed(file, file_name(path)) is file else 0


def starts_with(path: str | os.PathLike[str], magic: bytes) -> bool:
    """Tell whether a file starts with these bytes."""
    with _binary(path) as file:
        return file.read(len(magic)) == magic


# Bytes ------------------------------------------------------------------------------------


def _only_member(file: BinaryIO, name: str) -> BinaryIO:
    archive = zipfile.ZipFile(file)
    every = archive.infolist()
    names = {entry.filename for entry in every}
    if names & {"[Content_Types].xml", "mimetype"}:
        raise InputError(
            f"{name} is an office workbook or document; save the sheet as 'CSV UTF-8'."
        )
    members = [
        entry
        for entry in every
        if not entry.is_dir()
        and not entry.filename.startswith("__MACOSX/")
        and not entry.filename.endswith(".DS_Store")
    ]
    if len(members) != 1:
        listed = ", ".join(repr(entry.filename) for entry in members[:3])
        raise InputError(
            f"{name} is a zip archive of {len(members)} files ({listed or 'none'}), expected one; "
            "unpack it and give the path of one file."
        )
    if members[0].flag_bits & 1:
        raise InputError(f"{name} is protected by a password; unpack it first.")
    return cast("BinaryIO", archive.open(members[0]))


def _decompressed(file: BinaryIO, name: str) -> BinaryIO:
    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return cast("BinaryIO", gzip.GzipFile(fileobj=file))
    if re.match(rb"BZh[1-9]", magic):
        return cast("BinaryIO", bz2.BZ2File(file))
    if magic == b"\xfd7zXZ\0":
        return cast("BinaryIO", lzma.LZMAFile(file))
    if magic.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _only_member(file, name)
    return file


def _size(file: BinaryIO) -> int:
    try:
        return os.fstat(file.fileno()).st_size
    except OSError:
        return 0


def _blocks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield the decompressed content."""
    name = file_name(path)
    with _binary(path) as file, WorkProgress(f"reading {name}", _size(file)) as bar:
        try:
            stream = _decompressed(file, name)
            while block := stream.read(_BLOCK):
                # The progress is the position in the stored file, which may be compressed.
                bar.reach(file.tell())
                yield block
        except (InputError, MemoryError):
            raise
        # A damaged archive raises different errors, depending on its format. This block only reads,
        # so all its errors mean that the file cannot be read.
        except Exception as error:  # noqa: BLE001
            raise InputError(
                f"{name} cannot be decompressed or read to its end ({str(error) or 'damaged'}); it "
                "is incomplete or damaged. Copy or download it again."
            ) from None


# Text -------------------------------------------------------------------------------------


def _refuse_unreadable(head: bytes, name: str) -> None:
    folded = head[:64].lstrip().lower()
    for magic, what, remedy in _UNREADABLE:
        if head.startswith(magic) or (magic.startswith(b"<") and folded.startswith(magic)):
            raise InputError(f"{name} is {what}; {remedy}.")
    if head[257:262] == b"ustar":
        raise InputError(f"{name} is a tar archive; unpack it and give the path of one file.")


def _decoder(head: bytes, encoding: str | None, name: str) -> codecs.IncrementalDecoder:
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")) and encoding is None:
        raise InputError(f"{name} is in UTF-32; save it as UTF-8.")
    if encoding is None:
        # Excel's 'Unicode text' is UTF-16 with a byte order mark.
        marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        encoding = "utf-16" if marked else "utf-8-sig"
    try:
        known = codecs.lookup(encoding).name
        b"a\0a\0".decode(known, errors="ignore")  # fails if the codec is not for text
        return codecs.getincrementaldecoder("utf-8-sig" if known == "utf-8" else known)()
    except (LookupError, TypeError, ValueError, AttributeError):
        raise InputError(
            f"{argument('encoding')} {encoding!r} is not a text encoding; expected one such as "
            "'utf-8', "
            "'latin-1' or 'utf-16'."
        ) from None


def _plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _refuse_long(length: int, number: int, name: str) -> None:
    if length > _LONGEST_LINE:
        raise InputError(
            f"{name}, line {number + 1}: the line is longer than {_LONGEST_LINE >> 20} million "
            "characters; the file is not a table."
        )


def text_lines(path: str | os.PathLike[str], encoding: str | None = None) -> Iterator[str]:
    """Yield the lines without their endings, which are LF, CRLF or CR.

    The encoding is UTF-8, unless `encoding` or a byte order mark in the file says otherwise. Lines
    are in composed form (NFC), so that the same label in two files is the same text.
    `str.splitlines` is not used: it also splits at form feeds, so line numbers would differ from
    the line numbers in an editor.
    """
    name = file_name(path)
    decoder: codecs.IncrementalDecoder | None = None
    pending = ""
    parts: list[str] = []  # the texts that continue the line in `pending`
    held_size = 0  # the number of characters in all `parts`
    number = 0  # the number of lines yielded
    blank = 0  # the number of characters in blank lines since the last line with text
    blocks = _blocks(path)
    while True:
        block = next(blocks, b"")
        if decoder is None:
            _refuse_unreadable(block, name)
            decoder = _decoder(block, encoding, name)
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(encoding or "utf-8", errors="replace")
            line = number + _plain_ends(before).count("\n") + 1
            raise InputError(
                f"{name}, line {line}: the text is not {encoding or 'UTF-8'} (byte "
                f"{error.object[error.start : error.start + 1]!r}). Save the file as UTF-8, or "
                f"give its encoding, such as {option('encoding', 'latin-1')}."
            ) from None
        except UnicodeError as error:
            raise InputError(f"{name} is not {encoding} ({error}); try another encoding.") from None
        if "\0" in text:
            line = number + _plain_ends(text[: text.index("\0")]).count("\n") + 1
            raise InputError(
                f"{name}, line {line}: found a NUL byte, which text does not have. The file is "
                "binary, damaged, or UTF-16 without a byte order mark (then use "
                f"{option('encoding', 'utf-16-le')})."
            )
        blank = 0 if text.strip() else blank + len(text)
        BLANK_LIMIT.refuse(blank, f"{name}, line {number + 1}:", about=True)
        if block and not pending.endswith("\r") and not ("\n" in text or "\r" in text):
            # The block is a part of one long line. All parts are joined once at the end of the
            # line, because joining them with every block would be slow.
            parts.append(text)
            held_size += len(text)
            _refuse_long(len(pending) + held_size, number, name)
            continue
        text = "".join([pending, *parts, text])
        parts, held_size = [], 0
        # The LF of a CRLF may be in the next block.
        held = "\r" if block and text.endswith("\r") else ""
        lines = _plain_ends(text[: len(text) - len(held)]).split("\n")
        if not text.isascii():
            lines = compose_all(lines)
        pending = lines.pop() + held
        number += len(lines)
        refuse_lines(number, name)
        yield from lines
        _refuse_long(len(pending), number, name)
        if not block:
            break
    if pending:
        yield pending


# Cells ------------------------------------------------------------------------------------

# Spaces of any width, tabs and line breaks. `str.strip` would also silently remove form feeds and
# other control characters.
BLANK = " \t\n\r\xa0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_STRIPPED_CONTROLS = ("\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u2028", "\u2029")


class _WatchedLines:
    """Iterates over lines for the csv module.

    It also keeps in mind whether the lines of the last record had control characters.
    """

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._controls = False

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            if any(control in line for control in _STRIPPED_CONTROLS):
                self._controls = True
            # A quoted cell may contain a line break, which `lines` no longer has. Add it again for
            # the csv module, which ignores line breaks outside of quoted cells.
            yield line + "\n" if '"' in line else line

    def found_control(self) -> bool:
        """Tell whether the last record had a control character, and reset the mark."""
        found, self._controls = self._controls, False
        return found


def bare_cell(cell: str) -> str:
    """Return the content of a cell without the quotation marks and spaces around it."""
    return cell.strip(BLANK).strip('"').strip(BLANK)


class CellCodes(dict[str, int]):
    """Maps a cell to its code; the code of each distinct cell is computed only once."""

    def __init__(self, code: Callable[[str], int]) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, cell: str) -> int:
        found = self[cell] = self._code(cell)
        return found


def cell_rows(
    lines: Iterator[str], separator: str, name: str, first_line: int = 1
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row, without the spaces around them.

    An empty line gives a row without cells.
    """
    watched = _WatchedLines(lines)
    reader = csv.reader(
        watched,
        delimiter=separator,
        strict=True,
        skipinitialspace=separator != "\t",
    )
    start = first_line
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            if "limit" in str(error):
                raise InputError(
                    f"{name}, line {start}: a cell has more than {csv.field_size_limit()} "
                    "characters; look for an unclosed quotation mark."
                ) from None
            raise InputError(
                f"{name}, line {start}: a quotation mark opens or closes a cell in the wrong place "
                f"({error}). Double a quotation mark inside a cell, or remove it."
            ) from None
        if row is None:
            return
        # `strip` without an argument is faster than with one, but it also removes control
        # characters. Therefore it is used only if the row has no control characters.
        blank = BLANK if watched.found_control() else None
        yield start, [cell.strip(blank) for cell in row]
        start = first_line + reader.line_num


def _widths(lines: Sequence[str], separator: str) -> list[int]:
    # A quoted cell may contain line breaks and may continue after the last of these lines. The csv
    # module then raises an error, and the result is empty.
    with contextlib.suppress(InputError):
        return [len(row) for _, row in cell_rows(iter(lines), separator, "") if any(row)]
    return []


def guess_separator(lines: Sequence[str]) -> str:
    """Return the character that separates the cells, from the first lines of a file.

    This character splits all lines into the same number of cells, at least two; the header may have
    one cell fewer. It need not be the most frequent character, because labels may contain other
    separators, such as 'PAOX,...(D)' in tab-separated files.
    """
    for separator in ("\t", ";", ",", " "):
        if separator in lines[0] or any(separator in line for line in lines[1:2]):
            widths = _widths(lines, separator)
            body = set(widths[1:]) or set(widths)
            if len(body) == 1 and max(body) > 1 and widths[0] in (max(body), max(body) - 1):
                return separator
    # No separator splits all lines in the same way. Return the most frequent one, because the error
    # message is then most useful.
    return max(("\t", ";", ","), key=lines[0].count) if lines else ","
