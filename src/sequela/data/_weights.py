"""Read and check the weights of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sequela.data._reading import listed, refuse_misaligned
from sequela.data._text_files import file_name
from sequela.support.errors import InputError
from sequela.support.naming import argument
from sequela.support.validation import is_number

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    import numpy.typing as npt

__all__ = ["read_weight", "read_weight_file", "read_weights"]


def read_weights(given: Iterable[object], samples: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """Read one weight per sample: finite numbers of at least 0, of which at least one is not 0."""
    refuse_misaligned(given, samples, "sample_weight")
    cells = listed(given, "sample_weight")
    if len(cells) != len(samples):
        raise InputError(
            f"{argument('sample_weight')} has {len(cells)} entries for {len(samples)} samples; "
            "expected one per "
            "sample."
        )
    weights = np.zeros(len(samples))
    for i, cell in enumerate(cells):
        number = cell.item() if isinstance(cell, np.generic) else cell
        if not is_number(number) or not 0.0 <= float(number) < np.inf:
            raise InputError(
                f"{argument('sample_weight')} of sample {samples[i]!r} (position {i}) is "
                f"{number!r:.40}; "
                "expected a finite number of at least 0 (0 leaves the sample out)."
            )
        weights[i] = float(number)
    if not weights.sum() > 0.0:
        raise InputError(
            f"{argument('sample_weight')} is 0 for all {len(samples)} samples; at least one must "
            "be positive."
        )
    if not np.isfinite(weights.sum()):
        raise InputError(
            "the sum of the weights is too large for a floating-point number. Divide all weights "
            "by the same large number."
        )
    return weights


def read_weight(cell: str, where: str, *, decimal_comma: bool = False) -> float:
    """Read the weight in a cell of a table; `where` names the cell in messages."""
    try:
        # Python reads 1_000 as a number, but in a table it is a mistake.
        number = float((cell.replace(",", ".") if decimal_comma else cell).replace("_", "?"))
    except ValueError:
        number = -1.0
    if not 0.0 <= number < np.inf:
        raise InputError(
            f"{where}: found {cell!r:.80}, expected a weight: a finite number of at least 0 (0 "
            "leaves the sample out)."
        )
    return number


def read_weight_file(
    path: str | os.PathLike[str], samples: tuple[str, ...]
) -> npt.NDArray[np.float64]:
    """Read the weights of samples from a table with two columns, sample and weight."""
    from sequela.data.tables import text_rows

    name = file_name(path)
    rows, mark = text_rows(path, None, None)
    lines: dict[str, int] = {}
    found: dict[str, float] = {}
    for line, row in rows:
        if not any(row):
            continue
        if len(row) != 2:
            raise InputError(
                f"{name}, line {line}: found {len(row)} cells, expected two: a sample and its "
                "weight."
            )
        if not lines and row[1].casefold() in ("weight", "weights", "sample_weight"):
            continue
        if row[0] in lines:
            raise InputError(
                f"{name}: the sample {row[0]!r:.80} occurs twice, in lines {lines[row[0]]} and "
                f"{line}. Remove one."
            )
        lines[row[0]] = line
        found[row[0]] = read_weight(row[1], f"{name}, line {line}", decimal_comma=mark == ";")
    lacking = [label for label in samples if label not in found]
    if lacking:
        raise InputError(
            f"{name} has no weight for {len(lacking)} of {len(samples)} samples, such as "
            f"{lacking[0]!r:.80}; expected one line per sample (0 leaves a sample out)."
        )
    return read_weights([found[label] for label in samples], samples)
