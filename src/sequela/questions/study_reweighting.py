"""Outcomes of planned studies, computed by giving new weights to the draws of a posterior.

A draw k of the posterior given the data D is assumed to be the true model, and a study D' is
simulated from it. The posterior given both D and D' consists of the same draws, each with a weight
proportional to p(D' | theta). So no new chains are needed. The result is exact up to the Monte
Carlo error, as long as many draws have similar weights. The draws of the same chain as k are left
out, because they are close to k and would make the result too optimistic. If there is only one
chain, only k itself is left out.

New samples have clock items. Clock items are also added to the existing samples. An existing sample
then contributes p(clock items | set, theta). If cells are missing or orders are known, the set is
replaced by what is known of the sample (`study_cells`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.posteriors.diagnostics import effective_size
from sequela.questions.study_cells import study_cells
from sequela.questions.study_problem import Outcomes, joint_probabilities
from sequela.support.errors import BudgetError
from sequela.support.naming import option
from sequela.support.random import Purpose, stream
from sequela.support.threads import run_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.questions.study_cells import StudyCells
    from sequela.questions.study_problem import StudyProblem
    from sequela.settings import Settings

__all__ = ["reweighted_studies"]

# Largest number of cells of all lattices together. The computation then takes about a minute on one
# core.
_MOST_CELLS = 3e9
_SMALLEST = 1e-300


def reweighted_studies(
    problem: StudyProblem, samples: list[int], clocks: int, certainty: float, settings: Settings
) -> list[Outcomes]:
    """Return the outcomes of studies with `clocks` new clock items, for each number of new samples.

    The numbers in `samples` must increase, because a smaller study is the first part of a larger
    one.
    """
    theta = problem.posterior.theta
    n = problem.posterior.n_items
    cells = study_cells(problem.data)
    _check_work(len(theta) * _states(cells, n) * (clocks + 1) * max(n, 1), n)
    items = np.arange(n)
    known = cells.counts
    stated = cells.of_stated(problem, clocks)
    studies = _simulate(problem, cells, stated, samples, clocks, settings)

    def work(draw: int) -> NDArray[np.float64]:
        p = cells.summed(joint_probabilities(problem, theta[draw], items, clocks))
        if cells.stated:
            p = np.concatenate([p, stated[draw]])
        log_p = np.log(np.maximum(p, _SMALLEST))
        log_set = np.log(np.maximum(p.sum(axis=1), _SMALLEST))
        values: NDArray[np.float64] = studies @ log_p.ravel()
        # The posterior already takes the known cells and orders of the existing samples into
        # account. So divide by their probabilities.
        return values - (known @ log_set if clocks else 0.0)

    rows = run_pieces(work, range(len(theta)), settings.threads, "weights of models")
    log_weights = np.stack(rows).reshape(len(theta), len(problem.truths), len(samples))
    return [_outcomes(problem, log_weights[:, :, k], certainty) for k in range(len(samples))]


def _check_work(cells: float, n: int) -> None:
    if cells > _MOST_CELLS:
        raise BudgetError(
            f"method 'reweight' would need {cells:.1g} operations to compute the "
            f"probabilities of all sets of {n} items under every draw of the posterior, "
            f"more than the limit of {_MOST_CELLS:.1g}; use {option('method', 'check')}, fewer "
            "clock items, or a posterior of fewer items"
        )


def _states(cells: StudyCells, n: int) -> float:
    """Return the number of sets, classes, and states of lattices of classes with known orders."""
    classes = 0.0 if cells.sums is None else float(cells.first[-1])
    of_stated = sum(2.0 ** float(known.on_lattice.size) for known in cells.stated)
    return float(2.0**n + classes + of_stated)


def _simulate(
    problem: StudyProblem,
    cells: StudyCells,
    stated: NDArray[np.float64],
    samples: list[int],
    clocks: int,
    settings: Settings,
) -> Any:
    """Return how many samples each class has, by number of clock items, one row per study.

    The result is a sparse matrix. The rows of one true model are adjacent, with an increasing
    number of new samples.
    """
    from scipy.sparse import csr_array, vstack

    everything = np.arange(problem.posterior.n_items)
    draws = problem.ahead.shape[1]

    def work(study: int) -> Any:
        rng = stream(settings.seed, Purpose.STUDY, study, clocks)
        chain, draw = problem.truths[study]
        theta = problem.posterior.draws.theta[chain, draw]
        p = cells.summed(joint_probabilities(problem, theta, everything, clocks))
        flat = cells.of_new_samples(p)
        if cells.stated:
            p = np.concatenate([p, stated[chain * draws + draw]])
        counts = np.zeros(p.shape)
        if clocks:
            for at in np.nonzero(cells.counts)[0]:
                share = p[at] / p[at].sum()
                counts[at] += rng.multinomial(int(cells.counts[at]), share)
        rows = []
        before = 0
        total = counts.ravel()
        for size in samples:
            total = total.copy()
            total[: flat.size] += rng.multinomial(size - before, flat)
            before = size
            rows.append(csr_array(total[None, :]))
        return vstack(rows)

    studies = run_pieces(work, range(len(problem.truths)), settings.threads, "simulated studies")
    return csr_array(vstack(studies))


def _outcomes(
    problem: StudyProblem, log_weights: NDArray[np.float64], certainty: float
) -> Outcomes:
    """Return the outcomes of studies of one size; the weights have the shape (draws, studies)."""
    chains, draws = problem.ahead.shape
    chain_of = np.repeat(np.arange(chains), draws)
    ahead = problem.ahead.ravel()
    own_chain = chain_of[:, None] == problem.truths[None, :, 0]
    if chains == 1:
        own_chain = np.arange(draws)[:, None] == problem.truths[None, :, 1]
    log_weights = np.where(own_chain, -np.inf, log_weights)
    weights = np.exp(log_weights - log_weights.max(axis=0))
    weights /= weights.sum(axis=0)
    truly_ahead = problem.ahead[problem.truths[:, 0], problem.truths[:, 1]]
    probability = np.where(ahead[:, None] == truly_ahead[None, :], weights, 0.0).sum(axis=0)
    effective = _independent_share(problem) / (weights**2).sum(axis=0)
    # The number of effective draws limits how large the estimated log-odds can be.
    room = 0.5 / np.maximum(effective, 1.0)
    evidence = np.log(probability + room) - np.log(np.maximum(1.0 - probability, 0.0) + room)
    return Outcomes(
        evidence=evidence,
        probability=probability,
        right=probability >= certainty,
        wrong=1.0 - probability >= certainty,
        effective=effective,
    )


def _independent_share(problem: StudyProblem) -> float:
    """Return the effective number of draws for the order of the pair, divided by all draws."""
    # Compare with the first draw, so that rounding errors do not depend on which item of the pair
    # is given first.
    values = (problem.ahead == problem.ahead[0, 0]).astype(np.float64)
    size = float(effective_size(values[:, :, None])[0])
    return min(size / values.size, 1.0) if np.isfinite(size) else 1.0
