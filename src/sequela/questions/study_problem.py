"""The input of a planned study, and the outcomes of simulated studies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.clock_lattice import clock_lattice
from sequela.learning.checkpoint import fingerprint
from sequela.posteriors.result import Posterior
from sequela.questions.arguments import find_items
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.naming import argument, either
from sequela.support.validation import is_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset

__all__ = ["Outcomes", "StudyProblem", "joint_probabilities", "read_problem"]

# The frequency of a clock item if the data have no items other than the pair.
_CLOCK_FREQUENCY = 0.1


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of simulated studies of one size; arrays have one entry per study.

    Attributes
    ----------
    evidence : array
        Evidence for the true order, in nats. If it is below 0, it is evidence for the wrong order.
    probability : array
        Probability of the true order after the study; NaN if the method does not compute it.
    right, wrong : array of bool
        Whether the study decides for the true order, and whether it decides for the wrong order.
    effective : array
        Effective number of draws of the posterior; NaN if the method does not use draws.
    """

    evidence: NDArray[np.float64]
    probability: NDArray[np.float64]
    right: NDArray[np.bool_]
    wrong: NDArray[np.bool_]
    effective: NDArray[np.float64]


@dataclass(frozen=True)
class StudyProblem:
    """A pair of items, the posterior, and the models that are assumed to be true.

    Attributes
    ----------
    posterior : Posterior
        The posterior given the present data.
    data : Dataset
        The present data. Cells may be missing, and orders may be known.
    items : tuple of two str
        The pair.
    ahead : array of bool, (chains, draws)
        Whether the first item of the pair usually arrives first, for each draw.
    clock_rate : float
        Rate of an additional clock item.
    truths : array of int, (studies, 2)
        Chain and draw of the model that is assumed to be true in each simulated study.
    """

    posterior: Posterior
    data: Dataset
    items: tuple[str, str]
    ahead: NDArray[np.bool_]
    clock_rate: float
    truths: NDArray[np.int64]

    @property
    def stop_rate(self) -> float:
        """The rate of the observation."""
        rate = self.posterior.observation.constant_rate
        assert rate is not None  # noqa: S101 - posteriors always have a constant rate
        return rate


def read_problem(
    posterior: Posterior,
    data: Dataset,
    pair: tuple[str, str],
    clock_frequency: float | None,
    studies: int,
) -> StudyProblem:
    """Return the checked input of a planned study."""
    if not isinstance(posterior, Posterior):
        raise InputError(
            f"posterior is of type {type(posterior).__name__}; expected the result of "
            "sequela.posterior, because a single model does not show how uncertain its orders are"
        )
    i, j = (int(place) for place in find_items(posterior.models(1)[0], pair, "the pair"))
    if set(posterior.items) <= set(data.items):
        data = data.select_items(list(posterior.items))
    if fingerprint(data) != posterior.fingerprint:
        raise InputError(
            "data are not the data of the posterior; expected the same samples and items in the "
            "same order, with the same missing cells and known orders"
            f"{either('', ' (--orders)')}, and without observation times"
        )
    column = np.nonzero((posterior.pairs == sorted((i, j))).all(axis=1))[0]
    if column.size == 0:
        raise InputError(
            f"no sample has both {pair[0]!r} and {pair[1]!r}; expected two items that occur "
            "together in at least one sample"
        )
    share = posterior.draws.orders[:, :, int(column[0])]
    chains, draws = share.shape
    if chains * draws < 2:
        raise InputError("the posterior has fewer than two draws; compute one with more draws")
    chosen = ((np.arange(studies) + 0.5) * (chains * draws / studies)).astype(np.int64)
    frequency = _frequency(data, (i, j)) if clock_frequency is None else clock_frequency
    if not is_number(frequency) or not 0.0 < frequency < 1.0:
        raise InputError(
            f"{argument('clock_frequency')} is {frequency!r}; expected the share of the samples "
            "that have a "
            "clock item, between 0 and 1, such as 0.1"
        )
    rate = posterior.observation.constant_rate or 1.0
    return StudyProblem(
        posterior=posterior,
        data=data,
        items=(posterior.items[i], posterior.items[j]),
        ahead=share > 0.5 if i < j else share < 0.5,
        clock_rate=rate * float(frequency) / (1.0 - float(frequency)),
        truths=np.stack([chosen // draws, chosen % draws], axis=1),
    )


def _frequency(data: Dataset, pair: tuple[int, int]) -> float:
    """Return the median frequency of the other items, limited to values that suit a clock item.

    Only known cells are counted. The frequency is at least 1 / (number of samples + 1), and at most
    0.9.
    """
    shares = data.with_weights(None).known_shares
    others = np.delete(shares, pair)
    others = others[~np.isnan(others)]
    middle = float(np.median(others)) if others.size else _CLOCK_FREQUENCY
    return float(np.clip(middle, 1.0 / (len(data) + 1.0), 0.9))


def joint_probabilities(
    problem: StudyProblem, theta: NDArray[np.float64], items: NDArray[np.int64], clocks: int
) -> NDArray[np.float64]:
    """Return joint probabilities of the set of present `items` and the number of clock items.

    The array has 2^k rows, one per subset of the k items, and `clocks` + 1 columns. It is computed
    for one theta.
    """
    p: NDArray[np.float64] = np.empty((1 << items.size, clocks + 1))
    call(clock_lattice, p, theta, items, problem.clock_rate, problem.stop_rate)
    return p
