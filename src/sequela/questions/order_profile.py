"""Fits that hold the order of two items near a given value, and learn all parameters again.

The value of an order is the log-odds of "i first, then j" against "j first, then i", in the model
of these two items alone. The log-odds are a coordinate of the family of Proposition 1. A quadratic
term in the objective (a "spring") pulls the log-odds towards a target. All parameters are learned,
including the parameters of the pair. The objective that a fit reports does not include the
spring. Each result is an ordinary model, which has its own P(i before j).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sequela.learning.carried_newton import CarriedNewton, Ends
from sequela.learning.fixed import apply_fixed
from sequela.learning.penalties import OffDiagonalL1, OnSupport, with_fixed
from sequela.learning.refitting import PRIOR_SD, WarmFits, WithRidge
from sequela.learning.solvers.contract import Limits
from sequela.learning.solvers.loop import begin, solve
from sequela.learning.solvers.proximal_newton import ProximalNewton
from sequela.likelihood.parameters import Parameters
from sequela.model import Model
from sequela.questions.dependence import ancestors, arrivals_on_lattice
from sequela.questions.order import order_matrix
from sequela.questions.theory import two_item_family_of
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sequela.learning.penalties import Penalty
    from sequela.learning.solvers.contract import Info
    from sequela.learning.solvers.proximal_newton import NewtonState
    from sequela.settings import Settings

    Pair = tuple[int, int]
    Memory = tuple[NDArray[np.float64], ...]

__all__ = ["HeldFits", "Hold", "Visited", "move_order", "order_log_odds"]

# Strength of the spring, in nats per squared log-odds. For example, if the log-likelihood decreases
# by 12 nats per unit of the log-odds, the fit ends half a unit from the target.
_STIFFNESS = 25.0
# Fits with the penalty are approximate, because they only choose supports and starts for other
# fits. Their tolerance is the penalty times _HELD_SHARE, but at least _TIGHTEST and at most
# _LOOSEST.
_HELD_SHARE = 0.2
_TIGHTEST, _LOOSEST = 2e-4, 2e-3
_HELD_ITERATIONS = 60
# Fits on a support end when one more step would gain at most _LEAST_GAIN nats, and no entry of the
# gradient is larger than _STEEPEST nats per unit. Fits with a held order begin near the end of
# another fit. They do not need to follow a flat valley, so they may end at a steeper gradient.
_LEAST_GAIN = 0.02
_STEEPEST = 0.15
_STEEPEST_HELD = 0.4
# If more entries are free, the fit uses the general solver, because computing a dense Hessian would
# take longer than the likelihood.
_MOST_FREE = 1000
# A fit ends early if it comes close to a known optimum: if no entry of theta differs by more than
# _NEAR_ENTRIES, and if it is at most _NEAR_NATS nats below this optimum and at most _NO_BETTER nats
# above it.
_NEAR_ENTRIES, _NEAR_NATS, _NO_BETTER = 0.2, 0.3, 1e-3
# Orders are computed directly on lattices of at most this many items.
_SMALL_LATTICE = 13
# If the start had larger entries, numbers could become too large for a double.
_LARGEST_START = 8.0
# `move_order` moves a pair at most to these log-odds. With much larger log-odds, one order would be
# almost impossible in the moved theta, and a fit that starts there could not get back to the other
# order.
_LARGEST_LOG_ODDS = 4.0


def _softplus(x: float) -> float:
    return float(np.logaddexp(0.0, x))


def _sigmoid(x: float) -> float:
    return float(np.exp(-np.logaddexp(0.0, -x)))


def order_log_odds(
    theta: NDArray[np.float64], i: int, j: int, stop_rate: float = 1.0
) -> tuple[float, NDArray[np.float64]]:
    """Return the log-odds of i before j in the model of these two items alone, and their gradient.

    The gradient is with respect to theta[i, i], theta[j, j], theta[i, j] and theta[j, i].
    `stop_rate` is the rate of the observation.

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
    """Return theta with the pair i, j moved to the log-odds `target` along its two-item family.

    The distribution of sets in the model of these two items alone stays the same (Proposition 1).
    There is no such family if the items never occur together or if one of them never occurs alone.
    In this case, their effects on each other are exchanged.

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
    """A pair and the target of its log-odds; see `order_log_odds`."""

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
class _PriorAndSpring:
    """The prior of the interactions, and a spring on some entries of theta, both in nats."""

    theta: NDArray[np.float64]
    places: NDArray[np.int64]
    spring: _HeldObjective | None
    n_samples: float

    def evaluate(
        self, x: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Return value, gradient and Hessian; for the spring, the Gauss-Newton Hessian."""
        n = len(self.theta)
        weight = np.where(self.places % (n + 1) == 0, 0.0, 1.0 / PRIOR_SD**2)
        value, gradient = 0.5 * float(weight @ (x * x)), weight * x
        hessian = np.diag(weight)
        if self.spring is not None:
            theta = self.theta.copy()
            theta.ravel()[self.places] = x
            energy, slope = self.spring.spring(theta)
            value += self.n_samples * energy
            gradient = gradient + self.n_samples * slope.ravel()[self.places]
            i, j = self.spring.hold.pair
            parts = np.zeros_like(theta)
            parts[[i, j, i, j], [i, j, j, i]] = order_log_odds(theta, i, j, self.spring.stop_rate)[
                1
            ]
            row = parts.ravel()[self.places]
            hessian += self.n_samples * self.spring.stiffness * np.outer(row, row)
        return value, gradient, hessian


