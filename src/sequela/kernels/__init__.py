"""Compiled functions over arrays and numbers. They do not validate their arguments."""
