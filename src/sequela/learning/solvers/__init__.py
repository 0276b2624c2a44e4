"""Solvers with a common interface, one per file.

A solver is an immutable object. Its method `init` returns a state from theta, and its method `step`
returns the next state. The state contains the values that the next step needs. `Info` describes the
progress, and `Status` says how the run ended. The function `loop.solve` runs the steps and alone
decides when to stop.
"""
