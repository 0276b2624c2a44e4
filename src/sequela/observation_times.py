"""Observation times that are not exponential: gamma and heavy-tailed.

Each of these times is represented by sums and mixtures of exponential times, which are called
phases. With phases, the likelihood can be computed on the lattice of a set; see
`sequela.kernels.phases`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sequela.kernels.arguments import PhaseTables
from sequela.support.errors import InputError
from sequela.support.validation import is_number

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Gamma", "HeavyTailed"]


@dataclass(frozen=True)
class Gamma:
    """Observation at a gamma distributed time.

    With shape 1 the time is exponential. With a shape above 1, fewer samples are observed close to
    time 0, so there are fewer empty sets. With a shape below 1 there are more empty sets. With a
    large shape, all samples are observed at nearly the same time.

    Parameters
    ----------
    shape : float
        The shape.
    mean : float
        The mean time. The data cannot distinguish a longer mean time from higher rates of all
        items.

    Examples
    --------
    >>> Gamma(2.0).mean_time
    1.0
    >>> Gamma(1.0, mean=2.0).log_density([0.0, 2.0]).round(4).tolist()
    [-0.6931, -1.6931]
    """

    kind: ClassVar[str] = "gamma"
    shape: float
    mean: float = 1.0

    def __post_init__(self) -> None:
        _check_positive(self, "shape", 0.05, 200.0, "2.0")
        _check_positive(self, "mean", 0.0, np.inf, "1.0")

    @property
    def mean_time(self) -> float:
        """The mean observation time."""
        return self.mean

    @property
    def rate(self) -> float:
        """The rate parameter of the gamma distribution: shape / mean."""
        return self.shape / self.mean

    @property
    def constant_rate(self) -> float | None:
        """The rate if the shape is 1; otherwise None, because the rate changes with time."""
        return self.rate if self.shape == 1.0 else None

    def rate_in(self, state: NDArray[np.int64]) -> float:  # noqa: ARG002 - it depends on the time
        """Return the rate if the shape is 1; raise an error for all other shapes."""
        if self.shape == 1.0:
            return self.rate
        raise InputError(
            f"the rate of an observation of kind {self.kind!r} depends on the time, not on the "
            "items of a sample"
        )

    def log_density(self, times: ArrayLike) -> NDArray[np.float64]:
        """Return the log-density of the observation time; minus infinity before time 0."""
        t = np.asarray(times, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            power = 0.0 if self.shape == 1.0 else (self.shape - 1.0) * np.log(np.maximum(t, 0.0))
            density = self.shape * np.log(self.rate) - lgamma(self.shape) + power - self.rate * t
        found: NDArray[np.float64] = np.where(t < 0.0, -np.inf, density)
        return found

    def draw_times(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw observation times."""
        return rng.gamma(self.shape, 1.0 / self.rate, size)

    def phases(self) -> PhaseTables:
        """Return the gamma distributed time as a sum of exponential times.

        The first of these times comes from a mixture: its rate differs between samples. The other
        times, which are called stages, all have the same rate.
        """
        stages = int(np.floor(self.shape))
        left = self.shape - stages
        if left == 0.0:
            return PhaseTables(np.array([self.rate]), np.ones(1), stages - 1, self.rate)
        fraction, weights = _beta_rule(left)
        return PhaseTables(self.rate / fraction, weights, stages, self.rate)

    def to_json(self) -> dict[str, Any]:
        """Return the kind and the parameters as plain values for a JSON file."""
        return {"kind": self.kind, "shape": self.shape, "mean": self.mean}


