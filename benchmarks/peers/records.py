"""Write and read the records of measurements (one JSON file each), and describe the machine."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sequela.report.run import processor
from sequela.support.files import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULTS = Path(__file__).resolve().parents[1] / "results" / "peers"


def default_cache() -> Path:
    """Return the folder for environments and learned thetas, outside the repository."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "sequela-peers"


def machine() -> str:
    """Return a text that describes the machine, the processor and the number of cores."""
    return f"{platform.machine()}, {processor()}, {os.cpu_count()} cores, {platform.system()}"


@dataclass(frozen=True)
class Places:
    """The folders of a run.

    Attributes
    ----------
    results : Path
        Folder for records, tables and plots, which are committed.
    cache : Path
        Folder for environments, samples and thetas, which are not committed.
    run : str
        The run to which the thetas belong.
    """

    results: Path
    cache: Path
    run: str = "full"

    @property
    def records(self) -> Path:
        """The folder of the records."""
        return self.results / "records"

    def thetas(self, name: str) -> Path:
        """Return the folder for the samples and thetas of a measurement."""
        return self.cache / "thetas" / self.run / name

    def write(self, kind: str, name: str, content: dict[str, Any]) -> dict[str, Any]:
        """Write a record with the date and the machine, and return it."""
        self.records.mkdir(parents=True, exist_ok=True)
        record = {
            "kind": kind,
            "name": name,
            **content,
            "machine": machine(),
            "date": date.today().isoformat(),
        }
        with replacing(self._path(kind, name)) as file:
            file.write((json.dumps(record, indent=1) + "\n").encode())
        return record

    def read(self, kind: str, name: str) -> dict[str, Any] | None:
        """Return a record, or None if it does not exist."""
        path = self._path(kind, name)
        return json.loads(path.read_text()) if path.exists() else None

    def all(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield all records of a kind, sorted by name."""
        for path in sorted(self.records.glob(f"{kind}--*.json")):
            yield json.loads(path.read_text())

    def forget(self, kinds: tuple[str, ...]) -> None:
        """Remove the records of these kinds that an earlier run made."""
        for kind in kinds:
            for path in self.records.glob(f"{kind}--*.json"):
                path.unlink()

    def _path(self, kind: str, name: str) -> Path:
        return self.records / f"{kind}--{name}.json"
