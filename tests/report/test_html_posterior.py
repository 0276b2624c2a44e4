"""The numbers in the report of a posterior agree with its draws."""

import base64
import json
import re

import numpy as np
import pandas as pd
import pytest

from report.made_posterior import made_posterior
from sequela import InputError, Model, example_theta, simulate
from sequela.questions import item_positions, order_matrix
from sequela.report import make_report, write_report
from sequela.report.html_posterior import page_draws
from sequela.report.run import POSTERIOR_NAME, Run


@pytest.fixture(scope="module")
def data():
    return simulate(example_theta(), 80, random_state=3).to_dataset().without_times()


@pytest.fixture(scope="module")
def posterior(data):
    return made_posterior(data)


@pytest.fixture(scope="module")
def payload(posterior, data):
    return make_report(posterior, data, title="All models").payload


def test_the_page_holds_draws_of_every_chain(posterior, payload):
    held = payload["model"]["draws"]
    n = posterior.n_items
    values = np.frombuffer(base64.b64decode(held["theta"]), dtype="<f4").reshape(-1, n, n)
    assert held["count"] == len(values) == 12  # all draws: 2 chains with 6 draws each
    np.testing.assert_array_equal(values, posterior.theta.astype(np.float32))


def test_many_items_mean_fewer_draws(data):
    wide = simulate(Model(np.diag(np.full(100, -3.0))), 30, random_state=1).to_dataset()
    posterior = made_posterior(wide.without_times(), chains=4, draws=6, spread=0.02)
    drawn = page_draws(posterior)
    assert 4 <= len(drawn) < 24
    assert len(drawn) % 4 == 0
    page = make_report(posterior).to_html()
    assert len(page.encode()) < 2_000_000


def test_verdicts_are_those_of_the_posterior(posterior, payload):
    rows = payload["verdicts"]["rows"]
    labels = payload["items"]["labels"]
    expected = posterior.orders().set_index(["first", "second"])
    assert payload["verdicts"]["kind"] == "posterior"
    assert len(rows["first"]) == len(expected)
    words = {"yes": "the data can tell", "suggests": "the data suggest it",
             "no": "the data cannot tell",
             "untrusted": "not sure yet: the chains have not converged"}  # fmt: skip
    for k, (a, b) in enumerate(zip(rows["first"], rows["second"], strict=True)):
        row = expected.loc[(labels[a], labels[b])]
        for name in ("probability", "low", "high", "usually_first", "samples"):
            assert rows[name][k] == pytest.approx(row[name], abs=1e-5), name
        assert rows["evidence"][k] == pytest.approx(row["evidence"], abs=1e-3)
        assert words[rows["verdict"][k]] == row["verdict"]
    assert {"effective", "r_hat"} <= set(rows)


def test_interactions_have_the_probability_of_being_there(posterior, payload):
    model = payload["model"]
    table = posterior.interactions()
    listed = table[table["present"] >= 0.05].set_index(["from", "to"])
    labels = payload["items"]["labels"]
    assert len(model["from"]) == len(listed) > 0
    for k, pair in enumerate(zip(model["from"], model["to"], strict=True)):
        row = listed.loc[tuple(labels[j] for j in pair)]
        assert model["effect"][k] == pytest.approx(row["mean"], abs=1e-3)
        for name in ("present", "positive", "low", "high"):
            assert model["certainty"][name][k] == pytest.approx(row[name], abs=1e-3), name


def test_the_order_matrix_is_the_mean_over_draws(posterior, payload, data):
    n = posterior.n_items
    upper = {pair: k for k, pair in enumerate(zip(*np.triu_indices(n, 1), strict=True))}
    held = payload["orders"]
    mean = posterior.draws.orders.mean(axis=(0, 1))
    for (a, b), p, count in zip(posterior.pairs, mean, posterior.together, strict=True):
        at = upper[a, b]
        assert held["probability"][at] == round(1000 * p)
        assert held["together"][at] == round(1e5 * count / data.n_samples)
    assert sum(p is not None for p in held["probability"]) == len(posterior.pairs)


def test_what_has_not_converged_is_said_first(payload, posterior):
    assert payload["warnings"] == [posterior.convergence.message]
    assert "NOT converged" in payload["warnings"][0]


def test_each_sample_has_an_order_under_one_draw(posterior, payload, data):
    samples = payload["samples"]
    assert all(sorted(o) == s for o, s in zip(samples["orders"], samples["sets"], strict=True))
    # The order of the first sample comes from the model of the first draw.
    first = Model(posterior.theta[0].astype(np.float32).astype(float), posterior.items)
    alone = make_report(first, data.select_samples([0])).payload["samples"]
    assert samples["orders"][0] == alone["orders"][0]
    assert samples["arrivals"][0] == alone["arrivals"][0]
    assert len(samples["time"]["mean"]) == data.n_samples


