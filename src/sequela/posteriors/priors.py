"""Priors of theta: what is believed about interactions and base rates before the data are seen.

A prior of the interactions has a shape (Laplace, Student t, normal) and a scale. The scale is a
number or a `LearnedScale`. A learned scale is sampled together with theta, so that users need not
know how strong interactions are. To add a shape, write a class with the members of `Prior`, and add
it to `KINDS`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtr, stdtrit

from sequela.kernels.arguments import PriorShape
from sequela.support.errors import InputError
from sequela.support.naming import argument
from sequela.support.validation import is_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = [
    "KINDS",
    "BaseRates",
    "Laplace",
    "LearnedScale",
    "Normal",
    "Prior",
    "StudentT",
    "as_prior",
    "prior_shape",
    "prior_to_json",
    "read_prior",
]

# The map from standard normal coordinates to interactions is computed at _NODES points, which are
# _STEP apart and reach 8 standard deviations. The kernels interpolate between these points.
_STEP = 0.02
_NODES = 401


@dataclass(frozen=True)
class LearnedScale:
    """A scale that is learned together with theta: its prior is log-normal.

    Parameters
    ----------
    median : float
        Median of the scale.
    spread : float
        Standard deviation of the log of the scale; with 1, the scale is within a factor of 7
        of the median with a probability of 95%.
    """

    median: float = 0.5
    spread: float = 1.0

    def __post_init__(self) -> None:
        _positive("median", self.median, "the median of a learned scale")
        _positive("spread", self.spread, "the spread of a learned scale")


@dataclass(frozen=True)
class BaseRates:
    """The normal prior of the log base rates, in units of the rate of the observation.

    Parameters
    ----------
    mean, sd : float
        Mean and standard deviation.
    """

    mean: float = -1.0
    sd: float = 3.0

    def __post_init__(self) -> None:
        if not is_number(self.mean) or not np.isfinite(self.mean):
            raise InputError(f"mean of the log base rates is {self.mean!r}; expected a number")
        _positive("sd", self.sd, "the standard deviation of the log base rates")


@runtime_checkable
class Prior(Protocol):
    """The attributes and methods of a prior of the interactions."""

    kind: ClassVar[str]

    @property
    def scale(self) -> float | LearnedScale:
        """The scale, or the prior of the scale if it is learned."""
        ...

    @property
    def base_rates(self) -> BaseRates:
        """The prior of the log base rates."""
        ...

    def quantile(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value, at scale 1, with the same cumulative probability as a normal z >= 0."""
        ...

    def log_density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-density of the shape at scale 1."""
        ...


@dataclass(frozen=True)
class Laplace:
    """The double exponential distribution, the prior that corresponds to an L1 penalty.

    A fit with penalty p to N samples has the scale 1 / (p N).

    Parameters
    ----------
    scale : float or LearnedScale
        Mean absolute size of an interaction.
    base_rates : BaseRates
        The prior of the log base rates.
    """

    scale: float | LearnedScale = field(default_factory=LearnedScale)
    base_rates: BaseRates = field(default_factory=BaseRates)
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        _check_scale(self)

    def quantile(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value, at scale 1, with the same cumulative probability as a normal z >= 0."""
        x: NDArray[np.float64] = -(log_ndtr(-z) + np.log(2.0))
        return x

    def log_density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-density at scale 1."""
        log_f: NDArray[np.float64] = -np.abs(x) - np.log(2.0)
        return log_f


@dataclass(frozen=True)
class StudentT:
    """Student's t distribution: most interactions are near zero, a few may be large.

    Parameters
    ----------
    df : float
        Degrees of freedom; fewer degrees give heavier tails.
    scale : float or LearnedScale
        The scale. With 2 degrees of freedom, half of all interactions are smaller in size than 0.8
        times the scale.
    base_rates : BaseRates
        The prior of the log base rates.
    """

    df: float = 2.0
    scale: float | LearnedScale = field(default_factory=LearnedScale)
    base_rates: BaseRates = field(default_factory=BaseRates)
    kind: ClassVar[str] = "student-t"

    def __post_init__(self) -> None:
        _check_scale(self)
        _positive("df", self.df, "degrees of freedom")
        if self.df < 0.5:
            raise InputError(f"df is {self.df!r}; expected at least 0.5 degrees of freedom")

    def quantile(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value, at scale 1, with the same cumulative probability as a normal z >= 0."""
        # Use the lower tail, because small probabilities keep all their digits.
        x: NDArray[np.float64] = -stdtrit(self.df, ndtr(-z))
        return x

    def log_density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-density at scale 1."""
        half = 0.5 * (self.df + 1.0)
        constant = gammaln(half) - gammaln(0.5 * self.df) - 0.5 * np.log(np.pi * self.df)
        log_f: NDArray[np.float64] = constant - half * np.log1p(x * x / self.df)
        return log_f


@dataclass(frozen=True)
class Normal:
    """The normal distribution: interactions much larger than the scale are very improbable.

    Parameters
    ----------
    scale : float or LearnedScale
        Standard deviation of an interaction.
    base_rates : BaseRates
        The prior of the log base rates.
    """

    scale: float | LearnedScale = field(default_factory=LearnedScale)
    base_rates: BaseRates = field(default_factory=BaseRates)
    kind: ClassVar[str] = "normal"

    def __post_init__(self) -> None:
        _check_scale(self)

    def quantile(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value, at scale 1, with the same cumulative probability as a normal z >= 0.

        For the normal shape, this is z itself.
        """
        return z.copy()

    def log_density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-density at scale 1."""
        log_f: NDArray[np.float64] = -0.5 * x * x - 0.5 * np.log(2.0 * np.pi)
        return log_f


KINDS: dict[str, type[Any]] = {shape.kind: shape for shape in (Laplace, StudentT, Normal)}


def _positive(name: str, value: Any, what: str) -> None:
    if not is_number(value) or not 0.0 < value < np.inf:
        raise InputError(f"{name} is {value!r}; expected {what} as a positive number, such as 0.5")


def _check_scale(prior: Any) -> None:
    if not isinstance(prior.scale, LearnedScale):
        _positive("scale", prior.scale, f"the scale of a {prior.kind} prior")
    if not isinstance(prior.base_rates, BaseRates):
        raise InputError(f"base_rates is {prior.base_rates!r}; expected a BaseRates(mean, sd)")


def as_prior(prior: Prior | str | None) -> Prior:
    """Return a prior. A string is the name of a shape, whose scale is learned.

    None is the default: Student's t with 2 degrees of freedom and a learned scale. Of the priors in
    the table of docs/posterior.md, it predicted held-out samples best. Its orders were right more
    often than those of a Laplace prior, which tends to replace one large effect by many small
    effects.

    Examples
    --------
    >>> as_prior("laplace")
    Laplace(scale=LearnedScale(median=0.5, spread=1.0), base_rates=BaseRates(mean=-1.0, sd=3.0))
    """
    if prior is None:
        return StudentT()
    if isinstance(prior, str):
        if prior not in KINDS:
            raise InputError(
                f"{argument('prior')} is {prior!r}; expected one of {', '.join(map(repr, KINDS))}"
            )
        named: Prior = KINDS[prior]()
        return named
    if isinstance(prior, type) or not isinstance(prior, Prior):
        raise InputError(
            f"{argument('prior')} is {prior!r}; expected a prior such as "
            "sequela.posteriors.Laplace(scale=0.5), "
            f"or one of the names {', '.join(map(repr, KINDS))}"
        )
    return prior


def prior_to_json(prior: Prior) -> dict[str, Any]:
    """Return a prior as plain values for a file, with its "kind"."""
    plain = asdict(prior)  # type: ignore[call-overload]
    return {"kind": prior.kind, **plain}


def read_prior(stored: Mapping[str, Any]) -> Prior:
    """Return the prior that `prior_to_json` wrote.

    Examples
    --------
    >>> read_prior(prior_to_json(Normal(scale=2.0))).scale
    2.0
    """
    values = dict(stored)
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"the prior is of kind {kind!r}; expected one of {', '.join(KINDS)}")
    try:
        if isinstance(values.get("scale"), dict):
            values["scale"] = LearnedScale(**values["scale"])
        values["base_rates"] = BaseRates(**values["base_rates"])
        found: Prior = KINDS[kind](**values)
    except (TypeError, KeyError) as error:
        raise InputError(f"the prior {dict(stored)!r} cannot be read: {error}") from None
    return found


def prior_shape(prior: Prior) -> PriorShape:
    """Return a prior in the form that the kernels need; raise an error if it is not proper.

    The map from standard normal z to interactions has the slope (density of z) / (density of the
    interaction).
    """
    z: NDArray[np.float64] = _STEP * np.arange(_NODES, dtype=np.float64)
    value = np.asarray(prior.quantile(z), dtype=np.float64)
    value[0] = 0.0
    log_normal = -0.5 * z * z - 0.5 * np.log(2.0 * np.pi)
    slope = np.exp(log_normal - prior.log_density(value))
    good = np.isfinite(value).all() and np.isfinite(slope).all()
    if not good or (np.diff(value) <= 0.0).any() or (slope <= 0.0).any():
        raise InputError(
            f"the prior {prior!r} is not proper: from z = 0 to z = {z[-1]:g}, its quantiles must "
            "grow from 0 and be finite, and its density must be positive and finite"
        )
    scale = prior.scale
    median, spread = (
        (scale.median, scale.spread) if isinstance(scale, LearnedScale) else (scale, 0.0)
    )
    return PriorShape(
        nodes=np.ascontiguousarray([value, slope]),
        step=_STEP,
        base_mean=float(prior.base_rates.mean),
        base_sd=float(prior.base_rates.sd),
        log_median=float(np.log(median)),
        log_spread=float(spread),
    )
