"""Real data for benchmarks: looked for beside the project, never part of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd


def data_folder() -> Path | None:
    """Return the folder that SEQUELA_DATA names, or ../shared/data, if it is there."""
    root = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("SEQUELA_DATA", root.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


def glioblastoma(folder: Path) -> pd.DataFrame:
    """Return the 378 x 821 table of altered items, most frequent first.

    An item is a mutated gene (EGFR), an amplification (EGFR(A)) or a deletion (EGFR(D));
    neighbours that are altered together are merged as the file merge.json says.
    """
    columns = {}
    for name in ("mutations.txt", "cna.txt"):
        table = pd.read_csv(
            folder / "gbm" / name, sep="\t", header=None, dtype=str, keep_default_na=False
        )
        samples = table.iloc[1, 1:].tolist()
        for row in table.iloc[2:].itertuples(index=False):
            gene, cells = row[0], np.array(row[1:])
            if name == "mutations.txt":
                columns[gene] = ~np.isin(cells, ["WT", "NS", "NA", ""])
            else:
                level = pd.to_numeric(pd.Series(cells), errors="coerce").fillna(0).to_numpy()
                columns[f"{gene}(A)"] = level > 1
                columns[f"{gene}(D)"] = level < -1
    for new, old in json.loads((folder / "gbm" / "merge.json").read_text()).items():
        columns[new] = np.any([columns.pop(name) for name in old if name in columns], axis=0)
    frame = pd.DataFrame(columns, index=samples)
    order = frame.mean().sort_values(ascending=False, kind="stable")
    return frame[order[order > 0].index]
