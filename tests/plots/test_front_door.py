"""The public names of `sequela.plots` are loaded when they are first used."""

import subprocess
import sys

from sequela import plots


def test_every_name_leads_somewhere():
    assert sorted(plots.__all__) == dir(plots)
    for name in plots.__all__:
        assert getattr(plots, name).__name__ == name
        assert name.startswith("plot_") or name in ("save_figure", "risk_groups")


def test_matplotlib_is_loaded_by_the_first_plot_only():
    script = "import sequela.plots, sys; sequela.plots.plot_theta; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert "matplotlib" not in run.stdout.split()
