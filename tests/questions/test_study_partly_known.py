"""Plans of studies with missing cells and known orders: compare with slow simulations."""

from __future__ import annotations

import itertools
from math import comb

import numpy as np
import pytest

import sequela
from likelihood import partly_known as twin
from questions.drawn_models import posterior_of
from questions.nested_studies import probability_of_truth, with_clocks
from sequela import Dataset, questions
from sequela.budget import Budget
from sequela.kernels.clock_lattice import clock_lattice
from sequela.learning.checkpoint import fingerprint
from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.parameters import Parameters
from sequela.questions import study_clocks
from sequela.questions.study_cells import stated_probabilities, study_cells
from sequela.questions.study_checks import simulate_study
from sequela.questions.study_problem import read_problem

pytestmark = pytest.mark.filterwarnings("ignore::sequela.posteriors.NotConvergedWarning")

ITEMS = ("a", "b", "c")
NONE = None
ROWS = [[0, 0, 0]] * 4 + [[1, 1, NONE]] * 5 + [[1, NONE, 0]] * 3 + [[1, 1, 1]] * 4 + [[0, 1, 0]] * 2
ORDERS = {5: [("a", "b", 0.8)], 6: [("b", "a")], 13: [("a", "b"), ("c", "b", 0.7)]}
PARTLY = Dataset(ROWS, items=ITEMS, orders=[ORDERS.get(row) for row in range(len(ROWS))])
RATE, CLOCKS = 0.4, 3


def few_models(data=PARTLY, seed=2, chains=4, draws=2):
    """Return a posterior of eight different models, with the order of a and b in each model."""
    rng = np.random.default_rng(seed)
    mean = np.diag([-0.5, -1.0, -0.8])
    theta = rng.normal(mean, 1.2, (chains, draws, 3, 3))
    orders = np.array(
        [[float(questions.order_probability(t, "0", "1")) for t in row] for row in theta]
    )[:, :, None]
    found = posterior_of(theta, items=ITEMS)
    kept = found.draws
    return found.but(
        draws=type(kept)(theta, kept.scale, kept.log_likelihood, orders),
        pairs=np.array([[0, 1]]),
        together=np.array([6]),
        fingerprint=fingerprint(data),
    )


def known_of(data, row):
    one = data.select_samples([row])
    return DistinctSamples.of(one, partial=True).as_partial(0)


# --- Probabilities of the classes -----------------------------------------------------------------


@pytest.mark.parametrize("row", [5, 6, 13])
def test_clock_items_of_a_sample_with_known_orders(row):
    """Compare with a sum over orders in a larger model, in which clock items are ordinary items."""
    theta = np.random.default_rng(3).normal(0.0, 1.5, (2, 3, 3))
    known = known_of(PARTLY, row)
    found = stated_probabilities(theta, known, CLOCKS, (RATE, 1.3))
    for at, j in itertools.product(range(2), range(CLOCKS + 1)):
        present = [*known.present.tolist(), *[3, 4, 5][:j]]
        whole = with_clocks(theta[at], CLOCKS, RATE)
        log_p = twin.log_p(whole, present, known.missing.tolist(), known.statements, stop_rate=1.3)
        assert found[at, j] == pytest.approx(comb(CLOCKS, j) * np.exp(log_p), rel=1e-10)


def test_classes_are_sums_over_the_missing_cells():
    theta = np.random.default_rng(4).normal(0.0, 1.5, (3, 3))
    p = np.empty((8, CLOCKS + 1))
    clock_lattice(p, theta, np.arange(3), RATE, 1.0)
    cells = study_cells(PARTLY)
    summed = cells.summed(p)
    # Each pattern of missing cells has classes whose probabilities sum to one.
    parts = [summed[a:b].sum() for a, b in itertools.pairwise(cells.first)]
    np.testing.assert_allclose(parts, 1.0, rtol=1e-12)
    np.testing.assert_allclose(sorted(cells.shares), sorted([5 / 18, 3 / 18, 10 / 18]))
    flat = cells.of_new_samples(summed)
    assert flat.sum() == pytest.approx(1.0)
    # The log-likelihood of the samples without known orders, from the probabilities of their
    # classes, must agree with a sum over all completions of each sample.
    log_p = cells.counts[: summed.shape[0]] @ np.log(summed.sum(axis=1))
    plain = [row for row in range(len(ROWS)) if row not in ORDERS]
    known = [known_of(PARTLY, row) for row in plain]
    expected = sum(twin.log_p(theta, k.present.tolist(), k.missing.tolist()) for k in known)
    assert log_p == pytest.approx(expected, rel=1e-10)
    assert cells.counts.sum() == len(ROWS)
    assert len(cells.stated) == 3


def test_complete_samples_keep_their_sets():
    complete = Dataset(PARTLY.values, items=ITEMS)
    cells = study_cells(complete)
    assert cells.sums is None
    assert cells.stated == []
    codes = complete.values.astype(int) @ [1, 2, 4]
    assert cells.counts.tolist() == np.bincount(codes, minlength=8).tolist()