@dataclass(frozen=True)
class HeavyTailed:
    """Observation at a heavy-tailed time: items accumulate faster in some samples than in others.

    The rate of observation, relative to the speed at which items accumulate in a sample, differs
    between samples and has a gamma distribution. A sample with a small rate has a late time and a
    large set. Over all samples, the time has a Lomax (Pareto) distribution. The smaller the
    shape, the heavier is the tail. With a large shape, the time is nearly exponential.

    Parameters
    ----------
    shape : float
        Shape of the gamma distribution of the rate. It must be above 1, because otherwise the mean
        time is infinite.
    rate : float
        Mean of the gamma distribution of the rate.

    Examples
    --------
    >>> HeavyTailed(2.0).mean_time
    2.0
    """

    kind: ClassVar[str] = "heavy-tailed"
    shape: float
    rate: float = 1.0

    def __post_init__(self) -> None:
        _check_positive(self, "shape", 1.0, 1e4, "2.0")
        _check_positive(self, "rate", 0.0, np.inf, "1.0")

    @property
    def mean_time(self) -> float:
        """The mean observation time."""
        return self.shape / ((self.shape - 1.0) * self.rate)

    @property
    def constant_rate(self) -> float | None:
        """None: the rate differs between samples."""
        return None

    def rate_in(self, state: NDArray[np.int64]) -> float:  # noqa: ARG002 - it differs by sample
        """Raise an error, because the rate differs between samples with the same items."""
        raise InputError(
            f"an observation of kind {self.kind!r} has no single rate for a set of items: its rate "
            "differs between samples with the same items"
        )

    def log_density(self, times: ArrayLike) -> NDArray[np.float64]:
        """Return the log-density of the observation time; minus infinity before time 0."""
        t = np.asarray(times, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            density = np.log(self.rate) - (self.shape + 1.0) * np.log1p(self.rate * t / self.shape)
        found: NDArray[np.float64] = np.where(t < 0.0, -np.inf, density)
        return found

    def draw_times(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw observation times."""
        rates = rng.gamma(self.shape, self.rate / self.shape, size)
        # The lower bound avoids a division by zero. A rate that is almost zero gives a huge time.
        times: NDArray[np.float64] = rng.exponential(1.0, size) / np.maximum(rates, 1e-300)
        return times

    def phases(self) -> PhaseTables:
        """Return the heavy-tailed time as a mixture of exponential times."""
        rates, weights = _gamma_rule(self.shape)
        return PhaseTables(self.rate * rates, weights, 0, self.rate)

    def to_json(self) -> dict[str, Any]:
        """Return the kind and the parameters as plain values for a JSON file."""
        return {"kind": self.kind, "shape": self.shape, "rate": self.rate}


def _check_positive(observation: Any, name: str, least: float, most: float, example: str) -> None:
    value = getattr(observation, name)
    if not (is_number(value) and least < value < most):
        bound = f" and below {most:g}" if np.isfinite(most) else ""
        raise InputError(
            f"the {name} of a {type(observation).__name__} observation is {value!r}; expected a "
            f"number above {least:g}{bound}, such as {example}"
        )
    object.__setattr__(observation, name, float(value))


def _beta_rule(shape: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights of the distribution Beta(shape, 1 - shape).

    A gamma time with a shape below 1 is an exponential time multiplied by a fraction that has this
    distribution. The nodes and weights belong to the trapezoidal rule in the logit v of the
    fraction. The error is of the order exp(-2 pi^2 / step), whatever the rates of the items are,
    because all poles of the integrand lie at a distance of pi from the real line. Beyond each end,
    the weights of the nodes form a geometric series. Their sum is added to the weight of the last
    node at this end.
    """
    step = 0.5
    v = np.arange(-30.0, 25.0, step)
    scale = step * np.sin(np.pi * shape) / np.pi
    weights = scale * np.exp(shape * v - np.logaddexp(0.0, v))
    weights[0] += scale * np.exp(shape * v[0]) / np.expm1(shape * step)
    weights[-1] += scale * np.exp((shape - 1.0) * v[-1]) / np.expm1((1.0 - shape) * step)
    return 1.0 / (1.0 + np.exp(-v)), weights / weights.sum()


def _gamma_rule(shape: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights for a rate with a gamma distribution of this shape and mean 1.

    They are those of the trapezoidal rule in v, the logarithm of this rate. A narrower distribution
    needs a smaller step. Therefore, for large shapes, the step is proportional to the width of the
    distribution.
    """
    step = min(0.33, 0.5 / np.sqrt(shape))
    lowest = -max(37.0 / shape, 10.0 / np.sqrt(shape) + 20.0 / shape)
    v = np.arange(lowest, 1.5 + np.log1p(40.0 / shape), step)
    log_weights = shape * (np.log(shape) + v - np.exp(v)) - lgamma(shape) + np.log(step)
    kept = log_weights > -60.0
    weights = np.exp(log_weights[kept])
    return np.exp(v[kept]), weights / weights.sum()
