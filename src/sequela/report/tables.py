"""Write tables to files or to standard output, with all digits and with safe labels."""

from __future__ import annotations

import io
import math
import sys
from typing import TYPE_CHECKING, Any

from sequela.support.spreadsheets import guarded

if TYPE_CHECKING:
    import os

    import pandas as pd

    from sequela.data.dataset import Dataset
    from sequela.model import Model
    from sequela.simulation import Simulation

__all__ = [
    "arrivals_table",
    "observation_effects",
    "records",
    "samples_table",
    "statements_table",
    "table_text",
    "write_table",
]


def _safe(value: Any) -> Any:
    return guarded(value) if isinstance(value, str) else value


def table_text(frame: pd.DataFrame, *, index: bool = True) -> str:
    """Return a table as CSV with all digits; spreadsheets cannot run text in it as a formula."""
    import pandas as pd

    safe = frame.copy()
    safe.columns = pd.Index([guarded(str(name)) for name in frame.columns])
    for place, kind in enumerate(frame.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            safe.isetitem(place, [_safe(value) for value in frame.iloc[:, place]])
    if index:
        safe.index = pd.Index([_safe(label) for label in frame.index], name=frame.index.name)
    buffer = io.StringIO()
    safe.to_csv(buffer, index=index, lineterminator="\n")
    return buffer.getvalue()


def write_table(
    frame: pd.DataFrame, path: str | os.PathLike[str] | None, *, index: bool = True
) -> None:
    """Write a table to a file, completely or not at all; if `path` is None, to standard output."""
    from sequela.support.files import replacing

    text = table_text(frame, index=index)
    if path is None:
        sys.stdout.write(text)
        return
    with replacing(path) as file:
        file.write(text.encode())


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as plain values for JSON, with all digits; NaN and infinity become None."""
    table = frame.reset_index() if frame.index.name else frame
    return [
        {name: _plain(value) for name, value in zip(table.columns, row, strict=True)}
        for row in table.itertuples(index=False, name=None)
    ]


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        value = value.item()  # convert a number of NumPy to a number of Python
    return None if isinstance(value, float) and not math.isfinite(value) else value


def observation_effects(model: Model) -> pd.DataFrame | None:
    """Return the effects of items on the observation, the strongest first; None without effects.

    Examples
    --------
    >>> from sequela import Model, ObservationEffects
    >>> model = Model([[0.0, 1.0], [0.0, 0.0]], ["a", "b"], observation=ObservationEffects([0, -1]))
    >>> observation_effects(model)[["item", "effect"]].values.tolist()
    [['b', -1.0], ['a', 0.0]]
    """
    import numpy as np
    import pandas as pd

    from sequela.observation import ObservationEffects

    if not isinstance(model.observation, ObservationEffects):
        return None
    omega = np.array(model.observation.omega)
    order = np.argsort(-np.abs(omega), kind="stable")
    items = [model.items[i] for i in order]
    return pd.DataFrame({"item": items, "effect": omega[order], "factor": np.exp(omega[order])})


def samples_table(data: Dataset) -> pd.DataFrame:
    """Return samples as a table of 0, 1 and NA; the first column is "time" if they have times.

    Examples
    --------
    >>> from sequela import Dataset
    >>> print(table_text(samples_table(Dataset([[0, 1]], items=["a", "b"]))), end="")
    sample,a,b
    0,0,1
    """
    table = data.to_frame()
    if data.missing is None:
        table = table.astype("int8")
    else:
        table = table.astype("Int8").astype(object).where(table.notna(), "NA")
    table.index.name = "sample"
    if data.times is not None:
        table.insert(0, "time", data.times)
    return table


def statements_table(data: Dataset) -> pd.DataFrame:
    """Return the known orders as a table: one row per statement, with its probability.

    Examples
    --------
    >>> from sequela import Dataset
    >>> data = Dataset([[1, 1]], items=["a", "b"], samples=["s"], orders=[[("b", "a")]])
    >>> statements_table(data).values.tolist()
    [['s', 'b', 'a', 1.0]]
    """
    import pandas as pd

    rows = [
        (sample, *statement)
        for sample, statements in zip(data.samples, data.orders or [()] * len(data), strict=True)
        for statement in statements
    ]
    return pd.DataFrame(rows, columns=["sample", "before", "after", "probability"])


def arrivals_table(drawn: Simulation) -> pd.DataFrame:
    """Return one row per arrival of each draw: position, item, arrival time, observation time.

    Examples
    --------
    >>> from sequela import simulate
    >>> arrivals_table(simulate([[5.0]], 2, items=["a"], random_state=1))["item"].tolist()
    ['a', 'a']
    """
    import numpy as np
    import pandas as pd

    sizes = drawn.set_sizes
    return pd.DataFrame(
        {
            "position": np.arange(drawn.sequence.size) - np.repeat(drawn.indptr[:-1], sizes) + 1,
            "item": np.array(drawn.items, dtype=object)[drawn.sequence],
            "arrival": drawn.arrival_times,
            "observed": np.repeat(drawn.observation_times, sizes),
        },
        index=pd.Index(np.repeat(np.arange(len(drawn)), sizes), name="sample"),
    )
