"""Survival of samples: Kaplan-Meier curves and the log-rank test.

These two short formulas are implemented here because other packages that contain them need a pandas
version below 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import chi2

from sequela.support.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["LogRank", "kaplan_meier", "log_rank"]


class LogRank(NamedTuple):
    """The log-rank test of equal survival in several groups.

    Attributes
    ----------
    statistic, p_value : float
        Chi-squared statistic, and the probability of a larger statistic if survival is the same in
        all groups.
    """

    statistic: float
    p_value: float


def kaplan_meier(times: ArrayLike, events: ArrayLike, *, level: float = 0.95) -> pd.DataFrame:
    """Return the Kaplan-Meier estimate of the share that survives, with its interval.

    Parameters
    ----------
    times : array
        Time of the event of each sample, or of the last observation without event.
    events : array of bool
        Whether the sample had the event.
    level : float
        Probability of the intervals (Greenwood's variance on the log-log scale).

    Returns
    -------
    DataFrame
        Indexed by time, from 0. "survival" is the share that survives from this time on, and "low"
        to "high" is its interval. "at_risk" is the number of samples that were still observed just
        before this time.

    Examples
    --------
    >>> kaplan_meier([1, 2, 3, 4], [True, True, False, True])["survival"].tolist()
    [1.0, 0.75, 0.5, 0.5, 0.0]
    """
    t, happened = _read(times, events)
    if not 0.0 < level < 1.0:
        raise InputError(f"level is {level!r}; expected a number between 0 and 1")
    at = np.unique(t)
    deaths = np.array([np.count_nonzero(happened & (t == x)) for x in at], dtype=float)
    at_risk = np.array([np.count_nonzero(t >= x) for x in at], dtype=float)
    share = np.cumprod(1.0 - deaths / at_risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        greenwood = np.cumsum(deaths / (at_risk * (at_risk - deaths)))
        logs = np.log(share)
        wide = ndtri(0.5 + level / 2.0) * np.sqrt(greenwood) / -logs
        low, high = share ** np.exp(wide), share ** np.exp(-wide)
    # Before the first event, and when no sample is left, the formula is not defined. There, both
    # limits are set to the estimate itself.
    low, high = (np.where(np.isfinite(x), x, share) for x in (low, high))
    start = pd.DataFrame(
        {"survival": [1.0], "low": [1.0], "high": [1.0], "at_risk": [t.size]}, index=[0.0]
    )
    curve = pd.DataFrame(
        {"survival": share, "low": low, "high": high, "at_risk": at_risk.astype(int)}, index=at
    )
    table = curve if at[0] == 0.0 else pd.concat([start, curve])
    table.index.name = "time"
    return table


def log_rank(times: ArrayLike, events: ArrayLike, groups: ArrayLike) -> LogRank:
    """Test whether survival is the same in several groups.

    Parameters
    ----------
    times, events : arrays
        As in `kaplan_meier`.
    groups : array
        The group of each sample.

    Examples
    --------
    >>> test = log_rank([1, 2, 3, 4, 5, 6], [True] * 6, [0, 0, 0, 1, 1, 1])
    >>> round(test.statistic, 1), round(test.p_value, 3)
    (5.1, 0.025)
    """
    t, happened = _read(times, events)
    labels, group = np.unique(np.asarray(groups), return_inverse=True)
    if group.shape != t.shape:
        raise InputError(
            f"groups has {group.size} entries for {t.size} times; expected one per time"
        )
    if labels.size < 2:
        raise InputError("all samples are in one group; expected at least two groups")
    member = group[:, None] == np.arange(labels.size)
    excess = np.zeros(labels.size)
    covariance = np.zeros((labels.size, labels.size))
    for x in np.unique(t[happened]):
        risk = member[t >= x].sum(axis=0).astype(float)
        deaths = member[happened & (t == x)].sum(axis=0).astype(float)
        n, d = risk.sum(), deaths.sum()
        share = risk / n
        excess += deaths - d * share
        if n > 1.0:
            spread = d * (n - d) / (n - 1.0)
            covariance += spread * (np.diag(share) - np.outer(share, share))
    # The entries of `excess` add up to zero. Therefore leave out the last group, which is
    # redundant.
    statistic = float(excess[:-1] @ np.linalg.pinv(covariance[:-1, :-1]) @ excess[:-1])
    return LogRank(statistic, float(chi2.sf(statistic, labels.size - 1)))


def _read(times: ArrayLike, events: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    t = np.asarray(times, dtype=np.float64)
    happened = np.asarray(events, dtype=np.bool_)
    if t.ndim != 1 or t.shape != happened.shape or not t.size:
        raise InputError(
            f"times and events have the shapes {t.shape} and {happened.shape}; expected one entry "
            "per sample in both, and at least one sample"
        )
    if not (np.isfinite(t).all() and (t >= 0.0).all()):
        raise InputError("times has entries that are negative or not finite; leave them out")
    return t, happened
