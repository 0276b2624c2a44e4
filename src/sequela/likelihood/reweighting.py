"""Estimate the likelihood at nearby thetas from orders that were drawn at one theta.

For a set beyond the budget, orders are drawn at some theta_0. From these orders, the ratio p(S;
theta) / p(S; theta_0) is then estimated by importance weights. The estimate is a smooth function of
theta, and the gradient is the exact derivative of the estimate. Line searches and quasi-Newton
matrices need these two properties. If the effective number of orders is much smaller than their
actual number, theta has moved too far from theta_0, and new orders must be drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.reweight import weigh_orders
from sequela.likelihood.independent import log_p_independent
from sequela.likelihood.orders import FIRST_BURN_IN
from sequela.support.jit import call
from sequela.support.random import Purpose, stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.orders import OrderSampler
    from sequela.likelihood.parameters import Columns

__all__ = ["DrawKey", "DrawnOrders", "Weighed"]


@dataclass(frozen=True)
class DrawKey:
    """The numbers that identify a draw in a fit. They determine the random streams of the draw."""

    seed: int
    start: int
    draws: int


@dataclass(frozen=True)
class Weighed:
    """The weights of the orders of one set at one theta, and the estimate of log p.

    `shares` are the weights, which add up to 1. `effective` is the effective share of the orders:
    the effective number of orders divided by the number of orders.
    """

    shares: NDArray[np.float64]
    log_p: float
    effective: float


@dataclass
class DrawnOrders:
    """A set beyond the budget: its chains and their latest orders.

    Attributes
    ----------
    items, weight : array, float
        The items of the set, and its share of the samples. The time of the set is unknown.
    states : array (chains, size)
        The current orders of the chains.
    orders : array (chains, kept, size)
        The orders that are in use.
    drawn : array (chains, kept)
        The log-probabilities of these orders, at the theta at which they were drawn.
    offset : float
        Estimate of log p(S) at that theta.
    """

    items: NDArray[np.int64]
    weight: float
    states: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))
    orders: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0, 0), dtype=np.int64))
    drawn: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    offset: float = 0.0

    def log_weights(self, columns: Columns, chain: int) -> NDArray[np.float64]:
        """Return the log-probability of every order of a chain, at the theta of `columns`."""
        log_w = np.empty(self.orders.shape[1])
        call(
            weigh_orders, np.empty((1, 1)), log_w, np.empty(0), self.orders[chain],
            columns.arrays(), np.nan,
        )  # fmt: skip
        return log_w

    def gradient(
        self, columns: Columns, chain: int, shares: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the sum of the gradients of a chain's orders, each multiplied by its share."""
        G = np.zeros((columns.k + 1, columns.n_columns + 1))
        log_w = np.empty(self.orders.shape[1])
        call(weigh_orders, G, log_w, shares, self.orders[chain], columns.arrays(), np.nan)
        return G

    def weigh(self, log_weights: NDArray[np.float64]) -> Weighed:
        """Return the weights of the orders and log p, given log-probabilities at another theta."""
        log_ratio = log_weights - self.drawn
        top = log_ratio.max()
        weight = np.exp(log_ratio - top)
        shares = weight / weight.sum()
        return Weighed(
            shares=shares,
            log_p=self.offset + float(top + np.log(weight.mean())),
            effective=float(1.0 / np.sum(shares**2) / weight.size),
        )

    def advance(
        self, sampler: OrderSampler, key: DrawKey, index: tuple[int, int], kept: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Advance one chain. Return its new state and the orders that it drew.

        `index` is the position of the set and the number of the chain.
        """
        rng = stream(key.seed, Purpose.FITTED_ORDERS, key.start, *index, key.draws)
        going_on = bool(self.states.size)
        state = self.states[index[1]].copy() if going_on else sampler.start(rng)
        burn_in = sampler.sampling.burn_in + (0 if going_on else FIRST_BURN_IN)
        return state, sampler.advance(state, rng, kept=kept, burn_in=burn_in)

    def replace(
        self,
        columns: Columns,
        chains: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
        log_p: float | None,
    ) -> None:
        """Store new orders, and log p(S) at the theta at which these orders were drawn.

        If `log_p` is None, log p(S) of the model without interactions is stored (see
        `Objective.draw`).
        """
        self.states = np.stack([state for state, _ in chains])
        self.orders = np.stack([orders for _, orders in chains])
        if log_p is None:
            own = columns.rate[: columns.k]
            log_p = log_p_independent(own, columns.others, columns.stop_rate)
        self.offset = log_p
        self.drawn = np.stack([self.log_weights(columns, c) for c in range(len(chains))])
