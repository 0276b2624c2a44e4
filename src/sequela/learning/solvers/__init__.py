"""Solvers, one per file, under one contract.

A solver is a value: `init` makes a state from theta, `step` makes the next state from the last.
The state holds what the next step needs, `Info` what a person wants to know, and `Status` how it
ended. `loop.solve` runs the steps; it alone decides when to stop.
"""
