"""Results with the same seed have the same bits for any number of threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import reference as ref
from sequela import Budget, InputError, Sampling
from sequela.likelihood import Likelihood, evaluate, sample_posteriors, sequence_log_likelihood
from sequela.likelihood.exact import plan_blocks
from sequela.support import threads
from sequela.support.random import (
    PlanDraw,
    Purpose,
    materialise_seed,
    plan_stream,
    simulation_stream,
    stream,
)
from sequela.support.threads import at_most, resolve_threads, run_all, run_pieces

THREADS = [2, 3, 4]
SAMPLED = ("relocation", "metropolis", "metropolis-uniform")
FEW = Sampling(chains=5, sweeps=2, draws=10, draws_burn_in=2, nodes=3)


@pytest.fixture(scope="module")
def model():
    """Return theta, 120 sets of 0 to 13 items (in several blocks), and times (NaN if unknown)."""
    rng = np.random.default_rng(1)
    n = 20
    theta = ref.random_theta(rng, n, 0.4, sparsity=0.5)
    theta[4, 4] = 3.2  # a rate above SHORTCUT_LIMIT of kernels/columns.py
    X = np.zeros((120, n), dtype=int)
    for row in X:
        row[rng.choice(n, rng.integers(0, 14), replace=False)] = 1
    X[7] = X[11]
    times = np.where(rng.random(120) < 0.5, np.nan, rng.uniform(0.1, 4.0, 120))
    return theta, X, times


def assert_same_bits(one, other):
    assert one.value == other.value
    assert one.value_se == other.value_se
    for name in ("gradient", "gradient_se", "log_likelihoods", "standard_errors", "methods"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


# --- Threads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", THREADS)
def test_exact_sets(model, n_threads):
    theta, X, _ = model
    likelihood = Likelihood(X, n_threads=n_threads)
    found = likelihood.evaluate(theta)
    distinct = likelihood.distinct
    assert len(plan_blocks(distinct, np.arange(len(distinct)), X.shape[1])) >= 4
    assert_same_bits(found, evaluate(theta, X, n_threads=1))


@pytest.mark.parametrize("n_threads", THREADS)
def test_sets_out_of_range_of_the_fast_kernel(n_threads):
    rng = np.random.default_rng(2)
    theta = rng.choice([-30.0, 0.0, 30.0], (12, 12))
    X = (rng.random((40, 12)) < 0.5).astype(int)
    one, more = (evaluate(theta, X, n_threads=count) for count in (1, n_threads))
    assert np.isfinite(one.gradient).all()
    assert_same_bits(one, more)


@pytest.mark.parametrize("n_threads", THREADS)
def test_sets_at_known_times(model, n_threads):
    theta, X, _ = model
    small = X[X.sum(axis=1) < 9]
    times = np.linspace(0.2, 3.0, len(small))
    one, more = (evaluate(theta, small, times=times, n_threads=count) for count in (1, n_threads))
    assert_same_bits(one, more)


@pytest.mark.parametrize("n_threads", THREADS)
@pytest.mark.parametrize("method", SAMPLED)
def test_sampled_sets(model, method, n_threads):
    theta, X, _ = model
    one, more = (
        evaluate(
            theta, X[:20], method=method, sampling=FEW, random_state=3, n_threads=count
        )
        for count in (1, n_threads)
    )  # fmt: skip
    assert (one.standard_errors > 0).any()
    assert_same_bits(one, more)


@pytest.mark.parametrize("n_threads", THREADS)
def test_everything_at_once(model, n_threads):
    """Evaluate exact and sampled sets twice, with and without times.

    In the second evaluation, the chains of the sampled sets continue.
    """
    theta, X, times = model
    budget = Budget(work=Budget.exact_work(9, 20))
    results = []
    for count in (1, n_threads):
        likelihood = Likelihood(
            X, times=times, budget=budget, sampling=FEW, random_state=4, n_threads=count
        )
        results.append([likelihood.evaluate(theta), likelihood.evaluate(0.9 * theta)])
    assert set(results[0][0].methods) == {"exact", "relocation", "metropolis"}
    for one, more in zip(*results, strict=True):
        assert_same_bits(one, more)


@pytest.mark.parametrize("n_threads", THREADS)
def test_sequences(model, n_threads):
    theta, X, _ = model
    rng = np.random.default_rng(5)
    sequences = [rng.permutation(np.flatnonzero(row)).tolist() for row in X]
    for times in (None, np.linspace(0.1, 3.0, len(sequences))):
        one, more = (
            sequence_log_likelihood(
                theta, sequences, times=times, return_gradient=True, n_threads=count
            )
            for count in (1, n_threads)
        )
        assert one[0] == more[0]
        np.testing.assert_array_equal(one[1], more[1])


@pytest.mark.parametrize("n_threads", THREADS)
def test_posteriors(model, n_threads):
    theta, X, _ = model
    budget = Budget(work=Budget.exact_work(9, 20))
    one, more = (
        sample_posteriors(
            theta, X, budget=budget, sampling=FEW, random_state=6, n_threads=count
        )
        for count in (1, n_threads)
    )  # fmt: skip
    assert set(one.methods) == {"exact", "relocation"}
    for name in ("time_mean", "time_variance", "time_se", "arrival_mean", "arrival_variance"):
        np.testing.assert_array_equal(getattr(one, name), getattr(more, name))
    for sample in range(len(X)):
        np.testing.assert_array_equal(one.before(sample), more.before(sample))
        np.testing.assert_array_equal(one.before_se(sample), more.before_se(sample))


def test_several_threads_of_the_user_at_once(model):
    """Calls in several threads must not disturb each other: kernels run without Python's lock."""
    theta, X, _ = model
    alone = evaluate(theta, X, n_threads=1)
    found = [None] * 6

    def run(at):
        found[at] = evaluate(theta, X, n_threads=2)

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other in found:
        assert_same_bits(alone, other)


