"""Solvers with a common interface, one per file.

A solver is an immutable object: `init` returns a state from theta, and `step` returns the next
state. The state holds the values that the next step needs. `Info` describes the progress, and
`Status` says how the run ended. `loop.solve` runs the steps. Only this function decides when to
stop.
"""
