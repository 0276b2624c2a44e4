"""Plans of larger studies: compare with slow simulations of such studies."""

from __future__ import annotations

import itertools
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaln

import sequela
from questions.drawn_models import posterior_of
from questions.nested_studies import probability_of_truth, with_clocks
from reference import log_p_set
from sequela import Dataset, Exponential, InputError, questions
from sequela.kernels.clock_lattice import clock_lattice
from sequela.learning.checkpoint import fingerprint
from sequela.posteriors import BaseRates, Laplace
from sequela.questions.study_checks import simulate_study
from sequela.questions.study_problem import read_problem

pytestmark = pytest.mark.filterwarnings("ignore::sequela.posteriors.NotConvergedWarning")


# --- The kernel -----------------------------------------------------------------------------------


@pytest.mark.parametrize("stop_rate", [1.0, 2.5])
def test_clock_items_are_items(stop_rate):
    """The kernel needs only the number of clock items that are present.

    P(items, number of clock items) must be the sum of P over all sets with these items and this
    number of clock items, in a model in which the clock items are ordinary items.
    """
    rng = np.random.default_rng(3)
    theta = rng.normal(0.0, 1.5, (4, 4))
    items = np.array([2, 0, 3])
    clocks, rate = 3, 0.4
    p = np.empty((8, clocks + 1))
    clock_lattice(p, theta, items, rate, stop_rate)
    whole = with_clocks(theta, clocks, rate)
    for R, j in itertools.product(range(8), range(clocks + 1)):
        present = [int(items[b]) for b in range(3) if R >> b & 1] + [4, 5, 6][:j]
        expected = comb(clocks, j) * np.exp(log_p_set(whole, present, stop_rate=stop_rate))
        assert p[R, j] == pytest.approx(expected, rel=1e-10)


@given(seed=st.integers(0, 1000), clocks=st.integers(0, 12), spread=st.floats(0.1, 8.0))
def test_probabilities_sum_to_one(seed, clocks, spread):
    theta = np.random.default_rng(seed).normal(0.0, spread, (3, 3))
    p = np.empty((8, clocks + 1))
    clock_lattice(p, theta, np.arange(3), 0.3, 1.0)
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    assert (p >= 0.0).all()


# --- Weights of draws -----------------------------------------------------------------------------

ITEMS = ("a", "b")
SETS = Dataset([[0, 0]] * 8 + [[1, 0]] * 5 + [[0, 1]] * 3 + [[1, 1]] * 6, items=ITEMS)


def few_models(seed=2, chains=4, draws=2):
    """Return a posterior of eight different models, with the order of a and b in each model."""
    rng = np.random.default_rng(seed)
    theta = rng.normal([[-0.5, 0.0], [0.0, -1.0]], 1.2, (chains, draws, 2, 2))
    orders = np.array(
        [[float(questions.order_probability(t, "0", "1")) for t in row] for row in theta]
    )[:, :, None]
    found = posterior_of(theta, items=ITEMS)
    draws_of = found.draws
    return found.but(
        draws=type(draws_of)(theta, draws_of.scale, draws_of.log_likelihood, orders),
        pairs=np.array([[0, 1]]),
        together=np.array([6]),
        fingerprint=fingerprint(SETS),
    )


def nested(posterior, size, clocks, rate, studies, seed):
    """Return the posterior probability of the true order in simulated studies, by a slow method.

    Clock items are ordinary items of a larger model, from which samples are simulated. Likelihoods
    are computed by `log_likelihood`. In each study one model is the truth, and draws from the same
    chain as this model are left out.
    """
    rng = np.random.default_rng(seed)
    chains, draws = posterior.draws.scale.shape
    models = [(c, with_clocks(t, clocks, rate)) for c, row in enumerate(posterior.draws.theta)
              for t in row]  # fmt: skip
    ahead = posterior.draws.orders.ravel() > 0.5
    old = np.asarray(SETS.values)
    labels = [str(k) for k in range(2 + clocks)]
    found = []
    for study in range(studies):
        k = study % (chains * draws)
        theta = models[k][1]
        new = sequela.simulate(theta, size + 400, random_state=int(rng.integers(2**31)))
        rows = np.asarray(new.to_dataset().values)
        # An old sample has only the first two items. It gets the clock items of a random simulated
        # sample that agrees with it in these two items.
        pool = np.asarray(
            sequela.simulate(theta, 4000, random_state=int(rng.integers(2**31))).to_dataset().values
        )
        again = [pool[rng.choice(np.nonzero((pool[:, :2] == s).all(axis=1))[0])] for s in old]
        table = Dataset(np.vstack([again, rows[:size]]).astype(bool), items=labels)
        found.append(probability_of_truth(models, k, ahead, table, old))
    return np.array(found)


