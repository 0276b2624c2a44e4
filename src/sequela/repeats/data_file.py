"""Store the samples of a plan in a file in the folder of the plan, which each worker reads once."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sequela.data.dataset import Dataset
from sequela.learning.checkpoint import fingerprint
from sequela.support.errors import InputError
from sequela.support.files import replacing
from sequela.support.schema import Place, parse_json, read_fields

__all__ = ["DATA_NAME", "fingerprint", "keep_data", "read_data"]

DATA_NAME = "data.npz"


@dataclass(frozen=True)
class _Labels:
    items: list[str]
    samples: list[str]


def keep_data(data: Dataset, folder: Path) -> None:
    """Write the samples to a folder. If samples are there already, check that they are the same."""
    path = folder / DATA_NAME
    if path.exists():
        read_data(str(path), fingerprint(data))
        return
    content: dict[str, Any] = {
        "values": np.packbits(data.values, axis=1),
        "labels": np.array(json.dumps({"items": data.items, "samples": data.samples})),
    }
    if data.times is not None:
        content["times"] = data.times.astype("<f8")
    if data.missing is not None:
        content["missing"] = np.packbits(data.missing, axis=1)
    if data.orders is not None:
        content["orders"] = np.array(json.dumps(data.orders))
    if data.weights is not None:
        content["weights"] = data.weights.astype("<f8")
    with replacing(path) as file:
        np.savez_compressed(file, **content)


# The samples are cached, because a worker runs many repeats of one plan. All its threads use them.
@lru_cache(maxsize=2)
def read_data(path: str, digest: str) -> Dataset:
    """Return the samples in a file; raise an error if their checksum is not `digest`."""
    try:
        # Read the file into memory and close it. A folder on a network disk cannot be deleted while
        # one of its files is open.
        with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as file:
            where = Place(path, "Copy the original file again, or choose another folder", "labels")
            stored = read_fields(_Labels, parse_json(str(file["labels"]), where), where)
            labels = {"items": stored.items, "samples": stored.samples}
            values = np.unpackbits(file["values"], axis=1, count=len(labels["items"]))
            data = Dataset(
                values.astype(bool),
                items=labels["items"],
                samples=labels["samples"],
                times=file["times"] if "times" in file.files else None,
                orders=json.loads(str(file["orders"])) if "orders" in file.files else None,
            )
            if "missing" in file.files:
                cells = np.unpackbits(file["missing"], axis=1, count=len(labels["items"]))
                data = data.with_missing(cells.astype(bool))
            if "weights" in file.files:
                data = data.with_weights(file["weights"])
    except FileNotFoundError:
        raise InputError(
            f"there is no file {path!r} on this machine; the folder of a plan must be on a disk "
            "that all workers can read"
        ) from None
    except Exception as error:  # noqa: BLE001 - the errors of a damaged archive vary
        raise InputError(
            f"the samples in {path!r} cannot be read ({type(error).__name__}: {error}); copy the "
            "original file again, or choose another folder"
        ) from None
    if fingerprint(data) != digest:
        raise InputError(
            f"the file {path!r} does not contain the samples of this plan (the checksums differ): "
            "it was changed, or it belongs to another plan. Copy the original file again, or "
            "choose another folder"
        )
    return data