# --- Seeds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", SAMPLED)
def test_the_same_seed_gives_the_same_bits_and_another_does_not(model, method):
    theta, X, _ = model
    X = X[X.sum(axis=1) >= 10][:3]
    first, again, other = (
        evaluate(theta, X, method=method, sampling=FEW, random_state=seed) for seed in (7, 7, 8)
    )
    assert_same_bits(first, again)
    assert first.seed == 7
    assert first.value != other.value
    assert not np.array_equal(first.gradient, other.gradient)


def test_no_seed_is_recorded_and_reproduces(model):
    theta, X, _ = model
    X = X[X.sum(axis=1) >= 10][:3]
    found = evaluate(theta, X, method="relocation", sampling=FEW)
    assert evaluate(theta, X, method="relocation", sampling=FEW).seed != found.seed
    again = evaluate(theta, X, method="relocation", sampling=FEW, random_state=found.seed)
    assert_same_bits(found, again)
    posterior = sample_posteriors(theta, X, budget=Budget(work=1e3), sampling=FEW)
    repeated = sample_posteriors(
        theta, X, budget=Budget(work=1e3), sampling=FEW, random_state=posterior.seed
    )
    np.testing.assert_array_equal(posterior.time_mean, repeated.time_mean)


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_generators_move_on(model, kind):
    """A generator gives a new seed at every call. Equal generators give equal seeds."""
    theta, X, _ = model
    X = X[X.sum(axis=1) >= 10][:1]
    seeds = []
    for _ in range(2):
        generator = kind(9)
        found = [
            evaluate(theta, X, method="relocation", sampling=FEW, random_state=generator)
            for _ in range(2)
        ]
        assert found[0].seed != found[1].seed
        seeds.append([one.seed for one in found])
    assert seeds[0] == seeds[1]


def test_chains_and_sets_have_streams_of_their_own(model):
    """Chains and sets have different draws. Otherwise standard errors would be wrong."""
    theta, X, _ = model
    X = X[X.sum(axis=1) >= 10][:2]
    likelihood = Likelihood(X, method="relocation", sampling=FEW, random_state=1)
    likelihood.evaluate(theta, value=False)
    orders = [tuple(chain.order) for chains in likelihood._chains.values() for chain in chains]
    assert len(orders) == 10
    assert len(set(orders)) == 10


