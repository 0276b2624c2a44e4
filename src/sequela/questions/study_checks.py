"""Outcomes of planned studies: fit a model to each simulated data set, and check the pair's order.

The analysis is the same as in `sequela fit`. It works for any number of items, and takes a second
or more per data set. Clock items are ordinary columns of the data sets.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from sequela.data.dataset import Dataset
from sequela.learning.learner import Learner
from sequela.likelihood.distinct import partly_known_rows
from sequela.model import Model
from sequela.questions.order_ranges import order_ranges
from sequela.questions.study_clocks import add_clocks_to_partly_known
from sequela.questions.study_problem import Outcomes, joint_probabilities
from sequela.questions.verdict import Verdict
from sequela.simulation import simulate
from sequela.support.errors import BudgetError
from sequela.support.naming import option
from sequela.support.random import Purpose, stream
from sequela.support.threads import run_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.questions.study_problem import StudyProblem
    from sequela.settings import Settings

__all__ = ["checked_studies", "simulate_study"]

# Clock items can be added only to sets of at most this size, because the lattice of the set is
# needed.
_LARGEST_SET = 16
# Evidence is cut off at this value, because it would be infinite if no model with the opposite
# order was found.
_MOST_EVIDENCE = 20.0


def checked_studies(
    problem: StudyProblem, samples: list[int], clocks: int, penalty: float, settings: Settings
) -> list[Outcomes]:
    """Return the outcomes of studies with `clocks` new clock items, for each number of samples."""

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
    """Return the evidence that the pair's first item arrives first, and if the data can tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit to simulated data may have several optima
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
    return sign * evidence, bool(row["verdict"] == Verdict.CAN_TELL)


def simulate_study(problem: StudyProblem, study: int, size: int, clocks: int, seed: int) -> Dataset:
    """Return the existing samples with new clock items, and new samples with all items.

    `study` is the row of the true model in `problem.truths`, `size` is the number of new samples,
    and `clocks` is the number of new clock items. If cells are missing, the new samples have the
    missing cells of existing samples. A smaller study consists of the first samples of a larger
    study.
    """
    chain, draw = problem.truths[study]
    theta = problem.posterior.draws.theta[chain, draw]
    rng = stream(seed, Purpose.STUDY, study, clocks)
    old = problem.data
    known = np.asarray(old.values, dtype=np.bool_)
    model = Model(theta, problem.posterior.items, observation=problem.posterior.observation)
    added = _added_clocks(problem, theta, known, clocks, rng)
    if clocks and not old.is_plain:
        add_clocks_to_partly_known(added, model, old, problem.clock_rate, rng)
    blocks = [np.hstack([known, added])]
    if size:
        drawn = simulate(model, size, random_state=int(rng.integers(2**53)), n_threads=1)
        present = np.asarray(drawn.to_dataset().values, dtype=np.bool_)
        reached = problem.clock_rate * drawn.observation_times[:, None]
        blocks.append(np.hstack([present, rng.standard_exponential((size, clocks)) < reached]))
    labels = [*problem.posterior.items, *_clock_labels(problem, clocks)]
    values = np.vstack(blocks)
    if old.is_plain:
        return Dataset(values, items=labels)
    patterns = stream(seed, Purpose.STUDY, study, clocks, 1)
    return _partly_known(old, values, labels, patterns)


def _partly_known(
    old: Dataset, values: NDArray[np.bool_], labels: list[str], rng: np.random.Generator
) -> Dataset:
    """Return the samples with missing cells and with the known orders of the existing samples.

    New samples have the missing cells of existing samples that are drawn at random, and no known
    orders.
    """
    new = len(values) - old.n_samples
    orders = None if old.orders is None else [*old.orders, *([()] * new)]
    data = Dataset(values, items=labels, orders=orders)
    if old.missing is None:
        return data
    missing = np.zeros(values.shape, dtype=np.bool_)
    like = np.concatenate([np.arange(old.n_samples), rng.integers(old.n_samples, size=new)])
    missing[:, : old.n_items] = old.missing[like]
    # A sample in which all cells are missing says nothing about theta.
    kept = np.flatnonzero(~missing.all(axis=1))
    return data.select_samples(kept).with_missing(missing[kept])


def _added_clocks(
    problem: StudyProblem,
    theta: NDArray[np.float64],
    known: NDArray[np.bool_],
    clocks: int,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """For each existing sample, draw the number of its clock items, and then which ones it has.

    The rows of samples with missing cells or known orders stay empty.
    """
    present = np.zeros((len(known), clocks), dtype=np.bool_)
    if not clocks:
        return present
    complete = np.flatnonzero(~partly_known_rows(problem.data))
    rows, inverse = np.unique(known[complete], axis=0, return_inverse=True)
    for place, row in enumerate(rows):
        items = np.nonzero(row)[0]
        if items.size > _LARGEST_SET:
            raise BudgetError(
                f"a sample has {items.size} items; clock items can be added to samples of at most "
                f"{_LARGEST_SET} items. Use a posterior of fewer items, or {option('clocks', [0])}"
            )
        share = joint_probabilities(problem, theta, items, clocks)[-1]
        here = complete[np.nonzero(inverse.ravel() == place)[0]]
        numbers = rng.choice(clocks + 1, size=here.size, p=share / share.sum())
        ranks = rng.random((here.size, clocks)).argsort(axis=1).argsort(axis=1)
        present[here] = ranks < numbers[:, None]
    return present


def _clock_labels(problem: StudyProblem, clocks: int) -> list[str]:
    prefix = "new clock"
    while any(item.startswith(prefix) for item in problem.posterior.items):
        prefix = f"another {prefix}"
    return [f"{prefix} {k + 1}" for k in range(clocks)]
