"""Compiled inner loops: arrays and numbers in, arrays and numbers out, nothing is validated."""
