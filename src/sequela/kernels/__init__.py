"""Compiled functions over arrays and numbers; they do not validate their arguments."""
