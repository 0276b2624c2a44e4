"""The record of a run (``run.json``), from which the run can be repeated.

It contains options, seed, versions and checksums.
"""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequela import __version__
from sequela.support.errors import InputError
from sequela.support.files import replacing
from sequela.support.schema import Count, Digest, Place, parse_json, read_fields

if TYPE_CHECKING:
    import os

__all__ = [
    "MODEL_NAME", "POSTERIOR_NAME", "RUN_NAME", "Run", "checksum", "is_file",
    "package_versions", "processor",
]  # fmt: skip

RUN_NAME = "run.json"
MODEL_NAME = "model.npz"
POSTERIOR_NAME = "posterior.npz"
_FORMAT = "sequela run"
_VERSION = 1
_REMEDY = "Restore it from a copy, or make the run again"
_PACKAGES = ("numpy", "scipy", "numba", "pandas", "scikit-learn")


@dataclass(frozen=True)
class _StoredFile:
    """The fields of a run.json about a file that was read: the table, or another file."""

    path: str
    sha256: Digest


@dataclass(frozen=True)
class _StoredOptions:
    """The options in a run.json that other commands read."""

    seed: Count | None = None
    times: str | None = None
    most_frequent: Count | None = None
    draws: Count | None = None
    most_draws: Count | None = None
    weights: str | None = None
    orders: str | None = None
    missing: str | None = None


@dataclass(frozen=True)
class _StoredCheck:
    """The recorded check of whether the model describes the data, as far as a report uses it."""

    findings: list[str]
    tests: list[dict[str, Any]]


@dataclass(frozen=True)
class _StoredResult:
    """The results that reports read."""

    fit_check: _StoredCheck | None = None
    converged: bool = True
    interrupted: bool = False


@dataclass(frozen=True)
class _StoredSummary:
    """The fields of the import summary about the files that were read; the table is the first."""

    files: list[_StoredFile] = field(default_factory=list)


@dataclass(frozen=True)
class _Stored:
    """The fields of a run.json."""

    command: str
    options: dict[str, Any]
    data: dict[str, Any]
    result: dict[str, Any]
    versions: dict[str, str]


def package_versions() -> dict[str, str]:
    """Return the versions of sequela, Python and the packages that numbers depend on."""
    found = {"sequela": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def processor() -> str:
    """Return the name of the processor, or its architecture if the name is unknown."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def checksum(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{str(path)!r:.200} cannot be read ({why})") from None


def is_file(path: str | os.PathLike[str]) -> bool:
    """Tell whether there is such a file; False also for names that are not valid file names."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


@dataclass(frozen=True)
class Run:
    """The record of what a command did.

    Attributes
    ----------
    command : str
        The name of the command.
    options : dict
        All options that the numbers depend on, including the seed.
    data : dict
        "path", "sha256", "samples" and "items" of the table and, since version 0.2,
        "import_summary", which says how the table was read.
    result : dict
        The numbers of the result, which must be the same if the run is repeated.
    versions : dict
        Versions of sequela, Python and the packages that numbers depend on.
    """

    command: str
    options: dict[str, Any]
    data: dict[str, Any]
    result: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=package_versions)

    def write(self, folder: Path) -> None:
        """Write ``run.json``."""
        content = {"format": _FORMAT, "version": _VERSION, **asdict(self)}
        with replacing(folder / RUN_NAME) as file:
            file.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Run:
        """Read a ``run.json`` file, given its path or its folder."""
        place = Path(path)
        if place.is_dir():
            place = place / RUN_NAME
        try:
            text = place.read_bytes()
        except FileNotFoundError:
            raise InputError(f"there is no file {str(place)!r}") from None
        except OSError as error:
            raise InputError(f"{str(place)!r} cannot be read as a run ({error})") from None
        where = Place(place, _REMEDY)
        content = parse_json(text, where)
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise InputError(f"{str(place)!r} is not the run.json of a sequela run")
        if content.get("version") != _VERSION:
            raise InputError(
                f"{str(place)!r} has version {content.get('version')!r:.40} of the format of "
                f"run.json; expected version {_VERSION}. Use the version of sequela that wrote it"
            )
        found = read_fields(_Stored, content, where)
        read_fields(_StoredOptions, found.options, where.at("options"))
        read_fields(_StoredResult, found.result, where.at("result"))
        data = {**found.data, **asdict(read_fields(_StoredFile, found.data, where.at("data")))}
        return cls(found.command, found.options, data, found.result, found.versions)

    def check_data(self, path: str | os.PathLike[str]) -> None:
        """Raise an error if a file is not the data of this run."""
        _check(path, self.data["sha256"])

    def other_files(self) -> dict[str, str]:
        """Return the paths and checksums of the files of known orders and weights of the run."""
        summary = self.data.get("import_summary")
        if not isinstance(summary, dict):
            return {}  # older versions of sequela did not record a summary
        place = Place(RUN_NAME, _REMEDY, "data.import_summary")
        files = read_fields(_StoredSummary, summary, place).files[1:]
        given = (self.options.get("orders"), self.options.get("weights"))
        return {file.path: file.sha256 for file in files if file.path in given}

    def check_other_files(self) -> None:
        """Raise an error if a file of known orders or weights was changed since the run."""
        for path, digest in self.other_files().items():
            _check(path, digest)


def _check(path: str | os.PathLike[str], digest: str) -> None:
    found = checksum(path)
    if found != digest:
        raise InputError(
            f"{str(path)!r} is not the file that the run was made from: its SHA-256 is "
            f"{found[:12]}..., expected {digest[:12]}.... Give the original file, or make a new run"
        )
