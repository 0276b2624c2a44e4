"""Call a reader with a damaged file, and check the conditions that every file must satisfy."""

from __future__ import annotations

import collections
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sequela.support.errors import SequelaError
from sequela.support.labels import visible

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Tally:
    """Count the damaged files of each kind, and record which conditions were violated."""

    tried: collections.Counter[str] = field(default_factory=collections.Counter)
    refused: collections.Counter[str] = field(default_factory=collections.Counter)
    findings: list[str] = field(default_factory=list)

    def judge(
        self,
        kind: str,
        what: str,
        read: Callable[[], Any],
        *,
        expected: str = "",
        same_as: Any = None,
    ) -> None:
        """Call a reader, and record the conditions that it violates.

        If `expected` is "refused" or "read", the reader must do this with the file. If it returns a
        result and `same_as` is not None, the two must be equal.
        """
        self.tried[kind] += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = read()
        except SequelaError as error:
            self.refused[kind] += 1
            if expected == "read":
                self._add(kind, what, f"refused: {error}")
            if visible(str(error)) != str(error):
                # The command line escapes the message with `visible`. The escaped message must not
                # contain anything that still has to be escaped.
                shown = visible(str(error))
                if visible(shown) != shown:
                    self._add(kind, what, f"acts on a terminal: {error!a}")
            return
        except BaseException as error:  # noqa: BLE001 - any other error is a finding
            self._add(kind, what, f"{type(error).__name__}: {error!a:.200}")
            return
        if expected == "refused":
            self._add(kind, what, "accepted")
        if same_as is not None and found != same_as:
            self._add(kind, what, "accepted with another result")

    def _add(self, kind: str, what: str, problem: str) -> None:
        self.findings.append(f"{kind}, {what}: {problem}")

    def show(self) -> None:
        print(f"{'kind':22} {'files':>6} {'refused':>8} {'read':>6} {'did not hold':>13}")
        for kind, count in self.tried.items():
            bad = sum(one.startswith(f"{kind}, ") for one in self.findings)
            refused = self.refused[kind]
            print(f"{kind:22} {count:>6} {refused:>8} {count - refused:>6} {bad:>13}")
        for finding in self.findings:
            print(finding.encode("ascii", "backslashreplace").decode())
