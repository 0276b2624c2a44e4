"""Several Markov chains over theta: warm-up, replica exchange, and draws.

A chain consists of one or several replicas. Replica 0 samples the posterior. Replica k samples a
flatter ("heated") distribution, in which the likelihood has the power exp(-k * gap). Neighbouring
replicas exchange their states (deterministic even-odd scheme, Syed et al. 2022), so that a chain
can leave a mode through the heated replicas.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arguments import PosteriorState, Trajectory
from sequela.kernels.posterior_sweep import COUNTS, advance
from sequela.kernels.sample_orders import sum_sample_orders
from sequela.posteriors.jump_choice import PairTracks, order_shares, pairs_by_slowness
from sequela.posteriors.metric import Metric, estimate_metric, refine_metric, unit_metric
from sequela.posteriors.step_size import StepSize
from sequela.posteriors.stretching import stretched_place
from sequela.support.errors import SequelaError
from sequela.support.jit import call
from sequela.support.linear_algebra import blas_on_one_thread
from sequela.support.random import Purpose, stream
from sequela.support.threads import run_all

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    from sequela.posteriors.problem import Problem

    # Theta, scale, log-likelihood and orders: of one chain, and of all chains.
    Place: TypeAlias = tuple[NDArray[np.float64], float, float, NDArray[np.float64]]
    Draw: TypeAlias = tuple[NDArray[np.float64], ...]

__all__ = ["Plan", "Walkers"]

# Parts of the warm-up after which the metric is estimated again. The first estimate uses the
# information of the data only, because the chains have not settled yet. Later ones use draws, too.
_METRIC_AT = (0.1, 0.3, 0.6)
_STEP_AFTER_METRIC = 0.5
# A trajectory is a rotation around the centre of the reference (the normal distribution that is
# defined in `metric`). Its angle is drawn between a quarter of the largest angle and the largest
# angle. If the posterior were equal to the reference, a right angle would be enough. But the
# posterior is wider than the reference along some directions, for which longer trajectories are
# better. With 20 items, a largest angle of 4.5 gave twice as many effective draws per second as a
# largest angle of 2.4. Largest angles of 8 and 12 gave fewer than 4.5.
_LARGEST_ANGLE = 5.0
_LEAST_SHARE = 0.25
# The gap is chosen such that exchanges between neighbouring replicas have about this acceptance.
_SWAP_TARGET = 0.3
_FIRST_GAP = 0.25
_OUT_OF_RANGE = (
    "in a chain over theta, a rate became too large or too small to compute with; use a prior with "
    "a smaller scale"
)
_GAP_RANGE = (1e-3, 2.0)


@dataclass(frozen=True)
class Plan:
    """The length of a run, the number of chains, and the moves per draw.

    Attributes
    ----------
    chains, replicas : int
        Number of independent chains, and of replicas per chain. With 1 replica there is no
        exchange.
    warm_up, draws : int
        Draws per chain that are discarded while the sampler adapts, and the largest number of draws
        per chain that are kept.
    until_converged : bool
        Whether the run ends as soon as it has converged.
    thin : int
        Sweeps per draw.
    jumps : int
        Number of jumps per sweep. The number of swaps per sweep is the same.
    most_steps : int
        The largest number of leapfrog steps of a trajectory.
    """

    chains: int = 4
    replicas: int = 1
    warm_up: int = 250
    draws: int = 6000
    until_converged: bool = False
    thin: int = 2
    jumps: int = 12
    most_steps: int = 24


@dataclass
class Walkers:
    """All chains of a run, with all that the next step needs.

    Attributes
    ----------
    problem : Problem
        The posterior.
    plan : Plan
        The length of the run and the moves per draw.
    seed : int
        All random numbers are derived from it.
    done : int
        Draws per chain so far, the warm-up included.
    states : list of lists of PosteriorState
        The state of each replica of each chain.
    generators : list of lists of Generator
        The source of random numbers of each replica of each chain.
    steps : list of StepSize
        The step size of each replica; all chains use the same.
    metrics : list of Metric
        The metric of each replica; all chains use the same.
    centres : array (replicas, n * n + 1)
        The centres of the references of trajectories: means of the stretched coordinates in the
        warm-up.
    window : array (draws, replicas, chains, 2, n * n + 1)
        Stretched coordinates, and gradients of the log-density there, for all draws of the warm-up
        since the first estimate of the metric.
    tracks : PairTracks
        Sums that show how slowly the orders of pairs change.
    jump_pairs : array (rows, 2)
        Pairs that jumps and swaps choose from; pairs whose order changes rarely are repeated.
    counts : array (replicas, len(COUNTS))
        Numbers of moves that were tried and accepted since the end of the warm-up.
    swaps : array (replicas - 1, 2)
        Exchanges tried between neighbours, and the sum of their acceptance probabilities.
    gap : float
        Difference of the log powers of neighbouring replicas.
    """

    problem: Problem
    plan: Plan
    seed: int
    states: list[list[PosteriorState]]
    generators: list[list[np.random.Generator]]
    steps: list[StepSize]
    metrics: list[Metric]
    centres: NDArray[np.float64]
    window: NDArray[np.float64]
    tracks: PairTracks
    jump_pairs: NDArray[np.int64]
    counts: NDArray[np.float64]
    swaps: NDArray[np.float64]
    gap: float = _FIRST_GAP
    done: int = 0

    @classmethod
    def begin(cls, problem: Problem, plan: Plan, seed: int) -> Walkers:
        """Start all chains, each at its own random model."""
        generators = [
            [stream(seed, Purpose.POSTERIOR_CHAIN, c, k) for k in range(plan.replicas)]
            for c in range(plan.chains)
        ]
        return cls(
            problem=problem,
            plan=plan,
            seed=seed,
            states=[[problem.start(rng) for rng in row] for row in generators],
            generators=generators,
            steps=[StepSize() for _ in range(plan.replicas)],
            metrics=[unit_metric(problem.n) for _ in range(plan.replicas)],
            centres=np.zeros((plan.replicas, problem.n**2 + 1)),
            window=np.empty((0, plan.replicas, plan.chains, 2, problem.n**2 + 1)),
            tracks=PairTracks.begin(plan.chains, len(problem.pair_copies[0])),
            jump_pairs=problem.jump_pairs,
            counts=np.zeros((plan.replicas, len(COUNTS))),
            swaps=np.zeros((max(plan.replicas - 1, 0), 2)),
        )

    @property
    def is_warm(self) -> bool:
        """Whether the warm-up is over, so that draws count."""
        return self.done >= self.plan.warm_up

    def powers(self) -> NDArray[np.float64]:
        """Return the power of the likelihood in each replica."""
        powers: NDArray[np.float64] = np.exp(-self.gap * np.arange(self.plan.replicas))
        return powers

    def advance(self, n_threads: int) -> None:
        """Advance all chains by one draw: sweeps, exchanges, and adaptation during warm-up."""
        with blas_on_one_thread():
            forces = np.empty((self.plan.chains, self.plan.replicas, self.problem.n**2 + 1))
            if self.is_warm:
                forces = forces[:, :, :0]
            counts = self._sweep(n_threads, forces)
            if self.plan.replicas > 1:
                self._exchange()
            if self.is_warm:
                self.counts += counts.sum(axis=0)
            else:
                self._adapt(counts, forces)
        self.done += 1

    def draw(self, count: int, n_threads: int) -> list[Draw]:
        """Advance all chains by several draws, and return these draws.

        During the warm-up, all chains advance by one draw only, and the result is empty. If there
        are exchanges, they also advance by one draw only. Otherwise they advance by `count` draws
        without waiting for each other. The draws themselves do not depend on `count`.
        """
        if not self.is_warm:
            self.advance(n_threads)
            return []
        if self.plan.replicas > 1:
            self.advance(n_threads)
            return [self.read(n_threads)]
        chains = range(self.plan.chains)
        with blas_on_one_thread():
            pieces = [partial(self._draws_of_chain, c, count) for c in chains]
            found = run_all(pieces, n_threads)
        for at in range(count):
            self.counts[0] += np.sum([found[c][at][0] for c in chains], axis=0)
        self.done += count
        rows = [[found[c][at][1] for c in chains] for at in range(count)]
        return [tuple(np.array(part) for part in zip(*row, strict=True)) for row in rows]

    def _draws_of_chain(self, c: int, count: int) -> list[tuple[NDArray[np.float64], Place]]:
        """Advance a chain of one replica; return the counts of moves and values of each draw."""
        plan, state = self.plan, self.states[c][0]
        trajectory, target = self._trajectory(0, 1.0), self.problem.target._replace(power=1.0)
        drawn = []
        for _ in range(count):
            counts = np.zeros(len(COUNTS))
            good = call(
                advance, state, target, trajectory, self.jump_pairs, plan.jumps, plan.thin, counts,
                np.empty(0), self.generators[c][0],
            )  # fmt: skip
            if not good:
                raise SequelaError(_OUT_OF_RANGE)
            drawn.append((counts, self._read_one(state)))
        return drawn

    def _sweep(self, n_threads: int, forces: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sweep all replicas; return the counts (chains, replicas, ...).

        `forces` (chains, replicas, ...) receives gradients of the log-density, unless
        its rows are empty.
        """
        plan = self.plan
        powers = self.powers()
        counts = np.zeros((plan.chains, plan.replicas, len(COUNTS)))
        pieces = []
        for k in range(plan.replicas):
            trajectory = self._trajectory(k, float(powers[k]))
            target = self.problem.target._replace(power=float(powers[k]))
            pieces += [
                partial(
                    call, advance, self.states[c][k], target, trajectory, self.jump_pairs,
                    plan.jumps, plan.thin, counts[c, k], forces[c, k], self.generators[c][k],
                )
                for c in range(plan.chains)
            ]  # fmt: skip
        if not all(run_all(pieces, n_threads)):
            raise SequelaError(_OUT_OF_RANGE)
        return counts

    def _trajectory(self, k: int, power: float) -> Trajectory:
        """Return the settings of the trajectories of a replica."""
        step = self.steps[k].step
        most = int(np.clip(round(_LARGEST_ANGLE / step), 1, self.plan.most_steps))
        return Trajectory(
            step=step,
            fewest_steps=max(1, round(_LEAST_SHARE * most)),
            most_steps=most,
            centre=self.centres[k],
            directions=self.metrics[k].directions,
            shrink=self.metrics[k].shrink(power),
            rounded=self.metrics[k].rounded,
        )

    def _exchange(self) -> None:
        """Offer neighbouring replicas an exchange, even and odd pairs in turn."""
        plan = self.plan
        powers = self.powers()
        rng = stream(self.seed, Purpose.POSTERIOR_SWAP, self.done)
        levels = np.log(rng.random((plan.chains, plan.replicas)))
        accepted = []
        for c, row in enumerate(self.states):
            for k in range(self.done % 2, plan.replicas - 1, 2):
                rise = row[k + 1].values[0] - row[k].values[0]
                log_ratio = float((powers[k] - powers[k + 1]) * rise)
                accepted.append(np.exp(min(0.0, log_ratio)))
                if self.is_warm:
                    self.swaps[k] += (1.0, accepted[-1])
                if levels[c, k] < log_ratio:
                    row[k], row[k + 1] = row[k + 1], row[k]
        if accepted and not self.is_warm:
            # A Robbins-Monro step: frequent exchanges make the gap wider, rare ones narrower.
            rate = 5.0 / (20.0 + self.done)
            gap = np.log(self.gap) + rate * (np.mean(accepted) - _SWAP_TARGET)
            self.gap = float(np.clip(np.exp(gap), *_GAP_RANGE))

    def _adapt(self, counts: NDArray[np.float64], forces: NDArray[np.float64]) -> None:
        """Adapt step sizes; after some parts of the warm-up, also metrics and pairs for jumps."""
        plan, problem = self.plan, self.problem
        pairs = problem.pair_copies[0]
        for k in range(plan.replicas):
            tried, accepted = counts[:, k, :2].sum(axis=0)
            self.steps[k] = self.steps[k].update(float(accepted / max(tried, 1.0)))
        places = [[stretched_place(state) for state in row] for row in self.states]
        now = np.stack([places, forces], axis=2).swapaxes(0, 1)
        self.window = np.concatenate([self.window, now[None]])
        thetas = [problem.theta(row[0])[0] for row in self.states]
        rate = problem.target.stop_rate
        self.tracks.add(np.array([order_shares(theta, pairs, rate) for theta in thetas]))
        times = [int(share * plan.warm_up) for share in _METRIC_AT]
        if self.done + 1 in times:
            settled = self.done + 1 > times[0]
            self._learn_metric(settled=settled)
            self._choose_jumps()
            if not settled:
                # All draws after this one are kept until the end of the warm-up, because a chain
                # may visit another mode only once.
                self.window = self.window[:0]
                self.tracks = PairTracks.begin(plan.chains, len(pairs))
        if self.done + 1 == plan.warm_up:
            self.steps = [step.finish() for step in self.steps]
            self._choose_jumps()
            self.window = self.window[:0]

    def _learn_metric(self, *, settled: bool) -> None:
        """Set metrics and centres from the draws in the window."""
        powers = self.powers()
        for k in range(self.plan.replicas):
            metric = estimate_metric(self.problem, [row[k] for row in self.states])
            positions, forces = np.moveaxis(self.window[:, k], 2, 0)
            size = positions.shape[-1]
            if settled:
                metric = refine_metric(
                    metric,
                    positions.reshape(-1, size),
                    forces.reshape(-1, size),
                    float(powers[k]),
                )
            self.metrics[k] = metric
            self.centres[k] = positions.reshape(-1, size).mean(axis=0)
            self.steps[k] = self.steps[k].restart(_STEP_AFTER_METRIC)

    def _choose_jumps(self) -> None:
        """Choose pairs for jumps and swaps by how rarely their orders changed so far."""
        pairs, copies = self.problem.pair_copies
        self.jump_pairs = pairs[pairs_by_slowness(copies, self.tracks.draws_to_forget())]

    def rates(self) -> tuple[float, float, float]:
        """Return the acceptance of trajectories, jumps and exchanges since the warm-up."""
        counts = dict(zip(COUNTS, self.counts[0], strict=True))
        tried = (counts["trajectories"], counts["jumps tried"], self.swaps[:, 0].sum())
        accepted = (counts["acceptance"], counts["jumps accepted"], self.swaps[:, 1].sum())
        first, second, third = (
            float(a / t) if t else float("nan") for a, t in zip(accepted, tried, strict=True)
        )
        return first, second, third

    def read(self, n_threads: int) -> Draw:
        """Return theta, scale, log-likelihood and orders of the posterior replica of each chain.

        Orders are P(a before b) in the samples that have both, for the pairs of the problem.
        """
        rows = run_all([partial(self._read_one, row[0]) for row in self.states], n_threads)
        return tuple(np.array(part) for part in zip(*rows, strict=True))

    def _read_one(self, state: PosteriorState) -> Place:
        """Return theta, scale, log-likelihood and orders of one state."""
        problem = self.problem
        pairs = problem.pairs
        theta, _ = problem.theta(state)
        before = np.empty((problem.n, problem.n))
        good = call(sum_sample_orders, before, theta, problem.target, state.orders)
        orders = before[pairs[:, 0], pairs[:, 1]] / problem.together[pairs[:, 0], pairs[:, 1]]
        if not good:
            orders = np.full(len(pairs), np.nan)
        return theta, problem.scale(state), float(state.values.sum()), orders
