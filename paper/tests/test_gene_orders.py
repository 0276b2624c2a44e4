"""Figure 3: orders of four pairs of alterations."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sequela import order_probability
from sequela.learning.estimator import SetChain
from sequela_paper import Settings, find_experiment, make
from sequela_paper.gene_orders import PAIRS, task
from sequela_paper.sources import glioblastoma

FOLDER = Path(os.environ.get("SEQUELA_DATA", Path(__file__).parents[3] / "shared" / "data"))
needs_data = pytest.mark.skipif(
    not (FOLDER / "gbm").is_dir(), reason=f"no glioblastoma data in {FOLDER}; set SEQUELA_DATA"
)


@needs_data
def test_quick_form(tmp_path):
    settings = Settings(quick=True, repeats=1, solver="ours", data=FOLDER)
    made = make("fig3", settings, tmp_path / "x", backend="threads", workers=2)
    # the claim is about models of more items than in the quick form
    assert made.verdict.holds is None
    assert {p.suffix for p in made.files} == {".csv", ".svg", ".pdf", ".png", ".json"}
    evidence = pd.read_csv(tmp_path / "x" / "fig3_evidence.csv")
    alone = evidence[evidence["others"] == 0]
    # Proposition 1: data on two items alone say nothing about the order of these items.
    assert np.abs(alone["evidence"]).max() < 0.3
    shares = pd.read_csv(tmp_path / "x" / "fig3.csv")["share"]
    assert shares.between(0.0, 1.0).all()


@needs_data
@pytest.mark.filterwarnings("ignore")
def test_a_share_is_that_of_the_learned_model():
    found = task(
        kind="ours", others=4, pairs=["TP53/IDH1"], repetition=0, folder=str(FOLDER),
        iterations=10, seed=11,
    )  # fmt: skip
    data = glioblastoma(str(FOLDER))
    rest = [item for item in data.items if item not in PAIRS["TP53/IDH1"]][:4]
    learner = SetChain(
        0.01, independent_start=False, start_widths=(0.2,), random_state=11, progress=False
    ).fit(data.select_items(["TP53", "IDH1", *rest]))
    drawn = order_probability(
        learner, "TP53", "IDH1", method="simulation", draws=200_000, random_state=1
    )
    assert found["share"][0] == pytest.approx(drawn.value, abs=5 * drawn.se)


def summary(pair, means, low=None, high=None):
    return [
        {
            "pair": pair, "solver": "ours", "others": others, "repetitions": 24, "mean": mean,
            "sd": 0.05, "lowest": low if low is not None else mean - 0.02,
            "highest": high if high is not None else mean + 0.02, "best_objective_share": mean,
            "first_in": 24 if mean > 0.5 else 0, "mean_seconds": 1.0,
        }
        for others, mean in means.items()
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "holds"),
    [({}, True), ({"TP53/IDH1": 0.8}, False), ({"EGFR(A)/EGFR": 0.3}, False),
     ({"MDM2(A)/CDK4(A)": 0.95}, False)],
)  # fmt: skip
def test_the_verdict_can_fail(changed, holds):
    means = {
        "EGFR(A)/EGFR": 0.8, "PDGFRA(A)/PDGFRA": 0.7, "TP53/IDH1": 0.2, "MDM2(A)/CDK4(A)": 0.5,
    } | changed  # fmt: skip
    table = pd.DataFrame(
        [row for pair, mean in means.items() for row in summary(pair, {80: mean, 100: mean})]
    )
    verdict = find_experiment("fig3").judge({"fig3_summary": table})
    assert verdict.holds is holds


def test_evidence_against_the_starts_is_said():
    means = {
        "EGFR(A)/EGFR": 0.8, "PDGFRA(A)/PDGFRA": 0.7, "TP53/IDH1": 0.2, "MDM2(A)/CDK4(A)": 0.5,
    }  # fmt: skip
    tables = {
        "fig3_summary": pd.DataFrame(
            [row for pair, mean in means.items() for row in summary(pair, {100: mean})]
        ),
        "fig3_evidence": pd.DataFrame(
            [
                {"pair": pair, "others": 100, "penalised": 1.5,
                 "evidence": -4.0 if pair == "PDGFRA(A)/PDGFRA" else 0.5}
                for pair in means
            ]
        ),
    }  # fmt: skip
    text = find_experiment("fig3").judge(tables).text
    assert text.count("disagrees with most starts") == 1
    assert "-4.0 nats with 100 other items), which disagrees with most starts" in text
    assert "the order of most starts is better by +1.5 nats" in text
