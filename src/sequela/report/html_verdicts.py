"""The certainty of orders in a report: one table for all methods that compute it.

The table has these columns (`VERDICT_COLUMNS`). All but the first two may be missing:

first, second
    Labels of two items.
probability
    Probability that `first` came before `second`, among samples with both. For a fit, it is the
    probability under the model; for a posterior, the mean over its draws.
se, observed
    The Monte Carlo standard error of `probability`, and the probability that both items are
    observed.
low, high
    Range of `probability` over all models that explain the data almost equally well (kind "range"),
    or 90% interval of `probability` in a posterior (kind "posterior").
evidence
    How much better this order fits the data than the opposite order, in nats. For a posterior, it
    is the log odds that `first` usually comes first.
usually_first
    For a posterior: the probability that `first` comes first in more than half of the samples.
samples
    Number of samples that have both items.
effective, r_hat
    For a posterior: effective number of draws, and R-hat.
verdict
    "yes", "suggests", "no", "depends", "untrusted" or "unchecked", or a verdict in the words that
    `order_ranges` and `Posterior.orders` use. If the column is missing, the verdict is computed
    from `low` and `high`, or from `evidence`.
baseline
    The item that comes first according to the baseline, because the samples that contain it are
    smaller on average.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from sequela.posteriors.result import NOT_CONVERGED
from sequela.questions.order_baseline import order_baseline
from sequela.questions.verdict import Verdict
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from sequela.data.dataset import Dataset

__all__ = [
    "DECIDED",
    "NUMBERS",
    "SUGGESTED",
    "VERDICT_COLUMNS",
    "Verdicts",
    "baseline_firsts",
    "find_verdicts",
    "turned_ranges",
    "with_checked",
]

VERDICT_COLUMNS = (
    "first", "second", "probability", "se", "observed", "low", "high", "evidence",
    "usually_first", "samples", "effective", "r_hat", "verdict", "baseline",
)  # fmt: skip
NUMBERS = (
    "probability", "se", "observed", "low", "high", "evidence", "usually_first", "samples",
    "effective", "r_hat",
)  # fmt: skip
SUGGESTED = "the data suggest it"  # a verdict of `Posterior.orders`
# Verdicts in the tables of fits and posteriors, and their names in the page.
_WORDS = {
    "yes": "yes", "suggests": "suggests", "no": "no", "unchecked": "unchecked",
    "untrusted": "untrusted", Verdict.CAN_TELL.value: "yes", SUGGESTED: "suggests",
    Verdict.CANNOT_TELL.value: "no", Verdict.NOT_CHECKED.value: "unchecked",
    Verdict.NOT_TRUSTED.value: "untrusted", NOT_CONVERGED: "untrusted",
    "depends": "depends", Verdict.DEPENDS.value: "depends",
}  # fmt: skip
_KINDS = ("none", "evidence", "range", "posterior")
DECIDED = 2.0  # if the evidence for an order is above this number of nats, the data can tell it

Kind = Literal["none", "evidence", "range", "posterior"]


@dataclass(frozen=True)
class Verdicts:
    """The orders of pairs of items, and the certainty of each order.

    Attributes
    ----------
    table : DataFrame
        Has columns of `VERDICT_COLUMNS`. Only "first" and "second" are required.
    kind : {"none", "evidence", "range", "posterior"}
        How the certainty was computed. "none" means that no certainty was computed.
    notes : tuple of str
        Notes for the reader about the certainty.
    command : str
        The commands that check pairs of items and write the report again. Empty if they are not
        needed.
    fits : bool
        Whether the model describes the data. If not, the verdicts "yes" and "suggests" are replaced
        by "untrusted".

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
    fits: bool = True

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise InputError(f"kind is {self.kind!r}; expected one of {', '.join(_KINDS)}")
        missing = [name for name in ("first", "second") if name not in self.table.columns]
        if missing:
            raise InputError(f"the table of verdicts has no column {missing[0]!r}")

    def filled(self) -> pd.DataFrame:
        """Return the table with all columns and all verdicts, the clearest orders first."""
        table = pd.DataFrame({name: self.table.get(name) for name in VERDICT_COLUMNS})
        for name in NUMBERS:
            table[name] = pd.to_numeric(table[name], errors="coerce")
        derived = _verdicts(table)
        table["verdict"] = [
            _WORDS.get(given, other) for given, other in zip(table["verdict"], derived, strict=True)
        ]
        if not self.fits:
            table["verdict"] = table["verdict"].replace(["yes", "suggests"], "untrusted")
        sure = table["usually_first"].fillna(table["probability"]).to_numpy(dtype=float)
        unchecked = (table["verdict"] == "unchecked").to_numpy()
        ranked = np.lexsort((-np.nan_to_num(np.abs(sure - 0.5)), unchecked))
        return table.iloc[ranked].reset_index(drop=True)


