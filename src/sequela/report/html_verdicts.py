"""What a report says about the certainty of orders: one table, whatever computed it.

The columns of the table (`VERDICT_COLUMNS`); all but the first two may be missing:

first, second
    Labels of two items.
probability
    Probability that `first` came before `second`, among samples with both: under the model, or the
    mean over a posterior.
se, observed
    Its Monte Carlo standard error, and the probability that both are observed.
low, high
    Where the probability may lie: over all models that explain the data almost as well (kind
    "range"), or the 90% interval of a posterior (kind "posterior").
evidence
    How much better the data go with this order than with its reverse, in nats.
verdict
    "yes", "no" or "unchecked"; if it is missing, it follows from low and high, or from evidence.
baseline
    The item that comes first by the mean set size of the samples that contain it.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from sequela.questions.order_baseline import order_baseline
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from sequela.data.dataset import Dataset

__all__ = ["DECIDED", "VERDICT_COLUMNS", "Verdicts", "baseline_firsts", "find_verdicts"]

VERDICT_COLUMNS = (
    "first", "second", "probability", "se", "observed", "low", "high", "evidence", "verdict",
    "baseline",
)  # fmt: skip
_NUMBERS = ("probability", "se", "observed", "low", "high", "evidence")
_KINDS = ("none", "evidence", "range", "posterior")
DECIDED = 2.0  # nats

Kind = Literal["none", "evidence", "range", "posterior"]


@dataclass(frozen=True)
class Verdicts:
    """The orders of pairs, each with what is known about its certainty.

    Attributes
    ----------
    table : DataFrame
        With columns of `VERDICT_COLUMNS`; only "first" and "second" are needed.
    kind : {"none", "evidence", "range", "posterior"}
        How certainty was computed; "none": it was not.
    notes : tuple of str
        What readers should know about it.
    command : str
        For kind "none": what to run to compute it.

    Examples
    --------
    >>> table = pd.DataFrame({"first": ["a"], "second": ["b"], "low": [0.6], "high": [0.9]})
    >>> Verdicts(table, "range").filled()["verdict"].tolist()
    ['yes']
    """

    table: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["first", "second"]))
    kind: Kind = "none"
    notes: tuple[str, ...] = ()
    command: str = ""

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise InputError(f"kind is {self.kind!r}; expected one of {', '.join(_KINDS)}")
        missing = [name for name in ("first", "second") if name not in self.table.columns]
        if missing:
            raise InputError(f"the table of verdicts has no column {missing[0]!r}")

    def filled(self) -> pd.DataFrame:
        """Return the table with all columns, verdicts included; the clearest orders first."""
        table = pd.DataFrame({name: self.table.get(name) for name in VERDICT_COLUMNS})
        for name in _NUMBERS:
            table[name] = pd.to_numeric(table[name], errors="coerce")
        given = table["verdict"].where(table["verdict"].isin(["yes", "no", "unchecked"]))
        table["verdict"] = given.fillna(pd.Series(_verdicts(table), index=table.index))
        clear = np.abs(table["probability"].to_numpy(dtype=float) - 0.5)
        unchecked = (table["verdict"] == "unchecked").to_numpy()
        ranked = np.lexsort((-np.nan_to_num(clear), unchecked))
        return table.iloc[ranked].reset_index(drop=True)


def _verdicts(table: pd.DataFrame) -> list[str]:
    low, high = table["low"].to_numpy(dtype=float), table["high"].to_numpy(dtype=float)
    evidence = table["evidence"].to_numpy(dtype=float)
    known = np.isfinite(low) & np.isfinite(high)
    told = np.where(known, (low > 0.5) | (high < 0.5), evidence > DECIDED)
    checked = known | np.isfinite(evidence)
    return [str(x) for x in np.where(checked, np.where(told, "yes", "no"), "unchecked")]


def baseline_firsts(table: pd.DataFrame, data: Dataset) -> list[str | None]:
    """Return, for each pair, the item that is seen in smaller sets on average; None for a tie.

    Examples
    --------
    >>> from sequela import Dataset
    >>> data = Dataset([[1, 0], [1, 1]], items=["a", "b"])
    >>> baseline_firsts(pd.DataFrame({"first": ["b"], "second": ["a"]}), data)
    ['a']
    """
    baseline = order_baseline(data)
    size = dict(zip(baseline["item"], baseline["mean_size"], strict=True))
    found: list[str | None] = []
    for a, b in zip(table["first"], table["second"], strict=True):
        one, other = size.get(a, np.nan), size.get(b, np.nan)
        if np.isnan(one) or np.isnan(other) or one == other:
            found.append(None)
        else:
            found.append(a if one < other else b)
    return found


def find_verdicts(
    orders: pd.DataFrame | None, rivals: pd.DataFrame | None, folder: str, source: str
) -> Verdicts:
    """Return what the tables of a folder say about the certainty of orders.

    Parameters
    ----------
    orders : DataFrame or None
        ``orders.csv``: the orders of a fit or a posterior; columns "low" and "high" are a range.
    rivals : DataFrame or None
        ``rivals.csv``, as ``sequela rivals`` writes it.
    folder, source : str
        Names of the folder and of the data, for the command that computes what is missing.
    """
    table = pd.DataFrame(columns=["first", "second"]) if orders is None else orders
    if {"low", "high"} <= set(table.columns) and table["low"].notna().any():
        posterior = "draws" in table.columns or "ess" in table.columns
        return Verdicts(table, "posterior" if posterior else "range")
    if rivals is not None and len(rivals):
        return Verdicts(
            _with_rivals(table, rivals),
            "evidence",
            notes=(
                "Evidence and probabilities of the pairs that were checked are from the command "
                "sequela rivals, which may have found a better model than the fit.",
            ),
        )
    name, rival_file = shlex.quote(folder), shlex.quote(f"{folder}/rivals.csv")
    return Verdicts(
        table,
        "none",
        command=f"sequela rivals {name} {shlex.quote(source)} -o {rival_file}\n"
        f"sequela report {name}",
    )


def _with_rivals(orders: pd.DataFrame, rivals: pd.DataFrame) -> pd.DataFrame:
    """Put the pairs that were checked before the others, each pair once."""
    checked = {frozenset(pair) for pair in zip(rivals["first"], rivals["second"], strict=True)}
    left = [
        frozenset(pair) not in checked
        for pair in zip(orders["first"], orders["second"], strict=True)
    ]
    observed: dict[Any, float] = {}
    if "observed" in orders.columns:
        pairs = zip(orders["first"], orders["second"], strict=True)
        observed = dict(zip(map(frozenset, pairs), orders["observed"], strict=True))
    rows = rivals[[name for name in VERDICT_COLUMNS if name in rivals.columns]].copy()
    keys = [frozenset(pair) for pair in zip(rows["first"], rows["second"], strict=True)]
    rows["observed"] = [observed.get(key, np.nan) for key in keys]
    rest = orders[left]
    return pd.concat([rows, rest], ignore_index=True) if len(rest) else rows