def test_weights_are_those_of_a_nested_simulation():
    """Each of eight models is the truth in turn. Compare the mean probability of the true order."""
    posterior = few_models()
    rate = 0.25
    frequency = rate / (1.0 + rate)
    size, clocks = 12, 3
    plan = questions.plan_study(
        posterior, SETS, "a", "b", samples=[0, size], clocks=[0, clocks],
        clock_frequency=frequency, studies=2000, certainty=0.9, random_state=1,
    ).table.set_index(["samples", "clocks"])  # fmt: skip
    slow = nested(posterior, size, clocks, rate, 160, seed=5)
    row = plan.loc[(size, clocks)]
    error = np.hypot(row["probability_se"], slow.std() / np.sqrt(len(slow)))
    # A correct program exceeds four standard errors for about one of 16,000 seeds.
    assert abs(row["probability"] - slow.mean()) < 4.0 * error
    share = (slow >= 0.9).mean()
    assert abs(row["right"] - share) < 4.0 * np.sqrt(0.25 / len(slow))
    # Without new samples, the result is the present probability of the true order. It is computed
    # from the chains that do not contain the true model.
    ahead = posterior.draws.orders[:, :, 0] > 0.5
    now = [(np.delete(ahead, c, axis=0) == ahead[c, d]).mean() for c in range(4) for d in range(2)]
    assert plan.loc[(0, 0), "probability"] == pytest.approx(np.mean(now))


def two_item_cells(theta, clocks, rate):
    """Return P(set, number of clock items) of many two-item models by an integral over the time.

    Given the time, the set of the two items and the number of clock items are independent, and the
    probability of each has a closed form. The product of the two probabilities is integrated over
    the time by Gauss-Laguerre quadrature.
    """
    a, b = np.exp(theta[:, 0, 0]), np.exp(theta[:, 1, 1])
    b_after, a_after = b * np.exp(theta[:, 0, 1]), a * np.exp(theta[:, 1, 0])
    x, weight = np.polynomial.laguerre.laggauss(60)
    t = x[None, :]
    none = np.exp(-(a + b)[:, None] * t)

    def alone(first, after):
        gap = (a + b - after)[:, None]
        gap = np.where(np.abs(gap) < 1e-9, 1e-9, gap)
        return first[:, None] * (np.exp(-after[:, None] * t) - none) / gap

    only_a, only_b = alone(a, b_after), alone(b, a_after)
    sets = np.stack([none, only_a, only_b, 1.0 - none - only_a - only_b], axis=1)
    j = np.arange(clocks + 1)[:, None]
    choose = np.exp(-np.log(clocks + 1.0) - betaln(clocks - j + 1.0, j + 1.0))
    counts = choose * (1.0 - np.exp(-rate * x)) ** j * np.exp(-rate * x) ** (clocks - j)
    return np.maximum(np.einsum("lsx,jx,x->lsj", sets, counts, weight), 1e-300)