@dataclass(frozen=True)
class Visited:
    """A fitted theta, and its log-likelihood minus the penalty or the prior term.

    `value` is this difference for all samples, in nats. `error` is its Monte Carlo standard error;
    0 if the value is exact.
    """

    theta: NDArray[np.float64]
    value: float
    error: float


class _Near:
    """Stops a fit early when it comes close to an optimum that is already known.

    `found` is this optimum; None while the fit is not close to a known optimum.
    """

    def __init__(self, known: Sequence[Visited]) -> None:
        self.known = known
        self.found: Visited | None = None

    def look(self, theta: NDArray[np.float64], value: float) -> bool:
        """Return whether a model is close to a known optimum, and not better than it."""
        for other in self.known:
            if (
                -_NEAR_NATS <= value - other.value <= _NO_BETTER
                and np.abs(theta - other.theta).max() <= _NEAR_ENTRIES
            ):
                self.found = other
                return True
        return False


def _with(
    theta: NDArray[np.float64], places: NDArray[np.int64], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return theta with the entries x at `places`."""
    changed = theta.copy()
    changed.ravel()[places] = x
    return changed


class HeldFits:
    """Fits to one data set from a given theta, with or without a held order.

    Without a support, the objective is the log-likelihood with the L1 penalty. With a support, the
    interactions have a weak normal prior (`PRIOR_SD`) and no penalty. The reason is that a penalty
    would favour the order that needs fewer strong effects.

    Parameters
    ----------
    fits : WarmFits
        The data, the observation, and the tolerance of a fit.
    penalty : float
        Weight of the L1 penalty.
    settings : Settings
        How probabilities of orders are computed: budget, draws, seed and threads.

    Attributes
    ----------
    evaluations : int
        Number of evaluations of the likelihood so far.
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
        self._memory: tuple[Memory, Memory] = ((), ())
        # `fits.unit` is the information of one sample about each entry, to the power -1/4.
        self._newton = CarriedNewton(self.n_samples * fits.unit**-4.0)

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
        known: Sequence[Visited] = (),
    ) -> Visited | None:
        """Return the optimum that a fit from theta reaches, with or without a held order.

        Return None if an entry of theta is too large for a double. With `polish`, the fit uses the
        tolerance of `fits`; otherwise it uses a larger one. `known` are optima of the same
        objective. If the fit comes close to one of them, this optimum is returned.
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
        start = np.clip(theta, -_LARGEST_START, _LARGEST_START)
        start = apply_fixed(start, fits.fixed)
        near = _Near(known)
        if support is not None:
            free = ProximalNewton(penalty, fits.unit).free_at_first(start)
            fits.objective.prepare(free)
            if not fits.objective.is_sampled and np.count_nonzero(support) <= _MOST_FREE:
                return self._fit_on_support(start, objective, penalty, near)
        return self._fit_by_solver(start, objective, penalty, near, polish=polish)

    def _fit_by_solver(
        self,
        start: NDArray[np.float64],
        objective: WithRidge,
        penalty: Penalty,
        near: _Near,
        *,
        polish: bool,
    ) -> Visited | None:
        """Return the optimum from the general solver.

        It is used with a penalty, and for large supports and sampled sets.
        """
        fits = self.fits
        solver = ProximalNewton(penalty, fits.unit)
        # A fit with a held order begins with the complete gradient, because it must find
        # interactions outside the support that make this order possible. Other fits may leave
        # out parts of the gradient outside the support. If the result of a fit is better than
        # the current model, `range_search` fits it again with `polish=True`, which uses the
        # complete gradient.
        complete = polish or isinstance(objective, _HeldObjective)
        fits.objective.approximate = not complete
        state, info = begin(solver, objective, start)
        if not np.isfinite(state.loss):
            return None
        # All fits without a held order have the same log-likelihood, so each begins with the
        # quasi-Newton memory of the previous one.
        shares_memory = not (isinstance(objective, _HeldObjective) or fits.objective.is_sampled)
        if shares_memory:
            state = replace(state, steps=self._memory[0], changes=self._memory[1])

        def watch(state: NewtonState, info: Info) -> bool:
            fits.objective.approximate = not complete or (not polish and info.iterations > 0)
            if near.known and not fits.objective.is_sampled:
                near.look(state.theta, -self.n_samples * (state.loss + penalty.value(state.theta)))
            return near.found is not None

        limits = fits.limits if polish else self._limits
        state, info = solve(solver, objective, (state, info), limits, watch)
        self.evaluations += info.evaluations
        if shares_memory:
            self._memory = state.steps, state.changes
        if near.found is not None:
            return near.found
        if fits.objective.is_sampled:
            return self.value_of(state.theta, on_support=isinstance(penalty, OnSupport))
        loss = state.loss + penalty.value(state.theta)
        if isinstance(objective, _HeldObjective):
            loss -= objective.spring(state.theta)[0]
        return Visited(state.theta, -self.n_samples * loss, 0.0)

    def _fit_on_support(
        self, start: NDArray[np.float64], objective: WithRidge, penalty: Penalty, near: _Near
    ) -> Visited | None:
        """Return the optimum on a support, to about 0.02 nats.

        The objective has the prior, and the spring if an order is held.
        """
        free = np.isfinite(penalty.weights(len(start)))
        if self.fits.fixed is not None:
            free &= np.isnan(self.fits.fixed)
        places = np.flatnonzero(free)
        theta = np.where(free | np.eye(len(start), dtype=bool), start, 0.0)
        theta = apply_fixed(theta, self.fits.fixed)
        spring = objective if isinstance(objective, _HeldObjective) else None

        def loss(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, gradient = self.fits.objective.evaluate(_with(theta, places, x))
            return self.n_samples * value, self.n_samples * gradient.ravel()[places]

        def arrived(x: NDArray[np.float64], value: float) -> bool:
            return near.look(_with(theta, places, x), -value)

        prior = _PriorAndSpring(theta, places, spring, self.n_samples)
        steepest = _STEEPEST if spring is None else _STEEPEST_HELD
        ends = Ends(_LEAST_GAIN, steepest, _HELD_ITERATIONS, arrived if near.known else None)
        found = self._newton.minimise(loss, prior, places, theta.ravel()[places], ends)
        if found is None:
            return None
        self.evaluations += found.evaluations
        if near.found is not None:
            return near.found
        end = _with(theta, places, found.x)
        value = found.value
        if spring is not None:
            value -= self.n_samples * spring.spring(end)[0]
        return Visited(end, -value, 0.0)

    def value_of(self, theta: NDArray[np.float64], *, on_support: bool = False) -> Visited:
        """Return theta and its value, which includes the penalty or, on a support, the prior."""
        fits = self.fits
        fits.objective.prepare((theta != 0.0) | np.eye(len(theta), dtype=bool))
        if fits.objective.is_sampled:
            log_likelihood, error = fits.log_likelihood(theta)
        else:
            log_likelihood = -self.n_samples * fits.objective.evaluate(theta)[0]
            error = 0.0
        self.evaluations += 1
        if on_support:
            off = theta - np.diag(np.diagonal(theta))
            cost = 0.5 * float(np.sum(off * off)) / PRIOR_SD**2
        else:
            cost = self.n_samples * with_fixed(self.penalty, fits.fixed).value(theta)
        return Visited(theta, log_likelihood - cost, error)

    def probability(self, theta: NDArray[np.float64], pair: Pair) -> float:
        """Return P(i before j) in a model; NaN if i and j are never observed together."""
        items = self.fits.data.items
        # Leave out items that do not act on the pair, because simulations are faster without them.
        members = ancestors(theta, np.array(pair))
        part = theta[np.ix_(members, members)]
        if members.size <= _SMALL_LATTICE and self.fits.observation.constant_rate is not None:
            # The tables of `order_matrix` would take longer than the lattice itself.
            before = arrivals_on_lattice(part, self.stop_rate)[1]
            i, j = np.searchsorted(members, pair)
            both = float(before[i, j] + before[j, i])
            return float(before[i, j]) / both if both > 0.0 else float("nan")
        labels = [items[place] for place in members]
        model = Model(part, labels, observation=self.fits.observation)
        orders = order_matrix(model, [items[pair[0]], items[pair[1]]], settings=self.settings)
        return float(orders.probability.to_numpy()[0, 1])

    def log_odds(self, theta: NDArray[np.float64], pair: Pair) -> float:
        """Return the log-odds of the order of a pair, in the model of these two items alone."""
        return order_log_odds(theta, *pair, self.stop_rate)[0]

    def moved(self, theta: NDArray[np.float64], pair: Pair, target: float) -> NDArray[np.float64]:
        """Return theta with a pair moved to the target along its family."""
        return move_order(theta, *pair, target, self.stop_rate)
