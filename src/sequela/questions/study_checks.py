"""What a study would tell, by learning a model from each simulated data set and checking its order.

This is what `sequela fit` does with its data, so it takes any number of items, and a second or more
for each data set. Clock items are columns like all others.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from sequela.data.dataset import Dataset
from sequela.learning.learner import Learner
from sequela.model import Model
from sequela.questions.order_ranges import CAN_TELL, order_ranges
from sequela.questions.study_problem import Outcomes, joint_probabilities
from sequela.simulation import simulate
from sequela.support.errors import BudgetError
from sequela.support.random import Purpose, stream
from sequela.support.threads import run_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.questions.study_problem import StudyProblem
    from sequela.settings import Settings

__all__ = ["checked_studies", "simulate_study"]

# Sets that clock items are added to: the lattice of the set must be affordable.
_LARGEST_SET = 16
# Evidence is infinite where no model with the opposite order was found.
_MOST_EVIDENCE = 20.0


def checked_studies(
    problem: StudyProblem, samples: list[int], clocks: int, penalty: float, settings: Settings
) -> list[Outcomes]:
    """Return what studies with these numbers of new samples, all with `clocks`, would tell."""

    def work(piece: tuple[int, int]) -> tuple[float, bool]:
        study, size = piece
        data = simulate_study(problem, study, size, clocks, settings.seed)
        evidence, called = _evidence(problem, data, penalty, settings)
        chain, draw = problem.truths[study]
        return (evidence if problem.ahead[chain, draw] else -evidence), called

    studies = range(len(problem.truths))
    pieces = [(study, size) for size in samples for study in studies]
    found = run_pieces(work, pieces, settings.threads, "simulated studies")
    evidence = np.array([e for e, _ in found]).reshape(len(samples), -1)
    called = np.array([c for _, c in found], dtype=np.bool_).reshape(len(samples), -1)
    unknown = np.full(len(problem.truths), np.nan)
    return [
        Outcomes(
            evidence=evidence[k],
            probability=unknown,
            right=called[k] & (evidence[k] > 0.0),
            wrong=called[k] & (evidence[k] < 0.0),
            effective=unknown,
        )
        for k in range(len(samples))
    ]


def _evidence(
    problem: StudyProblem, data: Dataset, penalty: float, settings: Settings
) -> tuple[float, bool]:
    """Return the evidence for the first item of the pair, and whether the order is called."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits of simulated data may have several optima
        learner = Learner(penalty, random_state=settings.seed, n_threads=1, progress=False).fit(
            data
        )
        table = order_ranges(
            learner, data, pairs=[problem.items], random_state=settings.seed, n_threads=1
        ).table  # fmt: skip
    if table.empty or not table["checked"].iloc[0]:
        return 0.0, False
    row = table.iloc[0]
    evidence = float(np.clip(row["evidence"], -_MOST_EVIDENCE, _MOST_EVIDENCE))
    sign = 1.0 if row["first"] == problem.items[0] else -1.0
    return sign * evidence, bool(row["verdict"] == CAN_TELL)


def simulate_study(problem: StudyProblem, study: int, size: int, clocks: int, seed: int) -> Dataset:
    """Return the samples that are there with new clock items, and new samples with all items.

    The smaller of two sizes is the beginning of the larger one.
    """
    chain, draw = problem.truths[study]
    theta = problem.posterior.draws.theta[chain, draw]
    rng = stream(seed, Purpose.STUDY, study, clocks)
    known = np.asarray(problem.data.values, dtype=np.bool_)
    blocks = [np.hstack([known, _added_clocks(problem, theta, known, clocks, rng)])]
    if size:
        model = Model(theta, problem.posterior.items, observation=problem.posterior.observation)
        drawn = simulate(model, size, random_state=int(rng.integers(2**53)), n_threads=1)
        present = np.asarray(drawn.to_dataset().values, dtype=np.bool_)
        reached = problem.clock_rate * drawn.observation_times[:, None]
        blocks.append(np.hstack([present, rng.standard_exponential((size, clocks)) < reached]))
    labels = [*problem.posterior.items, *_clock_labels(problem, clocks)]
    return Dataset(np.vstack(blocks), items=labels)


def _added_clocks(
    problem: StudyProblem,
    theta: NDArray[np.float64],
    known: NDArray[np.bool_],
    clocks: int,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Return clock items for the samples that are there: first their number, then which."""
    present = np.zeros((len(known), clocks), dtype=np.bool_)
    if not clocks:
        return present
    rows, inverse = np.unique(known, axis=0, return_inverse=True)
    for place, row in enumerate(rows):
        items = np.nonzero(row)[0]
        if items.size > _LARGEST_SET:
            raise BudgetError(
                f"a sample has {items.size} items; clock items can be added to samples of at most "
                f"{_LARGEST_SET}. Use a posterior of fewer items, or clocks=[0]"
            )
        share = joint_probabilities(problem, theta, items, clocks)[-1]
        here = np.nonzero(inverse.ravel() == place)[0]
        numbers = rng.choice(clocks + 1, size=here.size, p=share / share.sum())
        ranks = rng.random((here.size, clocks)).argsort(axis=1).argsort(axis=1)
        present[here] = ranks < numbers[:, None]
    return present


def _clock_labels(problem: StudyProblem, clocks: int) -> list[str]:
    prefix = "new clock"
    while any(item.startswith(prefix) for item in problem.posterior.items):
        prefix = f"another {prefix}"
    return [f"{prefix} {k + 1}" for k in range(clocks)]
