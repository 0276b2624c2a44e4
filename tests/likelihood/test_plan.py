"""The plan decides how each set is evaluated, from the cost of the set and the total cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from sequela import Budget, BudgetError, Dataset, InputError, Likelihood, evaluate
from sequela.likelihood import METHODS, sample_posteriors
from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.objective import Objective
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.plan import Plan, all_subsets_fit, choose_way
from sequela.likelihood.ways import Way, check_method
from sequela.observation import Exponential
from sequela.settings import Settings

quick = settings(max_examples=60, deadline=None, derandomize=True, database=None)
PLENTY = 1e300


def table(n, *sets):
    X = np.zeros((len(sets), n), dtype=int)
    for row, S in zip(X, sets, strict=True):
        row[list(S)] = 1
    return X


def for_any_theta(plan):
    """Return how the plan evaluates each set if all items may interact, as in a fit."""
    n = plan.data.n_items
    return plan.ways_on_support(np.ones((n, n), dtype=bool))


def plan_for(X, budget, *, method="auto", times=None):
    data = Dataset(X, times=times)
    return Plan(data, DistinctSamples.of(data), method, budget)


def dense(n):
    """Return the parameters of a model of n items in which each item acts on all others."""
    return Parameters(ref.random_theta(np.random.default_rng(n), n, 0.5))


def works(plan, parameters):
    """Return the cost of an exact evaluation of each distinct sample."""
    distinct = plan.distinct
    return np.array(
        [
            Budget.exact_work(
                int(distinct.sizes[s]),
                parameters.columns(distinct.items(s)).n_columns,
                timed=bool(distinct.timed[s]),
            )
            for s in range(len(distinct))
        ]
    )


# --- The limits per set ---------------------------------------------------------------------------


@st.composite
def problems(draw):
    """Draw a sparse or dense model, sets of its items, and a budget that allows some of them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 9))
    theta = ref.random_theta(rng, n, 0.5, draw(st.sampled_from([0.0, 0.5, 0.9, 1.0])))
    X = (rng.random((draw(st.integers(1, 12)), n)) < rng.random()).astype(int)
    size, columns = draw(st.integers(1, n)), draw(st.integers(1, n))
    limit = draw(
        st.sampled_from(
            [
                Budget(work=Budget.exact_work(size, columns), total_work=PLENTY),
                Budget(memory=Budget.exact_memory(size, columns), total_work=PLENTY),
            ]
        )
    )
    return Parameters(theta), X, limit


@quick
@given(problems())
def test_all_sets_together_are_judged_as_each_alone(problem):
    parameters, X, budget = problem
    plan = plan_for(X, budget)
    ways = plan.ways(parameters)
    for s, way in enumerate(ways):
        items = plan.distinct.items(s)
        assert choose_way(parameters, items, budget) == way
        fits = budget.exact_fits(items.size, parameters.columns(items).n_columns)
        assert way == (Way.EXACT if fits or items.size <= 1 else Way.RELOCATION)


@quick
@given(problems())
def test_exact_is_refused_where_it_is_not_chosen(problem):
    parameters, X, budget = problem
    plan = plan_for(X, budget, method="exact")
    beyond = plan_for(X, budget).ways(parameters) != Way.EXACT
    if beyond.any():
        with pytest.raises(BudgetError, match=r"exact evaluation needs .* MB and .* operations"):
            plan.ways(parameters)
    else:
        assert (plan.ways(parameters) == Way.EXACT).all()
    for s, refused in enumerate(beyond):
        items = plan.distinct.items(s)
        if refused:
            with pytest.raises(BudgetError, match=f"a set of {items.size} items is beyond"):
                choose_way(parameters, items, budget, method="exact")
        else:
            assert choose_way(parameters, items, budget, method="exact") is Way.EXACT


