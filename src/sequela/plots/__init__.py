"""Plots: each function takes and returns a matplotlib Axes."""
