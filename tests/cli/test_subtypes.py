"""``sequela subtypes``: the test for two subtypes on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from cli.invoking import run
from sequela import Dataset, simulate
from sequela.questions import subtype_test

OPTIONS = ("--simulations", 9, "--starts", 2, "--seed", 1)


def test_the_command_gives_the_result_of_the_function(tmp_path):
    values = [
        simulate(np.diag(rates), 100, random_state=1).to_dataset().values
        for rates in ([0.8, 0.5, -3.5, -4.0], [-3.5, -4.0, 0.8, 0.5])
    ]
    data = Dataset(np.vstack(values), items=list("abcd"))
    table, written = tmp_path / "samples.csv", tmp_path / "members.csv"
    data.to_frame().to_csv(table)
    expected = subtype_test(data, simulations=9, starts=2, random_state=1)
    found = json.loads(run("subtypes", table, "-o", written, "--json", *OPTIONS).stdout)
    assert found["p"] == expected.p
    assert found["simulated"] == expected.simulated.tolist()
    members = pd.read_csv(written, index_col="sample")
    assert list(members.columns) == ["subtype 1", "subtype 2"]
    np.testing.assert_allclose(members.to_numpy(), expected.membership.to_numpy(), atol=1e-9)
    refused = run("subtypes", table, "-o", written, *OPTIONS, code=2)
    assert "--force" in refused.output
    shown = run("subtypes", table, "-o", written, "--force", *OPTIONS).stdout
    assert expected.verdict[1:60] in shown
    assert "9 simulated data sets, seed 1" in shown
