"""Real data for benchmarks, read from a folder outside the repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sequela.data.cbioportal import read_cbioportal

if TYPE_CHECKING:
    import pandas as pd


def data_folder() -> Path | None:
    """Return the folder in SEQUELA_DATA, or ../shared/data; None if it does not exist."""
    root = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("SEQUELA_DATA", root.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


def glioblastoma(folder: Path) -> pd.DataFrame:
    """Return the 378 x 821 table of altered items, the most frequent items first.

    An item is a mutated gene (EGFR), an amplification (EGFR(A)) or a deletion (EGFR(D)). The file
    merge.json lists groups of neighbouring genes that are altered together. Each group is merged
    into one item.
    """
    gbm = folder / "gbm"
    data = read_cbioportal(
        gbm / "mutations.txt", gbm / "cna.txt", merge=gbm / "merge.json", at_least=1
    ).data
    return data.most_frequent(data.n_items).to_frame()
