"""How often is the evidence for the wrong order? Data from the paper's models, with known orders.

Run by hand: ``python -m verification.rival_orders [data sets]``. The script uses the two-item and
the five-item model, each with 5 and with 20 clock items. It draws data sets of 500 samples, learns
a model from each, and computes the evidence for the order of the first two items with
`sequela.questions.rival_orders`. It prints the number of data sets in which the evidence is for
the wrong order, and the number in which it is for the wrong order by more than two nats. It prints
the same numbers for the penalised likelihood.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import sequela
from sequela_paper.sources import TRUE_MODELS

_SAMPLES = 500
_DECIDED = 2.0


def one(name: str, clocks: int, seed: int) -> tuple[float, float] | None:
    """Return the evidence and the penalised difference for the order "item 0 before item 1".

    Return None if the rival and the best model give this order similar probabilities, which differ
    by less than 0.2.
    """
    core = TRUE_MODELS[name]
    k = len(core)
    rng = np.random.default_rng([clocks, seed])
    theta = np.diag(np.concatenate([np.zeros(k), rng.uniform(-4.0, -2.0, clocks)]))
    theta[:k, :k] = core
    data = sequela.simulate(theta, _SAMPLES, random_state=seed).to_dataset().without_times()
    model = sequela.fit(data, penalty=0.01, random_state=1, progress=False)
    found = sequela.questions.rival_orders(
        model, data, pairs=[("0", "1")], search=False, random_state=1
    )
    row = found.table.iloc[0]
    if abs(row["probability"] - row["rival_probability"]) < 0.2:
        return None  # no result: the two models do not clearly differ in the order
    sign = 1.0 if row["first"] == "0" else -1.0
    return sign * float(row["evidence"]), sign * float(row["penalised"])


def main(count: int) -> None:
    """Print one line for each model and number of clock items."""
    warnings.simplefilter("ignore")
    for name in TRUE_MODELS:
        for clocks in (5, 20):
            found = [one(name, clocks, seed) for seed in range(count)]
            values = np.array([pair for pair in found if pair is not None])
            evidence, penalised = values.T
            print(
                f"{name} items, {clocks} clock items, {len(values)} data sets. The evidence is for "
                f"the wrong order in {(evidence < 0).sum()}, by more than {_DECIDED:g} nats in "
                f"{(evidence < -_DECIDED).sum()}. The penalised likelihood is for the wrong order "
                f"in {(penalised < 0).sum()}, by more than {_DECIDED:g} nats in "
                f"{(penalised < -_DECIDED).sum()}. The evidence is for the right order by more "
                f"than {_DECIDED:g} nats in {(evidence > _DECIDED).sum()}.",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
