"""Survival of samples in groups of different predicted risk, for figures and reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.questions.survival import kaplan_meier, log_rank
from sequela.support.errors import InputError
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SurvivalGroup", "SurvivalGroups", "risk_groups", "survival_groups"]

_FEWEST = 2  # smallest number of samples in a group
_NAMES = {2: ("low", "high"), 3: ("low", "middle", "high")}


@dataclass(frozen=True)
class SurvivalGroup:
    """One group of samples.

    Attributes
    ----------
    name : str
        Name of the group, such as "low risk".
    samples, events : int
        Number of samples, and number of samples that had the event.
    curve : DataFrame
        From `kaplan_meier`.
    lost : array
        Times at which samples without the event were last observed.
    """

    name: str
    samples: int
    events: int
    curve: pd.DataFrame
    lost: NDArray[np.float64]

    def survival_at(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of surviving samples at the given times."""
        steps = self.curve["survival"]
        places = np.searchsorted(steps.index.to_numpy(), times, side="right") - 1
        found: NDArray[np.float64] = steps.to_numpy()[places]
        return found


@dataclass(frozen=True)
class SurvivalGroups:
    """Groups of samples by risk, with the log-rank test of equal survival.

    Attributes
    ----------
    groups : tuple of SurvivalGroup
        The groups, from the lowest risk to the highest.
    p_value : float or None
        P-value of the log-rank test; None for one group.
    unit : str
        Unit of the times, such as "months"; empty if it is not known.
    """

    groups: tuple[SurvivalGroup, ...]
    p_value: float | None
    unit: str


def risk_groups(risk: pd.Series[float], groups: int = 2) -> pd.Series[int]:
    """Assign samples to groups of about equal size by risk: 0 has the lowest risk.

    Samples of equal risk are in the same group.

    Examples
    --------
    >>> risk_groups(pd.Series([0.1, 0.4, 0.2, 0.9])).tolist()
    [0, 1, 0, 1]
    """
    groups = positive_integer("groups", groups)
    values = risk.to_numpy(dtype=float)
    if not np.isfinite(values).all():
        raise InputError("risk has values that are not finite numbers; leave those samples out")
    cuts = np.quantile(values, np.arange(1, groups) / groups) if values.size else np.array([])
    return pd.Series(np.searchsorted(cuts, values, side="left"), index=risk.index, name="group")


def survival_groups(
    clinical: pd.DataFrame, risk: pd.Series[float], groups: int = 2
) -> SurvivalGroups:
    """Return Kaplan-Meier curves of groups of samples by risk, and the log-rank test.

    Parameters
    ----------
    clinical : DataFrame
        Table from `read_clinical`: "time" and "event", indexed by sample.
    risk : Series
        One number per sample, indexed by sample. Only samples that are also in `clinical` are used.
    groups : int
        Number of groups of about equal size.

    Examples
    --------
    >>> ids = [f"s{k}" for k in range(8)]
    >>> clinical = pd.DataFrame({"time": range(1, 9), "event": [True, False] * 4}, index=ids)
    >>> found = survival_groups(clinical, pd.Series(range(8), index=ids))
    >>> [(group.name, group.samples, group.events) for group in found.groups]
    [('low risk', 4, 2), ('high risk', 4, 2)]
    """
    if not isinstance(risk, pd.Series):
        raise InputError(
            f"risk is of type {type(risk).__name__}; expected a pandas Series indexed by sample"
        )
    known = clinical.dropna(subset=["time", "event"])
    shared = known.index.intersection(risk.dropna().index)
    if shared.empty:
        raise InputError(
            "clinical and risk have no sample in common; check how the ids are written "
            f"(the first ones are {_first(clinical.index)} and {_first(risk.index)})"
        )
    times = known.loc[shared, "time"].to_numpy(dtype=float)
    events = known.loc[shared, "event"].to_numpy(dtype=bool)
    group = risk_groups(risk.loc[shared].astype(float), groups).to_numpy()
    sizes = np.bincount(group, minlength=groups)
    if (sizes < _FEWEST).any():
        raise InputError(
            f"{shared.size} samples with survival times and risk are too few for {groups} groups; "
            "use fewer groups"
        )
    names = _NAMES.get(groups, tuple(f"group {k + 1}" for k in range(groups)))
    parts = tuple(
        SurvivalGroup(
            name=f"{names[k]} risk", samples=int(sizes[k]), events=int(events[here].sum()),
            curve=kaplan_meier(times[here], events[here]),
            lost=np.sort(times[here][~events[here]]),
        )
        for k, here in ((k, group == k) for k in range(groups))
    )  # fmt: skip
    p = log_rank(times, events, group).p_value if groups > 1 else None
    return SurvivalGroups(parts, p, str(clinical.attrs.get("unit", "")))


def _first(index: pd.Index[Any]) -> str:
    return repr(index[0]) if len(index) else "none"