@pytest.mark.parametrize("method", ["relocation", "metropolis", "metropolis-uniform"])
@pytest.mark.parametrize("budget", [Budget(), Budget(work=1.0, total_work=1.0)])
def test_methods_by_name_sample_all_that_can_be_sampled(method, budget):
    plan = plan_for(table(5, [], [2], [0, 1], range(5)), budget, method=method)
    ways = plan.ways(dense(5))
    for size, way in zip(plan.distinct.sizes, ways, strict=True):
        assert way == ("exact" if size <= 1 else method)


def test_every_way_is_a_method():
    assert {way.value for way in Way} == set(METHODS) - {"auto"}
    assert [check_method(name) for name in METHODS] == list(METHODS)
    with pytest.raises(InputError, match="method is 'gibbs'; expected one of 'auto'"):
        check_method("gibbs")
    with pytest.raises(InputError, match="method is 'gibbs'"):
        plan_for(table(2, [0]), Budget(), method="gibbs")


def test_all_subsets_of_few_items_fit():
    budget = Budget(work=Budget.exact_work(12, 12))
    assert [all_subsets_fit(n, budget) for n in (1, 12, 13, 41)] == [True, True, False, False]


def test_sets_beyond_any_lattice_are_sampled_and_cost_nothing():
    """A set that is sampled does not count in the total work.

    The work of an exact evaluation of 1,100 items is larger than every double. If it counted, the
    total would be infinite.
    """
    n = 1100
    X = table(n, range(1100), range(300), range(61), range(41), range(3), [0])
    small = Budget.exact_work(3, n) + Budget.exact_work(1, n)
    plan = plan_for(X, Budget(memory=PLENTY, work=PLENTY, total_work=small))
    dense = np.full((n, n), -0.001)
    np.fill_diagonal(dense, -3.0)
    for ways in (for_any_theta(plan), plan.ways(Parameters(dense))):
        assert sorted(plan.distinct.sizes[ways == Way.EXACT]) == [1, 3]
        assert set(ways[plan.distinct.sizes > 3]) == {"relocation"}
    # If no items interact, sets of any size are evaluated by components.
    ways = plan.ways(Parameters(np.diag(np.full(n, -3.0))))
    assert set(ways[plan.distinct.sizes > 3]) == {"components"}


# --- The limit of the total work ------------------------------------------------------------------


@quick
@given(problems(), st.floats(0.0, 1.2))
def test_the_total_is_kept_by_sampling_the_most_expensive_sets(problem, share):
    parameters, X, _ = problem
    plan = plan_for(X, Budget())
    cost = works(plan, parameters)
    budget = Budget(total_work=max(share * cost.sum(), 1.0))
    plan = plan_for(X, budget)
    exact = plan.ways(parameters) == Way.EXACT
    larger = plan.distinct.sizes > 1
    assert exact[~larger].all()
    if exact.all():
        assert cost.sum() <= budget.total_work or not larger.any()
        return
    # The exact evaluation of each sampled set would cost at least as much as that of each exactly
    # evaluated set. With one more exact evaluation, the total would be too large.
    assert cost[~exact].min() >= cost[exact & larger].max(initial=0.0)
    assert cost[exact].sum() + cost[~exact].min() > budget.total_work
    assert cost[exact].sum() <= budget.total_work or not (exact & larger).any()


def test_the_largest_sets_are_sampled_first():
    n = 8
    plan = plan_for(table(n, range(3), range(8), range(5), [4], range(7)), Budget())
    cost = {int(k): Budget.exact_work(k, n) for k in plan.distinct.sizes}
    for kept, sampled in (([1, 3, 5, 7, 8], []), ([1, 3, 5, 7], [8]), ([1, 3], [5, 7, 8])):
        budget = Budget(total_work=sum(cost[k] for k in kept))
        for change, expected in ((0.0, sampled), (-1.0, [max(kept), *sampled])):
            limited = Budget(total_work=budget.total_work + change)
            ways = Plan(plan.data, plan.distinct, "auto", limited).ways(dense(n))
            assert sorted(plan.distinct.sizes[ways != Way.EXACT]) == expected