def test_two_items_agree_with_integration_over_the_prior():
    """Compare with a posterior that is computed as a weighted average over draws of the prior.

    There are 60 samples now. The planned study has 60 more, and all samples get 12 clock items.
    """
    prior = Laplace(1.5, base_rates=BaseRates(-1.0, 1.5))
    truth = np.array([[0.0, 3.0], [0.0, -3.0]])
    data = sequela.simulate(truth, 60, random_state=4).to_dataset().without_times()
    clocks, frequency = 12, 0.3
    rate = frequency / (1.0 - frequency)
    rng = np.random.default_rng(1)
    theta = rng.laplace(0.0, 1.5, (12_000, 2, 2))
    theta[:, [0, 1], [0, 1]] = rng.normal(-1.0, 1.5, (12_000, 2))
    p = two_item_cells(theta, clocks, rate)
    values = np.asarray(data.values, dtype=int)
    known = np.bincount(values @ [1, 2], minlength=4)
    sets = p.sum(axis=2)
    log_now = np.log(sets) @ known
    now = np.exp(log_now - log_now.max())
    # In each model, compare P(a, then b) with P(b, then a). `Posterior.orders` does the same.
    a, b = np.exp(theta[:, 0, 0]), np.exp(theta[:, 1, 1])
    p_none = 1.0 / (1.0 + a + b)
    after_a, after_b = b * np.exp(theta[:, 0, 1]), a * np.exp(theta[:, 1, 0])
    via_a = p_none * a * after_a / (1.0 + after_a)
    via_b = p_none * b * after_b / (1.0 + after_b)
    ahead = via_a > via_b
    found, called = [], []
    log_p = np.log(p)
    for k in rng.choice(len(theta), 1500, p=now / now.sum()):
        old = np.array([rng.multinomial(known[s], p[k, s] / p[k, s].sum()) for s in range(4)])
        new = rng.multinomial(60, p[k].ravel() / p[k].sum()).reshape(4, -1)
        log_w = np.einsum("lsj,sj->l", log_p, old + new)
        w = np.exp(log_w - log_w.max())
        found.append(w[ahead == ahead[k]].sum() / w.sum())
        called.append(found[-1] >= 0.9)
    draws = sequela.posterior(data, prior=prior, draws=1200, random_state=2)
    plan = questions.plan_study(
        draws, data, "0", "1", samples=[60], clocks=[clocks], clock_frequency=frequency,
        certainty=0.9, studies=1000, random_state=1,
    )  # fmt: skip
    row = plan.table.iloc[0]
    assert row["reliable"]
    assert plan.now == pytest.approx((now @ ahead) / now.sum(), abs=0.05)
    assert row["probability"] == pytest.approx(np.mean(found), abs=0.03)
    assert row["right"] == pytest.approx(np.mean(called), abs=0.06)
    # The expected probability of the true order is higher than the present one: the study helps.
    assert row["probability"] > max(plan.now, 1.0 - plan.now) + 0.05


# --- Two items alone, clock items, tables and messages --------------------------------------------


@pytest.fixture(scope="module")
def pair():
    theta = [[0.0, 4.0], [0.0, -4.0]]
    data = sequela.simulate(theta, 200, items=["a", "b"], random_state=1).to_dataset()
    data = data.without_times()
    return data, sequela.posterior(data, draws=400, random_state=1)


@pytest.fixture(scope="module")
def plan(pair):
    data, draws = pair
    return questions.plan_study(
        draws, data, "b", "a", samples=[100, 0], clocks=[0, 40], random_state=1
    )


def test_samples_of_two_items_alone_do_not_help_and_clocks_do(plan):
    table = plan.table.set_index(["samples", "clocks"])
    assert plan.method == "reweight"
    assert table["reliable"].all()
    # Proposition 1: samples of two items alone never tell the order of these items.
    assert table.loc[(100, 0), "right"] < 0.05
    assert table.loc[(100, 0), "evidence"] < 0.6
    assert table.loc[(0, 40), "right"] > 0.3
    assert table.loc[(100, 40), "right"] > table.loc[(0, 40), "right"]
    assert (table["wrong"] < 0.05).all()
    assert np.allclose(table[["right", "wrong", "open"]].sum(axis=1), 1.0)


def test_the_pair_may_be_given_either_way(pair, plan):
    data, draws = pair
    turned = questions.plan_study(
        draws, data, "a", "b", samples=[0, 100], clocks=[0, 40], random_state=1, n_threads=1
    )
    # The tables are equal, although the number of threads and the order of a and b are different.
    assert turned.table.equals(plan.table)
    assert turned.now == pytest.approx(1.0 - plan.now)
    assert (plan.first, plan.second) == ("b", "a")
    assert len(plan.sentences()) == 4
    assert "the study calls the right order with probability" in plan.sentences()[0]


def test_weights_on_few_draws_are_not_reliable(pair):
    data, draws = pair
    huge = questions.plan_study(
        draws, data, "a", "b", samples=[20_000], clocks=[40], studies=50, random_state=1
    )
    assert not huge.table["reliable"].iloc[0]
    assert huge.sentences()[0].endswith("(not reliable)")