def test_positions_pool_the_sequences_of_all_draws(data):
    one = made_posterior(data, chains=1, draws=1)
    alone = Model(one.theta[0], one.items, observation=one.observation)
    apart, whole = (item_positions(x, draws=20_000, random_state=1) for x in (alone, one))
    whole = whole.loc[apart.index]
    np.testing.assert_allclose(whole["time_50"], apart["time_50"], rtol=0.15)
    np.testing.assert_allclose(whole["observed"], apart["observed"], atol=0.02)
    # Each of the two items is fast in one of two draws, so it is fast in half of the sequences.
    theta = np.array([[3.0, 0.0], [0.0, -9.0]]), np.array([[-9.0, 0.0], [0.0, 3.0]])
    two = simulate(theta[0], 20, random_state=1).to_dataset().without_times()
    mixed = made_posterior(two, chains=1, draws=2)
    mixed.draws.theta[0, 0], mixed.draws.theta[0, 1] = theta
    found = item_positions(mixed, draws=20_000, random_state=1)
    np.testing.assert_allclose(found["observed"], 0.5 * 20.09 / 21.09, atol=0.02)


def test_a_folder_with_draws_has_a_report(posterior, data, tmp_path):
    posterior.save(tmp_path / POSTERIOR_NAME)
    table = tmp_path / "samples.csv"
    data.to_frame().astype(int).to_csv(table, index_label="sample")
    options = {"prior": {"kind": "laplace", "scale": 1.0}, "draws": 6, "random_state": 1}
    Run("posterior", options, {"path": str(table), "sha256": 64 * "0"}, {"converged": False}).write(
        tmp_path
    )
    with pytest.raises(InputError, match="not the file that the run was made from"):
        write_report(tmp_path)
    page = write_report(tmp_path, data).read_text()
    payload = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))
    assert payload["model"]["draws"]["count"] == 12
    assert payload["made"]["options"]["seed"] == 1
    assert payload["made"]["command"].startswith("sequela posterior samples.csv -o again --prior")
    assert str(tmp_path) not in page


# --- Survival and a second cohort -----------------------------------------------------------------


def clinical_for(data):
    rng = np.random.default_rng(5)
    index = [str(s) for s in data.samples[:-5]]
    table = pd.DataFrame(
        {"time": rng.exponential(10.0, len(index)), "event": rng.random(len(index)) < 0.7},
        index=index,
    )
    table.attrs.update(unit="months", endpoint="OS")
    return table


def test_survival_of_the_early_and_the_late_half(data):
    from sequela.questions import kaplan_meier, log_rank, pseudo_times

    clinical = clinical_for(data)
    survival = make_report(example_theta(), data, clinical=clinical).payload["survival"]
    mean = pseudo_times(example_theta(), data, random_state=0)["mean"]
    mean.index = [str(s) for s in mean.index]
    mean = mean.loc[clinical.index]
    late = (mean > mean.median()).to_numpy()
    assert [group["name"] for group in survival["groups"]] == ["early", "late"]
    for group, here in zip(survival["groups"], (~late, late), strict=True):
        curve = kaplan_meier(clinical["time"][here], clinical["event"][here])
        assert group["samples"] == here.sum()
        np.testing.assert_allclose(group["survival"], curve["survival"], atol=1e-4)
        assert group["at_risk"] == curve["at_risk"].tolist()
    expected = log_rank(clinical["time"], clinical["event"], late).p_value
    assert survival["p"] == pytest.approx(expected)
    assert survival["left_out"] == 5
    assert survival["unit"] == "months"


def test_survival_without_samples_is_refused():
    clinical = pd.DataFrame({"time": [1.0], "event": [True]}, index=["a"])
    with pytest.raises(InputError, match="needs the pseudo-times"):
        make_report(example_theta(), clinical=clinical)


def test_two_cohorts_side_by_side(data, posterior):
    theta = example_theta()
    other = theta.iloc[::-1, ::-1].iloc[:6, :6]
    found = make_report(theta, compare={"another": other}).payload["comparison"]
    assert found["names"] == ["this cohort", "another"]
    assert found["items"] == 6
    labels = list(theta.columns)
    expected = order_matrix(theta, method="exact").probability
    second = order_matrix(other, method="exact").probability
    for k, (a, b) in enumerate(zip(found["a"], found["b"], strict=True)):
        assert found["first"][k] >= 0.5
        assert found["first"][k] == pytest.approx(expected.loc[labels[a], labels[b]], abs=2e-4)
        assert found["second"][k] == pytest.approx(second.loc[labels[a], labels[b]], abs=2e-4)
    with pytest.raises(InputError, match="have 0 items in common"):
        make_report(theta, compare={"none": Model([[0.0]], ["x"])})
    with pytest.raises(InputError, match="expected one name with its model"):
        make_report(theta, compare={"a": theta, "b": theta})
