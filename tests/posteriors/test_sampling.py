"""The function `sequela.posterior`: options, continued runs, checkpoints, errors."""

from __future__ import annotations

import numpy as np
import pytest

import sequela
from posteriors import stops
from sequela.posteriors import Laplace, LearnedScale, NotConvergedWarning, StudentT, diagnostics
from sequela.posteriors import sampling as module

pytestmark = pytest.mark.filterwarnings("ignore::sequela.posteriors.NotConvergedWarning")

THETA = [[-0.5, 1.5, 0.0], [0.0, -2.0, 0.5], [0.0, 0.0, -1.0]]
OPTIONS = {"draws": 30, "warm_up": 20, "chains": 2, "thin": 1, "jumps": 3, "random_state": 5}


@pytest.fixture(scope="module")
def data():
    return sequela.simulate(THETA, 60, random_state=1).to_dataset().without_times()


@pytest.fixture(scope="module")
def found(data):
    with pytest.warns(NotConvergedWarning, match="NOT converged"):
        return sequela.posterior(data, **OPTIONS)


def same(one, other):
    return all(
        np.array_equal(getattr(one.draws, name), getattr(other.draws, name))
        for name in ("theta", "scale", "log_likelihood", "orders")
    )


def test_draws_have_the_shapes_that_were_asked_for(found):
    assert found.draws.theta.shape == (2, 30, 3, 3)
    assert found.draws.orders.shape == (2, 30, len(found.pairs))
    assert found.seed == 5
    assert found.n_draws == 60
    assert "not converged" in repr(found)
    assert np.isfinite(found.draws.theta).all()
    assert len(np.unique(found.draws.theta[:, :, 0, 1])) > 20


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads(data, found):
    assert same(sequela.posterior(data, **OPTIONS, n_threads=1), found)
    assert not same(sequela.posterior(data, **{**OPTIONS, "random_state": 6}), found)


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_continued_run_is_a_longer_run(data, replicas, tmp_path):
    options = {**OPTIONS, "replicas": replicas}
    short = sequela.posterior(data, **{**options, "draws": 12})
    short.save(tmp_path / "short.npz")
    longer = sequela.posterior(data, continue_from=tmp_path / "short.npz", draws=18)
    assert same(longer, sequela.posterior(data, **options))


@pytest.mark.parametrize("seconds", [stops.SINGLE, stops.GROWING])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_sizes_of_batches_change_no_bit(data, found, monkeypatch, seconds, threads):
    monkeypatch.setattr(module, "_SECONDS_TOGETHER", seconds)
    again = sequela.posterior(data, **OPTIONS, n_threads=threads)
    assert same(again, found)
    (plan, arrays), (wanted_plan, wanted) = again.chain_states, found.chain_states
    assert plan == wanted_plan
    assert arrays.keys() == wanted.keys()
    assert all(np.array_equal(arrays[name], wanted[name]) for name in wanted)


def test_a_batch_takes_about_a_second():
    assert module._next_together(1, 0.4) == 2
    assert module._next_together(4, 0.99) == 4
    assert module._next_together(8, 2.0) == 4
    # a batch has at most twice as many draws as the last one
    assert module._next_together(2, 0.001) == 4
    assert module._next_together(32, 0.0) == 32
    assert module._next_together(1, 60.0) == 1


class Killed(BaseException):
    pass


def kill():
    raise Killed


# The warm-ups of the two chains have 20 draws each. The first run is stopped after 11 draws per
# chain. So the second run begins with the other 18 draws of the two warm-ups.
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("seconds", "last", "drawn"),
    [
        (stops.SINGLE, 18 + 2 * 17, 17),
        # stopped before the first chain begins its batch of 8 draws
        (stops.GROWING, 18 + 2 * 7, 7),
        (stops.GROWING, 18 + 2 * 7 + 11, 7),  # stopped during this batch, in the second chain
        (stops.GROWING, 18 + 2 * 15 + 6, 15),  # stopped during the last batch, which has 15 draws
    ],
)
def test_a_stopped_run_resumes_to_the_same_bits(
    data, found, tmp_path, monkeypatch, seconds, last, drawn, threads
):
    """The run writes a checkpoint at every step, and is stopped during and after its warm-up."""
    place = tmp_path / "run.npz"
    for number, kept in ((22, 0), (last, drawn)):
        with monkeypatch.context() as patch:
            stops.before_draw(patch, number, seconds, kill)
            with pytest.raises(Killed):
                sequela.posterior(data, checkpoint=place, **OPTIONS, n_threads=threads)
        assert sequela.Posterior.load(place).draws.scale.shape[1] == kept
    assert sequela.Posterior.load(place).chain_states[0]["done"] == 20 + drawn
    assert same(sequela.posterior(data, checkpoint=place, **OPTIONS), found)
    assert same(sequela.Posterior.load(place), found)