def test_checks_of_fits_see_what_clocks_tell(pair):
    data, draws = pair
    plan = questions.plan_study(
        draws, data, "a", "b", samples=[0], clocks=[0, 12], clock_frequency=0.4, method="check",
        studies=20, random_state=1,
    )  # fmt: skip
    table = plan.table.set_index("clocks")
    assert table["right"].tolist()[0] == 0.0
    assert table.loc[12, "evidence"] > table.loc[0, "evidence"] + 0.2
    assert table["effective"].isna().all()
    assert table["reliable"].all()


def test_simulated_studies_have_the_frequencies_that_were_asked_for(pair):
    """Old samples keep their items. Clock items in new samples have the requested frequency."""
    data, draws = pair
    problem = read_problem(draws, data, ("a", "b"), 0.25, 40)
    tables = [simulate_study(problem, k, 300, 5, seed=3) for k in range(40)]
    for table in tables:
        values = np.asarray(table.values)
        assert (values[: len(data), :2] == np.asarray(data.values)).all()
        assert values.shape == (500, 7)
    clocks = np.stack([np.asarray(t.values)[:, 2:] for t in tables])
    new = clocks[:, len(data) :]
    # There are 12,000 new samples. The five clock items of a sample are not independent, because
    # they depend on the same observation time. So the tolerance is larger than for 60,000
    # independent cells.
    assert new.mean() == pytest.approx(0.25, abs=0.015)
    old = clocks[:, : len(data)].mean(axis=(0, 2))
    sizes = np.asarray(data.values).sum(axis=1)
    # A sample with a larger set was probably observed later, so it has more clock items.
    assert old[sizes == 2].mean() > old[sizes == 0].mean() + 0.05
    smaller = simulate_study(problem, 7, 100, 5, seed=3)
    assert (np.asarray(smaller.values) == np.asarray(tables[7].values)[:300]).all()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("a", "c"), {}, "no item 'c'"),
        (("a", "a"), {}, "more than once"),
        (("a", "b"), {"samples": 3}, "samples is 3; expected a list"),
        (("a", "b"), {"samples": []}, "samples is empty"),
        (("a", "b"), {"clocks": [-1]}, "clocks is -1; expected an integer of at least 0"),
        (("a", "b"), {"method": "guess"}, "method is 'guess'"),
        (("a", "b"), {"certainty": 0.3}, "certainty is 0.3"),
        (("a", "b"), {"clock_frequency": 1.0}, "clock_frequency is 1.0"),
        (("a", "b"), {"studies": 1}, "studies is 1"),
        (("a", "b"), {"penalty": -1.0}, "penalty is -1.0"),
    ],
)
def test_bad_arguments_are_named(pair, arguments, options, message):
    data, draws = pair
    with pytest.raises(InputError, match=message):
        questions.plan_study(draws, data, *arguments, **options)


def test_data_and_posterior_must_belong_together(pair):
    data, draws = pair
    with pytest.raises(InputError, match="not the data"):
        questions.plan_study(draws, np.asarray(data.values)[:50], "a", "b")
    with pytest.raises(InputError, match=r"expected the result of sequela\.posterior"):
        questions.plan_study(sequela.example_theta(), data, "a", "b")
    wider = Dataset(
        np.hstack([np.asarray(data.values), np.ones((len(data), 1), bool)]),
        items=["a", "b", "more"], samples=data.samples,
    )  # fmt: skip
    assert questions.plan_study(draws, wider, "a", "b", samples=[0], clocks=[0], studies=10).samples
    apart = few_models().but(pairs=np.zeros((0, 2), dtype=np.int64))
    with pytest.raises(InputError, match="no sample has both"):
        questions.plan_study(apart, SETS, "a", "b")


def test_other_rates_of_the_observation_only_change_the_unit_of_time():
    one, three = few_models(), few_models().but(observation=Exponential(3.0))
    shift = np.log(3.0) * np.eye(2)
    draws = three.draws
    three = three.but(
        draws=type(draws)(draws.theta + shift, draws.scale, draws.log_likelihood, draws.orders)
    )
    plans = [
        questions.plan_study(
            p, SETS, "a", "b", samples=[0, 20], clocks=[5], studies=200, random_state=1
        ).table
        for p in (one, three)
    ]
    np.testing.assert_allclose(
        plans[0].drop(columns="reliable").to_numpy(float),
        plans[1].drop(columns="reliable").to_numpy(float),
        rtol=1e-6,
    )
