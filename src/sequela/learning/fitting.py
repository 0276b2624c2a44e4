"""Running the starts of a fit: solver, checkpoint, interruption, progress."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela import __version__
from sequela.learning.checkpoint import damaged, fingerprint, read_checkpoint, write_checkpoint
from sequela.learning.interrupt import StopRequest, graceful_stop
from sequela.learning.penalties import OffDiagonalL1
from sequela.learning.problem import Problem
from sequela.learning.progress import FitProgress
from sequela.learning.solvers.adagrad import adagrad
from sequela.learning.solvers.newton import FIRST_KEPT, SIGMAS, newton
from sequela.learning.solvers.proximal_newton import Iterate, begin
from sequela.learning.starts import independent_theta, random_theta, units
from sequela.likelihood import Budget, Likelihood, Sampling
from sequela.support.linear_algebra import blas_on_one_thread
from sequela.support.random import stream

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset

__all__ = ["VALUE_SAMPLING", "FitOptions", "Fitter", "Start"]

# Values of sampled sets along the path to theta (`Sampling.nodes`), once at the end of a start.
VALUE_SAMPLING = Sampling(chains=8, sweeps=2, burn_in=1)
# Section 5: M = 50 draws of one chain a set, after 10 of burn-in; 50 epochs of base rates first.
_PAPER_SAMPLING = Sampling(chains=1, draws=50, draws_burn_in=10)
_PAPER_DIAGONAL_EPOCHS = 50
_PAPER_WIDTH = 0.2


@dataclass(frozen=True)
class FitOptions:
    """What determines the result of a fit, besides the data."""

    penalty: float
    solver: str
    n_starts: int
    start_widths: tuple[float, ...]
    independent_start: bool
    tol: float
    max_iter: int
    observation_rate: float
    budget: Budget
    chains: int
    seed: int


@dataclass(frozen=True)
class Start:
    """The end of one start.

    Attributes
    ----------
    theta : array
        Where it ended.
    objective, objective_se : float
        Penalised mean log-likelihood there, and its Monte Carlo standard error (0: exact).
    kkt_residual, kkt_floor : float
        Distance to optimality, and the Monte Carlo error of that distance (0: exact).
    n_iterations, n_evaluations : int
        What it took.
    converged, message : bool, str
        Whether it ended at an optimum, and why it ended.
    width : float
        Of the random interactions at its beginning; 0: the model without interactions.
    history : list of tuples
        (evaluations, objective, KKT residual, interactions, seconds) of every iteration.
    """

    theta: NDArray[np.float64]
    objective: float
    objective_se: float
    kkt_residual: float
    kkt_floor: float
    n_iterations: int
    n_evaluations: int
    converged: bool
    message: str
    width: float
    history: list[tuple[int, float, float, int, float]] = field(default_factory=list)


class Fitter:
    """One fit: its problem, its options, and how far it has come."""

    def __init__(
        self,
        data: Dataset,
        options: FitOptions,
        *,
        n_threads: int | None,
        progress: bool | str | None,
        checkpoint: str | os.PathLike[str] | None,
        checkpoint_every: float,
    ) -> None:
        self.data = data
        self.options = options
        self.penalty = OffDiagonalL1(options.penalty)
        self.n_threads = n_threads
        self.problem = Problem(
            data,
            budget=options.budget,
            sampling=Sampling(chains=options.chains),
            observation_rate=options.observation_rate,
            seed=options.seed,
            n_threads=n_threads,
        )
        self.progress = progress
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.base = independent_theta(self.problem)
        self.unit = units(self.problem)
        self.finished: list[Start] = []
        self.interrupted = False
        self._history: list[tuple[int, float, float, int, float]] = []
        self._phase = 0
        self._saved = time.monotonic()
        self._began = time.monotonic()

    @blas_on_one_thread()
    def run(self) -> list[Start]:
        """Run all starts, or those that a checkpoint has left; return them in order."""
        state = self._resume()
        with FitProgress(self.progress, self.options.tol) as bar, graceful_stop() as request:
            for index in range(len(self.finished), self.options.n_starts):
                label = f"start {index + 1} of {self.options.n_starts}"
                bar.begin(label if self.options.n_starts > 1 else "fit")
                self._began = time.monotonic() - (self._history[-1][4] if self._history else 0.0)
                self.finished.append(self._one(index, state, bar, request))
                state = None
                self._history = []
                if request:
                    self.interrupted = True
                    break
                self._save(None)
        return self.finished

    def _width(self, index: int) -> float:
        """Return the width of a start: none first, unless told, then the given ones in turn."""
        if self.options.solver == "adagrad":
            return _PAPER_WIDTH
        widths = self.options.start_widths
        if not self.options.independent_start:
            return widths[index % len(widths)]
        return 0.0 if index == 0 else widths[(index - 1) % len(widths)]

    def _one(
        self, index: int, state: Iterate | None, bar: FitProgress, request: StopRequest
    ) -> Start:
        options = self.options

        def watch(now: Iterate) -> bool:
            interactions = int(np.count_nonzero(now.theta) - np.count_nonzero(np.diag(now.theta)))
            spent = time.monotonic() - self._began
            self._history.append(
                (now.evaluations, now.objective, now.residual, interactions, spent)
            )
            bar.update(now.objective, now.residual, interactions)
            if request:
                now.message = f"stopped by {request.signal}"
                self._save(now)
                return True
            if time.monotonic() - self._saved >= self.checkpoint_every:
                self._save(now)
            return False

        if options.solver == "adagrad":
            state = self._adagrad(index, state, watch)
        else:
            state = self._newton(index, state, watch)
        objective, error = self._objective(state)
        return Start(
            theta=state.theta,
            objective=objective,
            objective_se=error,
            kkt_residual=state.residual,
            kkt_floor=state.floor,
            n_iterations=state.iterations,
            n_evaluations=state.evaluations,
            converged=state.converged,
            message=state.message,
            width=self._width(index),
            history=self._history,
        )

    def _newton(self, index: int, state: Iterate | None, watch: Any) -> Iterate:
        options = self.options
        problem = self.problem
        if state is None:
            width = self._width(index)
            theta = (
                random_theta(self.base, width, options.seed, index) if width else self.base.copy()
            )
            problem.restart(index)
            problem.draw(theta, FIRST_KEPT)
            state = begin(problem.evaluate, theta, self.penalty)
        return newton(
            problem, state, self.penalty, self.unit,
            tol=options.tol, max_iter=options.max_iter, callback=watch,
        )  # fmt: skip

    def _adagrad(self, index: int, state: Iterate | None, watch: Any) -> Iterate:
        """Run the paper's two phases: base rates alone, then everything from a random start."""
        options = self.options
        likelihood = Likelihood(
            self.data, method="metropolis", sampling=_PAPER_SAMPLING,
            observation_rate=options.observation_rate, n_threads=self.n_threads,
            random_state=int(stream(options.seed, 4, index).integers(2**63)),
        )  # fmt: skip
        n = self.problem.n

        def fresh(theta: NDArray[np.float64]) -> Iterate:
            return Iterate(theta, np.nan, np.zeros((n, n)), np.nan, np.inf, evaluations=0)

        def gradient_at(theta: NDArray[np.float64]) -> NDArray[np.float64]:
            found = likelihood.evaluate(theta, value=False).gradient
            assert found is not None  # noqa: S101 - it was asked for
            return found

        if state is None:
            self._phase = 0
            state = fresh(np.zeros((n, n)))
        likelihood.skip(state.iterations + (self._phase and _PAPER_DIAGONAL_EPOCHS))
        if self._phase == 0:
            state = adagrad(
                gradient_at, state, self.penalty, max_iter=_PAPER_DIAGONAL_EPOCHS,
                diagonal_only=True, callback=watch,
            )  # fmt: skip
            if state.message.startswith("stopped"):
                return state
            self._phase = 1
            spent = state.evaluations
            state = fresh(random_theta(state.theta, _PAPER_WIDTH, options.seed, index))
            state.evaluations = spent
        return adagrad(gradient_at, state, self.penalty, max_iter=options.max_iter, callback=watch)

    def _objective(self, state: Iterate) -> tuple[float, float]:
        """Return the penalised log-likelihood and its standard error, where sets are sampled.

        Of the paper's solver it also sets the KKT residual, which needs the gradient at the end.
        """
        if not self.problem.large and self.options.solver != "adagrad":
            return state.objective, 0.0
        found = Likelihood(
            self.data, budget=self.options.budget, sampling=VALUE_SAMPLING,
            observation_rate=self.options.observation_rate, random_state=self.options.seed,
            n_threads=self.n_threads,
        ).evaluate(state.theta, gradient=self.options.solver == "adagrad")  # fmt: skip
        if found.gradient is not None and found.gradient_se is not None:
            # AdaGrad's own last gradient is one step old, and of one short chain a set.
            distance = self.penalty.subdiff_distance(state.theta, found.gradient)
            state.residual = float(distance.max())
            state.floor = float(SIGMAS * found.gradient_se.max())
        return found.value - self.penalty.value(state.theta), found.value_se

    def _identity(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on."""
        return {
            "data": fingerprint(self.data),
            "options": {**asdict(self.options), "start_widths": list(self.options.start_widths)},
        }

    def _save(self, state: Iterate | None) -> None:
        """Write the checkpoint: the finished starts and, inside a start, its state."""
        if self.checkpoint is None:
            return
        meta = {
            **self._identity(),
            "sequela": __version__,
            "finished": [
                {f.name: getattr(s, f.name) for f in fields(s) if f.name != "theta"}
                for s in self.finished
            ],
            "running": None,
        }
        arrays: dict[str, NDArray[Any]] = {
            f"finished_{i}_theta": start.theta for i, start in enumerate(self.finished)
        }
        if state is not None:
            meta["running"] = {
                name: getattr(state, name)
                for name in (
                    "loss", "objective", "residual", "evaluations", "iterations", "floor", "kept",
                    "rounds",
                )
            }  # fmt: skip
            meta["running"]["phase"] = self._phase
            meta["history"] = self._history
            arrays["theta"] = state.theta
            arrays["gradient"] = state.gradient
            arrays["steps"] = np.array(state.steps)
            arrays["changes"] = np.array(state.changes)
            arrays |= self.problem.arrays()
        write_checkpoint(self.checkpoint, meta, arrays)
        self._saved = time.monotonic()

    def _resume(self) -> Iterate | None:
        """Read the checkpoint, if there is one; return the state of the start under way."""
        if self.checkpoint is None:
            return None
        found = read_checkpoint(self.checkpoint, self._identity())
        if found is None:
            return None
        try:
            return self._restore(*found)
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(self.checkpoint, f"missing or wrong: {error}") from None

    def _restore(self, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Iterate | None:
        """Take over what a checkpoint holds; return the state of the start under way."""
        self.finished = [
            Start(
                theta=arrays[f"finished_{i}_theta"],
                **{**entry, "history": [tuple(row) for row in entry["history"]]},
            )
            for i, entry in enumerate(meta["finished"])
        ]
        if meta["running"] is None:
            return None
        running = dict(meta["running"])
        self._phase = running.pop("phase")
        self._history = [tuple(row) for row in meta["history"]]
        if self._history:
            self._history.pop()  # the iterate is shown again as the solver goes on
        self.problem.restore(arrays)
        return Iterate(
            theta=arrays["theta"],
            gradient=arrays["gradient"],
            steps=list(arrays["steps"]),
            changes=list(arrays["changes"]),
            **running,
        )
