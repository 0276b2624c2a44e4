"""Write the example report of the documentation, from the example samples.

docs/conf.py runs this script when the site is built. The report is written to docs/_live, which is
not committed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import sequela
from sequela import questions
from sequela.data.examples import example_path
from sequela.report import FitRunOptions, OutputOptions, run_fit, write_report
from sequela.report.tables import write_table

ITEMS = 20
SEED = 1


def make_live_report(folder: Path) -> None:
    """Write example-report.html, which has evidence for some orders, into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        fit = Path(place) / "example"
        options = FitRunOptions(penalty=0.01, most_frequent=ITEMS, seed=SEED)
        made = run_fit(example_path("samples.csv"), fit, options, output=OutputOptions(figures=()))
        data = sequela.example_samples().most_frequent(ITEMS)
        pairs = [("EGFR(A)", "EGFR"), ("EGFR(A)", "PTEN"), ("TP53", "RB1")]
        rivals = questions.rival_orders(made.model, data, pairs=pairs, random_state=SEED)
        write_table(rivals.table, fit / "rivals.csv", index=False)
        write_report(fit, data)
        (folder / "example-report.html").write_bytes((fit / "report.html").read_bytes())


if __name__ == "__main__":
    make_live_report(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_live"))