def _verdicts(table: pd.DataFrame) -> list[str]:
    low, high = table["low"].to_numpy(dtype=float), table["high"].to_numpy(dtype=float)
    evidence = table["evidence"].to_numpy(dtype=float)
    known = np.isfinite(low) & np.isfinite(high)
    told = np.where(known, (low > 0.5) | (high < 0.5), evidence > DECIDED)
    checked = known | np.isfinite(evidence)
    return [str(x) for x in np.where(checked, np.where(told, "yes", "no"), "unchecked")]


def baseline_firsts(table: pd.DataFrame, data: Dataset) -> list[str | None]:
    """Return, for each pair, the item whose samples have fewer items on average.

    The result is None if the mean sizes are equal, or if no sample has one of the items.

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
    orders: pd.DataFrame | None,
    rivals: pd.DataFrame | None,
    folder: str,
    source: str,
    ranges: pd.DataFrame | None = None,
) -> Verdicts:
    """Return the orders in the tables of a folder, and their certainty.

    Every pair that was checked is in the result, even if its items are too rare for ``orders``.

    Parameters
    ----------
    orders : DataFrame or None
        ``orders.csv``: the orders of a fit. Its columns "low" and "high", if any, are ends of
        ranges.
    rivals : DataFrame or None
        ``rivals.csv``, a table that ``sequela rivals`` wrote.
    folder, source : str
        Names of the folder and of the data, for the command that computes missing evidence.
    ranges : DataFrame or None
        ``order_ranges.csv``: the pairs that a fit checked.
    """
    table = pd.DataFrame(columns=["first", "second"]) if orders is None else orders
    notes: tuple[str, ...] = ()
    if rivals is not None and len(rivals):
        table = with_checked(table, rivals)
        notes = (
            "For the pairs that were checked, evidence and probabilities are from the command "
            "`sequela rivals`, which may have found a better model than the fit.",
        )
    if ranges is not None:
        known = ranges.dropna(subset=["low", "high"])
        table = with_checked(table, known, ("observed", "se")) if len(known) else table
    if {"low", "high"} <= set(table.columns) and table["low"].notna().any():
        mixed = "The evidence of pairs without a range is from the command `sequela rivals`."
        if notes:
            return Verdicts(table, "range", notes=(mixed,))
        return Verdicts(table, "range", command=_check_command(folder, source))
    if notes:
        return Verdicts(table, "evidence", notes=notes)
    return Verdicts(table, "none", command=_check_command(folder, source))


def _check_command(folder: str, source: str) -> str:
    """Return the two commands that check orders and write the report again."""
    name, rival_file = shlex.quote(folder), shlex.quote(f"{folder}/rivals.csv")
    return f"sequela rivals {name} {shlex.quote(source)} -o {rival_file}\nsequela report {name}"


def with_checked(
    orders: pd.DataFrame, checked: pd.DataFrame, keep: tuple[str, ...] = ("observed",)
) -> pd.DataFrame:
    """Return one table with the checked pairs first, then the other pairs of `orders`.

    If both tables have a pair, its values in the columns `keep` are those in `orders`.

    Examples
    --------
    >>> orders = pd.DataFrame({"first": ["a"], "second": ["b"], "observed": [0.3]})
    >>> checked = pd.DataFrame({"first": ["b", "c"], "second": ["a", "a"], "low": [0.4, 0.6]})
    >>> with_checked(orders, checked)[["first", "second", "observed"]].values.tolist()
    [['b', 'a', 0.3], ['c', 'a', nan]]
    """
    keys = _pairs(checked)
    left = [key not in set(keys) for key in _pairs(orders)]
    rows = checked[[name for name in VERDICT_COLUMNS if name in checked.columns]].copy()
    for name in keep:
        if name in orders.columns and name not in rows.columns:
            known = dict(zip(_pairs(orders), orders[name], strict=True))
            rows[name] = [known.get(key, np.nan) for key in keys]
    rest = orders[left]
    return pd.concat([rows, rest], ignore_index=True) if len(rest) else rows


def turned_ranges(ranges: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """Return low, high and verdict of each checked pair, for (a, b) and also for (b, a).

    Examples
    --------
    >>> one = {"first": ["a"], "second": ["b"], "low": [0.25], "high": [0.5], "verdict": ["no"]}
    >>> turned_ranges(pd.DataFrame(one))["b", "a"]
    {'low': 0.5, 'high': 0.75, 'verdict': 'no'}
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in ranges.dropna(subset=["low", "high"]).to_dict("records"):
        first, second, low, high = row["first"], row["second"], row["low"], row["high"]
        verdict = row["verdict"]
        found[first, second] = {"low": low, "high": high, "verdict": verdict}
        found[second, first] = {"low": 1.0 - high, "high": 1.0 - low, "verdict": verdict}
    return found


def _pairs(table: pd.DataFrame) -> list[frozenset[Any]]:
    return [frozenset(pair) for pair in zip(table["first"], table["second"], strict=True)]
