"""What holds for all tests."""

import sys

import pytest


@pytest.fixture(autouse=True)
def no_figure_is_left():
    """Close what a test drew: matplotlib warns of many open figures, in whichever test comes."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
