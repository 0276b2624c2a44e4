"""The options of plans are checked when a plan is made. Names are loaded when first used."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import fields

import pytest

from sequela import Dataset, InputError, repeats
from sequela.learning.estimator import SetChain
from sequela.repeats.fits import _DECIDED, FitKeywords, Repeats, RepeatsKeywords, plan_fits

DATA = Dataset([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 0]], items=["a", "b", "c"])


def test_the_keywords_are_those_of_the_objects():
    assert list(RepeatsKeywords.__annotations__) == [f.name for f in fields(Repeats)]
    options = inspect.signature(SetChain).parameters
    # The option `fixed` is left out: it is a table, and a plan cannot store tables.
    left_out = (*_DECIDED, "fixed")
    assert list(FitKeywords.__annotations__) == [name for name in options if name not in left_out]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lambda_": 1}, r"plan_fits\(\) got an unexpected keyword argument 'lambda_'\. .*penalty"),
        ({"bootstrap": 2}, "did you mean 'bootstraps'"),
        ({"penalties_": [0.1]}, "did you mean 'penalties'"),
        ({"order": ["a", "b"]}, "did you mean 'orders'"),
    ],
)
def test_a_keyword_that_is_none_is_refused_with_the_one_that_may_be_meant(given, message):
    with pytest.raises(TypeError, match=message):
        plan_fits(DATA, seed=1, seeds=2, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "nothing is repeated"),
        ({"random_subsets": 2}, "random_subsets needs item_subsets"),
        ({"folds": 1}, "folds is 1"),
        ({"seeds": 1.5}, r"seeds is 1\.5"),
        ({"item_subsets": []}, "item_subsets is empty"),
        ({"penalties": ()}, "penalties is empty"),
    ],
)
def test_what_does_not_fit_is_refused_without_data(given, message):
    with pytest.raises(InputError, match=message):
        Repeats(**given)


def test_an_unknown_item_is_named_with_the_one_that_may_be_meant():
    data = Dataset([[1, 0]], items=["step 1", "step 2"])
    with pytest.raises(InputError, match=r"orders: 'step1' \(did you mean 'step 1'\?\).*2 items"):
        plan_fits(data, seeds=2, seed=1, orders=["step1", "step 2"])


def test_repeats_keep_what_they_were_given_only_once():
    """Sizes and penalties may be generators, which can be read only once."""
    kinds = Repeats(item_subsets=(n for n in [2, 3]), penalties=(p for p in [0.1, 0.2]))
    first = kinds.cases(DATA, kinds.penalties)
    assert first == kinds.cases(DATA, kinds.penalties)
    assert len(first) == 4


def test_the_front_door_loads_nothing():
    script = "import sys, sequela.repeats\nprint(*sys.modules)"
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "sequela.repeats" in done.stdout.split()
    assert not {"numba", "pandas", "sklearn", "joblib"} & set(done.stdout.split())


def test_the_front_door_opens_to_every_name():
    """Every public name is a function or a class, and no module of the same name hides it."""
    for name in repeats.__all__:
        assert callable(getattr(repeats, name))
    assert "plan_fits" in dir(repeats)