# --- Clock items of existing samples --------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "chains"),
    [(4, False), (4, True), (9, False), (9, True), (5, False), (5, True), (13, False), (13, True)],
)
def test_drawn_clock_items_have_their_distribution_given_what_is_known(row, chains, monkeypatch):
    known = known_of(PARTLY, row)
    if chains:
        monkeypatch.setattr(study_clocks, "_LARGEST_LATTICE", 0)
        monkeypatch.setattr(study_clocks, "Budget", lambda: Budget(work=1.0))
    theta = np.random.default_rng(5).normal(0.0, 1.2, (3, 3))
    draws = 8_000
    rng = np.random.default_rng(1)
    model = sequela.Model(theta)
    times = study_clocks.draw_times(Parameters.of(model), known, draws, rng)
    data = PARTLY.select_samples([row])
    named = sequela.Model(theta, ITEMS)
    exact = questions.time_posterior(named, data)
    # Draws of one chain depend on each other, so their error is somewhat larger.
    error = np.sqrt(exact.variance / draws) * (2.0 if chains else 1.0)
    assert abs(times.mean() - exact.mean) < 5 * error
    p = stated_probabilities(theta[None], known, CLOCKS, (RATE, 1.0))[0]
    reached = 1.0 - np.exp(-RATE * times)
    numbers = rng.binomial(CLOCKS, reached)
    shares = np.bincount(numbers, minlength=CLOCKS + 1) / draws
    np.testing.assert_allclose(shares, p / p.sum(), atol=5 * np.sqrt(0.25 / draws))


# --- Studies --------------------------------------------------------------------------------------


def nested(posterior, size, studies, seed):
    """Return the posterior probability of the true order in simulated studies, by a slow method.

    The clock items of an existing sample are those of a random simulated sample that agrees with
    the known cells, and that is accepted with the probability of the known orders.
    """
    rng = np.random.default_rng(seed)
    chains, draws = posterior.draws.scale.shape
    models = [
        (c, with_clocks(t, CLOCKS, RATE))
        for c, row in enumerate(posterior.draws.theta)
        for t in row
    ]
    ahead = posterior.draws.orders.ravel() > 0.5
    labels = [str(k) for k in range(3 + CLOCKS)]
    old = Dataset(PARTLY, items=labels[:3], orders=[()] * len(PARTLY))
    names = dict(zip(ITEMS, labels, strict=False))
    orders = [
        [(names[s.before], names[s.after], s.probability) for s in statements]
        for statements in PARTLY.orders
    ]
    now = Dataset(old, orders=orders)
    found = []
    for study in range(studies):
        k = study % (chains * draws)
        theta = models[k][1]
        pool = sequela.simulate(theta, 3_000, random_state=int(rng.integers(2**31)))
        values, sequences = pool.to_dataset().values, pool.sequences()
        rows = []
        for i in range(len(now)):
            agree = ((values[:, :3] == now.values[i]) | now.missing[i]).all(axis=1)
            while True:
                at = rng.choice(np.flatnonzero(agree))
                place = {item: p for p, item in enumerate(sequences[at])}
                right = [p if place[a] < place[b] else 1 - p for a, b, p in orders[i]]
                if rng.random() < np.prod(right):
                    break
            rows.append([*now.values[i], *values[at, 3:]])
        like = rng.integers(len(now), size=size)
        fresh = values[rng.choice(3_000, size, replace=False)]
        missing = np.zeros((len(now) + size, 3 + CLOCKS), dtype=bool)
        missing[:, :3] = np.vstack([now.missing, now.missing[like]])
        table = Dataset(
            np.vstack([rows, fresh]).astype(bool), items=labels, orders=orders + [()] * size
        ).with_missing(missing)
        found.append(probability_of_truth(models, k, ahead, table, now))
    return np.array(found)


def test_weights_are_those_of_a_nested_simulation():
    posterior = few_models()
    size = 10
    plan = questions.plan_study(
        posterior, PARTLY, "a", "b", samples=[0, size], clocks=[0, CLOCKS],
        clock_frequency=RATE / (1.0 + RATE), studies=1600, certainty=0.9, random_state=1,
    ).table.set_index(["samples", "clocks"])  # fmt: skip
    slow = nested(posterior, size, 96, seed=5)
    row = plan.loc[(size, CLOCKS)]
    error = np.hypot(row["probability_se"], slow.std() / np.sqrt(len(slow)))
    # A correct program exceeds four standard errors for about one of 16,000 seeds.
    assert abs(row["probability"] - slow.mean()) < 4.0 * error
    # Without new samples and clock items, the known cells and orders are already in the posterior.
    ahead = posterior.draws.orders[:, :, 0] > 0.5
    now = [(np.delete(ahead, c, axis=0) == ahead[c, d]).mean() for c in range(4) for d in range(2)]
    assert plan.loc[(0, 0), "probability"] == pytest.approx(np.mean(now))


