"""Density, distribution function and quantiles of a time, computed from its Laplace transform.

phi(s) = E exp(-s T) is the transform of the observation time T, given a sample. It is computed by
one forward pass over the lattice with a complex rate of observation (kernel `laplace_transform`).
All poles of phi are on the negative real axis. Density and distribution function are

    f(t) = 1 / (2 pi i) * integral of exp(s t) phi(s) ds,
    F(t) = 1 / (2 pi i) * integral of exp(s t) phi(s) / s ds,

along a parabola s = s0 + b (2 i u - u^2) around the poles. The trapezoidal rule converges
geometrically on this path. s0 is the larger of two points. One is the saddle point, at which t is
the tilted mean of T (the mean with the weights exp(-s T)). The other is a point slightly to the
right of the pole at 0. One parabola is used for a whole window of times, and for both functions. No
value is interpolated, so the rates may differ by any factor. In every window, the precision is
checked by halving the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.optimize import brentq

from sequela.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["Inverse", "Transform"]

# phi at complex points, as an array (chains, points); a single row if phi is exact.
Transform: TypeAlias = "Callable[[NDArray[np.complex128]], NDArray[np.complex128]]"

# The sum ends where the integrand is exp(-40) times its maximum. The rest is smaller than rounding
# errors.
_FALL = 40.0
_FIRST_NODES = 24
_NOTHING = 1e-14
_GROWTH = 8.0
# Allowed relative change of the result when the step is halved. The remaining error is about the
# square of this change.
_SETTLED = 1e-6
_MAX_HALVINGS = 8
_MAX_BENDS = 30
# Distance of the path from 0, in units of 1 / t and of 1 / spread. With a smaller distance more
# nodes are needed, and with a larger one more digits are lost by cancellation. Both costs are small
# for these values.
_OFF_TIME = 3.0
_OFF_SPREAD = 1.5
# Largest window of times for one parabola: its width in standard deviations of the tilted time, and
# the ratio of its ends.
_WIDEST = 5.0
_LARGEST_RATIO = 4.0
_MAX_WINDOWS = 2000
# Probability that is left out at either end of the grid, and number of points per window.
_TAIL = 1e-9
_POINTS = 48
# exp(-_NEVER) is far below the smallest probability that can be computed.
_NEVER = 70.0
# P(T < t) is treated as 0 if an upper bound of it is at most _UNSEEN. To find a small upper bound,
# _TILTS values of s are tried in Chernoff's bound.
_UNSEEN = 1e-100
_TILTS = 9
# The saddle point is searched only above exp(-4) / t. A smaller value would not be used, because
# the path begins at _OFF_TIME / t or farther to the right.
_LEAST_TILT = 4.0


@dataclass(frozen=True)
class _Window:
    """Times from `start` to `end`, the nodes s of their parabola, and phi(s) ds at the nodes."""

    start: float
    end: float
    spread: float
    nodes: NDArray[np.complex128]
    weighted: NDArray[np.complex128]

    def density(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the density, as an array (chains, times)."""
        density: NDArray[np.float64] = (self.weighted @ np.exp(np.outer(self.nodes, times))).real
        return density

    def before(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of a time before each of `times`, as an array (chains, times)."""
        probability: NDArray[np.float64] = (
            (self.weighted / self.nodes) @ np.exp(np.outer(self.nodes, times))
        ).real
        return probability


class Inverse:
    """The distribution with a given Laplace transform; results have one row per chain.

    Parameters
    ----------
    transform : callable
        Returns phi at an array of complex points.
    mean, sd : float
        Mean and standard deviation of the distribution; they determine the first window.
    first_pole : float
        The pole of phi nearest to 0 is at -first_pole.
    at_zero : float
        The density at time 0.
    """

    def __init__(
        self, transform: Transform, mean: float, sd: float, first_pole: float, at_zero: float
    ) -> None:
        self.transform = transform
        self.mean = mean
        self.sd = sd
        self.first_pole = first_pole
        self.at_zero = at_zero
        # The windows, without gaps and in order of time. The first one begins at the mean. More
        # windows are added when they are needed.
        self._windows = [self._window(mean, sd)]

    def evaluate(
        self, times: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the density and the distribution function, both as arrays (chains, times)."""
        chains = len(self._windows[0].weighted)
        density, before = np.zeros((2, chains, times.size))
        density[:, times == 0.0] = self.at_zero
        late = times > self._latest()
        before[:, late] = 1.0
        order = np.argsort(times, kind="stable")
        left = order[(times[order] > 0.0) & ~late[order]]
        while left.size:
            window = self._holding(float(times[left[0]]))
            here = left[times[left] <= window.end] if window is not None else left[:1]
            if window is None:
                density[:, here] = self.at_zero
            else:
                density[:, here] = window.density(times[here])
                before[:, here] = window.before(times[here])
            left = left[here.size :]
        return np.maximum(density, 0.0), np.clip(before, 0.0, 1.0)

    def quantiles(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the quantiles of each chain, as an array (chains, probabilities)."""
        chains = len(self._windows[0].weighted)
        return np.array(
            [[self._quantile(x, chain) for x in probabilities] for chain in range(chains)]
        )

    def pooled_quantiles(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return quantiles of the mean distribution of all chains, as an array (probabilities,)."""
        return np.array([self._quantile(x, None) for x in probabilities])

    def grid(self) -> NDArray[np.float64]:
        """Return times from 0 on that cover the distribution, denser where it changes fast."""
        first = self._reach(_TAIL, None)
        last = self._reach(1.0 - _TAIL, None)
        parts = [
            np.linspace(window.start, window.end, _POINTS, endpoint=False)
            for window in self._windows[first : last + 1]
        ]
        return np.concatenate([[0.0], *parts, [self._windows[last].end]])

    def _before(self, window: _Window, t: float, chain: int | None) -> float:
        each = window.before(np.array([t]))[:, 0]
        return float(each.mean() if chain is None else each[chain])

    def _quantile(self, probability: float, chain: int | None) -> float:
        window = self._windows[self._reach(probability, chain)]

        def excess(t: float) -> float:
            return self._before(window, t, chain) - probability

        # Because of rounding, a quantile at the common end of two windows may be in neither.
        if excess(window.start) >= 0.0:
            return window.start
        if excess(window.end) <= 0.0:
            return window.end
        return float(brentq(excess, window.start, window.end, xtol=1e-13 * window.end))

    def _reach(self, probability: float, chain: int | None) -> int:
        """Return the position of the window with this quantile; add windows if necessary."""
        at = 0
        while self._before(self._windows[at], self._windows[at].start, chain) > probability:
            if at == 0:
                self._extend_down()
            else:
                at -= 1
        while self._before(self._windows[at], self._windows[at].end, chain) < probability:
            if self._windows[at].end > self._latest():
                break
            at += 1
            if at == len(self._windows):
                self._extend_up()
        return at

    def _extend_up(self) -> None:
        last = self._windows[-1]
        self._check_room()
        self._windows.append(self._window(last.end, last.spread))

    def _extend_down(self) -> None:
        first = self._windows[0]
        self._check_room()
        # Below the mean, the spread becomes smaller towards earlier times.
        spread = min(first.spread, self.sd)
        start = max(first.start / _LARGEST_RATIO, first.start - _WIDEST * spread)
        self._windows.insert(0, self._window(start, spread, first.start))

    def _check_room(self) -> None:
        if len(self._windows) >= _MAX_WINDOWS:
            raise _lost()

    def _holding(self, t: float) -> _Window | None:
        """Return a window that contains this time, or None if P(T < t) is numerically 0."""
        for window in self._windows:
            if window.start <= t <= window.end:
                return window
        # Chernoff's bound: P(T < t) <= exp(s t) phi(s) for every s > 0.
        tilts = 2.0 ** np.arange(_TILTS)
        value = self.transform((tilts / t).astype(np.complex128)).mean(axis=0).real
        if not np.min(value * np.exp(tilts)) > _UNSEEN:
            return None
        nearest = min(self._windows, key=lambda w: abs(np.log(w.start / t)))
        spread = nearest.spread
        if t < self.mean:
            spread = min(spread, self.sd) * min(1.0, t / nearest.start)
        return self._window(t, spread)

    def _latest(self) -> float:
        """Return a time that is exceeded with negligible probability, by Chernoff's bound."""
        s = min(0.5 * self.first_pole, 1.0 / self.sd)
        value = self.transform(np.array([-s + 0.0j])).mean(axis=0)[0].real
        return (_NEVER + float(np.log(value))) / s

    def _window(self, start: float, spread: float, end: float | None = None) -> _Window:
        """Return a window from `start` to `end`; if `end` is None, as wide as `spread` allows."""
        if end is None:
            end = min(start * _LARGEST_RATIO, start + _WIDEST * spread)
        return _window(self.transform, start, end, self.mean, self.sd)


def _window(transform: Transform, start: float, end: float, mean: float, sd: float) -> _Window:
    """Return the window from `start` to `end`, after checking its precision."""
    middle = float(np.sqrt(start * end))
    saddle, spread = _saddle(transform, middle, mean, sd)
    begin = max(saddle, _OFF_TIME / middle, _OFF_SPREAD / spread)
    # The scale of the parabola is the distance to the nearest pole, which is at 0.
    bend = 0.5 * begin
    for _ in range(_MAX_BENDS):
        bend *= 2.0
        reach = np.sqrt(_FALL / (bend * start))
        step = np.sqrt(_FALL / (bend * end)) / _FIRST_NODES
        u = np.arange(0.0, reach + step, step)
        # Near poles phi may overflow.
        with np.errstate(all="ignore"):
            phi = transform(begin + bend * (2.0j * u - u * u))
            size = np.abs(phi * np.exp(-bend * u * u * start) * (1.0 + u)).mean(axis=0)
        lowest = np.minimum.accumulate(size)
        # The integrand must decrease along the whole path, to almost 0. The test is false for NaN.
        if np.all(size <= _GROWTH * lowest) and size[-1] <= _NOTHING * size[0]:
            break
    else:
        raise _lost()
    ends = np.array([start, middle, end])
    whole = _Window(start, end, spread, *_weighted(phi, u, step, begin, bend))
    value = whole.before(ends)
    for _ in range(_MAX_HALVINGS):
        between = u[:-1] + 0.5 * step
        added = transform(begin + bend * (2.0j * between - between * between))
        order = np.argsort(np.concatenate([u, between]))
        phi = np.concatenate([phi, added], axis=1)[:, order]
        u = np.concatenate([u, between])[order]
        step *= 0.5
        whole = _Window(start, end, spread, *_weighted(phi, u, step, begin, bend))
        old, value = value, whole.before(ends)
        if np.all(np.abs(value - old) <= _SETTLED * np.abs(value)):
            return whole
    raise _lost()


def _weighted(
    phi: NDArray[np.complex128],
    u: NDArray[np.float64],
    step: float,
    begin: float,
    bend: float,
) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Return nodes and weights for u >= 0; the weights include the mirror images u < 0.

    The weights contain the derivative of the path, ds = 2 b (i - u) du.
    """
    mirrored = np.where(u == 0.0, 1.0, 2.0) * (step * bend / np.pi)
    nodes = np.asarray(begin + bend * (2.0j * u - u * u), dtype=np.complex128)
    weighted: NDArray[np.complex128] = phi * ((1.0 + 1.0j * u) * mirrored)
    return nodes, weighted


def _lost() -> InputError:
    return InputError(
        "the distribution of the time could not be computed, because the rates of the model "
        "differ too much; use only its mean and its variance, which are not affected"
    )


def _saddle(transform: Transform, t: float, mean: float, sd: float) -> tuple[float, float]:
    """Return s >= 0 at which the tilted mean of T is about t, and the tilted spread of T.

    If t is above the mean, s would be negative, but the path must be to the right of 0. In this
    case return 0, and the distance of t from the mean.
    """
    if t >= mean:
        return 0.0, max(sd, t - mean)

    def tilted(s: float) -> float:
        # Compute phi'(s) with a complex step. The result is exact up to rounding, because phi is
        # analytic.
        h = 1e-20 * s
        value = transform(np.array([s + 1j * h])).mean(axis=0)[0]
        return float(-value.imag / h / value.real) if value.real > 0.0 else np.nan

    def excess(log_s: float) -> float:
        return float(np.log(tilted(np.exp(log_s)) / t))

    # The tilted mean decreases with s.
    low = np.log(1.0 / t)
    least = low - _LEAST_TILT
    while excess(low) < 0.0 and low > least:
        low -= 2.0
    high = low + 2.0
    while excess(high) > 0.0:
        high += 2.0
    if not (np.isfinite(excess(low)) and np.isfinite(excess(high))):
        raise _lost()
    s = float(np.exp(brentq(excess, low, high, xtol=0.02) if excess(low) > 0.0 else low))
    # The variance is minus the derivative of the mean.
    slope = (tilted(s) - tilted(1.001 * s)) / (0.001 * s)
    return s, float(np.sqrt(max(slope, 0.0)))
