"""Evaluate the lattice of one set in logarithms, which takes longer but works for any theta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.kernels.arguments import LogLattice, SetMoments, TransientRoom
from sequela.kernels.contour import transient_gradient, transient_set
from sequela.kernels.limits import LARGEST_LOG_RATE
from sequela.kernels.passage import (
    exit_rates,
    log_forward,
    log_tables,
    passage_gradient,
    passage_moments,
)
from sequela.support.errors import InputError
from sequela.support.jit import call

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.parameters import Columns, Parameters

__all__ = ["Known", "Passage", "in_range", "out_of_range"]


# A result that was computed in doubles is checked if the largest exit rate times the time is larger
# than this.
_RISKY = 1e4
# The check accepts a result if the relative error of the total time is below _LOST, and if two
# results differ by at most _SAME. For the second result, exit rates are changed by up to the
# relative size _NUDGE (256 units in the last place).
_LOST = 1e-10
_NUDGE = 256 * 2.2e-16
_SAME = 1e-8


def in_range(columns: Columns) -> bool:
    """Return whether all rates of the set are small enough for a double."""
    return columns.highest <= LARGEST_LOG_RATE


def out_of_range(columns: Columns, t: float = np.nan) -> InputError:
    """Return the error for a set that no exact method can evaluate in doubles."""
    if in_range(columns) and not np.isnan(t):
        return InputError(
            f"the likelihood of a set of {columns.k} items at time {t:g} cannot be computed in "
            "double precision, because rates times the time are too large; use smaller times or a "
            "theta with smaller entries"
        )
    return InputError(
        f"theta gives a log-rate of {columns.highest:.0f} for a set of {columns.k} items; expected "
        f"at most {LARGEST_LOG_RATE:.0f}, because sums of larger rates exceed the range of "
        "floating-point numbers. Use a theta with smaller entries"
    )


@dataclass(frozen=True)
class Known:
    """The present items and the known orders of a partly known sample, on its lattice.

    Attributes
    ----------
    n_present : int
        The first `n_present` items of the lattice are present, and the others are missing cells.
    statements : tuple of (int, int, float)
        For each statement, the positions on the lattice of two present items, and the probability
        that the first of them arrived before the second (`sequela.data.OrderStatement`).
    """

    n_present: int
    statements: tuple[tuple[int, int, float], ...] = ()


def _ends_and_guides(known: Known | None, k: int, low: int) -> dict[str, Any]:
    """Return the fields of a `LogLattice` that describe possible final states and known orders."""
    statements = () if known is None else known.statements
    n_present = k if known is None else known.n_present
    guided = bool(statements)
    must = np.zeros(k if guided else 0, dtype=np.int64)
    guide_low = np.zeros((k, 1 << low) if guided else (0, 0))
    guide_high = np.zeros((k, 1 << (k - low)) if guided else (0, 0))
    for before, after, probability in statements:
        if probability == 1.0:
            must[after] |= 1 << before
            continue
        table, bit = (guide_low, before) if before < low else (guide_high, before - low)
        there = np.arange(table.shape[1]) >> bit & 1 == 1
        table[after] += np.where(there, np.log(probability), np.log1p(-probability))
    return {
        "need": (1 << n_present) - 1,
        "ends": np.zeros(1 << k),
        "guided": guided,
        "must": must,
        "guide_low": guide_low,
        "guide_high": guide_high,
    }


class Passage:
    """The lattice of one set; all its numbers are logarithms.

    Parameters
    ----------
    parameters : Parameters
        Theta and the observation.
    columns : Columns
        The entries of theta that the set needs. `in_range` must be true for them.
    known : Known or None
        The present items and known orders of a partly known sample; None for a complete set.
    """

    def __init__(
        self, parameters: Parameters, columns: Columns, known: Known | None = None
    ) -> None:
        self.parameters = parameters
        self.columns = columns
        self.k = k = columns.k
        m = columns.n_columns
        low = k // 2
        self.lattice = LogLattice(
            low_log=np.zeros((m, 1 << low)),
            high_log=np.zeros((m, 1 << (k - low))),
            Q=np.empty(1 << k),
            m=m,
            k=k,
            low=low,
            **_ends_and_guides(known, k, low),
        )
        self.log_F = np.empty(1 << k)
        call(log_tables, self.lattice, parameters.theta, columns.items)
        call(exit_rates, self.lattice, columns.rest)

    @classmethod
    def of(cls, parameters: Parameters, items: NDArray[np.int64]) -> Passage:
        """Return the lattice of the set `items`; raise an error if its rates are out of range."""
        columns = parameters.columns(items)
        if not in_range(columns):
            raise out_of_range(columns)
        return cls(parameters, columns)

    @property
    def stop_rate(self) -> float:
        """The rate of the observation."""
        return self.parameters.stop_rate

    def log_p(self) -> float:
        """Return log p(S) at an unknown time; also compute the forward weights `log_F`."""
        log_total = call(log_forward, self.log_F, self.lattice, self.stop_rate)
        return float(np.log(self.stop_rate) + log_total)

    def gradient(self) -> NDArray[np.float64]:
        """Return the n x n gradient of log p(S), after `log_p`."""
        G = np.empty((self.k + 1, self.lattice.m + 1))
        visit = np.empty(1 << self.k)
        call(passage_gradient, G, visit, self.log_F, self.lattice, self.stop_rate)
        return self._spread(G)

    def moments(self) -> SetMoments:
        """Return the posterior moments of the times of the set, after `log_p`."""
        k = self.k
        moments = SetMoments(
            np.empty(2), np.empty(k), np.empty(k), np.empty((k, k)), np.empty((k, k))
        )
        scratch = np.empty((3, 1 << k))
        call(passage_moments, moments, scratch, self.log_F, self.lattice, self.stop_rate)
        return moments

    def timed(self, t: float, *, want_gradient: bool) -> tuple[float, NDArray[np.float64] | None]:
        """Return log p(S | t) and its n x n gradient.

        If an exit rate times the time is large, the result is checked. If it is not precise enough,
        the computation is repeated in decimal arithmetic for a small set, and the result is NaN for
        a larger set.
        """
        risky = self.k > 0 and float(self.lattice.Q.max()) * t > _RISKY
        value, G, lost = self._in_doubles(t, want_gradient=want_gradient or risky)
        if risky and not self._is_sound(value, G, lost, t):
            value, G = np.nan, None
            # Import this module here, because it is rarely needed, and `decimal` takes memory.
            from sequela.likelihood.careful_times import LARGEST_CAREFUL_SET, careful_set

            if self.k <= LARGEST_CAREFUL_SET:
                value, G = careful_set(
                    self.parameters, self.columns, t, want_gradient=want_gradient
                )
        if not np.isfinite(value):
            return np.nan, None
        return value, self._spread(G) if want_gradient and G is not None else None

    def _in_doubles(
        self, t: float, *, want_gradient: bool, nudge: float = 0.0
    ) -> tuple[float, NDArray[np.float64] | None, float]:
        """Return log p(S | t), G, and the relative error of the total time spent in all states.

        Before the computation, each exit rate is increased or decreased by a relative amount of up
        to `nudge`.
        """
        states = 1 << self.k
        wide = max(self.k, 1)
        steps = np.zeros((states, wide))
        room = TransientRoom(
            first=np.empty(states),
            second=np.empty(states),
            u=np.empty((2, states)),
            eta=np.empty((2, states if want_gradient else 1)),
            times=np.empty(states),
            crossings=np.empty((states if want_gradient else 1, wide)),
        )
        # Compute the exit rates without the constant rate of all other items, which is taken into
        # account at the end. If it were added here, small differences between exit rates could be
        # lost in rounding. Use a new array for Q, because `transient_set` changes Q in place.
        lattice = self.lattice._replace(Q=np.empty(states))
        call(exit_rates, lattice, 0.0)
        if nudge:
            # The multiples of the golden ratio (modulo 1) are all different, so the exit rate of
            # every state changes by a different amount.
            lattice.Q[:] *= 1.0 + nudge * (2.0 * (np.arange(states) * 0.6180339887498949 % 1) - 1.0)
        value, tilt = call(transient_set, t, lattice, self.log_F, steps, room, want_gradient)
        value = float(value - self.columns.rest * t)
        if not np.isfinite(value) or not want_gradient:
            return value, None, 0.0
        G = np.empty((self.k + 1, lattice.m + 1))
        call(transient_gradient, G, room, lattice, tilt)
        spent = float(np.sum(room.times / (tilt + lattice.Q)))
        return value, G, abs(spent / t - 1.0)

    def _is_sound(self, value: float, G: NDArray[np.float64] | None, lost: float, t: float) -> bool:
        """Return whether a result is correct to about eight digits.

        The times spent in all states must add up to t. If they do not, the contour of integration
        was unsuitable. Rounding errors are equivalent to changes of exit rates by a few units in
        the last place. A correct result does not depend on such changes. To check this, the result
        is computed again with changed exit rates.
        """
        if G is None or not lost < _LOST:
            return False
        other, other_G, _ = self._in_doubles(t, want_gradient=True, nudge=_NUDGE)
        if other_G is None or abs(other - value) > _SAME * max(1.0, abs(value)):
            return False
        return bool((np.abs(other_G - G) <= _SAME * np.maximum(1.0, np.abs(G))).all())

    def log_step(self, before: int, c: int) -> float:
        """Return the log-rate of c in the state `before`; -inf if known orders exclude the step."""
        lattice = self.lattice
        high, low = before >> lattice.low, before & ((1 << lattice.low) - 1)
        log_rate = float(lattice.high_log[c, high] + lattice.low_log[c, low])
        if lattice.guided:
            if before & int(lattice.must[c]) != lattice.must[c]:
                return -np.inf
            log_rate += float(lattice.guide_high[c, high] + lattice.guide_low[c, low])
        return log_rate

    def end_shares(self) -> NDArray[np.float64]:
        """Return the probability of each state at the observation time, after `log_p`."""
        states = np.arange(1 << self.k)
        is_end = states & self.lattice.need == self.lattice.need
        return np.where(is_end, self.lattice.ends, 0.0)

    def _spread(self, G: NDArray[np.float64]) -> NDArray[np.float64]:
        gradient = np.zeros((self.parameters.n, self.parameters.n))
        self.parameters.spread(self.columns, G, gradient)
        return gradient