def test_a_plan_without_missing_cells_has_the_same_bits():
    complete = Dataset(PARTLY.values, items=ITEMS)
    same = complete.with_missing(np.zeros(PARTLY.values.shape, dtype=bool))
    how = {"samples": [0, 20], "clocks": [0, 4], "studies": 40, "random_state": 1}
    one, two = (questions.plan_study(few_models(d), d, "a", "b", **how) for d in (complete, same))
    assert one.table.equals(two.table)


def test_a_missing_item_that_acts_on_nothing_tells_nothing():
    """If nobody looked for c, the plan is the same as for the two other items alone."""
    rows = [[1, 1]] * 6 + [[1, 0]] * 4 + [[0, 0]] * 5 + [[0, 1]] * 3
    two = Dataset(rows, items=ITEMS[:2])
    three = Dataset([[*row, None] for row in rows], items=ITEMS)
    whole = few_models(three)
    theta = whole.draws.theta.copy()
    theta[:, :, 2, :2] = 0.0
    draws = whole.draws
    whole = whole.but(draws=type(draws)(theta, draws.scale, draws.log_likelihood, draws.orders))
    part = posterior_of(theta[:, :, :2, :2], items=ITEMS[:2]).but(
        pairs=np.array([[0, 1]]), together=np.array([6]), fingerprint=fingerprint(two)
    )
    kept = part.draws
    part = part.but(draws=type(kept)(kept.theta, kept.scale, kept.log_likelihood, draws.orders))
    how = {"samples": [0, 20], "clocks": [3], "studies": 600, "random_state": 1,
           "clock_frequency": 0.3}  # fmt: skip
    one = questions.plan_study(whole, three, "a", "b", **how).table
    other = questions.plan_study(part, two, "a", "b", **how).table
    error = np.hypot(one["probability_se"], other["probability_se"])
    assert (np.abs(one["probability"] - other["probability"]) < 4.5 * error).all()


def test_simulated_studies_keep_what_is_known_of_the_existing_samples():
    problem = read_problem(few_models(), PARTLY, ("a", "b"), 0.3, 8)
    total = len(PARTLY)
    tables = [simulate_study(problem, k, 400, 2, seed=3) for k in range(8)]
    for table in tables:
        assert table.n_samples == total + 400
        np.testing.assert_array_equal(table.values[:total, :3], PARTLY.values)
        np.testing.assert_array_equal(table.missing[:total, :3], PARTLY.missing)
        assert not table.missing[:, 3:].any()
        assert table.orders[:total] == PARTLY.orders
        assert not any(table.orders[total:])
    # The new samples have the same patterns of missing cells as the existing samples, with the same
    # frequencies.
    missing = np.vstack([table.missing[total:, :3] for table in tables])
    for pattern, share in ([0, 0, 1], 5 / 18), ([0, 1, 0], 3 / 18), ([0, 0, 0], 10 / 18):
        found = (missing == np.array(pattern, bool)).all(axis=1).mean()
        assert found == pytest.approx(share, abs=5 * np.sqrt(0.25 / len(missing)))
    smaller = simulate_study(problem, 5, 100, 2, seed=3)
    np.testing.assert_array_equal(smaller.values, tables[5].values[: total + 100])
    np.testing.assert_array_equal(smaller.missing, tables[5].missing[: total + 100])


def test_fits_to_simulated_studies_see_what_known_orders_tell():
    """Ten known orders of two items decide, as in docs/partly_known.md, also in the fits."""
    sets = sequela.simulate([[0.0, 2.0], [0.0, -2.0]], 400, random_state=1).to_dataset()
    sets = sets.without_times()
    both = np.flatnonzero(sets.values.all(axis=1))[:20]
    known = Dataset(sets, orders={sets.samples[row]: [("0", "1")] for row in both})
    # The item is not on the panel of some samples.
    missing = np.zeros(sets.values.shape, dtype=bool)
    missing[np.setdiff1d(np.arange(0, 400, 5), both), 1] = True
    known = known.with_missing(missing)
    draws = sequela.posterior(known, draws=100, random_state=1)
    how = {"samples": [0], "clocks": [0], "method": "check", "studies": 3, "random_state": 1}
    plan = questions.plan_study(draws, known, "0", "1", **how)
    assert plan.now > 0.95
    assert plan.table["right"].tolist() == [1.0]
    assert plan.table["evidence"].iloc[0] > 2.0


def test_the_clock_frequency_is_that_of_known_cells():
    rows = [[1, 1, None]] * 8 + [[1, 1, 1]] * 3 + [[1, 1, 0]] * 1
    data = Dataset(rows, items=ITEMS)
    plan = questions.plan_study(
        few_models(data), data, "a", "b", samples=[0], clocks=[1], studies=4, random_state=1
    )
    assert plan.clock_frequency == pytest.approx(0.75)