def test_the_total_counts_what_interacts_and_no_more():
    """The cost of a set grows with the number of interactions.

    At a theta without interactions, the exact evaluation of all sets is within the limit of the
    total work. At a theta with all interactions it is not.
    """
    n = 40
    X = table(n, range(8), range(4, 12), range(20, 26))
    sparse = Parameters(np.diag(np.full(n, -1.0)))
    plan = plan_for(X, Budget())
    budget = Budget(total_work=works(plan, sparse).sum())
    plan = plan_for(X, budget)
    assert (plan.ways(sparse) == Way.EXACT).all()
    assert (plan.ways(dense(n)) == Way.RELOCATION).any()
    short = Budget(total_work=budget.total_work - 1.0)
    assert (plan_for(X, short).ways(sparse) == Way.RELOCATION).sum() == 1


def test_equal_samples_count_once():
    n = 6
    budget = Budget(total_work=Budget.exact_work(6, n))
    assert (
        evaluate(
            dense(n).theta, table(n, range(6), range(6), range(6)), budget=budget
        ).methods.tolist()
        == ["exact"] * 3
    )


@pytest.mark.parametrize("times", [None, [1.0, 2.0, 3.0]])
def test_exact_beyond_the_total_is_refused_and_says_what_to_raise(times):
    n = 6
    X = table(n, range(6), range(4), [0])
    timed = times is not None
    total = sum(Budget.exact_work(k, n, timed=timed) for k in (6, 4, 1))
    enough = Budget(total_work=total)
    assert set(plan_for(X, enough, method="exact", times=times).ways(dense(n))) == {"exact"}
    with pytest.raises(
        BudgetError, match=r"all 3 distinct sets.*Increase total_work of the budget"
    ):
        plan_for(X, Budget(total_work=0.99 * total), method="exact", times=times).ways(dense(n))


def test_sets_of_at_most_one_item_stay_exact_whatever_the_total():
    """A set of one item has only one order, so it is never sampled."""
    X = table(4, [], [0], [3], [0, 1])
    plan = plan_for(X, Budget(total_work=1.0))
    for ways in (plan.ways(dense(4)), for_any_theta(plan)):
        for size, way in zip(plan.distinct.sizes, ways, strict=True):
            assert way == ("exact" if size <= 1 else "relocation")


# --- The choice for a fit, which must hold for any theta ------------------------------------------


@quick
@given(problems(), st.floats(0.1, 1.5))
def test_a_choice_for_any_theta_is_that_for_a_dense_one(problem, share):
    _, X, budget = problem
    n = X.shape[1]
    # Item 0 is added to every set, so that no set is empty. The plan for a fit computes the cost of
    # a set as if all items interacted with it. This is not right for an empty set.
    X = np.maximum(X, np.eye(1, n, dtype=int))
    total = works(plan_for(X, budget), dense(n)).sum()
    for limited in (budget, Budget(work=budget.work, total_work=max(share * total, 1.0))):
        plan = plan_for(X, limited)
        assert for_any_theta(plan).tolist() == plan.ways(dense(n)).tolist()


@quick
@given(problems())
def test_what_is_exact_for_any_theta_is_exact_at_each(problem):
    parameters, X, budget = problem
    plan = plan_for(X, budget)
    for_any = for_any_theta(plan) == Way.EXACT
    at_this = plan.ways(parameters) == Way.EXACT
    assert at_this[for_any].all()


def test_a_choice_for_any_theta_does_not_follow_theta():
    """The plan for a fit does not depend on theta, although the plans at two thetas differ."""
    n = 30
    X = table(n, range(8), range(3))
    plan = plan_for(X, Budget(work=Budget.exact_work(8, 10)))
    sparse = Parameters(np.diag(np.full(n, -1.0)))
    before = for_any_theta(plan).tolist()
    assert plan.ways(sparse).tolist() != plan.ways(dense(n)).tolist()
    assert for_any_theta(plan).tolist() == before == plan.ways(dense(n)).tolist()


