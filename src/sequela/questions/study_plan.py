"""How much more data would help to determine which of two items arrives first.

Models are drawn from the posterior. Each of them in turn is assumed to be the true model, and a
larger study is simulated from it. The study has new samples, and additional clock items (items that
are independent of all others) in all samples, old and new. Then the order of the pair is inferred
again, and the answer is counted as right, wrong or open. So the result takes into account how
uncertain the order and the strength of effects are at present.

If cells are missing, the new samples have the missing cells of existing samples that are drawn at
random. Known orders of existing samples are kept. New samples have no known orders.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from sequela.data.dataset import Dataset
from sequela.posteriors.result import Posterior
from sequela.questions.study_checks import checked_studies
from sequela.questions.study_problem import read_problem
from sequela.questions.study_reweighting import reweighted_studies
from sequela.settings import SettingsKeywords, read_settings
from sequela.support.errors import InputError
from sequela.support.naming import argument
from sequela.support.validation import is_number, positive_integer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.questions.study_problem import Outcomes

__all__ = ["LEAST_EFFECTIVE", "StudyPlan", "plan_study"]

Method = Literal["auto", "reweight", "check"]
_METHODS = ("auto", "reweight", "check")
# If there are more items, only a few draws have large weights after a larger study, and the result
# of "reweight" is not precise.
_MOST_ITEMS_TO_REWEIGHT = 4
# Default number of simulated studies per row of the table.
_STUDIES = {"reweight": 400, "check": 20}
# A result is reliable if at least 90% of the studies have at least this many effective draws.
LEAST_EFFECTIVE = 40.0


class StudyKeywords(SettingsKeywords, total=False):
    """The options of `plan_study`, in addition to those of `Settings`."""

    method: Method
    clock_frequency: float | None
    certainty: float
    studies: int | None
    penalty: float


@dataclass(frozen=True)
class StudyPlan:
    """The expected results of larger studies about the order of two items.

    A study "calls" an order if it decides for this order.

    Attributes
    ----------
    table : DataFrame
        One row for each combination of the numbers of new samples ("samples") and of additional
        clock items ("clocks"). "evidence" is the expected evidence for the true order, in nats: the
        logarithm of the posterior odds, or a profile log-likelihood ratio (see `method`).
        "probability" is the expected posterior probability of the true order. "right" and "wrong"
        are the probabilities that a study calls the true order, and that it calls the wrong order.
        "open" is the probability that it calls neither. Columns that end in "_se" are Monte Carlo
        standard errors. "effective" is an effective number of draws: at least 90% of the simulated
        studies have this number or more (NaN for method "check", which uses no draws). "reliable"
        says whether this number is large enough. It is always true for method "check".
    first, second : str
        The pair.
    now : float
        Posterior probability that `first` usually arrives first, with the present data.
    samples : int
        Number of samples in the present data.
    method : str
        "reweight" (posterior probabilities, computed by giving weights to the draws) or "check" (a
        fit to each simulated data set, with the check of `order_ranges`).
    certainty : float
        With "reweight", a study calls an order if its posterior probability is at least this
        number. With "check", a study calls an order if the opposite order is worse by more than 2
        nats.
    clock_frequency : float
        Share of the samples that have a given clock item, for each additional clock item.
    studies : int
        Number of simulated studies per row.
    seed : int
        The seed; the same seed gives the same numbers.
    """

    table: pd.DataFrame = field(repr=False)
    first: str
    second: str
    now: float
    samples: int
    method: str
    certainty: float
    clock_frequency: float
    studies: int
    seed: int

    def sentences(self) -> list[str]:
        """Return the plan in words, one sentence per row of the table."""
        told = []
        for row in self.table.itertuples(index=False):
            text = (
                f"{row.samples} more samples and {row.clocks} more clock items: the study "
                "calls the right order "
                f"with probability {row.right:.2f}, and the wrong order with probability "
                f"{row.wrong:.2f}"
            )
            told.append(text if row.reliable else f"{text} (not reliable)")
        return told


def plan_study(
    posterior: Posterior,
    data: DataLike,
    first: str,
    second: str,
    *,
    samples: Iterable[int] | None = None,
    clocks: Iterable[int] | None = None,
    **options: Unpack[StudyKeywords],
) -> StudyPlan:
    """Return how well larger studies would determine which of two items arrives first.

    Parameters
    ----------
    posterior : Posterior
        From `sequela.posterior`.
    data : Dataset, DataFrame, array or list of sets
        The samples from which the posterior was computed. Cells may be missing, and orders may be
        known.
    first, second : str
        The pair of items; at least one sample must be known to have both.
    samples : list of int or None
        Numbers of new samples; None: 0, the present number of samples, and three times this number.
    clocks : list of int or None
        Numbers of additional clock items, independent of all other items, that are measured in all
        samples, new and old; None: 0, 10 and 40 (method "check": 0 and 20).
    **options
        `method`: "reweight" gives new weights to the draws of the posterior. It is exact up to the
        Monte Carlo error, but needs many more draws if there are more items or if studies are
        larger. "check" fits a model to each simulated data set, with `penalty` (default 0.01), and
        uses `order_ranges`. "auto" is "reweight" for up to 4 items, otherwise "check".
        `clock_frequency`: share of the samples that have a given clock item. The default is the
        median frequency of the other items of the data, or 0.1 if there are none. `certainty`: the
        posterior probability at which a study decides for an order (default 0.95). `studies`:
        number of simulated studies per row (default 400; for "check" 20). `random_state` and
        `n_threads`: as in `Settings`.

    Returns
    -------
    StudyPlan

    Notes
    -----
    If cells of `data` are missing, the plan assumes that the larger study uses the same panels:
    each new sample has the missing cells of an existing sample that is drawn at random. The new
    clock items are measured in all samples. Existing samples keep their known orders, and new
    samples have none. So the plan shows what more samples and clock items tell, in addition to the
    orders that are known at present.

    Examples
    --------
    >>> import sequela
    >>> theta = [[0.0, 4.0], [0.0, -4.0]]  # item "0" comes first and promotes item "1"
    >>> sets = sequela.simulate(theta, 200, random_state=1).to_dataset().without_times()
    >>> draws = sequela.posterior(sets, draws=300, random_state=1)
    >>> plan = plan_study(draws, sets, "0", "1", samples=[0, 100], clocks=[0, 40], random_state=1)
    >>> (plan.table["right"] > 0.2).tolist()  # two items alone never tell their order
    [False, False, True, True]
    """
    given: dict[str, Any] = dict(options)
    method = given.pop("method", "auto")
    if method not in _METHODS:
        raise InputError(
            f"{argument('method')} is {method!r}; expected one of {', '.join(map(repr, _METHODS))}"
        )
    if method == "auto":
        few = isinstance(posterior, Posterior) and posterior.n_items <= _MOST_ITEMS_TO_REWEIGHT
        method = "reweight" if few else "check"
    frequency = given.pop("clock_frequency", None)
    certainty = _read_share("certainty", given.pop("certainty", 0.95))
    penalty = _read_penalty(given.pop("penalty", 0.01))
    wanted = given.pop("studies", None)
    studies = positive_integer("studies", _STUDIES[method] if wanted is None else wanted, least=2)
    how = read_settings(given, unused=("draws", "target_se", "sampling", "budget"))
    table = Dataset.coerce(data)
    problem = read_problem(posterior, table, (str(first), str(second)), frequency, studies)
    total = len(table)
    sizes = _read_numbers("samples", samples, [0, total, 3 * total])
    added = _read_numbers("clocks", clocks, [0, 10, 40] if method == "reweight" else [0, 20])
    rows = []
    for m in added:
        if method == "reweight":
            outcomes = reweighted_studies(problem, sizes, m, certainty, how)
        else:
            outcomes = checked_studies(problem, sizes, m, penalty, how)
        rows += [
            {"samples": size, "clocks": m, **_summary(found)}
            for size, found in zip(sizes, outcomes, strict=True)
        ]
    ratio = problem.clock_rate / problem.stop_rate
    return StudyPlan(
        table=pd.DataFrame(rows),
        first=problem.items[0],
        second=problem.items[1],
        now=float(problem.ahead.mean()),
        samples=total,
        method=method,
        certainty=certainty,
        clock_frequency=ratio / (1.0 + ratio),
        studies=studies,
        seed=how.seed,
    )


def _summary(found: Outcomes) -> dict[str, Any]:
    """Return one row of the table: means over studies, with their standard errors."""
    row: dict[str, Any] = {}
    for name in ("evidence", "probability", "right", "wrong"):
        row |= {name: _mean(getattr(found, name)), f"{name}_se": _error(getattr(found, name))}
    neither = ~(found.right | found.wrong)
    row |= {"open": _mean(neither)}
    effective = float(np.quantile(found.effective, 0.1))
    return row | {
        "effective": effective,
        "reliable": bool(np.isnan(effective) or effective >= LEAST_EFFECTIVE),
    }


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean())


def _error(values: NDArray[Any]) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size))


def _read_share(name: str, value: Any) -> float:
    if not is_number(value) or not 0.5 < value < 1.0:
        raise InputError(
            f"{argument(name)} is {value!r}; expected a probability above 0.5, such as 0.95"
        )
    return float(value)


def _read_penalty(penalty: Any) -> float:
    if not is_number(penalty) or not 0.0 <= penalty < np.inf:
        raise InputError(
            f"{argument('penalty')} is {penalty!r}; expected a number of at least 0, such as 0.01"
        )
    return float(penalty)


def _read_numbers(name: str, numbers: Any, default: list[int]) -> list[int]:
    """Return the distinct numbers, sorted."""
    if numbers is None:
        return default
    try:
        listed = list(numbers)
    except TypeError:
        raise InputError(
            f"{argument(name)} is {numbers!r}; expected a list, such as [{numbers!r}]"
        ) from None
    if not listed:
        raise InputError(f"{argument(name)} is empty; expected at least one number")
    return sorted({positive_integer(name, number, least=0) for number in listed})
