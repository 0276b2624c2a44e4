"""`Settings`: which values are valid, and how functions read the settings."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

import reference as ref
from sequela import Budget, InputError, Likelihood, Sampling, evaluate
from sequela.settings import Settings, SettingsKeywords, read_settings
from sequela.support.threads import at_most, resolve_threads

THETA = ref.random_theta(np.random.default_rng(1), 5)
ALL = [[1, 1, 1, 1, 1]]


# --- The object -----------------------------------------------------------------------------------


def test_defaults():
    settings = Settings()
    assert settings.budget == Budget()
    assert settings.sampling == Sampling()
    assert settings.draws is None
    assert settings.target_se is None
    assert settings.threads == resolve_threads(None)


def test_none_is_the_default():
    settings = Settings(
        budget=None,
        sampling=None,
        draws=None,
        target_se=None,
        random_state=1,
        n_threads=None,
        max_models=None,
    )
    assert settings == Settings(random_state=1)


def test_what_is_given_is_kept():
    budget, sampling = Budget(work=1e6), Sampling(chains=3)
    settings = Settings(budget=budget, sampling=sampling, draws=50, random_state=7, n_threads=3)
    assert settings.budget is budget
    assert settings.sampling is sampling
    assert (settings.draws, settings.seed, settings.threads) == (50, 7, 3)
    assert Settings(target_se=0.01).target_se == 0.01


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"budget": "200MB"}, r"budget is '200MB'; expected a sequela\.Budget"),
        ({"budget": 1e9}, "budget is 1000000000"),
        ({"sampling": 16}, r"sampling is 16; expected a sequela\.Sampling"),
        ({"sampling": {"chains": 3}}, "sampling is .*'chains'"),
        ({"draws": 1}, "draws is 1; expected an integer of at least 2"),
        ({"draws": 10.0}, r"draws is 10\.0; expected an integer"),
        ({"draws": True}, "draws is True; expected an integer"),
        ({"draws": "10"}, "draws is '10'; expected an integer"),
        ({"target_se": 0.0}, r"target_se is 0\.0; expected a positive number"),
        ({"target_se": -0.1}, r"target_se is -0\.1"),
        ({"target_se": np.inf}, "target_se is inf"),
        ({"target_se": np.nan}, "target_se is nan"),
        ({"target_se": "0.1"}, "target_se is '0.1'"),
        ({"target_se": True}, "target_se is True"),
        ({"draws": 100, "target_se": 0.01}, r"draws \(100\) and target_se \(0\.01\) were"),
        ({"random_state": -1}, "random_state is -1"),
        ({"random_state": 1.5}, r"random_state is 1\.5"),
        ({"n_threads": 0}, "n_threads is 0; expected a positive integer"),
        ({"n_threads": 2.0}, r"n_threads is 2\.0"),
        ({"max_models": 0}, "max_models"),
        ({"max_models": 2.5}, "max_models"),
    ],
)
def test_what_is_no_setting(bad, message):
    with pytest.raises(InputError, match=message):
        Settings(**bad)
    with pytest.raises(InputError, match=message):
        read_settings(bad)
    with pytest.raises(InputError, match=message):
        Settings().but(**bad)


def test_settings_cannot_be_changed():
    settings = Settings(random_state=1)
    for name in (field.name for field in fields(settings)):
        with pytest.raises(FrozenInstanceError):
            setattr(settings, name, None)
    with pytest.raises(FrozenInstanceError):
        settings.sampling.chains = 3


def test_the_number_of_threads_is_found_where_the_work_is_done():
    """If `n_threads` is None, cores are counted when the settings are used, not before."""
    settings = Settings()
    with at_most(1):
        assert settings.threads == 1
        assert Settings(n_threads=3).threads == 3


def test_type_checkers_know_every_keyword():
    names = {field.name for field in fields(Settings) if field.init}
    assert set(SettingsKeywords.__annotations__) == {"settings", *names}
    assert "seed" not in names


# --- The seed -------------------------------------------------------------------------------------


def test_no_seed_is_a_fresh_one_that_can_be_given_again():
    one, other = Settings(), Settings()
    assert one.seed != other.seed
    assert Settings(random_state=one.seed) == one


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_a_generator_is_asked_once_for_a_seed(kind):
    """Settings draw one seed from a generator. Changed copies of them keep this seed."""
    generator, twin = kind(9), kind(9)
    settings = Settings(random_state=generator)
    expected = Settings(random_state=twin)
    assert settings.seed == expected.seed
    for again in (
        settings.but(n_threads=2),
        read_settings({"settings": settings}),
        read_settings({"settings": settings, "draws": 50}),
        evaluate(THETA, ALL, settings=settings),
        evaluate(THETA, ALL, settings=settings, n_threads=1),
    ):
        assert again.seed == expected.seed
    # If another seed had been drawn, the two generators would now differ.
    assert generator.random() == twin.random()


def test_a_change_keeps_the_seed():
    settings = Settings()
    assert settings.but(draws=100).seed == settings.seed
    assert settings.but(draws=100).draws == 100
    assert settings.but(draws=100).but(draws=None, target_se=0.1).seed == settings.seed
    assert settings.draws is None
    assert settings.but() == settings
    assert settings.but(random_state=5).seed == 5


# --- Reading them ---------------------------------------------------------------------------------


def test_keywords_are_settings():
    assert read_settings({"random_state": 3, "draws": 20}) == Settings(random_state=3, draws=20)
    assert read_settings({"settings": None, "random_state": 3}) == Settings(random_state=3)
    given = {"random_state": 3}
    read_settings(given)
    assert given == {"random_state": 3}


def test_an_object_and_what_changes_it():
    base = Settings(random_state=3, draws=20, n_threads=2)
    assert read_settings({"settings": base}) is base
    changed = read_settings({"settings": base, "draws": 40, "random_state": 4})
    assert changed == Settings(random_state=4, draws=40, n_threads=2)
    assert read_settings({"settings": base, "draws": None}).draws is None
    assert base == Settings(random_state=3, draws=20, n_threads=2)


@pytest.mark.parametrize("bad", [3, "fast", {"draws": 20}, Settings, Budget()])
@pytest.mark.parametrize("unused", [(), ("draws", "target_se")])
def test_what_is_no_settings_object(bad, unused):
    with pytest.raises(InputError, match=r"settings is .*expected a sequela\.Settings"):
        read_settings({"settings": bad}, unused=unused)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("n_thread", "n_threads"),
        ("random_sate", "random_state"),
        ("target_es", "target_se"),
        ("samplings", "sampling"),
        ("Budget", "budget"),
    ],
)
def test_an_unknown_keyword_is_a_type_error_with_a_suggestion(name, hint):
    """A misspelled keyword raises a TypeError that names the keyword that was probably meant."""
    with pytest.raises(TypeError, match=rf"'{name}'.*Did you mean '{hint}'\?") as caught:
        read_settings({name: 1})
    assert "Settings are: budget, sampling, draws, target_se, random_state, n_threads" in str(
        caught.value
    )


@pytest.mark.parametrize("name", ["seed", "observation", "colour"])
def test_an_unknown_keyword_like_no_other(name):
    """If no keyword is similar to the unknown one, the error suggests none."""
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'") as caught:
        read_settings({name: 1})
    assert "did you mean" not in str(caught.value).lower()


def test_functions_refuse_unknown_keywords():
    with pytest.raises(TypeError, match="Did you mean 'random_state'"):
        evaluate(THETA, ALL, randomstate=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'observation'"):
        Likelihood(ALL, observation=None)


UNUSED = [
    ("draws", 20),
    ("target_se", 0.1),
    ("budget", Budget(work=1e6)),
    ("sampling", Sampling(3)),
]


@pytest.mark.parametrize(("name", "value"), UNUSED)
def test_what_has_no_meaning_is_refused(name, value):
    """A setting that a function does not use is refused, as a keyword and in an object."""
    for given in ({name: value}, {"settings": Settings(**{name: value})}):
        with pytest.raises(InputError, match=f"{name} is not used by this function"):
            read_settings(given, unused=(name,))
        read_settings(given)  # a function that uses the setting accepts it


@pytest.mark.parametrize(("name", "value"), UNUSED)
def test_what_was_not_set_is_not_refused(name, value):
    """A setting in a `Settings` object is refused only if its value is not the default."""
    base = Settings(random_state=1)
    assert read_settings({"settings": base}, unused=(name,)) is base
    assert read_settings({name: None, "random_state": 1}, unused=(name,)) == base


def test_functions_refuse_what_has_no_meaning_for_them():
    for name, value in (("draws", 20), ("target_se", 0.1)):
        with pytest.raises(InputError, match=f"{name} is not used by this function"):
            evaluate(THETA, ALL, **{name: value})


def test_settings_reach_the_work():
    """Settings can be keywords, an object, or both. All of them give the same answer."""
    sampling = Sampling(chains=4, sweeps=2, block=2, nodes=3)
    keywords = {"budget": Budget(work=1.0), "sampling": sampling, "random_state": 5, "n_threads": 1}
    by_keyword = evaluate(THETA, ALL, **keywords)
    assert list(by_keyword.methods) == ["relocation"]
    assert by_keyword.seed == 5
    base = Settings(budget=Budget(work=1.0), sampling=sampling, random_state=4)
    for again in (
        evaluate(THETA, ALL, settings=Settings(**keywords)),
        evaluate(THETA, ALL, settings=base, random_state=5),
    ):
        assert again.value == by_keyword.value
        np.testing.assert_array_equal(again.gradient, by_keyword.gradient)
    assert evaluate(THETA, ALL, settings=base).value != by_keyword.value
    assert list(evaluate(THETA, ALL, settings=base, budget=None).methods) == ["exact"]