# --- Known times ----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 5, 8])
def test_known_times_cost_more_and_go_to_metropolis(k):
    n = 8
    X = table(n, range(k), range(k))
    untimed, timed = (Budget.exact_work(k, n, timed=known) for known in (False, True))
    assert timed > untimed
    for work, expected in (
        (timed, ["exact", "exact"]),
        (untimed, ["exact", "metropolis"]),
        (0.99 * untimed, ["relocation", "metropolis"]),
    ):
        plan = plan_for(X, Budget(work=work), times=[np.nan, 1.0])
        for ways in (plan.ways(dense(n)), for_any_theta(plan)):
            assert ways[plan.distinct.inverse].tolist() == expected


def test_the_total_takes_nothing_from_known_times():
    """If the total work is too large, only sets at unknown times are sampled.

    Sets at known times are still evaluated exactly.
    """
    n = 6
    X = table(n, range(6), range(6), range(4), [0], [1, 2])
    times = [1.0, np.nan, np.nan, 2.0, np.nan]
    known = Budget.exact_work(6, n, timed=True) + Budget.exact_work(1, n, timed=True)
    for left, expected in (
        (0.0, ["exact", "relocation", "relocation", "exact", "relocation"]),
        (
            Budget.exact_work(2, n),
            ["exact", "relocation", "relocation", "exact", "exact"],
        ),
        (
            Budget.exact_work(2, n) + Budget.exact_work(4, n),
            ["exact", "relocation", "exact", "exact", "exact"],
        ),
    ):
        plan = plan_for(X, Budget(total_work=known + left), times=times)
        for ways in (plan.ways(dense(n)), for_any_theta(plan)):
            assert ways[plan.distinct.inverse].tolist() == expected


def test_one_item_at_a_known_time_does_not_end_the_search():
    """A set of one item at a known time is evaluated exactly, although larger sets cost less."""
    n = 4
    assert Budget.exact_work(1, n, timed=True) > Budget.exact_work(3, n)
    plan = plan_for(
        table(n, [0], [1, 2], [1, 2, 3]), Budget(total_work=1.0), times=[1.0, np.nan, np.nan]
    )
    for ways in (plan.ways(dense(n)), for_any_theta(plan)):
        assert ways[plan.distinct.inverse].tolist() == ["exact", "relocation", "relocation"]


# --- Likelihoods, posteriors and fits use the same plan -------------------------------------------


def test_likelihoods_posteriors_and_fits_sample_the_same_sets():
    n = 7
    sets = [range(k) for k in range(n + 1)]
    X = table(n, *sets)
    theta = dense(n).theta
    for k in (1, 4, 6, 7):
        budget = Budget(work=Budget.exact_work(k, n))
        expected = ["exact" if size <= k else "relocation" for size in range(n + 1)]
        options = {"budget": budget, "random_state": 1}
        assert evaluate(theta, X, gradient=False, **options).methods.tolist() == expected
        assert sample_posteriors(theta, X, **options).methods.tolist() == expected
        objective = Objective(Dataset(X), Exponential(), Settings(**options))
        assert sorted(large.items.size for large in objective.large) == list(range(k + 1, n + 1))


def test_the_total_holds_for_likelihoods_and_for_fits():
    n = 7
    X = table(n, *(range(k) for k in range(n + 1)))
    budget = Budget(total_work=sum(Budget.exact_work(k, n) for k in range(n)))
    likelihood = Likelihood(X, budget=budget, random_state=1)
    found = likelihood.evaluate(dense(n).theta)
    assert found.methods.tolist() == ["exact"] * n + ["relocation"]
    objective = Objective(Dataset(X), Exponential(), Settings(budget=budget, random_state=1))
    assert [large.items.size for large in objective.large] == [n]
