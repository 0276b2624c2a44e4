"""The parts of a report page about survival and about another cohort."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.questions.compared_orders import compared_orders
from sequela.questions.order import order_matrix
from sequela.questions.survival_groups import survival_groups
from sequela.support.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from sequela.model import Model
    from sequela.posteriors.result import Posterior

__all__ = ["ComparedCohort", "comparison_values", "survival_values"]

# Maximum number of items in the comparison. If both cohorts have more items in common, only the
# first of these are compared, in the order of the model. 100 items have 4,950 pairs.
_MOST_ITEMS = 100
_DRAWS = 40_000
_DRAWS_PER_MODEL = 2_000
_MAX_MODELS = 40
_EXACT = 12  # if a model has more items, its orders are computed by simulation


@dataclass(frozen=True)
class ComparedCohort:
    """Another cohort, with which the report compares orders.

    Attributes
    ----------
    model : Model or Posterior
        The model that was learned from this cohort.
    name : str
        The name of this cohort in the report.
    own_name : str
        The name of the cohort that the report is about.
    """

    model: Model | Posterior
    name: str = "another cohort"
    own_name: str = "this cohort"


def survival_values(
    clinical: pd.DataFrame | None, times: pd.DataFrame | None
) -> dict[str, Any] | None:
    """Return the Kaplan-Meier curves of the earlier and the later half of the samples.

    Return None if there are no survival times.
    """
    if clinical is None:
        return None
    if times is None:
        raise InputError(
            "survival needs the pseudo-times of the samples, and the report has none; also "
            "give the "
            "samples (DATA)"
        )
    risk = times["mean"].copy()
    risk.index = times["sample"] if "sample" in times.columns else times.index
    risk.index = risk.index.map(str)
    known = clinical.set_axis(clinical.index.map(str), axis=0)
    known.attrs = dict(clinical.attrs)
    found = survival_groups(known, risk, 2)
    groups = []
    for group, name in zip(found.groups, ("early", "late"), strict=True):
        curve = group.curve
        groups.append(
            {
                "name": name,
                "samples": group.samples,
                "events": group.events,
                "time": _plain(curve.index.to_numpy(dtype=float)),
                **{part: _plain(curve[part].to_numpy()) for part in ("survival", "low", "high")},
                "at_risk": curve["at_risk"].astype(int).tolist(),
                "lost": _plain(group.lost),
            }
        )
    p = found.p_value
    return {
        "endpoint": str(clinical.attrs.get("endpoint", "")),
        "unit": found.unit,
        "groups": groups,
        "p": None if p is None or math.isnan(p) else p,
        "left_out": len(risk) - sum(group.samples for group in found.groups),
    }


def _plain(values: Any) -> list[float]:
    return [float(x) for x in np.round(np.asarray(values, dtype=float), 4).tolist()]


def comparison_values(
    comparison: ComparedCohort | None, model: Model | Posterior, how: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the orders of two cohorts, for the items of both; None if there is no other cohort."""
    if comparison is None:
        return None
    shared = [item for item in model.items if item in set(comparison.model.items)][:_MOST_ITEMS]
    if len(shared) < 2:
        raise InputError(
            f"this cohort and {comparison.name!r} have {len(shared)} items in common; "
            "expected at least two "
            "items with the same labels in both"
        )
    one, other = (_orders(each, shared, how) for each in (model, comparison.model))
    table = compared_orders(one, other)
    place = {label: at for at, label in enumerate(model.items)}
    return {
        "names": [comparison.own_name, comparison.name],
        "items": len(shared),
        "a": [place[label] for label in table["a"]],
        "b": [place[label] for label in table["b"]],
        "first": _plain(table["first"]),
        "second": _plain(table["second"]),
    }


def _orders(model: Model | Posterior, items: list[str], how: dict[str, Any]) -> Any:
    from sequela.posteriors.result import Posterior

    # If the model is small, use the exact method, which is then fast.
    method: Any = "auto" if len(model.items) <= _EXACT else "simulation"
    if isinstance(model, Posterior):
        most = max(_MAX_MODELS, len(model.draws.scale))
        return order_matrix(
            model, items, method=method, draws=_DRAWS_PER_MODEL, max_models=most, **how
        )
    return order_matrix(model, items, method=method, draws=_DRAWS, **how)