def test_a_prior_can_be_named(data):
    drawn = sequela.posterior(data, prior="laplace", **{**OPTIONS, "draws": 4})
    assert drawn.prior == Laplace(LearnedScale())
    fixed = sequela.posterior(data, prior=StudentT(3.0, 0.7), **{**OPTIONS, "draws": 4})
    assert fixed.draws.scale == pytest.approx(0.7)
    assert fixed.prior.df == 3.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"chains": 0}, "chains"),
        ({"draws": -1}, "draws"),
        ({"warm_up": 3}, "warm_up"),
        ({"jumps": -1}, "jumps"),
        ({"largest_lattice": 0}, "largest_lattice"),
        ({"prior": "flat"}, "expected one of 'laplace'"),
        ({"prior": Laplace}, "expected a prior such as"),
        ({"random_state": -1}, "random_state"),
        ({"checkpoint": "/nowhere/at/all.npz"}, "there is no folder"),
    ],
)
def test_bad_options(data, options, words):
    with pytest.raises(sequela.InputError, match=words):
        sequela.posterior(data, **{**OPTIONS, **options})


def test_unknown_options_name_the_closest(data):
    with pytest.raises(TypeError, match="did you mean 'chains'"):
        sequela.posterior(data, chain=4)


def test_known_times_are_refused():
    data = sequela.simulate(THETA, 10, random_state=1).to_dataset()
    with pytest.raises(sequela.InputError, match="known observation time"):
        sequela.posterior(data, **OPTIONS)


def test_other_data_cannot_be_continued(data, found):
    other = sequela.simulate(THETA, 60, random_state=2).to_dataset().without_times()
    with pytest.raises(sequela.InputError, match="other data"):
        sequela.posterior(other, continue_from=found)
    with pytest.raises(sequela.InputError, match="has the prior StudentT"):
        sequela.posterior(data, continue_from=found, prior="normal")
    with pytest.raises(sequela.InputError, match="chains cannot be changed"):
        sequela.posterior(data, continue_from=found, chains=3)
    with pytest.raises(sequela.InputError, match="has the observation"):
        sequela.posterior(data, continue_from=found, observation=sequela.Exponential(2.0))


def test_a_checkpoint_of_another_run_is_refused(data, tmp_path):
    place = tmp_path / "run.npz"
    sequela.posterior(data, checkpoint=place, **OPTIONS)
    with pytest.raises(sequela.InputError, match="has chains=2, not 3"):
        sequela.posterior(data, checkpoint=place, **{**OPTIONS, "chains": 3})
    with pytest.raises(sequela.InputError, match="has the seed 5, not 6"):
        sequela.posterior(data, checkpoint=place, **{**OPTIONS, "random_state": 6})


# --- Until convergence ----------------------------------------------------------------------------


@pytest.fixture
def judged_early(monkeypatch):
    """Judge convergence after 10, 13, 17, 23, ... draws, and with less strict limits."""
    monkeypatch.setattr(module, "_FIRST_CHECK", 10)
    monkeypatch.setattr(diagnostics, "LARGEST_R_HAT", 1.2)
    monkeypatch.setattr(diagnostics, "LEAST_EFFECTIVE", 30.0)


UNTIL = {**OPTIONS, "draws": None, "most_draws": 400, "thin": 4}


@pytest.mark.usefixtures("judged_early")
def test_a_run_ends_where_it_has_converged(data):
    found = sequela.posterior(data, **UNTIL)
    drawn = found.draws.scale.shape[1]
    assert found.convergence.converged
    assert 10 <= drawn < 400
    assert drawn in module._checks(400)
    fixed = {name: value for name, value in UNTIL.items() if name != "most_draws"}
    assert same(found, sequela.posterior(data, **{**fixed, "draws": drawn}))


@pytest.mark.usefixtures("judged_early")
def test_a_run_until_convergence_goes_on_and_resumes(data, tmp_path):
    whole = sequela.posterior(data, **UNTIL)
    start = sequela.posterior(data, **{**UNTIL, "most_draws": 7})
    assert start.draws.scale.shape[1] == 7
    assert not start.convergence.converged
    assert same(sequela.posterior(data, continue_from=start), whole)
    sequela.posterior(data, checkpoint=tmp_path / "run.npz", **UNTIL)
    assert same(sequela.posterior(data, checkpoint=tmp_path / "run.npz", **UNTIL), whole)


def test_runs_are_judged_at_growing_distances():
    assert sorted(module._checks(600)) == [250, 325, 423, 550]
    assert module._checks(249) == set()


def test_a_number_of_draws_and_a_limit_contradict_each_other(data):
    with pytest.raises(sequela.InputError, match="were both given"):
        sequela.posterior(data, draws=5, most_draws=10)
    with pytest.raises(sequela.InputError, match="most_draws"):
        sequela.posterior(data, most_draws=0)


def test_the_warm_up_of_a_run_until_convergence_is_counted_in_sweeps():
    assert module._read_plan({}, 5) == module.Plan(
        warm_up=62, draws=6000, until_converged=True, thin=8
    )
    assert module._read_plan({}, 50).warm_up == 250
    assert module._read_plan({"draws": 300}, 5).warm_up == 150
    assert module._read_plan({"warm_up": 77}, 5).warm_up == 77
