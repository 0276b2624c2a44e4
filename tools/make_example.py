"""Make the example that is part of the package, from the glioblastoma data.

The script learns a model from the data and draws samples from the model. Run it by hand on a
machine that has the data (in ../shared/data or SEQUELA_DATA): ``python -m tools.make_example``. It
writes src/sequela/data/example/theta.csv and samples.csv. These files contain no sample of the
data: theta.csv is a penalised model of the 50 most frequent alterations with rounded parameters,
and samples.csv has samples that are simulated from this model.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from benchmarks.datasets import data_folder, glioblastoma

from sequela import Model, SetChain, simulate
from sequela.report.tables import write_table

ITEMS = 50
SAMPLES = 400
PENALTY = 0.01
SEED = 20211
FOLDER = Path(__file__).parents[1] / "src" / "sequela" / "data" / "example"


def main() -> None:
    folder = data_folder()
    if folder is None:
        raise SystemExit("the glioblastoma data were not found; set SEQUELA_DATA to their folder")
    frame = glioblastoma(folder).iloc[:, :ITEMS]
    learned = SetChain(PENALTY, random_state=SEED).fit(frame).model_
    theta = np.round(learned.theta, 3) + 0.0  # no negative zeros
    FOLDER.mkdir(exist_ok=True)
    Model(theta, learned.items).to_csv(FOLDER / "theta.csv")
    drawn = simulate(theta, SAMPLES, items=learned.items, random_state=SEED)
    table = drawn.to_dataset().without_times().to_frame().astype(np.int8)
    table.index = [f"sample-{number + 1:03d}" for number in range(SAMPLES)]
    table.index.name = "sample"
    write_table(table, FOLDER / "samples.csv")
    print(f"{len(learned.interactions())} interactions; {table.shape[0]} samples")


if __name__ == "__main__":
    main()
