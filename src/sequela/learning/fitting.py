"""Run the starts of a fit, with checkpoints, interruption and progress."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sequela.learning.checkpoint import Checkpoint, Running
from sequela.learning.final_value import VALUE_SAMPLING, final_value
from sequela.learning.fit_values import Start
from sequela.learning.fixed import apply_fixed, read_fixed
from sequela.learning.forecast import announce, forecast
from sequela.learning.interrupt import graceful_stop
from sequela.learning.penalties import OffDiagonalL1, with_fixed
from sequela.learning.progress import FitProgress, announce_preparation
from sequela.learning.solvers.adagrad import AdaGrad
from sequela.learning.solvers.contract import Info, Limits, Status
from sequela.learning.solvers.loop import SIGMAS, begin, descend_by_gradients, solve
from sequela.learning.solvers.proximal_newton import ProximalNewton
from sequela.learning.starts import independent_theta, random_theta, units
from sequela.likelihood.evaluation import Likelihood
from sequela.likelihood.objective import Objective
from sequela.model import Model
from sequela.settings import Sampling, Settings
from sequela.support.linear_algebra import blas_on_one_thread
from sequela.support.random import Purpose, stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.learning.fit_values import FitOptions, RunOptions
    from sequela.learning.interrupt import StopRequest
    from sequela.learning.solvers.adagrad import AdaGradState
    from sequela.learning.solvers.proximal_newton import NewtonState

__all__ = ["Fitter"]

# The method of section 5 of the paper: one chain per set with M = 50 draws, after a burn-in of 10
# draws. In the first 50 epochs only base rates are learned.
_PAPER_SAMPLING = Sampling(chains=1, draws=50, draws_burn_in=10)
_PAPER_DIAGONAL_EPOCHS = 50
_PAPER_WIDTH = 0.2


class Fitter:
    """One fit: its objective, its options and the starts that have ended."""

    def __init__(self, data: Dataset, options: FitOptions, run: RunOptions) -> None:
        announce_preparation(run.progress, data.n_samples * data.n_items)
        self.data = data
        self.options = options
        self.run_options = run
        self.fixed = read_fixed(options.fixed, data.items)
        self.penalty = with_fixed(OffDiagonalL1(options.penalty), self.fixed)
        self.settings = Settings(
            budget=options.budget, sampling=Sampling(chains=options.chains),
            random_state=options.seed, n_threads=run.n_threads,
        )  # fmt: skip
        self.objective = Objective(data, options.observation, self.settings)
        self.forecast = forecast(self.objective, options.n_starts)
        if options.solver != "adagrad":
            announce(self.forecast)
        self.base = apply_fixed(independent_theta(self.objective, options.tol), self.fixed)
        self.solver = ProximalNewton(self.penalty, units(self.objective))
        self.checkpoint = Checkpoint(run.checkpoint, run.checkpoint_every, data, options)
        self.finished: list[Start] = []
        self._history: list[tuple[int, float, float, int, float]] = []
        self._began = time.monotonic()

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended the fit, during a start or between two starts."""
        done = self.finished
        return len(done) < self.options.n_starts or done[-1].status is Status.INTERRUPTED

    def run(self) -> list[Start]:
        """Run all starts that the checkpoint does not contain; return all starts in order."""
        options = self.options
        running = self._resume()
        with (
            blas_on_one_thread(),
            FitProgress(self.run_options.progress, options.tol, long=self.forecast.is_long) as bar,
            graceful_stop() as request,
        ):
            for index in range(len(self.finished), options.n_starts):
                label = f"start {index + 1} of {options.n_starts}"
                bar.begin(label if options.n_starts > 1 else "fit")
                self._began = time.monotonic() - (self._history[-1][4] if self._history else 0.0)
                state: NewtonState | AdaGradState
                if options.solver == "adagrad":
                    state, info = self._adagrad(index, running, bar, request)
                else:
                    state, info = solve(
                        self.solver, self.objective, self._begin(index, running), options.limits,
                        self._watch(bar, request, phase=0),
                    )  # fmt: skip
                self.finished.append(self._end(index, state.theta, info, request))
                running = None
                self._history = []
                if request:
                    break
                self.checkpoint.save(self.finished)
        return self.finished

    def go_on(self, theta: NDArray[np.float64], starts: list[Start]) -> list[Start]:
        """Run one more start, which begins at theta; return `starts` with the new start added."""
        self.finished = list(starts)
        index = len(starts)
        self._history = []
        self._began = time.monotonic()
        with (
            blas_on_one_thread(),
            FitProgress(self.run_options.progress, self.options.tol) as bar,
            graceful_stop() as request,
        ):
            bar.begin("fit")
            self.objective.restart(index)
            start = apply_fixed(theta.copy(), self.fixed)
            state, info = solve(
                self.solver, self.objective, begin(self.solver, self.objective, start),
                self.options.limits, self._watch(bar, request, phase=0),
            )  # fmt: skip
            end = self._end(index, state.theta, info, request)
        self.finished.append(replace(end, width=float("nan")))
        return self.finished

    def _width(self, index: int) -> float:
        """Return the width of the random interactions at the beginning of a start.

        By default it is 0 for the first start. The other starts use the widths in `start_widths`
        one after another.
        """
        if self.options.solver == "adagrad":
            return _PAPER_WIDTH
        widths = self.options.start_widths
        if not self.options.independent_start:
            return widths[index % len(widths)]
        return 0.0 if index == 0 else widths[(index - 1) % len(widths)]

    def _begin(self, index: int, running: Running | None) -> tuple[NewtonState, Info]:
        """Return the first state of a start, or the state in the checkpoint."""
        if running is not None:
            return running.newton()
        width = self._width(index)
        seed = self.options.seed
        theta = random_theta(self.base, width, seed, index) if width else self.base.copy()
        theta = apply_fixed(theta, self.fixed)
        self.objective.restart(index)
        return begin(self.solver, self.objective, theta)

    def _watch(self, bar: FitProgress, request: StopRequest, *, phase: int) -> _Watcher:
        return _Watcher(self, bar, request, phase)

    def _adagrad(
        self, index: int, running: Running | None, bar: FitProgress, request: StopRequest
    ) -> tuple[AdaGradState, Info]:
        """Run the two phases of the paper: base rates alone, then all entries of theta."""
        options = self.options
        objective = _SampledGradient(self.data, options, self.run_options.n_threads, index)
        phase = 0 if running is None else running.phase
        if running is not None:
            state, info = running.adagrad()
            objective.likelihood.skip(info.evaluations)
        if phase == 0:
            diagonal = AdaGrad(self.penalty, diagonal_only=True)
            if running is None:
                n = self.objective.n
                nothing = apply_fixed(np.zeros((n, n)), self.fixed)
                state, info = diagonal.init(objective, nothing), Info(evaluations=1)
            first = Limits(tol=options.tol, max_iter=_PAPER_DIAGONAL_EPOCHS)
            state, info = descend_by_gradients(
                diagonal, objective, (state, info), first, self._watch(bar, request, phase=0)
            )
            if info.status is Status.INTERRUPTED:
                return state, info
        full = AdaGrad(self.penalty)
        if phase == 0:
            theta = random_theta(state.theta, _PAPER_WIDTH, options.seed, index)
            theta = apply_fixed(theta, self.fixed)
            state = full.init(objective, theta)
            info = Info(evaluations=info.evaluations + 1)
        return descend_by_gradients(
            full, objective, (state, info), options.limits, self._watch(bar, request, phase=1)
        )

    def _end(
        self, index: int, theta: NDArray[np.float64], info: Info, request: StopRequest
    ) -> Start:
        """Return the result of a start, with its penalised log-likelihood."""
        error = 0.0
        if self.objective.is_sampled or self.options.solver == "adagrad":
            info, error = self._final_value(theta, info)
        message = info.message(self.options.limits)
        if info.status is Status.INTERRUPTED and request.signal:
            message = f"stopped by {request.signal}"
        return Start(
            theta=theta,
            objective=info.objective,
            objective_se=error,
            kkt_residual=info.residual,
            kkt_floor=info.floor,
            n_iterations=info.iterations,
            n_evaluations=info.evaluations,
            status=info.status,
            message=message,
            width=self._width(index),
            history=self._history,
        )

    def _final_value(self, theta: NDArray[np.float64], info: Info) -> tuple[Info, float]:
        """Return the info with a new estimate of the penalised log-likelihood, and its error.

        For the paper's solver, the KKT residual is estimated again, too. The reason is that its
        last gradient was computed from one short chain per set.
        """
        likelihood = Likelihood(self.data, settings=self.settings.but(sampling=VALUE_SAMPLING))
        if self.options.solver != "adagrad":
            value, error = final_value(self.objective, likelihood, theta)
            return replace(info, objective=value - self.penalty.value(theta)), error
        model = Model(theta, self.data.items, observation=self.options.observation)
        evaluation = likelihood.evaluate(model)
        objective = evaluation.value - self.penalty.value(theta)
        if evaluation.gradient is not None and evaluation.gradient_se is not None:
            distance = self.penalty.subdiff_distance(theta, evaluation.gradient)
            info = replace(
                info,
                residual=float(distance.max()),
                floor=float(SIGMAS * evaluation.gradient_se.max()),
            )
        return replace(info, objective=objective), evaluation.value_se

    def _resume(self) -> Running | None:
        """Read the checkpoint, if there is one; return the start that has not ended."""
        self.finished, running = self.checkpoint.load(self.objective)
        if running is not None:
            self._history = running.history
        return running


