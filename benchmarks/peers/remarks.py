"""Remarks on the functions that appear in profiles, and on what was done about them.

Remarks are found by the name of the function, because the measured shares change from run to run. A
function without a remark is new in the profile and should be examined.
"""

from __future__ import annotations

_START = (
    "The model without interactions, where a fit starts: one grid of times for all samples, matrix "
    "products, L-BFGS in units of each item's curvature, linear algebra held to one thread (more "
    "cost small matrices far more than they save). Paid once a fit, so it shows in fits that are "
    "over at once."
)
_LATTICES = (
    "The exact lattices. Equal samples are evaluated once; exit rates and gradient are matrix "
    "products over a split of the subsets; items that nothing in the set acts on are one sum "
    "for all sets; blocks of equal work go to the threads. In the recursions rows of as many "
    "items are solved side by side, because each state waits for those before it; in the "
    "gradient steps read the lattice shifted, on whole vectors. Inside: the table of phases "
    "above."
)
_ORDERS = (
    "Orders of the sets beyond the budget, drawn by block relocation. They are drawn again "
    "only when fewer than half of the old ones still count, and more of them only at the end."
)
_WEIGHTS = (
    "The same orders at another theta: importance weights in place of new draws, compiled, one "
    "piece for each chain."
)
_VALUES = (
    "Values of the sets beyond the budget, once at the end of a fit, along a path from the model "
    "without interactions."
)
_AROUND = (
    "What Python does around each gradient. The plan of blocks is kept, distinct observations "
    "are sorted as numbers, and a budget is asked once a size; it shows where fits take "
    "milliseconds."
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
        "not zero or want to leave it."
    ),
    "Objective.evaluate": _AROUND,
    "Likelihood.evaluate": _AROUND,
    "ProximalNewton.step": (
        "Steps that are tried along a direction; nearly always the first is taken."
    ),
    "_add_up": "Sums of the blocks' gradients, in a fixed order, so that threads change no bit.",
    # Names of the same functions in records of version 0.1.
    "ExactSets.work": _LATTICES,
    "Problem._advance": _ORDERS,
    "Problem._weigh": _WEIGHTS,
}


def remark(entry: str) -> str:
    """Return the remark on a function such as ``ExactWork._together (exact.py)``."""
    return next((text for name, text in _REMARKS.items() if name in entry), "No remark yet.")