def key(generator):
    """Return the key of a stream: the numbers that identify it among the streams of one seed."""
    return generator.bit_generator.seed_seq.spawn_key


def test_streams_depend_on_every_part_of_their_index():
    indices = [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (0, 0, 1)]
    drawn = {
        stream(seed, purpose, *index).random()
        for seed in (0, 1, 2**127)
        for purpose in Purpose
        for index in indices
    }
    drawn |= {
        simulation_stream(seed, chunk).random() for seed in (0, 1, 2**127) for chunk in (0, 1)
    }
    assert len(drawn) == 3 * (len(Purpose) * len(indices) + 2)
    first, again = (stream(3, Purpose.FOLDS, 4).random(5) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_the_number_of_a_purpose_is_part_of_what_a_seed_means():
    """The number of each purpose is fixed: otherwise, recorded seeds would give other results."""
    assert {purpose.name: int(purpose) for purpose in Purpose} == {
        "FITTED_ORDERS": 1,
        "RANDOM_START": 2,
        "FOLDS": 3,
        "ADAGRAD_SEED": 4,
        "SAMPLED_LIKELIHOOD": 5,
        "SAMPLED_POSTERIOR": 6,
        "POSTERIOR_CHAIN": 7,
        "POSTERIOR_SWAP": 8,
        "EXPERIMENT": 10,
        "QUESTION_TO_DRAW": 11,
        "COMPLETIONS": 12,
        "STUDY": 13,
        "FIT_CHECK": 14,
        "SUBTYPES": 15,
    }
    # If two names had the same number, the comparison above would see only the first name. So
    # check that all names have different numbers.
    assert len(Purpose.__members__) == len(Purpose)


@pytest.mark.parametrize("index", [(), (0,), (3, 5), (1, 2, 3, 4)])
def test_streams_of_different_purposes_never_have_the_same_key(index):
    keys = {key(stream(7, purpose, *index)) for purpose in Purpose}
    assert len(keys) == len(Purpose)
    assert {found[0] for found in keys} == {int(purpose) for purpose in Purpose}
    assert {found[1:] for found in keys} == {index or (0,)}


def test_no_other_stream_can_have_the_key_of_a_simulation():
    """The key of a stream for simulations is one number, the number of the chunk of draws.

    The keys of all other streams have at least two numbers, so no stream has the same key.
    """
    for chunk in (0, 1, 10, 2**20):
        assert key(simulation_stream(7, chunk)) == (chunk,)
    for purpose in Purpose:
        assert len(key(stream(7, purpose))) == 2
        assert len(key(stream(7, purpose, 1))) == 2
        assert len(key(stream(7, purpose, 1, 2))) == 3


def test_simulations_keep_the_draws_of_their_seeds():
    """The stream of a chunk of draws is the same as in versions that had no `Purpose`."""
    for seed, chunk in ((0, 0), (7, 3), (2**200, 1)):
        before = np.random.Generator(
            np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(chunk,)))
        )
        found = simulation_stream(seed, chunk).random(4)
        np.testing.assert_array_equal(found, before.random(4))


def test_plans_keep_the_draws_of_their_seeds():
    """The keys are the same as in version 0.1, so a folder of version 0.1 can be continued."""
    keys = {PlanDraw.BOOTSTRAP: (1, 4), PlanDraw.FOLDS: (2, 5), PlanDraw.SUBSET: (3, 10, 2)}
    assert set(keys) == set(PlanDraw)
    for draw, expected in keys.items():
        assert key(plan_stream(7, draw, *expected[1:])) == expected


def test_seeds_as_they_come():
    assert materialise_seed(0) == 0
    assert materialise_seed(np.int32(5)) == 5
    assert materialise_seed(2**200) == 2**200
    assert materialise_seed(None) != materialise_seed(None)
    assert type(materialise_seed(np.int64(5))) is int


@pytest.mark.parametrize("bad", [-1, 1.5, "1", True, [1], object()])
def test_what_is_no_seed(bad):
    with pytest.raises(InputError, match="random_state is"):
        materialise_seed(bad)


