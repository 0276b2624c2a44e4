"""Remarks on the functions that appear in profiles: what they do, and how they were made faster.

Remarks are found by the name of the function, because the measured shares change from run to run. A
function without a remark is new in the profile and should be examined.
"""

from __future__ import annotations

_START = (
    "The model without interactions, at which a fit starts. All samples share one grid of times. "
    "The minimiser is L-BFGS; each parameter is scaled by its curvature. Linear algebra is limited "
    "to one thread, because more threads make small matrices slower. This is done once per fit, so "
    "its share is large only in short fits."
)
_LATTICES = (
    "The exact lattices. Equal samples are evaluated once. Exit rates and gradients are computed "
    "as matrix products, because each subset is split into two parts. The rates of items on which "
    "no item of a set acts are added up once for all sets. Threads get blocks of equal work. In "
    "the recursions, rows with the same number of items are computed together, because each state "
    "needs the states before it. The table of phases above shows the parts."
)
_ORDERS = (
    "Orders of the sets beyond the budget, drawn by block relocation. New orders are drawn only "
    "when fewer than half of the old ones are effective, and more orders only at the end of a fit."
)
_WEIGHTS = (
    "Importance weights, with which the same orders are used at another theta instead of new "
    "draws. The code is compiled, with one piece of work per chain."
)
_VALUES = (
    "Values of the sets beyond the budget, computed once at the end of a fit, along a path from "
    "the model without interactions."
)
_AROUND = (
    "Python code around each gradient. The plan of blocks is kept, distinct observations are "
    "sorted as numbers, and the budget is computed once per set size. Its share is large only in "
    "fits that take milliseconds."
)
_REMARKS: dict[str, str] = {
    "ExactWork._together": _LATTICES,
    "OrderSampler.advance": _ORDERS,
    "DrawnOrders.log_weights": _WEIGHTS,
    "DrawnOrders.gradient": _WEIGHTS,
    "OrderSampler.gradient": _VALUES,
    "ChainRun": _VALUES,
    "independent_fit.py": _START,
    "_model_minimum": (
        "The quadratic model of the solver, minimised by compiled coordinate descent over the "
        "entries that are not zero or whose gradient moves them away from zero."
    ),
    "Objective.evaluate": _AROUND,
    "Likelihood.evaluate": _AROUND,
    "ProximalNewton.step": (
        "The steps that are tried along a direction; the first one is nearly always accepted."
    ),
    "_add_up": (
        "Sums of the gradients of blocks, in a fixed order, so that results do not depend on the "
        "number of threads."
    ),
    # Names of the same functions in records of version 0.1.
    "ExactSets.work": _LATTICES,
    "Problem._advance": _ORDERS,
    "Problem._weigh": _WEIGHTS,
}


def remark(entry: str) -> str:
    """Return the remark on a function such as ``ExactWork._together (exact.py)``."""
    return next((text for name, text in _REMARKS.items() if name in entry), "No remark yet.")
