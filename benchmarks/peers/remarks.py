"""Remarks on the functions that appear in profiles: what they do, and how they were made faster.

The remark on a function is found by the name of the function. If a function has no remark, it was
not among the slowest functions before, and should be examined.
"""

from __future__ import annotations

_START = (
    "Learns the model without interactions, at which a fit starts. All samples share one grid of "
    "times. The minimiser is L-BFGS; each parameter is scaled by its curvature. Linear algebra is "
    "limited to one thread, because more threads make small matrices slower. This is done once per "
    "fit, so its share is large only in short fits."
)
_LATTICES = (
    "Evaluates sets exactly on their lattices. Equal samples are evaluated only once. Each subset "
    "is split into two parts, so that exit rates and gradients can be computed as matrix products. "
    "The rates of items on which no item of a set acts are added up once for all sets. Each thread "
    "gets the same amount of work. In the recursions, rows with the same number of items are "
    "computed together, because inside a row each state needs the states before it. The table of "
    "phases above shows the times of the parts."
)
_ORDERS = (
    "Draws orders of the sets beyond the budget by block relocation. New orders are drawn only "
    "when fewer than half of the old orders are effective. The number of orders is increased only "
    "at the end of a fit."
)
_WEIGHTS = (
    "Computes importance weights. With these weights, orders that were drawn at one theta are used "
    "at another theta, instead of new draws. The code is compiled, with one piece of work per "
    "chain."
)
_VALUES = (
    "Computes the values of the sets beyond the budget, once at the end of a fit, along a path "
    "from the model without interactions."
)
_AROUND = (
    "Python code around each gradient. To make it faster, the plan of blocks is kept, distinct "
    "samples are sorted as numbers, and the budget is computed once per set size. The share of "
    "this code is large only in fits that take milliseconds."
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
        "Minimises the quadratic model of the solver by compiled coordinate descent, over the "
        "entries that are not zero or whose gradient moves them away from zero."
    ),
    "Objective.evaluate": _AROUND,
    "Likelihood.evaluate": _AROUND,
    "ProximalNewton.step": (
        "Tries steps along a direction. The first step is nearly always accepted."
    ),
    "_add_up": (
        "Adds the gradients of blocks in a fixed order, so that results do not depend on the "
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
