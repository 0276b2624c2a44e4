"""The number of threads of linear algebra does not influence a fit, and is not changed by it."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from sequela import SetChain
from sequela.learning import independent_fit
from sequela.learning.bounded_descent import minimise
from sequela.learning.independent_fit import fit_independent
from sequela.support.linear_algebra import blas_on_one_thread, one_thread


def threads() -> list[int]:
    return [row["num_threads"] for row in threadpool_info() if row["user_api"] == "blas"]


def test_linear_algebra_has_one_thread_until_the_last_is_done():
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        assert max(before) == 2
        with blas_on_one_thread():
            with one_thread():
                assert set(threads()) == {1}
            assert set(threads()) == {1}
        assert threads() == before


def test_limits_of_several_threads_overlap():
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with blas_on_one_thread():
            entered.set()
            leave.wait(10)

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        with blas_on_one_thread():
            other = threading.Thread(target=hold)
            other.start()
            assert entered.wait(10)
        assert set(threads()) == {1}, "the other thread still needs the limit"
        leave.set()
        other.join()
        assert threads() == before
        with threadpool_limits(1, user_api="blas"):
            assert set(threads()) == {1}, "the right to set limits was not given back"


def test_an_error_lifts_the_limit():
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        with pytest.raises(ZeroDivisionError), blas_on_one_thread():
            raise ZeroDivisionError
        assert threads() == before


def test_the_model_without_interactions_is_learned_on_one_thread(monkeypatch):
    seen = []

    def watched(*args, **options):
        seen.append(set(threads()))
        return minimise(*args, **options)

    monkeypatch.setattr(independent_fit, "minimise", watched)
    with threadpool_limits(2, user_api="blas"):
        fit_independent(np.eye(3), np.full(3, 1 / 3))
    assert seen == [{1}]


def test_a_fit_is_the_same_whatever_linear_algebra_may_use():
    # The table is so large that OpenBLAS would use several threads for matrix products.
    sets = np.random.default_rng(1).random((300, 60)) < 0.06
    weights = np.full(300, 1 / 300)
    found = []
    for count in (1, 2):
        with threadpool_limits(count, user_api="blas"):
            alone = fit_independent(sets.astype(float), weights).log_rates
            chain = SetChain(0.02, random_state=1, progress=False).fit(sets.astype(int))
            assert set(threads()) == {count}
        found.append((alone, chain.theta_))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
