"""Solvers, one a file: each takes a state and returns it where the solver ended."""
