"""Fits in which the order of two items is held, and everything else is learned again.

The order is held at a coordinate of Proposition 1's family: the log-odds of "i first, then j"
against "j first, then i" of the two items alone, at a position `target`. A stiff spring pulls the
pair towards the target; all parameters, those of the pair included, stay free. The value of such a
fit is read without the spring, so each end is a model like any other, with its own P(i before j).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sequela.learning.fixed import apply_fixed
from sequela.learning.penalties import OffDiagonalL1, OnSupport, with_fixed
from sequela.learning.refitting import PRIOR_SD, WarmFits, WithRidge
from sequela.learning.solvers.contract import Limits
from sequela.learning.solvers.loop import begin, solve
from sequela.learning.solvers.proximal_newton import ProximalNewton
from sequela.likelihood.parameters import Parameters
from sequela.model import Model
from sequela.questions.order import order_matrix
from sequela.questions.theory import two_item_family_of
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.learning.penalties import Penalty
    from sequela.settings import Settings

    Pair = tuple[int, int]

__all__ = ["HeldFits", "Hold", "Visited", "move_order", "order_log_odds"]

# The spring, in nats per squared log-odds: a profile that falls by 12 nats per unit of the
# log-odds pulls the pair half a unit from its target.
_STIFFNESS = 25.0
# Fits on the way are approximate: to this share of the penalty, within these bounds, the KKT
# residual leaves the value right to about 0.03 nats.
_HELD_SHARE = 0.2
_TIGHTEST, _LOOSEST = 2e-4, 2e-3
_HELD_ITERATIONS = 60
# Starts further out would leave the range of the arithmetic.
_LARGEST_START = 8.0
# Neither order is made impossible: the solver could not come back from there.
_LARGEST_LOG_ODDS = 4.0


def _softplus(x: float) -> float:
    return float(np.logaddexp(0.0, x))


def _sigmoid(x: float) -> float:
    return float(np.exp(-np.logaddexp(0.0, -x)))


def order_log_odds(
    theta: NDArray[np.float64], i: int, j: int, stop_rate: float = 1.0
) -> tuple[float, NDArray[np.float64]]:
    """Return the log-odds of i before j if there were no other items, and the gradient.

    The gradient is with respect to theta[i, i], theta[j, j], theta[i, j] and theta[j, i].

    Examples
    --------
    >>> odds, _ = order_log_odds(np.array([[0.0, 4.0], [0.0, -4.0]]), 0, 1)
    >>> round(float(1 / (1 + np.exp(-odds))), 3)
    0.982
    """
    rest = np.log(stop_rate)
    after_i = float(theta[j, j] + theta[i, j] - rest)
    after_j = float(theta[i, i] + theta[j, i] - rest)
    odds = float(theta[i, i] - theta[j, j]) - _softplus(-after_i) + _softplus(-after_j)
    gradient = np.array(
        [_sigmoid(after_j), -_sigmoid(after_i), _sigmoid(-after_i), -_sigmoid(-after_j)]
    )
    return odds, gradient


def move_order(
    theta: NDArray[np.float64], i: int, j: int, target: float, stop_rate: float = 1.0
) -> NDArray[np.float64]:
    """Return theta with items i and j moved along Proposition 1's family to these log-odds.

    The distribution of the sets of the two items alone stays the same. Where there is no such
    family (the two are never together or never apart), their effects are exchanged.

    Examples
    --------
    >>> theta = np.array([[0.0, 4.0], [0.0, -4.0]])
    >>> moved = move_order(theta, 0, 1, -2.0)
    >>> round(order_log_odds(moved, 0, 1)[0], 6), two_item_family_of(theta).contains(moved)
    (-2.0, True)
    """
    block = np.ix_([i, j], [i, j])
    relative = np.diag([np.log(stop_rate)] * 2)
    moved = theta.copy()
    try:
        family = two_item_family_of(theta[block] - relative)
    except InputError:
        moved[i, j], moved[j, i] = theta[j, i], theta[i, j]
        return moved
    low, high = family.interval
    share = _sigmoid(float(np.clip(target, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)))
    moved[block] = family.theta(low + share * (high - low)) + relative
    return moved


@dataclass(frozen=True)
class Hold:
    """The order of a pair, held at these log-odds; see `order_log_odds`."""

    pair: Pair
    target: float


@dataclass(frozen=True)
class _HeldObjective(WithRidge):
    """An objective with a spring that pulls a pair to the log-odds of a `Hold`."""

    hold: Hold
    stiffness: float
    stop_rate: float

    def evaluate(
        self, theta: NDArray[np.float64], *, full: bool = False
    ) -> tuple[float, NDArray[np.float64]]:
        """Return loss and gradient."""
        loss, gradient = super().evaluate(theta, full=full)
        if not np.isfinite(loss):
            return loss, gradient
        value, slope = self.spring(theta)
        return loss + value, gradient + slope

    def spring(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the energy of the spring, per sample, and its gradient."""
        i, j = self.hold.pair
        odds, parts = order_log_odds(theta, i, j, self.stop_rate)
        off = odds - self.hold.target
        slope = np.zeros_like(theta)
        slope[[i, j, i, j], [i, j, j, i]] = self.stiffness * off * parts
        return 0.5 * self.stiffness * off * off, slope


