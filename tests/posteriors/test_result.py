"""Tables, files and diagnostics of a posterior, tested with made-up draws."""

from __future__ import annotations

import hashlib
import json
import zipfile

import numpy as np
import pytest

import sequela
from sequela.observation import Exponential
from sequela.posteriors import Draws, Posterior, StudentT
from sequela.posteriors.diagnostics import effective_size, judge, r_hat

ITEMS = ("a", "b", "c")
PAIRS = np.array([[0, 1], [0, 2], [1, 2]])


def made_up(draws=400, shift=0.0, chains=4):
    """Return a posterior of independent draws, in which only the order "a before b" is certain."""
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(chains, draws, 3, 3))
    theta[:, :, 0, 1] += 3.0
    orders = rng.uniform(size=(chains, draws, 3))
    orders[:, :, 0] = rng.uniform(0.6, 1.0, size=(chains, draws))
    orders[:, :, 2] *= 0.8
    log_likelihood = rng.normal(size=(chains, draws))
    log_likelihood[0] += shift
    return Posterior(
        items=ITEMS,
        draws=Draws(theta, np.full((chains, draws), 0.5), log_likelihood, orders),
        pairs=PAIRS,
        together=np.array([10, 4, 1]),
        prior=StudentT(),
        observation=Exponential(),
        seed=3,
        rates=(0.8, 0.2, float("nan")),
        fingerprint="x",
        chain_states=({"done": 1}, {"state_z": np.arange(4.0)}),
    )


@pytest.mark.parametrize(("shift", "draws"), [(0.5, 400), (0.0, 12)])
def test_an_order_whose_chains_disagree_has_no_verdict_in_its_favour(shift, draws):
    """In all draws a comes before b. But the chains differ, or there are too few draws."""
    found = made_up(draws)
    found.draws.orders[:2, :, 0] = 1.0 - (1.0 - found.draws.orders[:2, :, 0]) * (1.0 - shift)
    table = found.orders().set_index(["first", "second"])
    row = table.loc["a", "b"]
    assert row["usually_first"] == 1.0
    assert row["r_hat"] > 1.05 or row["effective"] < 100
    assert row["verdict"] == "not sure yet: the chains have not converged"
    assert table.loc["c", "b"]["verdict"] == "the data cannot tell"


def test_orders_are_turned_to_the_likelier_item():
    found = made_up()
    table = found.orders(level=0.8).set_index(["first", "second"])
    row = table.loc["a", "b"]
    values = found.draws.orders[:, :, 0]
    assert row["probability"] == pytest.approx(values.mean())
    assert [row["low"], row["high"]] == pytest.approx(np.quantile(values, [0.1, 0.9]))
    assert row["usually_first"] == 1.0
    assert row["verdict"] == "the data can tell"
    turned = table.loc["c", "b"]
    values = 1.0 - found.draws.orders[:, :, 2]
    assert turned["probability"] == pytest.approx(values.mean())
    assert [turned["low"], turned["high"]] == pytest.approx(np.quantile(values, [0.1, 0.9]))
    assert turned["usually_first"] == pytest.approx((values >= 0.5).mean())
    assert turned["verdict"] == "the data cannot tell"
    assert (table["probability"] >= 0.5).all()


def test_evidence_is_the_log_odds_of_the_order_and_bounded_by_the_draws():
    table = made_up().orders()
    sure = table[table["usually_first"] == 1.0].iloc[0]
    assert sure["evidence"] == pytest.approx(np.log(2.0 * sure["effective"] + 1.0), rel=1e-6)
    unsure = table[table["usually_first"] < 1.0].iloc[0]
    odds = unsure["usually_first"] / (1.0 - unsure["usually_first"])
    assert unsure["evidence"] == pytest.approx(np.log(odds), abs=0.01)


def test_pairs_of_few_samples_can_be_left_out():
    assert len(made_up().orders(least_together=4)) == 2


def test_interactions_say_how_probable_they_are():
    found = made_up()
    table = found.interactions(least_effect=1.0).set_index(["from", "to"])
    values = found.draws.theta[:, :, 0, 1]
    row = table.loc["a", "b"]
    assert row["mean"] == pytest.approx(values.mean())
    assert row["present"] == pytest.approx((np.abs(values) >= 1.0).mean())
    assert row["positive"] == pytest.approx((values > 0.0).mean())
    assert table.index[0] == ("a", "b")
    assert len(table) == 6


def test_models_are_spread_over_all_chains():
    found = made_up(draws=10)
    models = found.models(4)
    assert [model.metadata["draw"] for model in models] == [0, 13, 26, 39]
    np.testing.assert_array_equal(models[1].theta, found.draws.theta[1, 3])
    assert len(found.models()) == 40


@pytest.mark.parametrize("level", [0.0, 1.0, "x", float("nan")])
def test_bad_levels(level):
    with pytest.raises(sequela.InputError, match="expected a probability"):
        made_up(draws=5).orders(level=level)


