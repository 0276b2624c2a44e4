"""Draw every figure of the gallery in the docs, and the live report, from the example samples.

Called when the site is built (docs/conf.py); writes to docs/_gallery, which is not committed. The
survival times are made up from the model's own times: the example has no patients.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import sequela
from sequela import plots, questions
from sequela.data.examples import example_path
from sequela.report import FitRunOptions, OutputOptions, run_fit
from sequela.report.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Callable

ITEMS = 20
SEED = 1


def make_gallery(folder: Path) -> None:
    """Write report.html and one SVG per figure into `folder`."""
    from matplotlib import pyplot as plt

    (folder / "live").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        fit = Path(place) / "example"
        options = FitRunOptions(penalty=0.01, most_frequent=ITEMS, seed=SEED)
        made = run_fit(example_path("samples.csv"), fit, options, output=OutputOptions(figures=()))
        data = sequela.example_samples().most_frequent(ITEMS)
        weigh(fit, made.model, data)
        (folder / "live" / "example-report.html").write_bytes((fit / "report.html").read_bytes())
    for name, draw in figures(made.model, data).items():
        axes = draw()
        plots.save_figure(axes, folder / f"{name}.svg")
        plt.close(axes.figure)


def weigh(fit: Path, model: Any, data: Any) -> None:
    """Add the evidence for some orders, so that the live report answers its first question."""
    from sequela.report import write_report

    pairs = [("EGFR(A)", "EGFR"), ("EGFR(A)", "PTEN"), ("TP53", "RB1")]
    rivals = questions.rival_orders(model, data, pairs=pairs, random_state=SEED)
    write_table(rivals.table, fit / "rivals.csv", index=False)
    write_report(fit, data)


def figures(model: Any, data: Any) -> dict[str, Callable[[], Any]]:
    """Return the figures by name, each as a function that draws it."""
    how = {"random_state": SEED}
    top = list(data.most_frequent(10).items)
    cohort = questions.cohort_orders(model, data)
    times = questions.pseudo_times(model, data, **how)
    half = data.n_samples // 2
    parts = [data.select_samples(range(half)), data.select_samples(range(half, data.n_samples))]
    orders = [questions.order_matrix(sequela.fit(part, penalty=0.02), top, **how) for part in parts]
    goodness = questions.goodness_of_fit(model, data, **how)
    some = dict(zip(data.samples[:4], data.sets()[:4], strict=True))
    densities = {name: questions.time_posterior(model, chosen) for name, chosen in some.items()}
    return {
        "theta": lambda: plots.plot_theta(model),
        "interactions": lambda: plots.plot_interactions(model, frequencies=data.frequencies),
        "order_matrix": lambda: plots.plot_order_matrix(questions.order_matrix(model, top, **how)),
        "order_ranges": lambda: plots.plot_order_ranges(
            questions.order_ranges(model, data, **how), max_pairs=12
        ),
        "order_tree": lambda: plots.plot_order_tree(cohort),
        "common_paths": lambda: plots.plot_common_paths(cohort),
        "positions": lambda: plots.plot_positions(questions.item_positions(model, **how)),
        "timeline": lambda: plots.plot_timeline(questions.sample_posteriors(model, data, **how)),
        "time_densities": lambda: plots.plot_time_densities(densities),
        "frequencies": lambda: plots.plot_frequencies(
            questions.item_frequencies(model, data, **how)
        ),
        "co_occurrence": lambda: plots.plot_co_occurrence(goodness),
        "set_sizes": lambda: plots.plot_set_sizes(goodness),
        "survival": lambda: plots.plot_survival(made_up_survival(times), times["mean"]),
        "cohort_comparison": lambda: plots.plot_cohort_comparison(
            orders[0], orders[1], names=("one half of the samples", "the other half")
        ),
    }


def made_up_survival(times: pd.DataFrame) -> pd.DataFrame:
    """Draw survival times that are shorter for later samples."""
    rng = np.random.default_rng(SEED)
    months = rng.exponential(18.0 / np.sqrt(times["mean"].to_numpy()))
    lost = rng.exponential(30.0, size=months.size)
    table = pd.DataFrame(
        {"time": np.minimum(months, lost), "event": months <= lost}, index=times.index
    )
    table.attrs["unit"] = "months"
    return table


if __name__ == "__main__":
    make_gallery(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_gallery"))
