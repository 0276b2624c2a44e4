"""How samples come to be observed: the distribution of the observation time of a model.

A model says how items accumulate (theta) and when a sample is observed (its observation). The
likelihood, the simulation and the files use only the methods of `Observation`. To add a kind of
observation, write a class with these methods and add it to `KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from sequela.observation_effects import ObservationEffects
from sequela.observation_times import Gamma, HeavyTailed
from sequela.support.errors import InputError
from sequela.support.naming import argument
from sequela.support.validation import is_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from sequela.kernels.arguments import PhaseTables

__all__ = [
    "KINDS",
    "Exponential",
    "Gamma",
    "HeavyTailed",
    "Observation",
    "ObservationEffects",
    "as_observation",
    "parse_observation",
    "phases_of",
    "read_observation",
    "take_recorded_observation",
]


@runtime_checkable
class Observation(Protocol):
    """The attributes and methods that every kind of observation has.

    Attributes
    ----------
    kind : str
        The name of this kind of observation in files, such as "gamma".
    """

    kind: ClassVar[str]

    @property
    def mean_time(self) -> float:
        """The mean observation time."""
        ...

    @property
    def constant_rate(self) -> float | None:
        """The rate of the observation if it is the same in every state; otherwise None."""
        ...

    def rate_in(self, state: NDArray[np.int64]) -> float:
        """Return the observation rate of a sample that has exactly the items `state`."""
        ...

    def log_density(self, times: ArrayLike) -> NDArray[np.float64]:
        """Return the log-density of the observation time."""
        ...

    def draw_times(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw `size` observation times."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return "kind" and the parameters as plain values for a JSON file."""
        ...


@dataclass(frozen=True)
class Exponential:
    """Observation at a constant rate, which is 1 in the paper. The observation time is exponential.

    Parameters
    ----------
    rate : float
        The rate of observation. The mean observation time is 1 / rate.

    Examples
    --------
    >>> Exponential(2.0).mean_time
    0.5
    >>> Exponential().to_json()
    {'kind': 'exponential', 'rate': 1.0}
    """

    kind: ClassVar[str] = "exponential"
    rate: float = 1.0

    def __post_init__(self) -> None:
        if not (is_number(self.rate) and 0.0 < self.rate < np.inf):
            raise InputError(
                f"the rate of an Exponential observation is {self.rate!r}; expected a positive "
                "finite number, such as 1, the rate in the paper"
            )
        object.__setattr__(self, "rate", float(self.rate))

    @property
    def mean_time(self) -> float:
        """The mean observation time."""
        return 1.0 / self.rate

    @property
    def constant_rate(self) -> float:
        """The rate of the observation, which is the same in every state."""
        return self.rate

    def rate_in(self, state: NDArray[np.int64]) -> float:  # noqa: ARG002 - the same in all states
        """Return the observation rate of a sample with the items `state`."""
        return self.rate

    def log_density(self, times: ArrayLike) -> NDArray[np.float64]:
        """Return the log-density of the observation time; it is minus infinity before time 0.

        Examples
        --------
        >>> Exponential(2.0).log_density([0.0, 1.0]).round(4).tolist()
        [0.6931, -1.3069]
        """
        t = np.asarray(times, dtype=np.float64)
        density: NDArray[np.float64] = np.where(t < 0.0, -np.inf, np.log(self.rate) - self.rate * t)
        return density

    def draw_times(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw `size` observation times.

        Examples
        --------
        >>> Exponential().draw_times(3, np.random.default_rng(1)).shape
        (3,)
        """
        return rng.exponential(1.0 / self.rate, size)

    def to_json(self) -> dict[str, Any]:
        """Return the kind and the parameters as plain values for a JSON file."""
        return {"kind": self.kind, "rate": self.rate}


KINDS: dict[str, type[Exponential | Gamma | HeavyTailed | ObservationEffects]] = {
    kind.kind: kind for kind in (Exponential, Gamma, HeavyTailed, ObservationEffects)
}


def phases_of(observation: Observation) -> PhaseTables | None:
    """Return the phases of an observation time; None if it has none, or if the rate is constant.

    Phases are exponential times. The observation time is a sum of phases, a mixture of phases, or
    both.

    Examples
    --------
    >>> phases_of(Gamma(3.0)).stages
    2
    >>> phases_of(Exponential()) is None
    True
    """
    if observation.constant_rate is not None:
        return None
    make = getattr(observation, "phases", None)
    phases: PhaseTables | None = None if make is None else make()
    return phases


def parse_observation(text: str) -> Observation:
    """Return the observation that a text such as "gamma:2", "heavy:3" or "exponential" describes.

    Examples
    --------
    >>> parse_observation("gamma:2")
    Gamma(shape=2.0, mean=1.0)
    """
    name, _, value = text.partition(":")
    kinds: dict[str, Any] = {"gamma": Gamma, "heavy": HeavyTailed}
    try:
        if name == "exponential" and not value:
            return Exponential()
        made: Observation = kinds[name](float(value))
    except (KeyError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{argument('observation')} is {text!r}; expected 'exponential', 'gamma:SHAPE' or "
            "'heavy:SHAPE', such as 'gamma:2' (a fit also takes 'gamma', 'heavy', 'any', "
            "'effects' and 'effects:l1')"
        ) from None
    return made


def as_observation(observation: Observation | None) -> Observation:
    """Return a valid observation unchanged; None gives `Exponential` with rate 1, as in the paper.

    Examples
    --------
    >>> as_observation(None)
    Exponential(rate=1.0)
    """
    if observation is None:
        return Exponential()
    if isinstance(observation, type) or not isinstance(observation, Observation):
        raise InputError(
            f"observation is {observation!r}; expected an observation object such as "
            "sequela.Exponential(rate=2.0)"
        )
    return observation


def read_observation(content: Any) -> Observation:
    """Return the observation that `Observation.to_json` wrote.

    Examples
    --------
    >>> read_observation({"kind": "exponential", "rate": 2.0})
    Exponential(rate=2.0)
    """
    kind = content.get("kind") if isinstance(content, Mapping) else None
    if not isinstance(kind, str) or kind not in KINDS:
        known = ", ".join(map(repr, KINDS))
        raise InputError(
            f"the observation is {content!r}; expected an object whose kind is one of {known}. "
            "If a newer version of sequela wrote the file, install that version"
        )
    try:
        return KINDS[kind](**{name: value for name, value in content.items() if name != "kind"})
    except TypeError:
        raise InputError(
            f"the observation is {content!r}, but an observation of kind {kind!r} has other "
            "parameters. If a newer version of sequela wrote the file, install that version"
        ) from None


def take_recorded_observation(record: dict[str, Any]) -> Observation:
    """Remove the observation from a record that was read from a file, and return it.

    The record contains options or metadata. In version 0.1, the record contained the rate as a
    number, "observation_rate". If there is no entry at all, the rate is 1.

    Examples
    --------
    >>> options = {"observation_rate": 2.0, "tol": 0.1}
    >>> take_recorded_observation(options), options
    (Exponential(rate=2.0), {'tol': 0.1})
    """
    content = record.pop("observation", None)
    rate = record.pop("observation_rate", 1.0)
    return Exponential(rate) if content is None else read_observation(content)