# --- How many threads -----------------------------------------------------------------------------


def test_the_number_of_threads(monkeypatch):
    assert resolve_threads(3) == 3
    assert resolve_threads(np.int64(2)) == 2
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    available = resolve_threads(None)
    assert available >= 1
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    assert resolve_threads(None) == 1
    for odd in ("0", "", "many", "100000"):
        monkeypatch.setenv("SLURM_CPUS_PER_TASK", odd)
        assert resolve_threads(None) == available


@pytest.mark.parametrize("bad", [0, -1, 1.5, "2", True, [1]])
def test_what_is_no_number_of_threads(bad):
    with pytest.raises(InputError, match="n_threads is"):
        resolve_threads(bad)


def test_cores_are_those_of_joblib(monkeypatch):
    """`available_cores` knows the limits of containers, like joblib, but does not load joblib."""
    from joblib import cpu_count

    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    assert threads.available_cores() == cpu_count()
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert threads.available_cores() == cpu_count() == 1


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu.max": "garbage"}, None),
        ({}, None),
    ],
)
def test_containers_limit_the_cores(tmp_path, files, cores):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert threads._container_limit(tmp_path) == cores


def test_a_limit_holds_inside_its_block_unless_a_call_names_its_own():
    usual = resolve_threads(None)
    with at_most(1):
        assert resolve_threads(None) == 1
        assert resolve_threads(3) == 3
        with at_most(2):
            assert resolve_threads(None) == 2
        assert resolve_threads(None) == 1
    assert resolve_threads(None) == usual


@pytest.mark.parametrize("n_threads", [1, 2, 8])
def test_pieces_come_back_in_their_order(n_threads):
    assert run_pieces(lambda x: x * x, range(30), n_threads) == [x * x for x in range(30)]
    assert run_pieces(lambda x: x, [], n_threads) == []


@pytest.mark.parametrize("n_threads", [1, 2, 8])
def test_pieces_of_any_kind_come_back_in_their_order(n_threads):
    pieces = [lambda: "one", lambda: 2, lambda: None, *(partial(pow, x, 2) for x in range(20))]
    assert run_all(pieces, n_threads) == ["one", 2, None, *(x * x for x in range(20))]
    assert run_all([], n_threads) == []


def test_pieces_run_side_by_side():
    """Two pieces of work wait for each other. So they end only if they run at the same time."""
    barrier = threading.Barrier(2)

    def meet():
        barrier.wait(30)
        return threading.get_ident()

    one, other = run_all([meet, meet], 2)
    assert one != other


def test_one_thread_is_the_thread_of_the_caller():
    """If one thread is used, it is the calling thread, in which debuggers and Ctrl-C work."""
    here = threading.get_ident()
    assert run_all([threading.get_ident] * 3, 1) == [here] * 3
    assert run_all([threading.get_ident], 4) == [here]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_error_in_a_piece_is_raised(n_threads):
    def work(x):
        if x == 5:
            raise KeyError(x)
        return x

    with pytest.raises(KeyError):
        run_pieces(work, range(20), n_threads)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("failure", [KeyError, KeyboardInterrupt])
def test_after_an_error_the_pieces_that_wait_are_dropped(monkeypatch, n_threads, failure):
    """After an error, pieces of work that have not begun are cancelled.

    In this test, running pieces wait until the others are cancelled. So each thread runs at most
    one piece.
    """
    dropped = threading.Event()
    begun = []

    class Watched(ThreadPoolExecutor):
        def shutdown(self, wait=True, *, cancel_futures=False):
            super().shutdown(wait=wait, cancel_futures=cancel_futures)
            dropped.set()

    def fail():
        raise failure

    def hold(at):
        begun.append(at)
        dropped.wait(2)

    monkeypatch.setattr(threads, "ThreadPoolExecutor", Watched)
    with pytest.raises(failure):
        run_all([fail, *(partial(hold, at) for at in range(6))], n_threads)
    assert len(begun) <= n_threads
