"""The posterior of theta given missing cells and known orders, compared with integration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.special
import scipy.stats

import reference as ref
import sequela
from likelihood import partly_known
from posteriors import test_moves, test_walkers, twins
from sequela import Dataset, InputError, Model
from sequela.kernels.dense_likelihood import set_scores
from sequela.kernels.posterior_sweep import log_likelihoods
from sequela.kernels.sample_orders import sum_sample_orders
from sequela.observation import Exponential
from sequela.posteriors import BaseRates, Laplace, LearnedScale, StudentT
from sequela.posteriors.metric import estimate_metric
from sequela.posteriors.partly_known import known_together
from sequela.posteriors.problem import Problem
from sequela.posteriors.stretching import stretched_theta
from sequela.posteriors.walkers import Plan, Walkers
from sequela.support.jit import call

pytestmark = pytest.mark.filterwarnings("ignore::sequela.posteriors.NotConvergedWarning")


def data_of(theta, samples, seed, *, missing=0.3, stated=0.4):
    """Return simulated samples with missing cells and statements, and what is known about each."""
    rng = np.random.default_rng(seed)
    n = len(theta)
    rows, orders, known = [], [], []
    while len(known) < samples:
        order = ref.simulate_sequence(theta, rng)[1]
        one = twins.simulated_knowledge(order, n, rng, missing, stated)
        if one.missing.size == n:
            continue  # skip a sample without known cells, which a Dataset refuses
        known.append(one)
        cells = [int(i in order) for i in range(n)]
        rows.append([None if i in one.missing else cells[i] for i in range(n)])
        orders.append([(str(a), str(b), p) for a, b, p in one.statements])
    return Dataset(rows, items=[str(i) for i in range(n)], orders=orders), known


# --- Integration over the prior -------------------------------------------------------------------

TWO = np.array([[-0.3, 1.5], [0.0, -1.0]])
THREE = np.array([[-0.5, 1.5, 0.0], [0.0, -1.0, -1.0], [0.5, 0.0, 0.0]])


def integrated(prior, known, n, log_points=19):
    """Return quasi-random draws of the prior, weighted by the exact likelihood of the samples.

    Return theta, the weights, the orders and the log-likelihoods of all draws. The order of a pair
    is the mean of P(a before b | sample, theta) over the samples that are known to have both items.
    """
    points = scipy.stats.qmc.Sobol(n * n + 1, rng=np.random.default_rng(5)).random_base2(log_points)
    z = scipy.special.ndtri(np.clip(points, 1e-12, 1 - 1e-12))
    theta = twins.theta_of(prior, z[:, :-1].reshape(-1, n, n), z[:, -1])
    shown = np.where(theta < 40.0, theta, 0.0)
    sequences, p = twins.sequence_table(shown)
    log_likelihood = np.zeros(len(theta))
    pairs = list(itertools.combinations(range(n), 2))
    before, both = np.zeros((len(pairs), len(theta))), np.zeros(len(pairs))
    for one in known:
        weights = twins.possible_shares(sequences, one)
        total = p @ weights
        log_likelihood += np.log(total)
        for k, (a, b) in enumerate(pairs):
            if a in one.present and b in one.present:
                ahead = [s.index(a) < s.index(b) if {a, b} <= set(s) else False for s in sequences]
                before[k] += p @ (weights * ahead) / total
                both[k] += 1
    log_likelihood[(theta >= 40.0).any(axis=(1, 2))] = -np.inf
    weights = np.exp(log_likelihood - log_likelihood.max())
    return theta, weights / weights.sum(), (before / both[:, None]).T, log_likelihood


@pytest.mark.parametrize(
    ("theta", "prior", "largest", "replicas"),
    [
        (TWO, Laplace(0.8, test_walkers.BASE), 1, 1),
        (TWO, StudentT(3.0, LearnedScale(0.5, 0.8), test_walkers.BASE), 12, 2),
        (THREE, Laplace(0.6, BaseRates(-0.5, 0.8)), 1, 1),
        (THREE, Laplace(0.6, BaseRates(-0.5, 0.8)), 12, 1),
    ],
    ids=["2 items, latent", "2 items, summed", "3 items, latent", "3 items, summed"],
)
def test_the_posterior_agrees_with_integration_over_the_prior(theta, prior, largest, replicas):
    """Compare the means of theta and of the orders, with the same limits as in `test_walkers`."""
    n = len(theta)
    data, known = data_of(theta, 30, 41, stated=0.5)
    assert data.n_missing > 10
    certain = [p == 1.0 for one in known for _, _, p in one.statements]
    assert 1 <= sum(certain) < len(certain)
    problem = Problem.of(data, prior, Exponential(), largest)

    assert (problem.target.shared.largest > 1) == (largest == 12)
    assert problem.target.histories.present.size > 0
    plan = Plan(chains=4, replicas=replicas, warm_up=200, thin=3, jumps=6, most_steps=8)
    found, _, _, orders = test_walkers.run(Walkers.begin(problem, plan, 42), 1500)
    draws, weights, before, log_likelihood = integrated(prior, known, n)
    # The likelihood in the integral agrees with `sequela.log_likelihood`.
    for at in range(3):
        wanted = sequela.log_likelihood(Model(draws[at], data.items), data)
        assert log_likelihood[at] == pytest.approx(len(data) * wanted, rel=1e-9)
    assert 1.0 / np.sum(weights**2) > 2000.0
    se = test_walkers.assert_means(
        test_walkers.bounded(found), weights @ test_walkers.bounded(draws), 4e-3
    )
    assert se.max() < 0.015
    test_walkers.assert_means(orders, weights @ before, 4e-3)
    assert np.abs(weights @ before - 0.5).max() > 0.1


# --- Moves ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("summed", [False, True])
def test_moves_keep_the_posterior_of_partly_known_samples(summed):
    """Draw theta from the prior and data from theta; moves must keep the distribution of theta.

    The check is the same as in `test_moves`.
    """
    prior, n = test_moves.LEARNED[0], test_moves.N
    rng = np.random.default_rng(21)
    how = twins.trajectory(n, 0.45, rng=np.random.default_rng(2), learned=True)
    nothing, _ = twins.target_of([], prior, n)
    ends, counts = [], []
    while len(ends) < 1200:
        state = twins.state_at(rng.standard_normal((n, n)), rng.standard_normal())
        theta, _, good = twins.read(state, nothing)
        if not good:
            continue
        orders = twins.simulated_orders(theta, rng, 10)
        known = [twins.simulated_knowledge(order, n, rng, 0.3, 0.5) for order in orders]
        is_summed = [summed and not one.statements for one in known]
        groups = [one for one, here in zip(known, is_summed, strict=True) if here]
        latent = [one for one, here in zip(known, is_summed, strict=True) if not here]
        target = twins.with_histories(twins.with_groups(nothing, groups, n), latent)
        now = [order for order, here in zip(orders, is_summed, strict=True) if not here]
        state = twins.state_at(state.z, state.scale[0], twins.padded_histories(now, latent))
        counts.append(
            twins.sweep(state, target, how, test_moves.PAIRS, jumps=3, sweeps=12, rng=rng)
        )
        ends.append(np.append(state.z.ravel(), state.scale))
    total = {name: sum(count[name] for count in counts) for name in counts[0]}
    test_moves.assert_moves(total, "all", learned=True)
    test_moves.assert_standard_normal(np.array(ends), learned=True)


# --- Sums over missing cells ----------------------------------------------------------------------


def summed_problem(seed=1, samples=30, n=4):
    theta = ref.random_theta(np.random.default_rng(seed), n)
    data, known = data_of(theta, samples, seed, stated=0.0)
    prior = Laplace(LearnedScale(0.5, 0.7))
    return Problem.of(data, prior, Exponential(2.0), 12), known, theta


def test_the_likelihood_is_the_sum_over_missing_cells():
    problem, known, theta = summed_problem()
    assert problem.target.histories.present.size == 0
    assert len(problem.target.shared.group_count) > 5

    def wanted(at):
        return sum(
            partly_known.log_p_sum_of_sets(at, one.present.tolist(), one.missing.tolist(), 2.0)
            for one in known
        )

    values, gradient = np.empty(2), np.empty((4, 4))
    nothing = np.empty(0, dtype=np.int64)
    assert call(log_likelihoods, values, gradient, theta, problem.target, nothing)
    assert values[0] == pytest.approx(wanted(theta), rel=1e-11)
    assert values[1] == 0.0
    np.testing.assert_allclose(gradient, ref.finite_difference_gradient(wanted, theta), atol=2e-6)


def test_scores_are_gradients_of_the_sums():
    """The scores of all sets, times the square roots of the counts, add up to the gradient."""
    problem, _, theta = summed_problem(2)
    target = problem.target
    scores = np.zeros((target.lattice.size, 17))
    call(set_scores, scores, theta, np.ones((4, 4)), target, target.lattice)
    values, gradient = np.empty(2), np.empty((4, 4))
    call(log_likelihoods, values, gradient, theta, target, np.empty(0, dtype=np.int64))
    counts = target.sets.weights[target.lattice] * target.total
    np.testing.assert_allclose(np.sqrt(counts) @ scores[:, :-1], gradient.ravel(), atol=1e-9)


def test_orders_of_sums_count_known_items_only():
    theta = ref.random_theta(np.random.default_rng(3), 4)
    data, known = data_of(theta, 30, 3, stated=0.0)
    problem = Problem.of(data, Laplace(), Exponential(), 12)
    before = np.empty((4, 4))
    assert call(sum_sample_orders, before, theta, problem.target, np.empty(0, dtype=np.int64))
    wanted = np.zeros((4, 4))
    for one in known:
        posterior = list(partly_known.posterior(theta, one.present.tolist(), one.missing.tolist()))
        for a, b in itertools.permutations(one.present.tolist(), 2):
            wanted[a, b] += sum(p for order, p in posterior if order.index(a) < order.index(b))
    np.testing.assert_allclose(before, wanted, atol=1e-10)
    pairs = problem.pairs
    both = problem.together[pairs[:, 0], pairs[:, 1]]
    np.testing.assert_allclose((before + before.T)[pairs[:, 0], pairs[:, 1]], both, atol=1e-10)


# --- Problems -------------------------------------------------------------------------------------


def test_samples_are_summed_or_have_histories():
    cells = [[1, None, 0, 1], [1, 1, 0, 1], [1, 1, None, None], [None, 0, 0, 1], [1, 1, 1, 1]]
    data = Dataset(cells, orders=[[], [("0", "1")], [], [], []])
    problem = Problem.of(data, Laplace(), Exponential(), 3)
    target = problem.target
    assert target.large_start.tolist() == [0, 4]  # the last sample has a latent order
    assert target.large_items.tolist() == [0, 1, 2, 3, 0, 1, 3, 0, 1, 2, 3]
    assert target.histories.start.tolist() == [4, 7, 11]
    assert target.histories.present.tolist() == [3, 2]
    assert target.histories.statement_start.tolist() == [0, 1, 1]
    assert target.shared.group_count.tolist() == [1.0, 1.0]
    assert target.shared.pattern_start.tolist() == [0, 1, 2]
    assert target.shared.is_known.tolist() == [[False, True, True, True], [True, False, True, True]]
    masks = [[0b1000, 0b1001], [0b1001, 0b1011]]
    size, item, parent = target.shared.size, target.shared.item, target.shared.parent

    def mask(state):
        return 0 if size[state] == 0 else mask(parent[state]) | 1 << item[state]

    ends = np.split(target.shared.end, target.shared.end_start[1:-1])
    assert [sorted(map(mask, each.tolist())) for each in ends] == masks


def test_only_frequent_combinations_of_missing_cells_are_summed(monkeypatch):
    monkeypatch.setattr("sequela.posteriors.partly_known._FEW_PATTERNS", 1)
    monkeypatch.setattr("sequela.posteriors.partly_known._MOST_VISITS", 0)
    data = Dataset([[1, None, 0], [None, 1, 1], [0, None, 1], [1, None, 0]])
    target = Problem.of(data, Laplace(), Exponential(), None).target
    assert sorted(target.shared.group_count.tolist()) == [1.0, 2.0]
    assert target.histories.present.tolist() == [2]


def test_counts_are_from_known_cells():
    X = np.array([[1, 1], [1, 0], [0, 0], [1, 1], [1, 0]], dtype=bool)
    missing = np.zeros((5, 2), dtype=bool)
    missing[3, 1] = missing[2, 0] = True
    data = Dataset(X).with_missing(missing)
    both, with_known, known = known_together(data)
    assert both.tolist() == [[4, 1], [1, 1]]
    assert with_known.tolist() == [[4, 3], [1, 1]]
    assert known.tolist() == [[4, 3], [3, 4]]
    problem = Problem.of(data, Laplace(), Exponential(), 1)
    assert problem.known.tolist() == [4, 4]
    assert problem.together.tolist() == [[4, 1], [1, 1]]
    assert problem.pairs.tolist() == [[0, 1]]
    complete = Problem.of(Dataset(X), Laplace(), Exponential(), 1)
    assert complete.known.tolist() == [5, 5]


def test_associations_are_those_of_the_known_cells():
    """If a cell of a pair is missing in a sample, the sample does not count for this pair.

    So the value in such a missing cell does not influence how often the pair is in the list of
    jumps.
    """
    rng = np.random.default_rng(6)
    X = rng.random((200, 3)) < 0.5
    X[:, 1] = X[:, 0] ^ (rng.random(200) < 0.3)
    missing = np.zeros((200, 3), dtype=bool)
    missing[100:, 0] = True
    part = Problem.of(Dataset(X).with_missing(missing), Laplace(), Exponential(), 2)
    half = Problem.of(Dataset(X[:100]), Laplace(), Exponential(), 2)
    pairs, copies = part.pair_copies
    wanted_pairs, wanted = half.pair_copies
    first = {tuple(p): c for p, c in zip(pairs.tolist(), copies, strict=True)}
    second = {tuple(p): c for p, c in zip(wanted_pairs.tolist(), wanted, strict=True)}
    assert first[0, 1] == second[0, 1] == 60
    assert first[0, 2] == second[0, 2]


def test_weights_of_samples_with_histories_are_refused():
    cells = [[1, 1, 0], [1, None, 0], [1, 1, 1]]
    data = Dataset(cells, orders=[[], [], [("0", "1")]])
    weights = [2.0, 1.5, 1.0]
    good = Problem.of(data.with_weights(weights), Laplace(), Exponential(), None)
    assert good.target.shared.group_count.tolist() == [1.5]
    with pytest.raises(InputError, match=r"'2' \(row 2\) has the weight 3; .* more than 10"):
        Problem.of(data.with_weights([1.0, 1.0, 3.0]), Laplace(), Exponential(), None)
    with pytest.raises(InputError, match=r"'1' \(row 1\) has the weight 1.5; .* more than 1 "):
        Problem.of(data.with_weights(weights), Laplace(), Exponential(), 1)


def test_the_metric_contains_the_information_of_histories(monkeypatch):
    """The metric of one chain is the sum of the outer products of the scores of all histories."""
    theta = ref.random_theta(np.random.default_rng(8), 3)
    data, _ = data_of(theta, 60, 8, missing=0.5)
    problem = Problem.of(data, Laplace(0.5), Exponential(), 0)
    state = problem.start(np.random.default_rng(9))
    at, slope = stretched_theta(problem, state)
    start = problem.target.histories.start
    sequences = [state.orders[a:b] for a, b in itertools.pairwise(start)]
    rows = [
        (ref.gradient_sequence(at, [i for i in order if i >= 0]) * slope).ravel()
        for order in sequences
    ]
    complete = np.nonzero(data.set_sizes + data.missing.sum(axis=1) == 0)[0]
    rows += [(ref.gradient_sequence(at, []) * slope).ravel() for _ in complete]
    rest = len(data) - len(rows)
    # The metric uses no scores of complete samples with latent orders. `rest` is their number.
    assert rest == len(problem.target.large_start) - 1
    wanted = np.linalg.eigvalsh(np.array(rows).T @ np.array(rows))[::-1]
    metric = estimate_metric(problem, [state])
    np.testing.assert_allclose(metric.information, wanted[: len(metric.information)], rtol=1e-9)
    assert (wanted[len(metric.information) :] <= 0.2).all()
    # If there are more samples than `_MOST_ROWS`, the information is estimated from a part of them.
    monkeypatch.setattr("sequela.posteriors.metric._MOST_ROWS", 20)
    fewer = estimate_metric(problem, [state])
    assert 0.4 < fewer.information[0] / metric.information[0] < 2.5


# --- Runs -----------------------------------------------------------------------------------------

OPTIONS = {"draws": 24, "warm_up": 20, "chains": 2, "thin": 1, "jumps": 3, "random_state": 5}


@pytest.fixture(scope="module")
def data():
    return data_of(THREE, 50, 7)[0]


def same(one, other):
    return all(
        np.array_equal(getattr(one.draws, name), getattr(other.draws, name))
        for name in ("theta", "scale", "log_likelihood", "orders")
    )


@pytest.mark.parametrize(("replicas", "largest"), [(1, None), (2, None), (1, 1)])
def test_continued_runs_and_threads_give_the_same_bits(data, replicas, largest, tmp_path):
    options = {**OPTIONS, "replicas": replicas, "largest_lattice": largest}
    whole = sequela.posterior(data, **options, n_threads=1)
    assert same(sequela.posterior(data, **options, n_threads=2), whole)
    sequela.posterior(data, **{**options, "draws": 9}).save(tmp_path / "short.npz")
    longer = sequela.posterior(data, continue_from=tmp_path / "short.npz", draws=15)
    assert same(longer, whole)
    assert not same(sequela.posterior(data, **{**options, "random_state": 6}), whole)


def test_other_statements_or_missing_cells_are_other_data(data):
    found = sequela.posterior(data, **OPTIONS)
    for other in (data.without_orders(), Dataset(data.values, items=data.items)):
        with pytest.raises(InputError, match="other data"):
            sequela.posterior(other, continue_from=found)


def test_known_orders_decide():
    """Use ten certain statements about 500 samples of two items, as in docs/partly_known.md."""
    sets = sequela.simulate([[0.0, 2.0], [0.0, -2.0]], 500, random_state=1).to_dataset()
    sets = sets.without_times()
    both = np.flatnonzero(sets.values.all(axis=1))[:10]
    known = Dataset(sets, orders={sets.samples[row]: [("0", "1")] for row in both})
    options = {"draws": 300, "random_state": 1}
    unknown, decided = (sequela.posterior(d, **options).orders().iloc[0] for d in (sets, known))
    assert unknown["low"] < 0.3
    assert unknown["verdict"] == "the data cannot tell"
    assert decided["first"] == "0"
    assert decided["low"] > 0.6
    assert decided["verdict"] == "the data can tell"


# --- Questions that take a posterior --------------------------------------------------------------


def test_questions_to_a_posterior_of_partly_known_samples(data):
    found = sequela.posterior(data, **OPTIONS)
    times = sequela.questions.pseudo_times(found, data, max_models=3)
    assert list(times.index) == list(data.samples)
    assert np.isfinite(times.select_dtypes("number")[["mean", "sd", "q05", "q95"]]).all(axis=None)
    at = np.flatnonzero(data.missing.any(axis=1))[0]
    alone = data.select_samples([data.samples[at]])
    wanted = sequela.questions.pseudo_times(found, alone, max_models=3)
    assert times["mean"].iloc[at] == pytest.approx(wanted["mean"].iloc[0], rel=1e-9)
