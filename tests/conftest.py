"""Fixtures for all tests."""

import sys

import pytest


@pytest.fixture(autouse=True)
def no_figure_is_left():
    """Close all figures after each test, because matplotlib warns if many figures are open."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
