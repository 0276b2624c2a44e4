"""Items that increase or decrease the rate of observation, as in oMHN (Schill et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sequela.support.errors import InputError
from sequela.support.validation import is_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["ObservationEffects"]


@dataclass(frozen=True)
class ObservationEffects:
    """Observation at a rate that depends on the items of a sample.

    A sample with the items R is observed at the rate exp(sum of omega_i over i in R). A sample
    without items is observed at the rate 1.

    If observation times are unknown, a model without these effects can give the same distribution
    of sets. To see this, divide all rates of a state by its observation rate: this changes only the
    speed of time. So theta with these effects gives the same probabilities to all sets and orders
    as theta[i, j] - omega[i] (for i != j) without them; the method `absorb` returns this theta. The
    data cannot distinguish the two models. Only a penalty or other knowledge can distinguish them.

    Parameters
    ----------
    omega : sequence of float
        Log-effect of each item on the rate of observation, in the order of the model's items.

    Examples
    --------
    >>> effects = ObservationEffects([0.0, 1.0])
    >>> effects.absorb(np.array([[0.0, 2.0], [0.0, -1.0]])).tolist()
    [[0.0, 2.0], [-1.0, -1.0]]
    """

    kind: ClassVar[str] = "effects"
    omega: Sequence[float] | NDArray[np.float64]

    def __post_init__(self) -> None:
        given: Any = self.omega
        if isinstance(given, np.ndarray):
            given = given.tolist()
        listed = isinstance(given, Sequence) and not isinstance(given, str)
        if not listed or not all(is_number(x) and np.isfinite(x) for x in given):
            raise InputError(
                f"omega is {self.omega!r}; expected one finite number per item, such as [0.0, 1.0]"
            )
        object.__setattr__(self, "omega", tuple(float(x) for x in given))

    @property
    def mean_time(self) -> float:
        """NaN, because the mean observation time depends on theta."""
        return np.nan

    @property
    def constant_rate(self) -> float | None:
        """1 if no item has an effect, otherwise None."""
        return None if np.any(self.omega) else 1.0

    def rate_in(self, state: NDArray[np.int64]) -> float:
        """Return the observation rate of a sample with the items `state`."""
        return float(np.exp(sum(self.omega[int(i)] for i in state)))

    def log_density(self, times: ArrayLike) -> NDArray[np.float64]:
        """Raise an error, because the density of the observation time depends on theta."""
        raise InputError(
            f"the density of the observation time cannot be computed at {np.size(times)} times "
            "without theta, because items have effects on the observation; expected an observation "
            "without such effects"
        )

    def draw_times(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Raise an error, because the observation time depends on theta; use `sequela.simulate`."""
        raise InputError(
            f"{size} observation times cannot be drawn (with {rng!r}) without theta, because items "
            "have effects on the observation; use sequela.simulate(model, ...)"
        )

    def absorb(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the theta that gives the same probabilities without effects on the observation."""
        absorbed: NDArray[np.float64] = theta - np.array(self.omega)[:, None]
        np.fill_diagonal(absorbed, np.diagonal(theta))
        return absorbed

    def in_order(self, places: Sequence[int]) -> ObservationEffects:
        """Return the effects in a new order.

        ``places[k]`` is the old position of the item that has position k in the new order.
        """
        return ObservationEffects([self.omega[i] for i in places])

    def to_json(self) -> dict[str, Any]:
        """Return the kind and the effects as plain values for a JSON file."""
        return {"kind": self.kind, "omega": [float(x) for x in self.omega]}
