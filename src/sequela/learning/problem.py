"""The smooth part of the objective as a solver sees it: a deterministic function of theta.

Sets within the budget are exact. For larger ones a number of orders is drawn at some theta_0, and
from there on the ratio p(S; theta) / p(S; theta_0) is estimated from these same orders by
importance weights: smooth, with a gradient that belongs to its value, so that line searches and
quasi-Newton matrices work. How many orders still count (the effective number) tells when theta has
moved too far and new ones must be drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.kernels.relocation import relocate
from sequela.kernels.reweight import weigh_orders
from sequela.likelihood import Budget, Likelihood, Sampling
from sequela.likelihood.independent import draw_orders, log_p_independent
from sequela.likelihood.observations import Observations
from sequela.likelihood.parameters import Columns, Parameters
from sequela.likelihood.sampled import FIRST_BURN_IN, sampled_columns
from sequela.support.errors import BudgetError
from sequela.support.jit import call
from sequela.support.random import stream
from sequela.support.threads import resolve_threads, run_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset

__all__ = ["LargeSet", "Problem"]


@dataclass
class LargeSet:
    """A set beyond the budget: its chains and the orders that they drew last.

    Attributes
    ----------
    items, weight : array, float
        The set and its share of the samples; its time is unknown.
    states : array (chains, size)
        Where the chains stand.
    orders : array (chains, kept, size)
        The orders in use.
    drawn : array (chains, kept)
        Their log-probabilities at the theta at which they were drawn.
    offset : float
        Estimate of log p(S) at that theta.
    """

    items: NDArray[np.int64]
    weight: float
    states: NDArray[np.int64]
    orders: NDArray[np.int64]
    drawn: NDArray[np.float64]
    offset: float = 0.0


class Problem:
    """Loss (minus the mean log-likelihood) and gradient of a data set.

    Parameters
    ----------
    data : Dataset
        The samples, with times where they are known.
    budget : Budget
        What an exact set may cost.
    sampling : Sampling
        Chains and block size of the others.
    observation_rate : float
        Rate of the observation.
    seed : int
        Everything drawn is derived from it.
    n_threads : int or None
        Threads.
    """

    def __init__(
        self,
        data: Dataset,
        *,
        budget: Budget,
        sampling: Sampling,
        observation_rate: float,
        seed: int,
        n_threads: int | None,
    ) -> None:
        self.data = data
        self.n = data.n_items
        self.sampling = sampling
        self.observation_rate = observation_rate
        self.seed = seed
        self.n_threads = resolve_threads(n_threads)
        self.draws = 0
        self.start = 0
        observations = Observations.of(data)
        self.observations = observations
        timed = ~np.isnan(observations.times)
        # By size alone, as if all items interacted: the choice must not change with theta.
        fits = budget.exact_by_size(observations.sizes, timed, self.n)
        beyond = np.nonzero(~fits & timed)[0]
        if beyond.size:
            row = int(observations.first[beyond[0]])
            raise BudgetError(
                f"sample {data.samples[row]!r} (row {row}) has "
                f"{int(observations.sizes[beyond[0]])} items and a known time: more than the "
                "budget allows to be exact, and at known times a fit does not sample. Raise the "
                "budget, or give NaN for its time"
            )
        small = fits[observations.inverse]
        self.small_share = float(small.mean())
        self.small = (
            Likelihood(
                data if small.all() else data.select_samples(small),
                budget=Budget(memory="1TB", work=1e18),
                observation_rate=observation_rate,
                n_threads=n_threads,
            )
            if small.any()
            else None
        )
        self.large = [
            LargeSet(
                items=observations.items(int(s)),
                weight=float(observations.weights[s]),
                states=np.empty((0, 0), dtype=np.int64),
                orders=np.empty((0, 0, 0), dtype=np.int64),
                drawn=np.empty((0, 0)),
            )
            for s in np.nonzero(~fits)[0]
        ]
        self.effective = 1.0
        self.ridge = 0.0

    def evaluate(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return loss and gradient; `effective` then holds the smallest share of orders in use.

        With a `ridge`, half of it times the squares of the interactions is part of the loss.
        """
        loss, gradient = self.exact(theta)
        if self.ridge:
            off = theta - np.diag(np.diagonal(theta))
            loss += 0.5 * self.ridge * float(np.sum(off * off))
            gradient = gradient + self.ridge * off
        if self.large:
            parameters = Parameters(theta, self.observation_rate)
            shares, values, effective = self._weights(parameters)
            stacks = self._chain_gradients(parameters, shares)
            for large, value, (columns, stack) in zip(self.large, values, stacks, strict=True):
                loss -= large.weight * value
                part = np.zeros((self.n, self.n))
                parameters.spread(columns, stack.sum(axis=0), part)
                gradient -= large.weight * part
            self.effective = min(effective)
        return loss, gradient

    def gradient_error(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the Monte Carlo standard error of the gradient where orders were just drawn."""
        variance = np.zeros((self.n, self.n))
        if self.large:
            parameters = Parameters(theta, self.observation_rate)
            shares, _, _ = self._weights(parameters)
            for large, (columns, stack) in zip(
                self.large, self._chain_gradients(parameters, shares), strict=True
            ):
                chains = stack.shape[0]
                spread = (stack * chains).var(axis=0, ddof=1) / chains
                part = np.zeros((self.n, self.n))
                parameters.spread_variance(columns, spread, part)
                variance += large.weight**2 * part
        return np.sqrt(variance)

    def exact(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return what the sets within the budget contribute to loss and gradient."""
        if self.small is None:
            return 0.0, np.zeros((self.n, self.n))
        found = self.small.evaluate(theta)
        assert found.gradient is not None  # noqa: S101 - it was asked for
        return -self.small_share * found.value, -self.small_share * found.gradient

    def _weights(
        self, parameters: Parameters
    ) -> tuple[list[NDArray[np.float64]], list[float], list[float]]:
        """Return of every large set the shares of its orders, log p, and the effective share."""
        pieces = [(s, c) for s, large in enumerate(self.large) for c in range(len(large.states))]
        columns = [sampled_columns(parameters, large.items) for large in self.large]
        none = np.empty(0)

        def work(piece: tuple[int, int]) -> NDArray[np.float64]:
            s, c = piece
            log_w = np.empty(self.large[s].orders.shape[1])
            self._weigh(np.empty((1, 1)), log_w, none, columns[s], self.large[s], c)
            return log_w

        done = dict(zip(pieces, run_pieces(work, pieces, self.n_threads), strict=True))
        shares = []
        values = []
        effective = []
        for s, large in enumerate(self.large):
            log_ratio = np.stack([done[s, c] for c in range(len(large.states))]) - large.drawn
            top = log_ratio.max()
            weight = np.exp(log_ratio - top)
            shares.append(weight / weight.sum())
            values.append(large.offset + float(top + np.log(weight.mean())))
            effective.append(float(1.0 / np.sum(shares[-1] ** 2) / weight.size))
        return shares, values, effective

    def _chain_gradients(
        self, parameters: Parameters, shares: list[NDArray[np.float64]]
    ) -> list[tuple[Columns, NDArray[np.float64]]]:
        """Return of every large set its columns and the weighted gradient sums of its chains."""
        pieces = [(s, c) for s, large in enumerate(self.large) for c in range(len(large.states))]
        columns = [sampled_columns(parameters, large.items) for large in self.large]

        def work(piece: tuple[int, int]) -> NDArray[np.float64]:
            s, c = piece
            G = np.zeros((columns[s].k + 1, columns[s].items.size + 1))
            log_w = np.empty(self.large[s].orders.shape[1])
            self._weigh(G, log_w, shares[s][c], columns[s], self.large[s], c)
            return G

        done = dict(zip(pieces, run_pieces(work, pieces, self.n_threads), strict=True))
        return [
            (columns[s], np.stack([done[s, c] for c in range(len(large.states))]))
            for s, large in enumerate(self.large)
        ]

    def _weigh(
        self,
        G: NDArray[np.float64],
        log_w: NDArray[np.float64],
        shares: NDArray[np.float64],
        columns: Columns,
        large: LargeSet,
        chain: int,
    ) -> None:
        call(
            weigh_orders, G, log_w, shares, large.orders[chain], np.exp(columns.effects),
            columns.rate, columns.rest, self.observation_rate, np.nan,
        )  # fmt: skip

    def draw(self, theta: NDArray[np.float64], kept: int) -> None:
        """Draw `kept` orders a chain at theta, to be used from here on.

        The chains go on from where they stand. Before the first draw they start from the model
        without interactions, whose log p(S) is known; from then on its estimate is carried along.
        """
        if not self.large:
            return
        parameters = Parameters(theta, self.observation_rate)
        carried = self._weights(parameters)[1] if self.draws else None
        columns = [sampled_columns(parameters, large.items) for large in self.large]
        chains = self.sampling.chains
        pieces = [(s, c) for s in range(len(self.large)) for c in range(chains)]

        def work(piece: tuple[int, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            s, c = piece
            return self._advance(columns[s], self.large[s], s, c, kept)

        done = dict(zip(pieces, run_pieces(work, pieces, self.n_threads), strict=True))
        self.draws += 1
        for s, large in enumerate(self.large):
            large.states = np.stack([done[s, c][0] for c in range(chains)])
            large.orders = np.stack([done[s, c][1] for c in range(chains)])
            large.drawn = np.zeros((chains, kept))
            large.offset = self._independent_value(columns[s]) if carried is None else carried[s]
            for c in range(chains):
                none = np.empty(0)
                self._weigh(np.empty((1, 1)), large.drawn[c], none, columns[s], large, c)

    def _independent_value(self, columns: Columns) -> float:
        own = columns.rate[: columns.k]
        others = columns.rest + float(columns.rate[columns.k :].sum())
        return log_p_independent(own, others, self.observation_rate)

    def _advance(
        self, columns: Columns, large: LargeSet, s: int, c: int, kept: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Advance one chain; return where it stands and the orders on the way."""
        rng = stream(self.seed, 1, self.start, s, c, self.draws)
        k = columns.k
        Wc = np.exp(columns.effects)
        if self.draws:
            state = large.states[c].copy()
        else:
            others = columns.rest + float(columns.rate[k:].sum())
            state = draw_orders(columns.rate[:k], others + self.observation_rate, np.nan, rng)
        orders = np.empty((kept, k), dtype=np.int64)
        unused = np.zeros((k + 1, columns.items.size + 1))
        call(
            relocate, unused, orders, state, Wc, columns.rate, columns.rest,
            self.observation_rate, self.sampling.block,
            self.sampling.burn_in + (0 if self.draws else FIRST_BURN_IN), kept,
            np.iinfo(np.int64).max, rng,
        )  # fmt: skip
        return state, orders

    def restart(self, index: int) -> None:
        """Forget all orders: a new start, with streams of its own."""
        self.start = index
        self.draws = 0
        self.effective = 1.0

    def arrays(self) -> dict[str, Any]:
        """Return what a checkpoint needs to go on with the same orders."""
        state: dict[str, Any] = {
            "draws": np.array(self.draws),
            "start": np.array(self.start),
            "effective": np.array(self.effective),
        }
        for s, large in enumerate(self.large):
            state[f"large_{s}_states"] = large.states
            state[f"large_{s}_orders"] = large.orders
            state[f"large_{s}_drawn"] = large.drawn
            state[f"large_{s}_offset"] = np.array(large.offset)
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from the `arrays` of an earlier run."""
        self.draws = int(state["draws"])
        self.start = int(state["start"])
        self.effective = float(state["effective"])
        for s, large in enumerate(self.large):
            large.states = state[f"large_{s}_states"]
            large.orders = state[f"large_{s}_orders"]
            large.drawn = state[f"large_{s}_drawn"]
            large.offset = float(state[f"large_{s}_offset"])
