"""The budget: valid values, the sets that it allows, and the method chosen for each sample."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import reference as ref
from sequela import (
    Budget,
    BudgetError,
    Dataset,
    InputError,
    Likelihood,
    Sampling,
    evaluate,
    log_likelihood,
)


def table(n, *sets):
    X = np.zeros((len(sets), n), dtype=int)
    for row, S in zip(X, sets, strict=True):
        row[list(S)] = 1
    return X


def work_that_fits(size, columns, *, timed=False):
    """Return a budget whose work is just enough to evaluate a set of this size exactly."""
    return Budget(work=Budget.exact_work(size, columns, timed=timed))


# --- Valid values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("200MB", 200e6),
        ("200 mb", 200e6),
        ("0.2GB", 200e6),
        ("1.5 G", 1.5e9),
        ("3000KB", 3e6),
        ("1TB", 1e12),
        ("50000", 50_000),
        ("50000 B", 50_000),
        (50_000, 50_000),
        (5e4, 50_000),
    ],
)
def test_amounts_of_memory(text, amount):
    """Memory that is given as text allows the same sets as the same number of bytes."""
    read = Budget(memory=text, work=1e300)
    assert Budget(memory=amount, work=1e300).exact_memory(0, 1) <= amount
    for size in range(41):
        assert read.exact_fits(size, 1) == (Budget.exact_memory(size, 1) <= amount)


@pytest.mark.parametrize(
    "memory", ["", "much", "200XB", "1PB", "-5MB", "1.2.3MB", "MB", 0, -1, float("nan"), None, [1]]
)
def test_amounts_of_memory_that_are_none(memory):
    with pytest.raises(InputError, match="budget memory is"):
        Budget(memory=memory)


@pytest.mark.parametrize("work", [0, -1.0, float("nan"), "2e9", None, True])
@pytest.mark.parametrize("name", ["work", "total_work"])
def test_amounts_of_work_that_are_none(name, work):
    with pytest.raises(InputError, match=f"budget {name} is .*expected a positive number of"):
        Budget(**{name: work})


@pytest.mark.parametrize("memory", [10, "1KB"])
def test_a_budget_that_no_set_fits(memory):
    with pytest.raises(InputError, match="give more memory"):
        Budget(memory=memory)


# A regression test: np.int64 was refused, because it is not an int of Python.
@pytest.mark.parametrize("number", [np.int64(10**8), np.float64(1e8)])
def test_numbers_of_numpy(number):
    assert Budget(memory=number, work=number).exact_fits(10, 10)


# A regression test: these calls raised an AttributeError and an OverflowError.
def test_what_is_no_budget_is_refused():
    with pytest.raises(InputError):
        log_likelihood(np.zeros((2, 2)), [[1, 1]], budget="200MB")
    with pytest.raises(InputError):
        Budget(memory=10**400)


def test_the_docstring_tells_the_truth_about_the_default():
    """The docstring says how many items may interact in an exact evaluation of 20 items."""
    text = " ".join(Budget.__doc__.split())
    said = re.search(r"of 20 items are evaluated exactly if at most (\d+)", text)
    assert Budget().exact_fits(20, int(said[1]))
    assert not Budget().exact_fits(20, int(said[1]) + 20)


def test_larger_is_never_cheaper():
    for timed in (False, True):
        for measure in (Budget.exact_memory, Budget.exact_work):
            sizes = [measure(size, 50, timed=timed) for size in range(30)]
            columns = [measure(10, count, timed=timed) for count in range(1, 200)]
            assert (np.diff(sizes) > 0).all()
            assert (np.diff(columns) > 0).all()


# --- The choice of a method for each sample -------------------------------------------------------


def test_the_choice_is_made_for_each_sample_and_shown():
    n = 8
    theta = ref.random_theta(np.random.default_rng(1), n, 0.3)
    data = Dataset(
        table(n, [], [0], range(4), range(6), range(7), range(4)),
        samples=["none", "one", "four", "six", "seven", "four again"],
    )
    found = evaluate(theta, data, budget=work_that_fits(4, n), random_state=1)
    shown = found.samples
    assert list(shown.index) == list(data.samples)
    assert shown["size"].tolist() == [0, 1, 4, 6, 7, 4]
    assert shown["method"].tolist() == [
        "exact", "exact", "exact", "relocation", "relocation", "exact",
    ]  # fmt: skip
    sampled = shown["method"] == "relocation"
    assert (shown["standard_error"][sampled] > 0).all()
    assert (shown["standard_error"][~sampled] == 0).all()
    assert shown["log_likelihood"].mean() == pytest.approx(found.value, rel=1e-13)
    assert "4 exact" in repr(found)
    assert "2 relocation" in repr(found)
    for name in ("none", "one", "four", "four again"):
        S = np.flatnonzero(data.values[data.samples.index(name)])
        assert shown.loc[name, "log_likelihood"] == pytest.approx(
            ref.log_p_set(theta, S), abs=1e-11
        )


def test_the_limit_itself_fits_and_a_little_less_does_not():
    theta = ref.random_theta(np.random.default_rng(1), 7, 0.3)
    X = table(7, range(5))
    work = Budget.exact_work(5, 7)
    memory = Budget.exact_memory(5, 7)
    for fits, budget in (
        (True, Budget(work=work)),
        (False, Budget(work=work * 0.999)),
        (True, Budget(memory=memory)),
        (False, Budget(memory=memory * 0.999)),
    ):
        found = evaluate(theta, X, budget=budget, random_state=1, gradient=False)
        assert found.methods[0] == ("exact" if fits else "relocation")


def test_few_interactions_make_a_set_cheaper():
    """The cost of a set depends on how many items its items interact with, not on n."""
    n = 60
    dense = ref.random_theta(np.random.default_rng(1), n, 0.1)
    sparse = np.diag(dense.diagonal())
    X = table(n, range(8))
    budget = work_that_fits(8, 10)
    assert evaluate(sparse, X, budget=budget, random_state=1).methods[0] == "exact"
    assert evaluate(dense, X, budget=budget, random_state=1).methods[0] == "relocation"


# A regression test: for a set of one item, the kernel raised "negative dimensions not allowed".
@pytest.mark.parametrize("S", [[], [1], [0, 2]])
@pytest.mark.parametrize("times", [None, [1.0]])
def test_tiny_sets_beyond_the_budget(S, times):
    """The results for sets of at most two items are right with any budget.

    The standard errors are estimated from 16 chains. An error of more than 8 standard errors has a
    probability of about 1e-6.
    """
    theta = ref.random_theta(np.random.default_rng(1), 3, 0.3)
    found = evaluate(theta, table(3, S), times=times, budget=Budget(work=1.0), random_state=1)
    exact = evaluate(theta, table(3, S), times=times)
    assert found.value == pytest.approx(exact.value, abs=1e-9 + 8 * found.value_se)
    np.testing.assert_array_less(
        np.abs(found.gradient - exact.gradient), 1e-9 + 8 * found.gradient_se
    )


def test_one_likelihood_chooses_anew_for_every_theta():
    n = 60
    dense = ref.random_theta(np.random.default_rng(1), n, 0.1)
    sparse = np.diag(dense.diagonal())
    likelihood = Likelihood(
        table(n, range(8), range(2)), budget=work_that_fits(8, 10), random_state=1
    )
    chosen = [likelihood.evaluate(at).methods[0] for at in (sparse, dense, sparse)]
    assert chosen == ["exact", "relocation", "exact"]
    assert likelihood.evaluate(sparse).value == pytest.approx(
        evaluate(sparse, likelihood.data).value, rel=1e-13
    )


def test_known_times_have_a_budget_of_their_own():
    """Sets at known times cost more. If they are beyond the budget, they are sampled."""
    theta = ref.random_theta(np.random.default_rng(1), 8, 0.1)
    X = table(8, range(6), range(6), range(3))
    times = [np.nan, 1.0, 1.0]
    assert Budget.exact_work(6, 8, timed=True) > Budget.exact_work(6, 8)
    found = evaluate(theta, X, times=times, budget=work_that_fits(3, 8, timed=True), random_state=1)
    assert list(found.methods) == ["exact", "metropolis", "exact"]


def test_methods_by_name_do_not_ask_the_budget():
    theta = ref.random_theta(np.random.default_rng(1), 4, 0.3)
    for method in ("relocation", "metropolis", "metropolis-uniform"):
        found = evaluate(theta, table(4, range(4)), method=method, random_state=1)
        assert list(found.methods) == [method]


@pytest.mark.parametrize("times", [None, [1.0, 2.0]])
def test_exact_beyond_the_budget_is_refused_by_name(times):
    theta = ref.random_theta(np.random.default_rng(1), 8, 0.3)
    data = Dataset(table(8, [0], range(6)), samples=["small", "large"])
    budget = work_that_fits(5, 8, timed=times is not None)
    with pytest.raises(BudgetError, match=r"'large' \(row 1\) has 6 items.*Increase the budget"):
        log_likelihood(theta, data, times=times, method="exact", budget=budget)
    more = work_that_fits(6, 8, timed=times is not None)
    assert np.isfinite(log_likelihood(theta, data, times=times, method="exact", budget=more))


@pytest.mark.parametrize("k", [41, 60, 1100])
def test_no_budget_is_enough_for_2_to_the_41(k):
    """Sets of more than 40 items with interactions are never evaluated exactly on a lattice.

    The error message must not suggest a larger budget. 2^1100 is larger than every double, but this
    must not cause another error.
    """
    theta = np.full((k, k), -0.01)  # all items interact: one component
    budget = Budget(memory=1e300, work=1e300)
    with pytest.raises(BudgetError, match=rf"{k} items: .*never exact, for any budget\. Use"):
        log_likelihood(theta, table(k, range(k)), method="exact", budget=budget)


# --- Memory ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_a_lattice_of_20_items_stays_under_200_megabytes():
    """Measure the peak memory of a separate process, after the kernels are loaded."""
    script = """
        from pathlib import Path
        import numpy as np
        from sequela import evaluate

        def kilobytes(name):
            status = Path("/proc/self/status").read_text()
            return int(status.split(name + ":")[1].split()[0])

        rng = np.random.default_rng(0)
        theta = rng.normal(0, 0.2, (100, 100))
        X = np.zeros((1, 100), dtype=int)
        X[0, :10] = 1
        evaluate(theta, X, n_threads=1)
        Path("/proc/self/clear_refs").write_text("5")  # reset the recorded peak
        before = kilobytes("VmRSS")
        X[0, :20] = 1
        found = evaluate(theta, X, n_threads=1)
        assert found.methods[0] == "exact"
        print(kilobytes("VmHWM") - before)
    """
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    kilobytes = int(done.stdout)
    assert (
        2**20 * 8 * 2 / 1000 < kilobytes < 200_000
    )  # two tables of the lattice alone need the lower limit


# --- Options of sampling --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chains", "sweeps", "block", "draws", "nodes"])
@pytest.mark.parametrize("bad", [0, -3, 1.5, "4", True, None])
def test_counts_of_sampling_are_positive_integers(name, bad):
    with pytest.raises(InputError, match=f"sampling {name} is"):
        Sampling(**{name: bad})


@pytest.mark.parametrize("name", ["burn_in", "draws_burn_in"])
def test_burn_in_may_be_zero_but_not_less(name):
    assert getattr(Sampling(**{name: 0}), name) == 0
    with pytest.raises(InputError, match=f"sampling {name} is -1"):
        Sampling(**{name: -1})


def test_blocks_have_a_limit():
    assert Sampling(block=8).block == 8
    with pytest.raises(InputError, match="at most 8"):
        Sampling(block=9)
