"""The smooth part of the objective. The solver needs it as a deterministic function of theta.

Sets within the budget are evaluated exactly, on their lattices or by components. For other sets,
orders are drawn at some theta and reweighted for the next thetas (`reweighting`), until the solver
requests new orders.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.kernels.limits import LARGEST_LOG_RATE
from sequela.likelihood.component_part import ComponentPart
from sequela.likelihood.components import integral_work
from sequela.likelihood.decomposition import acting
from sequela.likelihood.distinct import DistinctSamples
from sequela.likelihood.exact import ExactWork, plan_blocks
from sequela.likelihood.orders import OrderSampler, in_sampling_range
from sequela.likelihood.parameters import Parameters
from sequela.likelihood.partial import lattices_of
from sequela.likelihood.plan import Plan
from sequela.likelihood.reweighting import DrawKey, DrawnOrders
from sequela.likelihood.seconds import COMPONENT_SECONDS, LATTICE_SECONDS, ORDER_SECONDS
from sequela.likelihood.ways import Way, is_exact
from sequela.likelihood.work import Work
from sequela.observation import phases_of
from sequela.support.errors import BudgetError
from sequela.support.threads import run_all
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.likelihood.drawn_histories import DrawnHistories
    from sequela.likelihood.parameters import Columns
    from sequela.likelihood.partial import PartialLattice, PartialSet
    from sequela.likelihood.quick_components import Posterior
    from sequela.likelihood.reweighting import Weighed
    from sequela.observation import Observation
    from sequela.settings import Settings

__all__ = ["Objective", "Work"]

# Largest number of operations per evaluation for all components together (about 10 ms). We compared
# values from 5e6 to 1e8 on glioblastoma data of 50 to 410 items. This value gave the best optima
# and the shortest fits.
_QUICK_WORK = 1.5e7
# Largest number of orders per chain.
_MOST_KEPT = 64
# The predicted seconds of an evaluation are a sum of four parts: a fixed part, a part per distinct
# sample with a known time, a part per partly known distinct sample on a lattice, and a part per
# copy of a sample whose missing cells are drawn.
_LEAST_SECONDS = 1e-3
_TIMED_SECONDS = 2e-4
_PARTIAL_SECONDS = 1e-3
_DRAWN_SECONDS = 5e-5
# Components may take at most this many times as long as lattices and drawn orders for the same
# sets.
_MOST_OF_ORDERS = 4.0


class Objective:
    """Loss (minus the mean log-likelihood) and gradient of a data set.

    Parameters
    ----------
    data : Dataset
        The samples, with times where they are known.
    observation : Observation
        The distribution of the observation time.
    settings : Settings
        Budget, sampling (at least two chains), seed and threads.
    quick : bool
        Whether components are computed with an error of about 1e-5 instead of 1e-9 if this is
        faster (`quick_components`). Components are then also used for more sets.

    Attributes
    ----------
    large : list of DrawnOrders
        The sets that are sampled; empty if all sets are evaluated exactly.
    effective : float
        The effective share of a sampled set is the effective number of its orders divided by the
        number of its orders. `effective` is the smallest of these shares at the last evaluation, or
        1 if no set is sampled.
    draws : int
        How many times orders have been drawn in the current start of the fit.
    seconds : float
        Predicted seconds of all evaluations so far, on one core. They are the same on every
        machine.
    approximate : bool
        If True, `CrossGradient` is not computed for sets that use components, so entries of the
        gradient outside the support are incomplete, even with ``full=True``. It is False at the
        beginning.
    """

    def __init__(
        self, data: Dataset, observation: Observation, settings: Settings, *, quick: bool = False
    ) -> None:
        self.data = data
        self._quick = quick
        self.approximate = False
        self._posteriors: dict[int, Posterior] | None = {} if quick else None
        self.n = data.n_items
        self.observation = observation
        self.settings = settings
        self.threads = settings.threads  # stored, because every evaluation needs it
        # The Monte Carlo error of a fit is computed from the spread between chains.
        positive_integer("sampling chains", settings.sampling.chains, least=2)
        self.distinct = DistinctSamples.of(data, partial=True)
        self.plan = Plan(data, self.distinct, "auto", settings.budget)
        self._phases = phases_of(observation)
        self.start = 0
        self.draws = 0
        self.effective = 1.0
        self.seconds = 0.0
        self._orders: dict[int, DrawnOrders] = {}
        self._missing_parts: list[DrawnHistories] = []
        self._whole: tuple[NDArray[np.bool_], DistinctSamples | None] | None = None
        self._support: NDArray[np.bool_] | None = None
        self.prepare(np.eye(self.n, dtype=np.bool_))
        self._refuse_timed()

    def prepare(self, support: NDArray[np.bool_]) -> None:
        """Choose how sets are evaluated while theta is zero outside `support`.

        The gradient is then complete for all entries of the support; see `evaluate`.
        """
        # If the support is the same as before, do not prepare it again. This saves time, because
        # all starts begin with the same support.
        is_new = self._support is None or not np.array_equal(support, self._support)
        if is_new:
            self._prepare_exact(support)
        ways = self._ways
        self._prepare_drawn(ways)
        sampled = [int(s) for s in np.flatnonzero(~is_exact(ways) & (ways != Way.HISTORIES))]
        self._orders = {s: self._orders.get(s) or self._undrawn(s) for s in sampled}
        self.large = [self._orders[s] for s in sampled]
        if is_new:
            self._seconds_each = self._predict_seconds()

    def _prepare_exact(self, support: NDArray[np.bool_]) -> None:
        """Choose how every set is evaluated on a support; prepare the exact evaluation of sets."""
        self._support = support.copy()
        ways = self._ways = self.plan.ways_on_support(support, self._phases, quick=self._quick)
        self._children = acting(support)
        self._lattices: dict[tuple[int, bool], list[PartialLattice]] = {}
        exact = ways == Way.EXACT
        if self._whole is None or self._whole[0].tobytes() != exact.tobytes():
            whole = exact & self.plan.partial.drawable
            self._whole = exact, self.distinct.on_whole_lattices(whole) if whole.any() else None
        # A sample may be evaluated exactly although its missing cells could be drawn. Its lattice
        # then contains all its missing items, so that the kernel for complete sets can evaluate it.
        self._on_lattices = self._whole[1] or self.distinct
        self.blocks = plan_blocks(self._on_lattices, np.nonzero(exact)[0], self.n)
        self._parts = ComponentPart(
            self.distinct,
            np.nonzero(ways == Way.COMPONENTS)[0],
            support,
            self.settings.budget,
            self._posteriors,
        )
        self._has_lattices_with_missing = self.distinct.has_missing and any(
            (known := self.distinct.known(int(s))) is not None and known.missing.size > 0
            for s in np.flatnonzero(self._on_lattices.partial & exact)
        )

    def _predict_seconds(self) -> float:
        """Return the predicted seconds of one evaluation on the prepared support, on one core."""
        work = self.work()
        seconds = LATTICE_SECONDS * work.lattices + ORDER_SECONDS * work.sampled
        seconds += self._parts.seconds()
        seconds += _DRAWN_SECONDS * sum(len(part.partials) for part in self._missing_parts)
        timed = float(np.count_nonzero(self.distinct.timed))
        partial_sets = float(np.count_nonzero(self.distinct.partial & (self._ways == Way.EXACT)))
        return seconds + _LEAST_SECONDS + _TIMED_SECONDS * timed + _PARTIAL_SECONDS * partial_sets

    def _prepare_drawn(self, ways: NDArray[np.str_]) -> None:
        """Prepare the samples whose missing cells are drawn. These do not depend on the support."""
        if self._missing_parts:
            return
        places = np.flatnonzero(ways == Way.HISTORIES)
        if places.size:
            from sequela.likelihood.drawn_histories import DrawnHistories  # few fits need it

            known = [self.distinct.as_partial(s) for s in map(int, places)]
            self._missing_parts.append(DrawnHistories(known, self.distinct.weights[places], self.n))

    def _undrawn(self, s: int) -> DrawnOrders:
        return DrawnOrders(self.distinct.items(s), float(self.distinct.weights[s]))

    @property
    def is_sampled(self) -> bool:
        """Whether orders or missing cells of any sample are drawn."""
        return bool(self.large or self._missing_parts)

    @property
    def most_kept(self) -> int:
        """The largest useful number of draws per chain."""
        return min((part.most_kept for part in self._missing_parts), default=_MOST_KEPT)

    @property
    def is_partial(self) -> bool:
        """Whether entries of the gradient outside the support need ``full=True`` to be complete."""
        return bool(self._parts.sets) or self._has_lattices_with_missing

    def is_affordable(self, support: NDArray[np.bool_]) -> bool:
        """Return whether the sets that use components could be evaluated fast on a support.

        The limit for their work is the larger of two numbers: a fixed number, and the work of the
        integrals over time.
        """
        limit = max(_QUICK_WORK, self._parts.integral_work)
        return self.plan.component_work(support, self._parts.places) <= limit

    def is_slower_than_orders(self, support: NDArray[np.bool_]) -> bool:
        """Return whether components on a support take much longer than lattices and drawn orders.

        If so, a fit is faster if it uses no components and all entries of theta are free. The limit
        is a multiple of the time without components, because sampled fits need more evaluations.
        Partly known sets can be evaluated exactly only on a small support, so fits with such sets
        always use components.
        """
        if self.plan.partial.places.size:
            return False
        work = self.plan.component_work(support, self._parts.places)
        by_components = COMPONENT_SECONDS * min(work, self.settings.budget.work)
        return by_components > _MOST_OF_ORDERS * self.plan.seconds_without_components(
            self._parts.places
        )

    def work(self) -> Work:
        """Return the work of one evaluation on the prepared support."""
        lattices = float(sum(self.plan.lattice_work(block) for block in self.blocks))
        points = integral_work([np.arange(max(map(len, self._parts.sets), default=0))])
        parts = len(self._parts.sets) + 4.0 * self.n if self._parts.sets else 0.0
        return Work(
            lattices=lattices,
            integrals=self._parts.integral_work,
            sampled=float(sum(large.items.size for large in self.large)) * self.n,
            table=points / max(1, max(map(len, self._parts.sets), default=0)) * parts,
        )

    def beyond_lattice(self) -> list[tuple[NDArray[np.int64], float]]:
        """Return the items and weights of all sets that are not evaluated on their own lattice."""
        parts = [(items, float(w)) for items, w in zip(
            self._parts.sets, self._parts.weights, strict=True)]  # fmt: skip
        return parts + [(large.items, large.weight) for large in self.large]

    def _refuse_timed(self) -> None:
        beyond = [s for s in self._orders if self.distinct.timed[s]]
        if beyond:
            row = int(self.distinct.first[beyond[0]])
            raise BudgetError(
                f"sample {self.data.samples[row]!r} (row {row}) has "
                f"{int(self.distinct.sizes[beyond[0]])} items and a known time. This is more than "
                "the budget allows for exact evaluation, and a fit cannot sample sets at known "
                "times. Increase the budget, or give NaN for the time of this sample"
            )

    def evaluate(
        self, theta: NDArray[np.float64], *, full: bool = False
    ) -> tuple[float, NDArray[np.float64]]:
        """Return loss and gradient; the loss is infinite if rates are too large for a double.

        If `full` is False, entries outside the prepared support may be incomplete (`is_partial`).
        After the evaluation, `effective` is the smallest effective share of the drawn orders of a
        set.
        """
        nowhere = np.inf, np.zeros((self.n, self.n))
        if not theta.max() <= LARGEST_LOG_RATE:  # also true for NaN
            return nowhere
        self.seconds += self._seconds_each
        exact = self._exact_work(theta, full=full)
        run_all(exact.pieces, self.threads)
        loss, gradient = self._finish(exact)
        parameters = exact.parameters
        columns = [parameters.columns(large.items) for large in self.large]
        if exact.beyond or not all(map(in_sampling_range, columns)):
            return nowhere
        for more, slope in self._other_parts(parameters, full=full):
            if not np.isfinite(more):
                return nowhere
            loss += more
            gradient += slope
        weighed: list[Weighed] = []
        if self.large:
            weighed = self._weigh(columns, self.large)
            stacks = self._chain_gradients(columns, weighed)
            for place, large in enumerate(self.large):
                loss -= large.weight * weighed[place].log_p
                part = np.zeros((self.n, self.n))
                parameters.spread(columns[place], stacks[place].sum(axis=0), part)
                gradient -= large.weight * part
            self.effective = min(found.effective for found in weighed)
        if self._missing_parts:
            shares = [found.effective for found in weighed]
            self.effective = min([*shares, *(part.effective for part in self._missing_parts)])
        return loss, gradient

    def _other_parts(
        self, parameters: Parameters, *, full: bool
    ) -> Iterator[tuple[float, NDArray[np.float64]]]:
        """Yield loss and gradient of components, and of samples whose missing cells are drawn."""
        if self._parts.sets:
            yield self._parts.evaluate(
                parameters, self.threads, full=full, approximate=self.approximate
            )
        for part in self._missing_parts:
            value, slope = part.evaluate(parameters, self.settings.threads)
            yield (-value if np.isfinite(value) else np.inf), -slope

    def evaluate_lattices(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the contribution to loss and gradient of the sets that have their own lattice.

        Theta must be diagonal. Otherwise, some partly known sets would have no lattice.
        """
        exact = self._exact_work(theta, full=True)
        run_all(exact.pieces, self.threads)
        return self._finish(exact)

    def _exact_work(self, theta: NDArray[np.float64], *, full: bool) -> ExactWork:
        parameters = Parameters(theta, self.observation, any_times=True)
        return ExactWork(
            parameters, self._on_lattices, self.blocks, want_gradient=True,
            lattices=partial(self._lattices_of, full=full),
        )  # fmt: skip

    def _lattices_of(self, s: int, known: PartialSet, *, full: bool) -> list[PartialLattice]:
        """Return the lattices for derivatives by all entries (`full`) or only by the support."""
        key = (s, full)
        if key not in self._lattices:
            self._lattices[key] = lattices_of(known, self._children, full_gradient=full)
        return self._lattices[key]

    def _finish(self, exact: ExactWork) -> tuple[float, NDArray[np.float64]]:
        gradient = exact.finish(self.threads)
        assert gradient is not None  # noqa: S101 - want_gradient is True
        parts = exact.log_p * self.distinct.weights
        total = float(parts.sum())
        # log p is NaN for sets that are not evaluated on their own lattice.
        loss = -(float(np.nansum(parts)) if np.isnan(total) else total)
        return loss, np.negative(gradient, out=gradient)

    def gradient_error(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the Monte Carlo standard error of the gradient, at the theta of the last draw."""
        variance = np.zeros((self.n, self.n))
        if self.large:
            parameters = Parameters(theta, self.observation, any_times=True)
            columns = [parameters.columns(large.items) for large in self.large]
            stacks = self._chain_gradients(columns, self._weigh(columns, self.large))
            for place, large in enumerate(self.large):
                chains = stacks[place].shape[0]
                spread = (stacks[place] * chains).var(axis=0, ddof=1) / chains
                part = np.zeros((self.n, self.n))
                parameters.spread_variance(columns[place], spread, part)
                variance += large.weight**2 * part
        for missing in self._missing_parts:
            variance += missing.gradient_variance(
                Parameters(theta, self.observation), self.settings.threads
            )
        return np.sqrt(variance)

    def new_value(self, theta: NDArray[np.float64]) -> tuple[float, float] | None:
        """Return a new estimate of the mean log-likelihood, and its standard error.

        Return None if no missing cells are drawn.
        """
        if not self._missing_parts:
            return None
        exact = self._exact_work(theta, full=False)
        run_all(exact.pieces, self.threads)
        value, variance = -self._finish(exact)[0], 0.0
        for part in self._missing_parts:
            more, spread = part.new_value(exact.parameters, self.observation, self.settings)
            value, variance = value + more, variance + spread
        return value, float(np.sqrt(variance))

    def draw(self, theta: NDArray[np.float64], kept: int) -> None:
        """Draw `kept` orders per chain at theta; they replace the old orders.

        At the first draw for a set S, its chains start from orders of the model without
        interactions, and log p(S) of this model is stored as the estimate of log p(S). If theta has
        interactions, the loss then has a constant error, which does not change the optimum. At
        later draws, the chains continue from their states, and the estimate is updated from the old
        orders. The error of the estimate grows from draw to draw, because a fit adapts theta to the
        old orders. So the loss must not be reported as a result. Evaluate theta again with new
        orders instead (`learning.final_value`).
        """
        if not self.is_sampled:
            return
        parameters = Parameters(theta, self.observation, any_times=True)
        for part in self._missing_parts:
            part.draw(parameters, kept, self.settings, (0, self.start, self.draws))
        columns = [parameters.columns(large.items) for large in self.large]
        carried = self._carry(columns)
        sampling = self.settings.sampling
        key = DrawKey(self.settings.seed, self.start, self.draws)
        done = run_all(
            [
                partial(large.advance, OrderSampler(columns[s], sampling), key, (s, c), kept)
                for s, large in enumerate(self.large)
                for c in range(sampling.chains)
            ],
            self.threads,
        )
        self.draws += 1
        for s, large in enumerate(self.large):
            chains = done[s * sampling.chains : (s + 1) * sampling.chains]
            large.replace(columns[s], chains, carried[s])

    def _carry(self, columns: list[Columns]) -> list[float | None]:
        """Return, for each sampled set, log p estimated from its orders; None without orders."""
        places = [s for s, large in enumerate(self.large) if large.states.size]
        weighed = self._weigh([columns[s] for s in places], [self.large[s] for s in places])
        log_p: list[float | None] = [None] * len(self.large)
        for s, found in zip(places, weighed, strict=True):
            log_p[s] = found.log_p
        return log_p

    def _weigh(self, columns: list[Columns], sets: list[DrawnOrders]) -> list[Weighed]:
        """Return, for every given set, the weights of its orders, log p and effective share."""
        done = run_all(
            [
                partial(large.log_weights, columns[s], c)
                for s, large in enumerate(sets)
                for c in range(len(large.states))
            ],
            self.threads,
        )
        each = iter(done)
        return [
            large.weigh(np.stack([next(each) for _ in range(len(large.states))])) for large in sets
        ]

    def _chain_gradients(
        self, columns: list[Columns], weighed: list[Weighed]
    ) -> list[NDArray[np.float64]]:
        """Return, for every sampled set, the weighted sum of the gradients of each chain."""
        done = run_all(
            [
                partial(large.gradient, columns[s], c, weighed[s].shares[c])
                for s, large in enumerate(self.large)
                for c in range(len(large.states))
            ],
            self.threads,
        )
        each = iter(done)
        return [np.stack([next(each) for _ in range(len(large.states))]) for large in self.large]

    def restart(self, start: int) -> None:
        """Discard all orders for a new start, which has its own random streams."""
        self.start = start
        self.draws = 0
        self.effective = 1.0
        self._orders = {}
        self._missing_parts = []
        self.prepare(np.eye(self.n, dtype=np.bool_))

    def arrays(self) -> dict[str, Any]:
        """Return the arrays that a checkpoint needs to continue with the same orders."""
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
        for part in self._missing_parts:
            state |= part.arrays()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the `arrays` of an earlier run."""
        self.draws = int(state["draws"])
        self.start = int(state["start"])
        self.effective = float(state["effective"])
        for s, large in enumerate(self.large):
            large.states = state[f"large_{s}_states"]
            large.orders = state[f"large_{s}_orders"]
            large.drawn = state[f"large_{s}_drawn"]
            large.offset = float(state[f"large_{s}_offset"])
        for part in self._missing_parts:
            part.restore(state)
