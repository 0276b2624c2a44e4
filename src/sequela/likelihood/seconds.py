"""How long the evaluation of sets takes: measured seconds on one core, for predictions.

They are the same numbers on every machine, so that decisions that depend on them can be repeated.
"""

__all__ = [
    "COMPONENT_SECONDS",
    "COMPONENT_SET_SECONDS",
    "INTEGRAL_SECONDS",
    "LATTICE_SECONDS",
    "ORDER_SECONDS",
]

# Per operation on lattices, of components, and of integrals over time.
LATTICE_SECONDS = 7e-11
COMPONENT_SECONDS = 7e-10
INTEGRAL_SECONDS = 2e-9
# Per set that is evaluated by components.
COMPONENT_SET_SECONDS = 4e-4
# Per item of a sampled set times item of the model.
ORDER_SECONDS = 1.4e-6
