"""Remarks on the functions that profiles name: what they do, and how they were made faster.

Each remark belongs to a function, so it stays right if the measured shares change. A function
without a remark is new among the slowest: look at it.
"""

from __future__ import annotations

_START = (
    "The model without interactions, where a fit starts. It uses one grid of times for all "
    "samples, matrix products, and L-BFGS in units of the curvature of each item. Linear algebra "
    "uses one thread, because more threads are slower for small matrices. This is done once per "
    "fit, so its share is large only in very short fits."
)
_LATTICES = (
    "The exact lattices. Equal samples are evaluated once. Exit rates and gradient are matrix "
    "products over a split of the subsets. Items on which no item of the set acts are one sum for "
    "all sets. Threads get blocks of equal work. In the recursions, rows with the same number of "
    "items are solved together, because a state has to wait for those before it. In the gradient, "
    "steps read the shifted lattice as whole vectors. The table of phases above has the details."
)
_ORDERS = (
    "Orders of the sets beyond the budget, drawn by block relocation. New orders are drawn only "
    "when fewer than half of the old ones are still effective, and more of them only at the end."
)
_WEIGHTS = (
    "Importance weights, with which the same orders are used at another theta instead of new "
    "draws. They are compiled, with one piece of work per chain."
)
_VALUES = (
    "Values of the sets beyond the budget, integrated along a path from the model without "
    "interactions, once at the end of a fit."
)
_AROUND = (
    "Python code around each gradient. The plan of blocks is kept, distinct observations are "
    "sorted as numbers, and the budget is computed once per set size. The share is large only in "
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
        "The quadratic model of the solver, by compiled coordinate descent on the entries that are "
        "not zero or whose gradient moves them away from zero."
    ),
    "Objective.evaluate": _AROUND,
    "Likelihood.evaluate": _AROUND,
    "ProximalNewton.step": (
        "The line search along a direction. Nearly always the first step is accepted."
    ),
    "_add_up": (
        "Sums of the gradients of the blocks, in a fixed order, so that the result does not depend "
        "on threads."
    ),
    # The names of the same functions in records of version 0.1.
    "ExactSets.work": _LATTICES,
    "Problem._advance": _ORDERS,
    "Problem._weigh": _WEIGHTS,
}


def remark(entry: str) -> str:
    """Return the remark on a function such as ``ExactWork._together (exact.py)``."""
    return next((text for name, text in _REMARKS.items() if name in entry), "No remark yet.")