@dataclass(frozen=True)
class _Watcher:
    """A function that the solver calls with every state of a start.

    The function updates the history, the progress bar and the checkpoint. It returns whether the
    start should stop.
    """

    fitter: Fitter
    bar: FitProgress
    request: StopRequest
    phase: int

    def __call__(self, state: NewtonState | AdaGradState, info: Info) -> bool:
        fitter = self.fitter
        theta = state.theta
        interactions = int(np.count_nonzero(theta) - np.count_nonzero(theta.diagonal()))
        spent = time.monotonic() - fitter._began  # noqa: SLF001 - part of the fitter
        history = fitter._history  # noqa: SLF001
        history.append((info.evaluations, info.objective, info.residual, interactions, spent))
        self.bar.update(info.objective, info.residual, interactions)
        if self.request or fitter.checkpoint.is_due:
            running = Running.of(state, info, self.phase, history)
            fitter.checkpoint.save(fitter.finished, running, fitter.objective)
        return bool(self.request)


class _SampledGradient:
    """A smooth objective with a gradient that is sampled as in the paper, and without a value."""

    def __init__(
        self, data: Dataset, options: FitOptions, n_threads: int | None, start: int
    ) -> None:
        seed = int(stream(options.seed, Purpose.ADAGRAD_SEED, start).integers(2**63))
        self.likelihood = Likelihood(
            data, method="metropolis", sampling=_PAPER_SAMPLING, random_state=seed,
            n_threads=n_threads,
        )  # fmt: skip
        self._items = data.items
        self._observation = options.observation

    def evaluate(
        self,
        theta: NDArray[np.float64],
        *,
        full: bool = False,  # noqa: ARG002 - the gradient is always complete
    ) -> tuple[float, NDArray[np.float64]]:
        """Return NaN and the gradient of the loss."""
        model = Model(theta, self._items, observation=self._observation)
        gradient = self.likelihood.evaluate(model, value=False).gradient
        assert gradient is not None  # noqa: S101 - the gradient was requested
        return float("nan"), -gradient
