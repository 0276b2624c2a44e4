"""Draw plots without a screen, and close every figure after its test."""

import pytest


@pytest.fixture(autouse=True)
def plt():
    mpl = pytest.importorskip("matplotlib")
    mpl.use("agg")
    import matplotlib.pyplot as plt

    before = mpl.rcParams.copy()
    yield plt
    plt.close("all")
    assert mpl.rcParams == before, "a plot changed the global settings"