def test_convergence_in_words():
    good = made_up(draws=2000).convergence
    assert good.converged
    assert good.message.startswith("The chains have converged")
    bad = made_up(shift=5.0).convergence
    assert not bad.converged
    assert bad.r_hat > 1.1
    assert "NOT converged" in bad.message
    assert "more replicas" in bad.message
    assert "one chain alone" in made_up(chains=1).convergence.message
    few = made_up(draws=2).convergence
    assert not few.converged
    assert "only 2 draws" in few.message


def test_diagnostics_agree_with_their_definitions():
    """Independent draws are all effective, a constant has R-hat 1, and NaN has not converged."""
    rng = np.random.default_rng(2)
    values = rng.normal(size=(4, 1000, 2))
    values[:, :, 1] = 7.0
    assert r_hat(values)[0] == pytest.approx(1.0, abs=0.01)
    assert r_hat(values)[1] == 1.0
    assert effective_size(values)[0] == pytest.approx(4000, rel=0.15)
    # With coefficient 0.8, a draw of an autoregressive chain is (1 - 0.8) / (1 + 0.8) = 1 / 9 of an
    # effective draw.
    chain = np.zeros((4, 5000))
    noise = rng.normal(size=chain.shape)
    for t in range(1, 5000):
        chain[:, t] = 0.8 * chain[:, t - 1] + noise[:, t]
    assert effective_size(chain[:, :, None])[0] == pytest.approx(20_000 / 9.0, rel=0.2)
    broken = values.copy()
    broken[0, 0, 0] = np.nan
    assert not judge(broken, values[:, :, 0], [("a", "b"), ("a", "c")], (1.0, 1.0, 1.0)).converged


def test_r_hat_of_equally_many_zeros_and_ones_has_no_warning():
    """The distances of these values from their median do not vary. (Warnings are errors here.)"""
    rng = np.random.default_rng(1)
    values = np.array([rng.permutation(np.repeat([0.0, 1.0], 50)) for _ in range(4)])
    assert r_hat(values) == pytest.approx(1.0, abs=0.02)


def test_a_file_gives_everything_back(tmp_path):
    found = made_up()
    found.save(tmp_path / "p.npz")
    again = Posterior.load(tmp_path / "p.npz")
    for name in ("theta", "scale", "log_likelihood", "orders"):
        np.testing.assert_array_equal(getattr(again.draws, name), getattr(found.draws, name))
    assert again.items == ITEMS
    assert again.prior == found.prior
    assert again.observation == found.observation
    assert again.rates[:2] == found.rates[:2]
    assert np.isnan(again.rates[2])
    assert again.chain_states[0] == {"done": 1}
    np.testing.assert_array_equal(again.chain_states[1]["state_z"], np.arange(4.0))


def rewrite(path, change):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def header(members, **changes):
    """Change entries of the header, and update its checksum."""
    content = {**json.loads(members["header.json"]), **changes}
    del content["checksum"]
    content["checksum"] = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    members["header.json"] = json.dumps(content).encode()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: header(m, version=99), "format version 99"),
        (lambda m: header(m, format="other"), "not a posterior of sequela"),
        (lambda m: header(m, prior={"kind": "flat"}), "kind 'flat'"),
        (lambda m: header(m, seed=1.5), "'seed' is 1.5, expected an integer"),
        (lambda m: header(m, items=["a\x1b", "b", "c"]), "position 0: .* cannot be printed"),
        (
            lambda m: m.update({"header.json": m["header.json"].replace(b'"seed"', b'"feed"')}),
            "header was changed",
        ),
        (lambda m: header(m, items=None), "'items' is null, expected a list"),
        (lambda m: m.pop("theta.npy"), "cannot be read as a posterior"),
        (lambda m: m.update({"theta.npy": m["orders.npy"]}), "has changed"),
        (lambda m: m.update({"header.json": b"[" * 10_000}), "nested too deeply"),
    ],
)
def test_damaged_files_are_refused(tmp_path, change, words):
    path = tmp_path / "p.npz"
    made_up(draws=4).save(path)
    rewrite(path, change)
    with pytest.raises(sequela.InputError, match=words):
        Posterior.load(path)


def test_a_file_that_is_something_else(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"nothing")
    with pytest.raises(sequela.InputError, match="cannot be read as a posterior"):
        Posterior.load(tmp_path / "x.npz")
    with pytest.raises(sequela.InputError, match="cannot be read"):
        Posterior.load(tmp_path / "missing.npz")
    with pytest.raises(sequela.InputError, match="cannot be written"):
        made_up(draws=4).save(tmp_path / "no" / "folder.npz")


def test_arviz_gets_labelled_draws():
    pytest.importorskip("arviz_base")
    found = made_up(draws=8)
    tree = found.to_arviz()
    one = tree["posterior"]["theta"].sel(source="a", target="b")
    np.testing.assert_array_equal(one.values, found.draws.theta[:, :, 0, 1])
    assert tree["posterior"]["order"].coords["pair"].values[0] == "a before b"
