"""How many seconds the evaluation of sets takes on one core, to predict computing times.

These numbers were measured once, and are the same on every machine. So decisions that depend on
them are the same everywhere.
"""

__all__ = [
    "COMPONENT_SECONDS",
    "COMPONENT_SET_SECONDS",
    "INTEGRAL_SECONDS",
    "LATTICE_SECONDS",
    "ORDER_SECONDS",
]

# Seconds per operation: on lattices, on components, and for integrals over time.
LATTICE_SECONDS = 7e-11
COMPONENT_SECONDS = 7e-10
INTEGRAL_SECONDS = 2e-9
# Additional seconds per set that is evaluated by components.
COMPONENT_SET_SECONDS = 4e-4
# If the orders of a set are drawn, the seconds are predicted by a product of three numbers: this
# number, the number of items of the set, and the number of items of the model.
ORDER_SECONDS = 1.4e-6
