"""Sets too large for the lattice: chains over orders give the gradient, a path gives the value.

Each large set has a number of independent chains, so that the spread between their means is the
standard error, whatever the correlation inside a chain. Chains start from exact draws of the
model without interactions.

The value comes from integrating the gradient along the straight path from that model, where it is
known by quadrature, to theta (thermodynamic integration). The integrand is smooth, and a
Gauss-Legendre rule with enough nodes (`path_nodes`) has an error far below the sampling error that
is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.metropolis import metropolis
from sequela.kernels.relocation import relocate
from sequela.likelihood.independent import (
    draw_orders,
    log_p_independent,
    log_p_independent_at,
)
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.random import stream
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.parameters import Columns, Parameters

__all__ = [
    "FIRST_BURN_IN",
    "Chain",
    "ChainResult",
    "ChainRun",
    "Sampling",
    "check_sampling",
    "combine",
    "sampled_columns",
]

# Sweeps more for a chain that has just started from the model without interactions, to forget it;
# two or three were enough in trials.
FIRST_BURN_IN = 8

# Sampled weights are plain doubles, rescaled where the chain moves on; in between the free items of
# a block may arrive, and the product of their rates must stay in range.
_LOG_RANGE = 690.0
_LEAST_BLOCK = 2
_MOST_PATH_NODES = 160


@dataclass(frozen=True)
class Sampling:
    """How sets beyond the budget are sampled.

    Parameters
    ----------
    chains : int
        Independent chains a set. Their spread gives the standard error.
    sweeps : int
        Sweeps a chain for a gradient (relocation). A sweep moves every item once.
    burn_in : int
        Sweeps that are dropped before, after a change of theta.
    block : int
        How many items are relocated at once; 4 gave the least error for the time.
    draws, draws_burn_in : int
        The same for Metropolis-Hastings, in proposals (the paper: 50 and 10).
    nodes : int
        Points along the path that gives the value; strong interactions take more.
    """

    chains: int = 16
    sweeps: int = 6
    burn_in: int = 2
    block: int = 4
    draws: int = 50
    draws_burn_in: int = 10
    nodes: int = 12

    def __post_init__(self) -> None:
        for name in ("chains", "sweeps", "block", "draws", "nodes"):
            positive_integer(f"sampling {name}", getattr(self, name))
        for name in ("burn_in", "draws_burn_in"):
            positive_integer(f"sampling {name}", getattr(self, name), least=0)
        if self.block > 8:
            raise InputError(
                f"sampling block is {self.block}; expected at most 8 (2^8 states a place)"
            )


def check_sampling(sampling: Sampling | None) -> Sampling:
    """Return how to sample, or the default for None."""
    if sampling is None:
        return Sampling()
    if not isinstance(sampling, Sampling):
        raise InputError(
            f"sampling is {sampling!r}; expected a sequela.Sampling, such as Sampling(chains=32)"
        )
    return sampling


@dataclass
class Chain:
    """One chain over the orders of one set: what its next step needs, and nothing else."""

    order: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    steps_taken: int = 0


@dataclass(frozen=True)
class ChainResult:
    """What one chain found: a mean gradient (layout of `lattice.gradient`) and a value."""

    G: NDArray[np.float64] | None
    log_p: float
    acceptance: float


def sampled_columns(parameters: Parameters, items: NDArray[np.int64]) -> Columns:
    """Return the columns of a set to be sampled, or raise if its rates are out of range."""
    columns = parameters.columns(items)
    if _largest_block(columns) < _LEAST_BLOCK:
        raise InputError(
            f"theta allows log-rates between {columns.lowest:.0f} and {columns.highest:.0f} for "
            f"a set of {columns.k} items; sets that are sampled need a range of at most "
            f"{_LOG_RANGE / _LEAST_BLOCK:.0f}. Scale the largest entries of theta down, or "
            "raise the budget so that the set is exact"
        )
    return columns


def _largest_block(columns: Columns) -> int:
    """Return how many items can be relocated at once without leaving the range of a double."""
    width = max(columns.highest, 0.0) - min(columns.lowest, 0.0)
    return int(_LOG_RANGE / max(width, 1.0))


def _check_finite(G: NDArray[np.float64], columns: Columns) -> None:
    """Raise if sampled weights have left the range of a double after all."""
    if not np.isfinite(G).all():
        raise InputError(
            f"the weights of a set of {columns.k} items left the range of a double while it was "
            f"sampled (log-rates between {columns.lowest:.0f} and {columns.highest:.0f}); scale "
            "the largest entries of theta down, or raise the budget so that the set is exact"
        )


def path_nodes(columns: Columns, nodes: int) -> int:
    """Return the number of nodes along the path to a set's value.

    The integrand bends with the largest change that interactions can make to a log-rate; with
    this many nodes the rule's error stayed below 1e-6 in trials up to changes of 60.
    """
    strength = float(np.abs(columns.effects).sum(axis=0).max(initial=0.0))
    return max(nodes, min(int(2.0 * strength) + 4, _MOST_PATH_NODES))


@dataclass(frozen=True)
class ChainRun:
    """One chain of one set, ready to be advanced at one theta.

    `t` is the observation time (NaN: unknown); `index` (set, chain) and the steps taken name the
    stream of random numbers. The paper's Metropolis-Hastings starts anew for every gradient;
    with `resume` it goes on, as relocation does.
    """

    parameters: Parameters
    columns: Columns
    chain: Chain
    t: float
    method: str
    sampling: Sampling
    seed: int
    index: tuple[int, int]
    resume: bool = False

    def __call__(self, *, value: bool, gradient: bool) -> ChainResult:
        """Advance the chain; return what it found of the value and of the gradient."""
        chain = self.chain
        columns = self.columns
        rng = stream(self.seed, *self.index, chain.steps_taken)
        chain.steps_taken += 1
        k = columns.k
        own = columns.rate[:k]
        # The rates of all items outside the set, before any of its effects.
        others = columns.rest + float(columns.rate[k:].sum())
        observation_rate = self.parameters.observation_rate
        extra = 0
        if self.method != "relocation" and not self.resume:
            chain.order = np.empty(k, dtype=np.int64)  # every run starts from a proposal
        elif value or not chain.order.size:
            # Along the path to the value interactions grow from nothing: no burn-in is needed.
            extra = 0 if value else FIRST_BURN_IN
            chain.order = draw_orders(own, others + observation_rate, self.t, rng)
        log_p = np.nan
        acceptance = 1.0
        if value:
            log_p = (
                log_p_independent(own, others, observation_rate)
                if np.isnan(self.t)
                else log_p_independent_at(own, others, self.t)
            )
            points, weights = np.polynomial.legendre.leggauss(
                path_nodes(columns, self.sampling.nodes)
            )
            for point, weight in zip((points + 1.0) / 2.0, weights / 2.0, strict=True):
                G, acceptance = self._advance(point, rng)
                log_p += weight * float(np.sum(G[:k, :-1] * columns.effects))
        G_end = None
        if gradient:
            G_end, acceptance = self._advance(1.0, rng, extra)
        return ChainResult(G=G_end, log_p=log_p, acceptance=acceptance)

    def _advance(
        self, scale: float, rng: np.random.Generator, extra: int = 0
    ) -> tuple[NDArray[np.float64], float]:
        """Run the chain with all effects times `scale`; return its mean G and its acceptance."""
        columns = self.columns
        sampling = self.sampling
        k = columns.k
        effects = columns.effects * scale
        Wc = np.exp(effects)
        G = np.zeros((k + 1, columns.items.size + 1))
        if self.method == "relocation":
            # About two gradients a sweep: consecutive ones differ by just a block.
            block = min(sampling.block, _largest_block(columns))
            every = max(1, -(-k // block) // 2)
            keep_none = np.empty((0, k), dtype=np.int64)
            terms = call(
                relocate, G, keep_none, self.chain.order, Wc, columns.rate, columns.rest,
                self.parameters.observation_rate, block, sampling.burn_in + extra,
                sampling.sweeps, every, rng,
            )  # fmt: skip
            _check_finite(G, columns)
            return G / terms, 1.0
        accepted = call(
            metropolis, G, self.chain.order, Wc, effects, columns.rate, columns.rest,
            self.parameters.observation_rate, self.t, self.method == "metropolis",
            self.resume, sampling.draws_burn_in + extra * sampling.draws, sampling.draws, rng,
        )  # fmt: skip
        _check_finite(G, columns)
        return G / sampling.draws, accepted / sampling.draws


def combine(
    parameters: Parameters, columns: Columns, results: list[ChainResult]
) -> tuple[float, float, NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Return mean and variance of the mean, over chains, of log p and of the n x n gradient."""
    chains = len(results)
    values = np.array([result.log_p for result in results])
    value = float(values.mean())
    value_variance = float(values.var(ddof=1) / chains) if chains > 1 else np.nan
    if results[0].G is None:
        return value, value_variance, None, None
    stack = np.stack([result.G for result in results if result.G is not None])
    n = parameters.n
    gradient = np.zeros((n, n))
    parameters.spread(columns, stack.mean(axis=0), gradient)
    variance = np.full((n, n), np.nan)
    if chains > 1:
        variance = np.zeros((n, n))
        parameters.spread_variance(columns, stack.var(axis=0, ddof=1) / chains, variance)
    return value, value_variance, gradient, variance
