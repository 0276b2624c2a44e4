"""Compute the likelihood of a set at a known time in decimal arithmetic.

Some sets need more precision than a double has. If an exit rate times the observation time is very
large, the likelihood depends on differences of exit rates that are smaller than the rounding errors
of doubles. The closed form of section 4.2 of the paper is a sum of exponentials in which large
terms cancel. This module evaluates the sum with so many digits that the result is precise in spite
of the cancellation. The numbers of digits and of terms grow quickly with the size of the set, so
the module is used for small sets only. `Passage.timed` decides when it is used.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.parameters import Columns, Parameters

__all__ = ["LARGEST_CAREFUL_SET", "careful_set"]

LARGEST_CAREFUL_SET = 6
# Equal exit rates would lead to a division by zero. To avoid this, a different multiple of 10^-22
# is added to each product of an exit rate and the observation time. This changes log p by less than
# the precision of a double.
_APART = 22
_GUARD_DIGITS = 40


def careful_set(
    parameters: Parameters, columns: Columns, t: float, *, want_gradient: bool
) -> tuple[float, NDArray[np.float64] | None]:
    """Return log p(S | t) and the gradient G of the set, with the axes of `lattice.gradient`."""
    highest = max(columns.highest + np.log(t), 0.0) / np.log(10.0) + np.log10(columns.n_columns + 1)
    digits = int((columns.k + 1) * (highest + _APART + 0.4 * columns.k)) + _GUARD_DIGITS
    with localcontext(Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)) as context:
        context.clear_traps()
        sums = _Exponentials(parameters, columns, t)
        value = sums.log_p()
        if not want_gradient or not np.isfinite(value):
            return value, None
        return value, sums.gradient()


class _Exponentials:
    """Forward and backward probabilities of all states: sums of exponential functions of time."""

    def __init__(self, parameters: Parameters, columns: Columns, t: float) -> None:
        self.k = k = columns.k
        self.m = columns.n_columns
        self.t = t
        self.rest = Decimal(columns.rest) * Decimal(t)
        self.states = range(1 << k)
        self.rates = _rates(parameters.theta, columns, t)
        exits = [
            sum((rate for rate in self.rates[R] if rate is not None), Decimal(0))
            + (R + 1) * Decimal(10) ** -_APART
            for R in self.states
        ]
        self.least = min(exits)
        self.exits = [one - self.least for one in exits]
        self.decay = [(-one).exp() for one in self.exits]
        self.forward = self._forward()
        self.p = self._at_end(self.forward[-1])

    def _forward(self) -> list[dict[int, Decimal]]:
        """Return the coefficients a[R][T] of the probability of state R at the time s.

        The probability is the sum over states T of a[R][T] exp(-exit(T) s).
        """
        found: list[dict[int, Decimal]] = [{0: Decimal(1)}]
        for R in self.states[1:]:
            here: dict[int, Decimal] = {}
            for c in range(self.k):
                if R >> c & 1:
                    before = R ^ (1 << c)
                    for T, a in found[before].items():
                        here[T] = here.get(T, Decimal(0)) + self._rate(before, c) * a
            found.append(self._balanced(here, R))
        return found

    def _backward(self) -> list[dict[int, Decimal]]:
        """Return the coefficients b[R][U] of the probability of going from R to S in the time s.

        The probability is the sum over states U of b[R][U] exp(-exit(U) s). S is the state with all
        items.
        """
        last = len(self.states) - 1
        found: list[dict[int, Decimal]] = [{} for _ in self.states]
        found[last] = {last: Decimal(1)}
        for R in reversed(self.states[:-1]):
            here: dict[int, Decimal] = {}
            for c in range(self.k):
                if not R >> c & 1:
                    for U, b in found[R | 1 << c].items():
                        here[U] = here.get(U, Decimal(0)) + self._rate(R, c) * b
            found[R] = self._balanced(here, R)
        return found

    def _rate(self, R: int, c: int) -> Decimal:
        rate = self.rates[R][c]
        assert rate is not None  # noqa: S101 - c is not in R
        return rate

    def _balanced(self, here: dict[int, Decimal], R: int) -> dict[int, Decimal]:
        """Return the coefficients of state R, given `here`, the coefficients of the flow into R.

        Each coefficient is divided by a difference of exit rates. Then the coefficient of R itself
        is added. It is chosen so that the probability of R is 0 at time 0.
        """
        here = {T: a / (self.exits[R] - self.exits[T]) for T, a in here.items()}
        here[R] = -sum(here.values(), Decimal(0))
        return here

    def _at_end(self, coefficients: dict[int, Decimal]) -> Decimal:
        return sum((a * self.decay[T] for T, a in coefficients.items()), Decimal(0))

    def log_p(self) -> float:
        """Return log p(S | t)."""
        if not self.p > 0:
            return float("nan")
        return float(self.p.ln() - self.least - self.rest)

    def gradient(self) -> NDArray[np.float64]:
        """Return G: the derivative of log p by the log-rate of each column.

        Row b is the sum over the states that contain b, and the last row is the sum over all
        states. The last column is the time that the process spends in these states.
        """
        backward = self._backward()
        G = [[Decimal(0)] * (self.m + 1) for _ in range(self.k + 1)]
        for R in self.states:
            time = self._overlap(self.forward[R], backward[R]) / self.p
            row = [-time * rate if rate is not None else None for rate in self.rates[R]]
            for c in range(self.k):
                if not R >> c & 1:
                    crossed = self._overlap(self.forward[R], backward[R | 1 << c]) / self.p
                    row[c] = self._rate(R, c) * (crossed - time)
            for b in (*(b for b in range(self.k) if R >> b & 1), self.k):
                for c, g in enumerate(row):
                    if g is not None:
                        G[b][c] += g
                G[b][self.m] += time * Decimal(self.t)
        return np.array([[float(g) for g in row] for row in G])

    def _overlap(self, forward: dict[int, Decimal], backward: dict[int, Decimal]) -> Decimal:
        """Return the integral over s in (0, 1) of forward(s) * backward(1 - s)."""
        total = Decimal(0)
        for T, a in forward.items():
            for U, b in backward.items():
                if T == U:
                    total += a * b * self.decay[T]
                else:
                    gap = self.exits[U] - self.exits[T]
                    total += a * b * (self.decay[T] - self.decay[U]) / gap
        return total


def _rates(theta: NDArray[np.float64], columns: Columns, t: float) -> list[list[Decimal | None]]:
    """Return, for each state, the rate of each column times t; None for items that are present."""
    k, items = columns.k, columns.items.tolist()
    scale = Decimal(t)
    base = [Decimal(float(theta[j, j])).exp() * scale for j in items]
    factor = [[Decimal(float(theta[i, j])).exp() for j in items] for i in items[:k]]
    # Compute the rates of each state from those of the state without its lowest item.
    all_rates: list[list[Decimal]] = [base]
    for R in range(1, 1 << k):
        b = (R & -R).bit_length() - 1
        before = all_rates[R & (R - 1)]
        all_rates.append([x if c == b else x * factor[b][c] for c, x in enumerate(before)])
    return [
        [None if c < k and R >> c & 1 else x for c, x in enumerate(row)]
        for R, row in enumerate(all_rates)
    ]
