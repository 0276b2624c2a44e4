"""The closed formulas of section 3 of the paper, after correction of errors in the paper.

Samples are observed at rate 1, as in the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from sequela.model import Model
from sequela.support.errors import InputError
from sequela.support.validation import check_theta, positive_integer

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "TwoItemFamily",
    "identical_items_posterior",
    "time_constants",
    "two_item_family",
    "two_item_family_of",
]

# Because of rounding, s may be outside its interval by this share of the upper end.
_ROUNDING = 1e-12

# A model of two items. Off-diagonal entries of an array may be minus infinity.
TwoItemTheta: TypeAlias = "Model | pd.DataFrame | ArrayLike"


# --- Lemma 1 and Theorem 1: independent items as a clock ------------------------------------------


def identical_items_posterior(w: float, m: int, k: int) -> tuple[float, float]:
    """Return mean and variance of the observation time, given k of m identical items.

    The items are independent. Lemma 1, corrected: exp(-w T) has a Beta distribution with
    alpha = 1/w + m - k and beta = k + 1. (In the paper alpha is larger by one, because the
    derivative of the substitution is missing.) So the mean is (psi(alpha + beta) - psi(alpha)) / w.
    The variance is (psi1(alpha) - psi1(alpha + beta)) / w^2 with the trigamma function psi1. T is
    also the sum of the times that the sample spends with j = 0, ..., k items. The total rate with j
    items is D = 1 + w (m - j), so the mean is the sum of 1/D, and the variance is the sum of 1/D^2.
    These sums lose no digits.

    Parameters
    ----------
    w : float
        The rate of every item, exp(theta).
    m : int
        Number of items.
    k : int
        Number of items that are present.

    Returns
    -------
    mean, variance : float

    Examples
    --------
    >>> mean, variance = identical_items_posterior(0.3, 20, 6)
    >>> round(mean, 5), round(variance, 5)
    (1.15883, 0.19374)
    """
    rate = float(_checked("w", w, positive=True))
    m = positive_integer("m", m, least=0)
    k = positive_integer("k", k, least=0)
    if k > m:
        raise InputError(f"k is {k} but m is {m}; expected at most m items to be present")
    with np.errstate(over="ignore"):
        stays = 1.0 / (1.0 + rate * np.arange(m - k, m + 1))
    return float(stays.sum()), float((stays**2).sum())


@overload
def time_constants(w: float, t: float) -> tuple[float, float]: ...
@overload
def time_constants(
    w: ArrayLike, t: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def time_constants(w: Any, t: Any) -> tuple[Any, Any]:
    """Return C1 and C2 of Theorem 1: how precisely identical independent items determine t.

    With m items, and with high probability, the posterior mean is within C1 sqrt(log(m) / m) of the
    true time, and the posterior variance is at most C2 / m, up to smaller terms::

        C1 = exp(w t) / w
        C2 = (2 exp(w t) - 1) / w^2

    Parameters
    ----------
    w : float or array
        The rate of the items, exp(theta).
    t : float or array
        The true observation time; it is broadcast against w.

    Returns
    -------
    C1, C2 : float or array
        The constants; a constant is infinite if it is too large for a double.

    Examples
    --------
    >>> C1, C2 = time_constants(0.5, 2.0)
    >>> round(C1, 3), round(C2, 3)
    (5.437, 17.746)
    >>> time_constants([0.5, 1.0, 2.0], 1.0)[0].round(2)
    array([3.3 , 2.72, 3.69])
    """
    rate, time = _checked("w", w, positive=True), _checked("t", t, positive=False)
    with np.errstate(over="ignore"):
        grown = np.exp(rate * time)
        C1, C2 = grown / rate, (2.0 * grown - 1.0) / rate / rate
    return (float(C1), float(C2)) if np.ndim(C1) == 0 else (C1, C2)


def _checked(name: str, value: Any, *, positive: bool) -> NDArray[np.float64]:
    """Return an array of finite numbers, which must be above 0 if `positive`, else at least 0."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(math.nan)
    good = np.isfinite(array) & ((array > 0.0) if positive else (array >= 0.0))
    if not good.all():
        wrong = value if array.ndim == 0 else float(array[~good][0])
        least = "above 0" if positive else "of at least 0"
        raise InputError(f"{name} is {wrong!r}; expected a finite number {least}")
    return array


# --- Proposition 1: data of two items do not determine their order --------------------------------


