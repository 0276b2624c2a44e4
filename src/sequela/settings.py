"""How an answer is computed: budget, sampling, draws, precision, seed and threads, as one object.

These settings do not change what is asked. They change the precision, the speed and the seed of the
computation. Functions take them as keywords (``order_matrix(model, random_state=1, n_threads=2)``)
or as one object (``settings=Settings(...)``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from sequela.budget import Budget, check_budget
from sequela.support.errors import InputError
from sequela.support.naming import argument
from sequela.support.random import RandomState, materialise_seed
from sequela.support.threads import resolve_threads
from sequela.support.validation import is_number, positive_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Sampling", "Settings", "SettingsKeywords", "read_settings"]


@dataclass(frozen=True)
class Sampling:
    """How sets beyond the budget are sampled.

    Parameters
    ----------
    chains : int
        Number of independent Markov chains per set. The standard error is computed from their
        spread.
    sweeps : int
        If orders are sampled by relocation (samples with unknown times): number of sweeps per chain
        for one gradient. A sweep moves every item of the order once to a new position.
    burn_in : int
        Number of sweeps that each chain discards after every change of theta.
    block : int
        Number of items that are relocated together. In trials, 4 gave the smallest error for a
        given computing time.
    draws, draws_burn_in : int
        If orders are sampled by Metropolis-Hastings (samples with known times): number of proposals
        that are used, and number of proposals that are discarded before them. The paper uses 50 and
        10.
    nodes : int
        The log-likelihood is an integral along a path, from the model without interactions to the
        given model. `nodes` is the smallest number of points on this path. More points are used if
        interactions are strong.
    """

    chains: int = 16
    sweeps: int = 6
    burn_in: int = 2
    block: int = 4
    draws: int = 50
    draws_burn_in: int = 10
    nodes: int = 12

    def __post_init__(self) -> None:
        for name in ("chains", "sweeps", "block", "draws", "nodes"):
            positive_integer(f"sampling {name}", getattr(self, name))
        for name in ("burn_in", "draws_burn_in"):
            positive_integer(f"sampling {name}", getattr(self, name), least=0)
        if self.block > 8:
            raise InputError(
                f"sampling block is {self.block}; expected at most 8, because the "
                "work grows with 2^block"
            )


def check_sampling(sampling: Sampling | None) -> Sampling:
    """Return `sampling`, or the default for None; raise an error for any other type."""
    if sampling is None:
        return Sampling()
    if not isinstance(sampling, Sampling):
        raise InputError(
            f"sampling is {sampling!r}; expected a sequela.Sampling, such as Sampling(chains=32)"
        )
    return sampling


class SettingsKeywords(TypedDict, total=False):
    """The keywords that functions take for their settings; see `Settings`."""

    settings: Settings | None
    budget: Budget | None
    sampling: Sampling | None
    draws: int | None
    target_se: float | None
    random_state: RandomState
    n_threads: int | None
    max_models: int | None


@dataclass(frozen=True)
class Settings:
    """How an answer is computed.

    Parameters
    ----------
    budget : Budget or None
        The largest cost of an exact evaluation. Sets beyond this budget are evaluated by their
        components, or their orders are sampled.
    sampling : Sampling or None
        How sets beyond the budget are sampled.
    draws : int or None
        Number of draws if the answer is sampled. None uses the default of the question.
    target_se : float or None
        The Monte Carlo standard error that the answer should have. Give it instead of `draws`.
    random_state : int, Generator or None
        The seed. It is converted to one integer, `seed`, which is recorded with every result. None
        means a new random seed.
    n_threads : int or None
        Number of threads. None means all cores that this process may use. Results do not depend on
        the number of threads.
    max_models : int or None
        For a posterior: the largest number of its draws that are used. They are evenly spread over
        the posterior. None means the default, which is 400 or 100, depending on the question.

    Attributes
    ----------
    seed : int
        The seed from which all random numbers are derived.

    Examples
    --------
    >>> settings = Settings(random_state=1, n_threads=2)
    >>> settings.seed, settings.threads
    (1, 2)
    """

    budget: Budget = field(default_factory=Budget)
    sampling: Sampling = field(default_factory=Sampling)
    draws: int | None = None
    target_se: float | None = None
    random_state: RandomState = None
    n_threads: int | None = None
    max_models: int | None = None
    seed: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", check_budget(self.budget))
        object.__setattr__(self, "sampling", check_sampling(self.sampling))
        check_precision(self.draws, self.target_se)
        object.__setattr__(self, "seed", materialise_seed(self.random_state))
        # Keep the seed and not a generator. Otherwise, a copy made by `replace` would draw another
        # seed from the generator.
        object.__setattr__(self, "random_state", self.seed)
        resolve_threads(self.n_threads)  # raises if this is not a number of threads
        if self.max_models is not None:
            positive_integer("max_models", self.max_models)

    @property
    def threads(self) -> int:
        """The number of threads to use."""
        return resolve_threads(self.n_threads)

    def but(self, **changes: Any) -> Settings:
        """Return a copy with some values changed. The seed stays the same, unless it is changed.

        Examples
        --------
        >>> Settings(random_state=1).but(draws=100).seed
        1
        """
        return replace(self, **changes)


def check_precision(draws: int | None, target_se: float | None) -> None:
    """Raise an error if `draws` and `target_se` are both given, or if a given value is invalid."""
    if draws is not None and target_se is not None:
        raise InputError(
            f"{argument('draws')} ({draws!r}) and {argument('target_se')} ({target_se!r}) were "
            "both given; expected one of them"
        )
    if draws is not None:
        positive_integer("draws", draws, least=2)
    if target_se is not None and not (is_number(target_se) and 0.0 < target_se < np.inf):
        raise InputError(
            f"{argument('target_se')} is {target_se!r}; expected a positive number, such as 0.01"
        )


_NAMES = tuple(f.name for f in fields(Settings) if f.init)


def read_settings(
    given: Mapping[str, Any],
    *,
    unused: tuple[str, ...] = (),
    posterior: bool = False,
    default_seed: int | None = None,
) -> Settings:
    """Return the settings that a function was called with.

    Parameters
    ----------
    given : mapping
        The keyword arguments: names of settings with their values and, optionally, the name
        "settings" with a `Settings` object. If both give a value, the keyword is used and not the
        object.
    unused : tuple of str
        Names of settings that the function does not use. If one of these is given, it is an error.
    posterior : bool
        Whether this function takes a posterior, and therefore `max_models`.
    default_seed : int or None
        The seed if none is given; None means a new random seed. A fixed seed is for functions whose
        result has no place for a seed, so that equal calls have equal results.

    Examples
    --------
    >>> read_settings({"random_state": 3}).seed
    3
    >>> read_settings({}, default_seed=0).seed
    0
    >>> read_settings({"settings": Settings(random_state=1), "draws": 50}).draws
    50
    """
    changes = dict(given)
    base = changes.pop("settings", None)
    if base is not None and not isinstance(base, Settings):
        raise InputError(f"settings is {base!r}; expected a sequela.Settings")
    for name in changes:
        if name not in _NAMES:
            close = get_close_matches(name, _NAMES, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise TypeError(
                f"unexpected keyword argument {name!r}.{hint} Settings are: {', '.join(_NAMES)}"
            )
    # The keyword `max_models` is refused if the function takes no posterior. In a Settings object,
    # `max_models` is accepted, because the same object may be used for other functions, too.
    if not posterior and changes.get("max_models") is not None:
        raise InputError(
            "max_models is not used by this function, because it takes no posterior; leave it out"
        )
    for name in unused:
        # The same Settings object may be used for many functions. So an unused setting in such an
        # object is refused only if its value is not the default.
        in_object = base is not None and getattr(base, name) != _default(name)
        if changes.get(name) is not None or in_object:
            raise InputError(f"{name} is not used by this function; leave it out")
    if base is None:
        if changes.get("random_state") is None:
            changes["random_state"] = default_seed
        return Settings(**changes)
    return replace(base, **changes) if changes else base


def _default(name: str) -> Any:
    return {"budget": Budget(), "sampling": Sampling()}.get(name)
