"""The answer of a posterior to a question is a summary of the answers of its models."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import expon

from questions.drawn_models import by_hand, posterior_of, random_posterior
from questions.enumeration import order_table, pair_table
from sequela import InputError, Model, Settings, evaluate, plots, questions, simulate
from sequela.posteriors.diagnostics import effective_size, r_hat
from sequela.questions.over_draws import ask_draws, chosen_draws, exact_for_all, summarise_draws
from sequela.questions.times_over_draws import mixture_quantiles
from sequela.support.progress import WorkProgress

POSTERIOR = random_posterior()
MODELS = by_hand(POSTERIOR)
ITEMS = list(POSTERIOR.items)
SETS = [{"a"}, {"a", "b"}, set(), {"a", "b", "c"}, {"b", "a"}]


def in_chains(values, posterior=POSTERIOR):
    """Return an array of shape (chains, draws, ...) from a list with one value per model."""
    stacked = np.array(values)
    return stacked.reshape(*posterior.draws.scale.shape, *stacked.shape[1:])


# --- The draws that answer a question -------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5), st.integers(1, 300), st.integers(1, 400))
def test_draws_are_thinned_evenly_within_each_chain(chains, draws, most):
    posterior = posterior_of(np.zeros((chains, draws, 1, 1)))
    if most < chains:
        with pytest.raises(InputError, match=f"max_models is {most}; expected at least {chains}"):
            chosen_draws(posterior, most)
        return
    chosen = np.array(chosen_draws(posterior, most))
    assert len(chosen) <= most
    per_chain = min(draws, most // chains)
    assert len(chosen) == chains * per_chain
    for chain in range(chains):
        places = chosen[chosen[:, 0] == chain, 1]
        assert len(set(places)) == per_chain
        if per_chain > 1:
            assert (places[0], places[-1]) == (0, draws - 1)
            assert np.ptp(np.diff(places)) <= 1


def test_each_draw_has_a_seed_of_its_own_that_thinning_does_not_change():
    def seeds(most):
        how = Settings(random_state=1, max_models=most)
        asked = ask_draws(POSTERIOR, lambda model, own: (model.theta[0, 0], own.seed), how, "")
        return dict(asked.answers)

    everything = seeds(12)
    assert len(set(everything.values())) == 12
    few = seeds(4)
    assert len(few) == 4
    assert few.items() <= everything.items()


def test_pieces_of_a_question_show_no_progress_of_their_own(monkeypatch):
    """The computation for one model of a posterior shows no progress bar and uses one thread.

    The question about the whole posterior already shows a progress bar, and the library rich
    cannot show a second one at the same time.
    """
    monkeypatch.setattr("sequela.support.progress.somebody_watches", lambda: True)
    how = Settings(random_state=1, n_threads=2)
    asked = ask_draws(
        POSTERIOR, lambda _, own: (WorkProgress("inner", 2)._watched, own.threads), how, ""
    )
    assert set(asked.answers) == {(False, 1)}
    assert WorkProgress("outer", 2)._watched


def test_the_lattice_of_all_models_together_is_limited():
    dense = posterior_of(np.ones((4, 50, 18, 18)))
    assert not exact_for_all(dense, np.arange(18))
    assert exact_for_all(dense, np.arange(18), max_models=100)
    sparse = posterior_of(np.tile(np.eye(18), (4, 50, 1, 1)))
    assert exact_for_all(sparse, np.arange(3))


# --- The summary ----------------------------------------------------------------------------------


def test_the_summary_is_that_of_the_chains():
    values = np.random.default_rng(1).normal(size=(4, 50, 3)).cumsum(axis=1)
    summary = summarise_draws(values, 0.8)
    flat = values.reshape(200, 3)
    np.testing.assert_allclose(summary.mean, flat.mean(axis=0))
    np.testing.assert_allclose(summary.low, np.quantile(flat, 0.1, axis=0))
    np.testing.assert_allclose(summary.high, np.quantile(flat, 0.9, axis=0))
    np.testing.assert_array_equal(summary.effective, effective_size(values))
    np.testing.assert_array_equal(summary.r_hat, r_hat(values))
    # The chains are random walks, so there are few effective draws. With swapped axes (chains and
    # draws) there would be 200.
    assert (summary.effective < 50).all()
    np.testing.assert_allclose(summary.se, flat.std(axis=0, ddof=1) / np.sqrt(summary.effective))


def test_draws_without_an_answer_are_left_out():
    values = np.random.default_rng(1).normal(size=(2, 10, 3))
    values[0, 0, 1] = np.nan
    values[:, :, 2] = np.nan
    summary = summarise_draws(values, 0.9)
    assert np.isfinite([summary.mean[0], summary.se[0], summary.effective[0]]).all()
    assert summary.mean[1] == pytest.approx(np.nanmean(values[:, :, 1]))
    assert np.isnan([summary.effective[1], summary.se[1], summary.r_hat[1]]).all()
    assert np.isnan([summary.mean[2], summary.low[2], summary.high[2]]).all()


def test_nothing_can_be_summarised():
    summary = summarise_draws(np.empty((2, 6, 0)), 0.9)
    assert summary.mean.shape == summary.effective.shape == (0,)
    assert POSTERIOR.orders().empty  # in POSTERIOR, no sample has two items


# --- Orders ---------------------------------------------------------------------------------------


def test_orders_are_those_of_all_sequences_of_all_models():
    posterior = random_posterior(rate=0.5)
    orders = questions.order_matrix(posterior, level=0.8)
    tables = [order_table(model.theta, 0.5) for model in by_hand(posterior)]
    values = in_chains([probability for probability, _ in tables], posterior)
    np.testing.assert_allclose(orders.probability, values.mean(axis=(0, 1)))
    np.testing.assert_allclose(orders.observed, np.mean([both for _, both in tables], axis=0))
    off = ~np.eye(3, dtype=bool)
    low, high = np.quantile(values[:, :, off], [0.1, 0.9], axis=(0, 1))
    np.testing.assert_allclose(orders.low.to_numpy()[off], low)
    np.testing.assert_allclose(orders.high.to_numpy()[off], high)
    np.testing.assert_allclose(
        orders.usually_first.to_numpy()[off], (values[:, :, off] > 0.5).mean(axis=(0, 1))
    )
    np.testing.assert_allclose(
        orders.effective.to_numpy()[off], effective_size(values[:, :, off]), rtol=1e-6
    )
    assert np.isnan(np.diagonal(orders.usually_first)).all()
    assert (orders.models, orders.draws, orders.seed) == (12, 0, None)
    assert set(orders.method.to_numpy().ravel()) == {"exact"}
    one = questions.order_probability(posterior, "c", "a", level=0.8)
    assert float(one) == orders.probability.loc["c", "a"]
    assert (one.low, one.high) == (orders.low.loc["c", "a"], orders.high.loc["c", "a"])
    assert (one.effective, one.r_hat) == (
        orders.effective.loc["c", "a"],
        orders.r_hat.loc["c", "a"],
    )
    assert one.se == orders.se.loc["c", "a"]


def test_pairs_are_turned_with_their_intervals():
    orders = questions.order_matrix(POSTERIOR)
    table = orders.pairs()
    assert len(table) == 3
    for row in table.itertuples():
        assert row.probability >= 0.5
        for name in ("probability", "low", "high", "usually_first", "effective", "r_hat"):
            assert getattr(row, name) == getattr(orders, name).loc[row.first, row.second]
        assert row.low <= row.probability <= row.high
        assert row.low == pytest.approx(1.0 - orders.high.loc[row.second, row.first])
    assert orders.pairs(as_given=True)["first"].tolist() == ["a", "a", "b"]


@pytest.mark.parametrize("given_set", [{"a", "b"}, {"b": True, "a": True, "c": False}])
def test_orders_of_a_sample(given_set):
    orders = questions.order_matrix(POSTERIOR, given=given_set)
    each = [questions.order_matrix(model, given={"a", "b"}).probability for model in MODELS]
    assert list(orders.probability.index) == ["a", "b"]
    np.testing.assert_allclose(orders.probability, np.mean(each, axis=0))
    assert (orders.observed == 1.0).all(axis=None)


def test_simulated_orders_agree_with_exact_ones():
    """For 40,000 sequences of each of 12 models, five standard errors are less than 0.02."""
    exact = questions.order_matrix(POSTERIOR)
    drawn = questions.order_matrix(POSTERIOR, method="simulation", draws=40_000, random_state=2)
    off = ~np.eye(3, dtype=bool)
    both = exact.observed.to_numpy()[off].min()
    error = 5.0 * 0.5 / np.sqrt(12 * 40_000 * both)
    assert error < 0.02
    assert np.abs(drawn.probability - exact.probability).to_numpy()[off].max() < error
    assert set(drawn.method.to_numpy().ravel()) == {"simulation"}
    assert (drawn.draws, drawn.seed, drawn.models) == (12 * 40_000, 2, 12)


def test_large_models_are_simulated_and_a_lattice_is_asked_for_by_name(monkeypatch):
    monkeypatch.setattr("sequela.questions.over_draws._MAX_STATES", 50.0)
    drawn = questions.order_matrix(POSTERIOR, draws=100, random_state=1)
    assert set(drawn.method.to_numpy().ravel()) == {"simulation"}
    assert drawn.draws == 1200
    exact = questions.order_matrix(POSTERIOR, method="exact")
    assert exact.draws == 0
    frequencies = questions.item_frequencies(POSTERIOR, draws=100, random_state=1)
    assert set(frequencies["method"]) == {"simulation"}
    assert frequencies.attrs == {"draws": 1200, "seed": 1, "models": 12}


# --- Times ----------------------------------------------------------------------------------------


def test_times_have_the_moments_of_the_mixture():
    times = questions.pseudo_times(POSTERIOR, SETS, level=0.8)
    each = [questions.pseudo_times(model, SETS, quantiles=()) for model in MODELS]
    means = in_chains([table["mean"] for table in each])
    second = np.mean([table["sd"] ** 2 + table["mean"] ** 2 for table in each], axis=0)
    np.testing.assert_allclose(times["mean"], means.mean(axis=(0, 1)))
    np.testing.assert_allclose(times["sd"], np.sqrt(second - times["mean"] ** 2))
    low, high = np.quantile(means, [0.1, 0.9], axis=(0, 1))
    np.testing.assert_allclose(times["low"], low)
    np.testing.assert_allclose(times["high"], high)
    np.testing.assert_allclose(times["effective"], effective_size(means))
    assert times["size"].tolist() == [1, 2, 0, 3, 2]
    assert times.iloc[1].equals(times.iloc[4])
    assert times.index.equals(each[0].index)
    assert times.attrs == {"draws": 0, "seed": None, "models": 12}
    fast = questions.pseudo_times(POSTERIOR, SETS, quantiles=())
    pd.testing.assert_frame_equal(
        fast[["mean", "sd"]], times[["mean", "sd"]], check_exact=False, rtol=1e-9
    )


def test_quantiles_of_times_are_those_of_the_mixture():
    """At the p-quantile of the mixture, the mean of all distribution functions is p."""
    probabilities = [0.05, 0.37, 0.95]
    times = questions.pseudo_times(POSTERIOR, SETS[:2], quantiles=probabilities)
    for sample, row in zip(SETS[:2], times.itertuples(), strict=True):
        at = [row.q05, row.q37, row.q95]
        below = np.mean(
            [questions.time_posterior(model, sample).density(at)["cumulative"] for model in MODELS],
            axis=0,
        )
        np.testing.assert_allclose(below, probabilities, atol=0.002)


def test_a_mixture_of_equal_parts_keeps_their_quantiles():
    nodes = np.array([0.01, 0.2, 0.5, 0.8, 0.99])
    times = np.tile(expon.ppf(nodes), (7, 2, 1))
    times[:, 1] *= 3.0
    wanted = np.array([0.2, 0.8])
    np.testing.assert_allclose(
        mixture_quantiles(times, nodes, wanted),
        [expon.ppf(wanted), 3.0 * expon.ppf(wanted)],
        rtol=1e-9,
    )


def test_a_mixture_of_two_exponential_distributions():
    nodes = np.linspace(0.001, 0.999, 999)
    times = np.stack([expon.ppf(nodes), 10.0 * expon.ppf(nodes)])[:, None, :]
    found = mixture_quantiles(times, nodes, np.array([0.1, 0.5, 0.9]))[0]
    below = 0.5 * (expon.cdf(found) + expon.cdf(found / 10.0))
    np.testing.assert_allclose(below, [0.1, 0.5, 0.9], atol=1e-4)


# --- What comes next, frequencies, goodness of fit ------------------------------------------------


@pytest.mark.parametrize("state", [(), {"b"}, {"a", "b", "c"}])
def test_next_items_of_all_draws(state):
    step = questions.next_items(POSTERIOR, state, level=0.8)
    each = [questions.next_items(model, state) for model in MODELS]
    absent = [item for item in ITEMS if item not in state]
    tables = [one.items.loc[absent] for one in each]
    here = step.items.loc[absent]
    for name in ("rate", "probability", "share"):
        np.testing.assert_allclose(here[name], np.mean([t[name] for t in tables], axis=0))
    assert step.items["probability"].is_monotonic_decreasing
    if absent:
        values = in_chains([table["probability"] for table in tables])
        np.testing.assert_allclose(here["low"], np.quantile(values, 0.1, axis=(0, 1)))
        np.testing.assert_allclose(here["effective"], effective_size(values), rtol=1e-6)
    for name in ("observed_first", "waiting_time", "next_item_time"):
        values = in_chains([getattr(one, name) for one in each])
        assert getattr(step, name) == pytest.approx(values.mean())
        assert step.summary.loc[name, "mean"] == pytest.approx(values.mean())
        if np.isfinite(values).all():
            assert step.summary.loc[name, "high"] == pytest.approx(np.quantile(values, 0.9))


def test_frequencies_of_all_models():
    posterior = random_posterior(rate=0.5)
    data = simulate(by_hand(posterior)[0], 40, random_state=1).to_dataset()
    table = questions.item_frequencies(posterior, data, level=0.8)
    values = in_chains(
        [np.diagonal(pair_table(m.theta, 0.5)) for m in by_hand(posterior)], posterior
    )
    mean = values.mean(axis=(0, 1))
    np.testing.assert_allclose(table["model"], mean)
    np.testing.assert_allclose(table["low"], np.quantile(values, 0.1, axis=(0, 1)))
    np.testing.assert_allclose(table["effective"], effective_size(values), rtol=1e-6)
    # `variance` is the variance of the share of an item in 40 samples. First a model is drawn, and
    # then the samples are drawn from this model.
    variance = (values * (1.0 - values)).mean(axis=(0, 1)) / 40 + values.var(axis=(0, 1))
    np.testing.assert_allclose(table["data"], data.values.mean(axis=0))
    np.testing.assert_allclose(table["z"], (table["data"] - mean) / np.sqrt(variance))


def test_goodness_draws_a_data_set_from_each_model():
    theta = np.tile(np.diag([0.0, 1.0, -1.0]), (4, 100, 1, 1))
    posterior = posterior_of(theta)
    data = simulate(Model(theta[0, 0], ITEMS), 200, random_state=1).to_dataset()
    goodness = questions.goodness_of_fit(posterior, data, random_state=3, max_models=400)
    assert (goodness.models, goodness.draws, goodness.seed) == (400, 80_000, 3)
    exact = np.diagonal(pair_table(theta[0, 0]))
    # Expected counts are within five standard errors. Quantiles are close to those of a binomial
    # distribution.
    spread = np.sqrt(200 * exact * (1.0 - exact))
    assert (np.abs(goodness.items["expected"] - 200 * exact) < 5 * spread / 20).all()
    assert (np.abs(goodness.items["low"] - (200 * exact - 1.645 * spread)) < spread / 2).all()
    assert (np.abs(goodness.items["high"] - (200 * exact + 1.645 * spread)) < spread / 2).all()
    assert goodness.sizes["observed"].sum() == 200
    assert goodness.sizes["expected"].sum() == pytest.approx(200)
    assert goodness.items["observed"].tolist() == data.values.sum(axis=0).tolist()
    assert (goodness.items["z"].abs() < 4).all()
    first = goodness.pairs.iloc[0]
    assert first["observed"] == (data.values[:, ITEMS.index(first["a"])]
                                 & data.values[:, ITEMS.index(first["b"])]).sum()  # fmt: skip
    assert goodness.pairs["z"].abs().is_monotonic_decreasing


def test_goodness_finds_what_the_models_do_not_describe():
    """In the models all items are independent. In the data, two items always occur together."""
    posterior = posterior_of(np.tile(np.diag([0.0, 0.0, 0.0]), (2, 50, 1, 1)))
    data = [{"a", "b"}] * 60 + [{"c"}] * 40
    goodness = questions.goodness_of_fit(posterior, data, random_state=1)
    pairs = goodness.pairs.set_index(["a", "b"])
    assert pairs.loc[("a", "b"), "p"] < 0.02
    assert pairs.loc[("a", "b"), "observed"] > pairs.loc[("a", "b"), "high"]
    assert pairs.loc[("a", "c"), "observed"] < pairs.loc[("a", "c"), "low"]
    own = simulate(np.zeros((3, 3)), 100, items=ITEMS, random_state=1).to_dataset()
    assert (questions.goodness_of_fit(posterior, own, random_state=1).items["p"] > 0.02).all()


# --- Threads, seeds, bad input --------------------------------------------------------------------

ASK = {
    "orders": lambda how: questions.order_matrix(
        POSTERIOR, method="simulation", draws=50, settings=how
    ).pairs(),
    "times": lambda how: questions.pseudo_times(POSTERIOR, SETS, quantiles=(), settings=how),
    "frequencies": lambda how: questions.item_frequencies(POSTERIOR, SETS, settings=how),
    "goodness": lambda how: questions.goodness_of_fit(POSTERIOR, SETS, settings=how).pairs,
}


@pytest.mark.parametrize("name", ASK)
def test_the_number_of_threads_changes_nothing(name):
    ask = ASK[name]
    one, three = (ask(Settings(random_state=5, n_threads=n)) for n in (1, 3))
    pd.testing.assert_frame_equal(one, three, check_exact=True)


def test_max_models_is_obeyed():
    assert questions.order_matrix(POSTERIOR, max_models=5).models == 4
    assert questions.pseudo_times(POSTERIOR, SETS, max_models=2).attrs["models"] == 2


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda p: questions.order_matrix(p, max_models=1), "max_models is 1; expected at least 2"),
        (lambda p: questions.order_matrix(p, max_models=0), "max_models is 0"),
        (lambda p: questions.order_matrix(p, level=1.0), r"level is 1\.0; expected a probability"),
        (lambda p: questions.next_items(p, level="0.9"), "level is '0.9'"),
        (lambda p: questions.pseudo_times(p, SETS, level=0.0), "level is 0"),
        (lambda p: questions.item_frequencies(p, level=2.0), "level is 2"),
        (lambda p: questions.goodness_of_fit(p, SETS, level=2.0), "level is 2"),
        (lambda p: questions.goodness_of_fit(p, SETS, draws=10), "draws is not used by this"),
        (lambda p: questions.order_matrix(p, target_se=0.1), r"target_se \(0\.1\) cannot be used"),
        (lambda p: questions.order_matrix(p, ["a", "x"]), "no item 'x'"),
        (lambda p: questions.order_matrix(p, ["a"]), "an order needs two items"),
        (lambda p: questions.order_matrix(p, given={"a", "x"}), "no item 'x'"),
        (lambda p: questions.order_matrix(p, ["a", "c"], given={"a", "b"}), "does not have 'c'"),
        (lambda p: questions.order_probability(p, "a", "b", method="fast"), "method is 'fast'"),
        (lambda p: questions.next_items(p, {"x"}), "no item 'x'"),
        (lambda p: questions.pseudo_times(p, [[1, 0]]), "3"),
    ],
)
def test_bad_input(ask, message):
    with pytest.raises(InputError, match=message):
        ask(POSTERIOR)


@pytest.mark.parametrize(
    ("ask", "instead"),
    [
        (
            lambda p: questions.time_posterior(p, {"a"}),
            r"use pseudo_times\(posterior, \[sample\]\)",
        ),
        (lambda p: questions.likely_orders(p, {"a"}), r"use order_matrix\(posterior, given=sample"),
        (lambda p: questions.sample_arrivals(p, {"a"}), r"use order_matrix\(posterior, given="),
        (lambda p: questions.item_arrivals(p), r"use order_matrix\(posterior\)"),
        (lambda p: questions.items_within(p, 1.0), r"use next_items\(posterior, state\)"),
        (lambda p: questions.rival_orders(p, SETS), r"use posterior\.orders\(\)"),
        (lambda p: questions.set_probability(p, {"a"}), r"for each of posterior\.models"),
        (lambda p: questions.clock_curve(p), r"for each of posterior\.models"),
        (lambda p: evaluate(p, SETS), r"for each of posterior\.models"),
        (lambda p: simulate(p, 10), r"for each of posterior\.models"),
        (lambda p: plots.plot_interactions(p), r"use plot_theta\(posterior\)"),
    ],
)
def test_what_takes_one_model_says_what_to_use_instead(ask, instead):
    with pytest.raises(InputError, match=f"(?s)model is a posterior.*{instead}"):
        ask(POSTERIOR)


def test_max_models_is_for_questions_that_take_a_posterior():
    with pytest.raises(InputError, match="max_models is not used by this"):
        questions.time_posterior(MODELS[0], {"a"}, max_models=5)
    # A `Settings` object may contain settings that only other functions use.
    how = Settings(max_models=5, random_state=1)
    assert questions.time_posterior(MODELS[0], {"a"}, settings=how).draws == 0
    assert questions.order_matrix(MODELS[0], settings=how).draws == 0