@dataclass(frozen=True)
class Visited:
    """A model on the way, and its objective over all samples, in nats.

    `error` is the Monte Carlo standard error of the value; 0 where it is exact.
    """

    theta: NDArray[np.float64]
    value: float
    error: float


class HeldFits:
    """Fits to one data set from a given theta, with or without a held order.

    Without a support, the objective is that of the model: the log-likelihood with the L1 penalty.
    On a support, its interactions have a weak normal prior instead (`PRIOR_SD`): the penalty would
    take sides between the orders, as it costs two strong effects more than one.

    Parameters
    ----------
    fits : WarmFits
        The data, the observation, and when a fit has converged.
    penalty : float
        Weight of the L1 penalty.
    settings : Settings
        How probabilities of orders are computed.

    Attributes
    ----------
    evaluations : int
        Evaluations of the likelihood so far.
    """

    def __init__(self, fits: WarmFits, penalty: float, settings: Settings) -> None:
        self.fits = fits
        self.penalty = OffDiagonalL1(penalty)
        self.settings = settings
        self.n_samples = max(fits.data.total_weight, 1e-9)
        self.evaluations = 0
        tol = float(np.clip(_HELD_SHARE * penalty, _TIGHTEST, _LOOSEST))
        self._limits = Limits(tol=tol, max_iter=_HELD_ITERATIONS)
        nothing = np.zeros((fits.objective.n, fits.objective.n))
        self.stop_rate = Parameters(nothing, fits.observation).stop_rate

    @property
    def seconds(self) -> float:
        """Predicted time of all evaluations so far, on one core; the same on every machine."""
        return self.fits.objective.seconds

    def fit(
        self,
        theta: NDArray[np.float64],
        hold: Hold | None = None,
        support: NDArray[np.bool_] | None = None,
        *,
        polish: bool = False,
    ) -> Visited | None:
        """Go on from theta to an optimum, with an order held or without.

        None where theta is out of the range of the arithmetic. `polish` goes on to the tolerance
        of the fit, instead of one that is good enough for the way.
        """
        fits = self.fits
        fits.objective.restart(0)
        ridge = 0.0 if support is None else 1.0 / (PRIOR_SD**2 * self.n_samples)
        objective = WithRidge(fits.objective, ridge)
        if hold is not None:
            stiffness = _STIFFNESS / self.n_samples
            objective = _HeldObjective(fits.objective, ridge, hold, stiffness, self.stop_rate)
        penalty: Penalty = self.penalty if support is None else OnSupport(support)
        penalty = with_fixed(penalty, fits.fixed)
        solver = ProximalNewton(penalty, fits.unit)
        start = np.clip(theta, -_LARGEST_START, _LARGEST_START)
        start = apply_fixed(start, fits.fixed)
        first = begin(solver, objective, start)
        if not np.isfinite(first[0].loss):
            return None
        state, info = solve(solver, objective, first, fits.limits if polish else self._limits)
        self.evaluations += info.evaluations
        if fits.objective.is_sampled:
            return self.value_of(state.theta, on_support=support is not None)
        loss = state.loss + penalty.value(state.theta)
        if isinstance(objective, _HeldObjective):
            loss -= objective.spring(state.theta)[0]
        return Visited(state.theta, -self.n_samples * loss, 0.0)

    def value_of(self, theta: NDArray[np.float64], *, on_support: bool = False) -> Visited:
        """Return a model with its value: with the penalty, or with the prior of a support."""
        log_likelihood, error = self.fits.log_likelihood(theta)
        self.evaluations += 1
        if on_support:
            off = theta - np.diag(np.diagonal(theta))
            cost = 0.5 * float(np.sum(off * off)) / PRIOR_SD**2
        else:
            cost = self.n_samples * with_fixed(self.penalty, self.fits.fixed).value(theta)
        return Visited(theta, log_likelihood - cost, error)

    def probability(self, theta: NDArray[np.float64], pair: Pair) -> float:
        """Return P(i before j) of a model; NaN where the two are never observed together."""
        items = self.fits.data.items
        model = Model(theta, items, observation=self.fits.observation)
        orders = order_matrix(model, [items[pair[0]], items[pair[1]]], settings=self.settings)
        return float(orders.probability.to_numpy()[0, 1])

    def log_odds(self, theta: NDArray[np.float64], pair: Pair) -> float:
        """Return the log-odds of the order of a pair, without other items."""
        return order_log_odds(theta, *pair, self.stop_rate)[0]

    def moved(self, theta: NDArray[np.float64], pair: Pair, target: float) -> NDArray[np.float64]:
        """Return theta with a pair moved along its family."""
        return move_order(theta, *pair, target, self.stop_rate)
