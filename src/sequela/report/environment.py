"""Describe installed versions, the number of threads, and the cache of compiled code."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sequela.report.json_values import plain_values
from sequela.report.run import package_versions

__all__ = ["Environment", "describe_environment"]


@dataclass(frozen=True)
class Environment:
    """What the numbers and the duration of a run depend on, apart from its options.

    Attributes
    ----------
    versions : dict
        Versions of sequela, Python and the packages that numbers depend on.
    platform : str
        The operating system and the kind of processor.
    threads : int
        Number of threads that a run uses by default.
    numba_cache : Path or None
        Folder of the compiled kernels; None if compiled kernels cannot be kept.
    cached_kernels : int
        Number of compiled kernels in the folder.
    """

    versions: dict[str, str]
    platform: str
    threads: int
    numba_cache: Path | None
    cached_kernels: int

    def to_json(self) -> dict[str, Any]:
        """Return the environment as plain values for JSON."""
        found: dict[str, Any] = plain_values(self)
        return found


def describe_environment() -> Environment:
    """Return versions, the number of threads and the state of the cache of compiled code.

    Examples
    --------
    >>> sorted(describe_environment().to_json())
    ['cached_kernels', 'numba_cache', 'platform', 'threads', 'versions']
    """
    from sequela.kernels.lattice import evaluate_block
    from sequela.support.threads import resolve_threads

    # Numba keeps compiled code next to the source. If that folder is read-only, Numba uses
    # another folder.
    found = evaluate_block.stats.cache_path
    folder = None if found is None else Path(found)
    return Environment(
        versions=package_versions(),
        platform=platform.platform(),
        threads=resolve_threads(None),
        numba_cache=folder,
        cached_kernels=0 if folder is None else len(list(folder.glob("*.nbi"))),
    )