@dataclass(frozen=True)
class TwoItemFamily:
    """All models of two items with the same distribution of sets (Proposition 1, corrected).

    Use `two_item_family` or `two_item_family_of` to create it. The models form a line with the
    coordinate s, the base rate of item 1. Along this line all sets keep their probabilities, but
    the probability that item 1 arrived before item 2 changes from 0 to 1. So samples of these two
    items alone contain no information about their order. With p12 = 1 - p0 - p1 - p2::

        P(1 before 2 | both) = (p0 s - p1) / p12        for p1 / p0 <= s <= (p1 + p12) / p0

    because p0 s is the probability that item 1 arrives first, and p1 the probability that it is
    observed alone. The paper gives the interval (0, 1/p0 - 1), in which rates may be negative.

    Attributes
    ----------
    p0, p1, p2, p12 : float
        Probabilities of no item, item 1 alone, item 2 alone, and both.
    """

    p0: float
    p1: float
    p2: float
    p12: float

    @property
    def interval(self) -> tuple[float, float]:
        """The smallest and the largest s. Between them, no rate is negative."""
        return self.p1 / self.p0, (self.p1 + self.p12) / self.p0

    def order_probability(self, s: ArrayLike) -> Any:
        """Return P(item 1 arrived before item 2 | both are observed) of the model at s.

        Parameters
        ----------
        s : float or array
            The coordinate, within the interval.

        Returns
        -------
        float or array
            The probability: 0 at the lower end, 1 at the upper end, and linear between them.

        Examples
        --------
        >>> family = two_item_family(0.5, 0.2, 0.1)
        >>> family.interval
        (0.4, 0.8)
        >>> round(family.order_probability(0.5), 6)
        0.25
        """
        first, _ = self._shares(s)
        return float(first) if first.ndim == 0 else first

    def theta(self, s: ArrayLike) -> NDArray[np.float64]:
        """Return the parameters of the model at s; theta[i, j] is the effect of i on j.

        Parameters
        ----------
        s : float or array
            The coordinate, within the interval.

        Returns
        -------
        array, (2, 2) or (..., 2, 2)
            All entries are finite inside the interval. At the lower end, theta[0, 1] is -inf,
            because item 2 never arrives after item 1. At the upper end, theta[1, 0] is -inf.

        Examples
        --------
        >>> two_item_family_of([[0.0, 4.0], [0.0, -4.0]]).theta(1.0).round(6) + 0.0
        array([[ 0.,  4.],
               [ 0., -4.]])
        """
        first, second = self._shares(s)
        # Split p12 into the shares of "1 first" and "2 first". Then no rate is computed as a
        # difference, which would lose digits.
        ahead_1 = self.p1 + first * self.p12
        ahead_2 = self.p2 + second * self.p12
        theta = np.empty((*first.shape, 2, 2))
        with np.errstate(divide="ignore"):
            theta[..., 0, 0] = np.log(ahead_1) - math.log(self.p0)
            theta[..., 1, 1] = np.log(ahead_2) - math.log(self.p0)
            scale = math.log(self.p12) + math.log(self.p0)
            theta[..., 0, 1] = np.log(first) + scale - math.log(self.p1) - np.log(ahead_2)
            theta[..., 1, 0] = np.log(second) + scale - math.log(self.p2) - np.log(ahead_1)
        return theta

    def contains(self, theta: TwoItemTheta, *, rtol: float = 1e-9) -> bool:
        """Return whether the four sets have the same probabilities in a model and in this family.

        Parameters
        ----------
        theta : Model, array or DataFrame, (2, 2)
            Off-diagonal entries may be -inf, as at the ends of the family.
        rtol : float
            Two probabilities count as equal if their relative difference is at most this number.

        Examples
        --------
        >>> family = two_item_family_of([[0.0, 4.0], [0.0, -4.0]])
        >>> family.contains(family.theta(0.7)), family.contains([[0.0, 4.0], [0.0, -3.9]])
        (True, False)
        """
        mine = [self.p0, self.p1, self.p2, self.p12]
        return bool(np.allclose(_set_probabilities(theta), mine, rtol=rtol, atol=0.0))

    def _shares(self, s: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return P(1 first | both) and P(2 first | both), exactly 0 and 1 at the ends."""
        low, high = self.interval
        place = _checked("s", s, positive=False)
        slack = _ROUNDING * high
        outside = (place < low - slack) | (place > high + slack)
        if outside.any():
            raise InputError(
                f"s is {float(place[outside][0]):.12g}; expected {low:.12g} to {high:.12g} (the "
                "interval of the family), because outside it a rate would be negative"
            )
        place = np.clip(place, low, high)
        return (place - low) / (high - low), (high - place) / (high - low)


def two_item_family(p0: float, p1: float, p2: float) -> TwoItemFamily:
    """Return all two-item models in which the sets have these probabilities (Proposition 1).

    Parameters
    ----------
    p0, p1, p2 : float
        Probabilities of no item, of item 1 alone, and of item 2 alone: positive, with a sum below
        1. The rest is the probability of both.

    Returns
    -------
    TwoItemFamily

    Examples
    --------
    The paper's example with alpha = 4:

    >>> import math
    >>> p0 = 1 / (2 + math.exp(-4))
    >>> family = two_item_family(p0, p0 / 2, p0 * math.exp(-4) / 2)
    >>> [round(s, 5) for s in family.interval]
    [0.5, 1.00916]
    >>> [family.order_probability(s) for s in family.interval]
    [0.0, 1.0]
    """
    p0, p1, p2 = (
        float(_checked(name, p, positive=False)) for name, p in [("p0", p0), ("p1", p1), ("p2", p2)]
    )
    # fsum rounds only once; this matters if the result is small.
    return _family(p0, p1, p2, math.fsum([1.0, -p0, -p1, -p2]))


def two_item_family_of(theta: TwoItemTheta) -> TwoItemFamily:
    """Return all two-item models with the same distribution of sets as the one given.

    Parameters
    ----------
    theta : Model, array or DataFrame, (2, 2)
        theta[i, j] is the log-effect of item i on the rate of item j, and theta[i, i] is the log
        base rate of item i. The model itself is at ``s = exp(theta[0, 0])``.

    Returns
    -------
    TwoItemFamily

    Examples
    --------
    >>> family = two_item_family_of([[0.0, 4.0], [0.0, -4.0]])
    >>> [round(s, 5) for s in family.interval]
    [0.5, 1.00916]
    >>> round(family.order_probability(1.0), 3), round(family.order_probability(0.51), 3)
    (0.982, 0.02)
    """
    return _family(*_set_probabilities(theta))


def _family(p0: float, p1: float, p2: float, p12: float) -> TwoItemFamily:
    shown = f"p0 = {p0:g}, p1 = {p1:g}, p2 = {p2:g}"
    if p0 == 0.0:
        raise InputError(
            f"p0 is 0 ({shown}); expected a positive number, because finite rates always give some "
            "samples without items"
        )
    for item, other, p in ((1, 2, p1), (2, 1, p2)):
        if p == 0.0:
            raise InputError(
                f"p{item} is 0 ({shown}), so item {item} is never observed alone, and item {other} "
                "would have to follow it at an infinite rate. Expected a positive number; to "
                "study this limit, give a small number"
            )
    if not p12 > 0.0:
        raise InputError(
            f"p0 + p1 + p2 is {math.fsum([p0, p1, p2]):.17g} ({shown}); expected a sum below 1, "
            "because the rest is the probability of both items, and an order needs both"
        )
    family = TwoItemFamily(p0, p1, p2, p12)
    low, high = family.interval
    if not low < high < math.inf:
        raise InputError(
            f"the interval for s is {low:.17g} to {high:.17g} in floating point ({shown}, both "
            f"{p12:g}), so the models of the family cannot be distinguished; expected a larger "
            "probability of both items, or of no item"
        )
    return family


def _set_probabilities(theta: TwoItemTheta) -> tuple[float, float, float, float]:
    """Return the probabilities of {}, {1}, {2} and {1, 2} by eq. (6).

    The computation uses logarithms, because rates may be extreme.
    """
    if isinstance(theta, Model) and theta.observation.constant_rate != 1.0:
        raise InputError(
            f"the model has the observation {theta.observation!r}; expected a rate of 1, as in the "
            "paper. Subtract the logarithm of the rate from the diagonal of theta"
        )
    given = theta.theta if isinstance(theta, Model) else theta
    never = np.zeros((2, 2), dtype=bool)
    if isinstance(given, np.ndarray) and given.shape == (2, 2):
        # check_theta needs finite entries, but at the ends of a family some are infinite.
        never = (given == -np.inf) & ~np.eye(2, dtype=bool)
        given = np.where(never, 0.0, given)
    matrix = check_theta(given)
    if matrix.shape != (2, 2):
        raise InputError(f"theta has shape {matrix.shape}; expected a model of two items, 2 x 2")
    matrix[never] = -np.inf
    alone_1, alone_2 = float(matrix[0, 0]), float(matrix[1, 1])
    after_1, after_2 = alone_2 + float(matrix[0, 1]), alone_1 + float(matrix[1, 0])
    log_p0 = -np.logaddexp(0.0, np.logaddexp(alone_1, alone_2))
    log_p1 = log_p0 + alone_1 - np.logaddexp(0.0, after_1)
    log_p2 = log_p0 + alone_2 - np.logaddexp(0.0, after_2)
    log_p12 = np.logaddexp(log_p1 + after_1, log_p2 + after_2)
    p0, p1, p2, p12 = np.exp([log_p0, log_p1, log_p2, log_p12]).tolist()
    return p0, p1, p2, p12
