"""Test whether a fitted model describes its data.

Data sets of the same size are simulated from the model, and the observed numbers are compared with
the numbers in the simulated data sets. Because the model was learned from the same data, the
observed numbers are closer to the expected numbers than the numbers in new data would be. To
correct for this, a model would have to be fitted to every simulated data set, which takes too long.
The penalty has the opposite effect: it keeps the model away from the data. For pairs and triples,
`_allowance` corrects for the penalty.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import combinations, pairwise
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.learning.fit_findings import describe
from sequela.model import as_model
from sequela.samples import as_samples
from sequela.settings import read_settings
from sequela.simulation import simulate
from sequela.support.errors import InputError
from sequela.support.linear_algebra import blas_on_one_thread
from sequela.support.random import Purpose, stream
from sequela.support.validation import is_number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    import pandas as pd
    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike, Dataset
    from sequela.model import Model, ModelLike
    from sequela.settings import Settings, SettingsKeywords
    from sequela.simulation import Simulation

__all__ = ["FitCheck", "FitTest", "check_fit", "check_models"]

# Smallest number of simulated data sets. With five tests and a level of 0.01, a p of at most 0.002
# is a finding. Most tests need 499 data sets to reach such a small p. The tests of pairs and
# triples need 999, because their p is doubled. A simulated cell takes about ten nanoseconds.
_FEWEST = 999
# The largest number of tests of one check. The more tests there are, and the smaller the level is,
# the more data sets must be simulated, so that every test can have a finding.
_TESTS = 5
# The smallest level. A smaller one would need more than 9,999 data sets, and the check would take
# long.
_LEAST_LEVEL = 0.001
# If there are more samples, a random subset of this size is compared.
_MOST_SAMPLES = 8_000
# Largest number of cells of the data sets that are simulated together. Their draws are in memory.
_CELLS_AT_ONCE = 2e7
# Pairs and triples are compared only for this many items, the most frequent ones.
_PAIRED_ITEMS = 60
_TRIPLE_ITEMS = 12
# The test of large sets counts the samples whose set size is above a limit. There is one limit for
# each of these shares: the smallest size above which the model expects at most this share of the
# samples.
_LARGE_SHARES = (0.02, 0.005, 0.001)
# Smallest expected number of samples in a bin of set sizes.
_LEAST_EXPECTED = 5.0


@dataclass(frozen=True)
class FitTest:
    """One comparison of the data with the model.

    Attributes
    ----------
    name : str
        "set sizes", "empty sets", "large sets", "pairs" or "triples".
    about : str
        The set size or the items of the samples that are counted in `observed`. The set size of a
        sample is the number of items that it is known to have.
    observed, expected : float
        Number of samples in the data, and the number that the model expects. Only known cells are
        counted.
    z : float
        The difference, in standard deviations over the simulated data sets. For set sizes, it is
        the difference of Pearson's statistic from its mean. For pairs and triples, the difference
        that the penalty of the fit can explain is subtracted first.
    p : float
        Share of the simulated data sets that are at least as far from the expectation as the data.
        For pairs and triples, two statistics are tested, and p is twice the smaller of the two
        shares.
    """

    name: str
    about: str
    observed: float
    expected: float
    z: float
    p: float


@dataclass(frozen=True)
class FitCheck:
    """Whether a model describes the data, and what to try if it does not.

    Attributes
    ----------
    tests : tuple of FitTest
        All comparisons that were made; `table` shows them.
    findings : tuple of str
        What the model does not describe, in plain words, and what to try. Empty if all tests
        passed.
    level : float
        Largest probability of at least one finding if theta of the model is the true theta. For a
        penalised fit, the probability can be larger, because the penalty keeps the model away from
        the data.
    data_sets, samples, seed : int
        Number of simulated data sets, number of samples that were compared, and the seed.
    """

    tests: tuple[FitTest, ...]
    findings: tuple[str, ...]
    level: float
    data_sets: int
    samples: int
    seed: int = field(repr=False)

    @property
    def fits(self) -> bool:
        """Whether all tests passed."""
        return not self.findings

    @property
    def table(self) -> pd.DataFrame:
        """A table with one row per test."""
        import pandas as pd

        names = ["name", "about", "observed", "expected", "z", "p"]
        return pd.DataFrame([asdict(test) for test in self.tests], columns=names)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values for a JSON file."""
        return {
            "fits": self.fits,
            "findings": list(self.findings),
            "tests": [asdict(test) for test in self.tests],
            "level": self.level,
            "data_sets": self.data_sets,
            "samples": self.samples,
            "seed": self.seed,
        }


def check_fit(
    model: ModelLike,
    data: DataLike,
    *,
    level: float = 0.01,
    **settings: Unpack[SettingsKeywords],
) -> FitCheck:
    """Test whether a model describes the data, and describe in plain words where it does not.

    The data are compared with simulated data sets in which the same cells are missing, sample by
    sample. So all samples are used, and all tests count only known cells. The tests are on the set
    sizes, the number of empty sets, the number of very large sets, and the items that occur
    together. Samples with a known observation time are left out. Known orders are not used. Data
    with sample weights are not tested.

    Parameters
    ----------
    model : Model, fitted SetChain, or theta (n, n)
        The model, usually learned from the same data.
    data : Dataset, DataFrame, array or list of sets
        The samples.
    level : float
        Largest probability of at least one finding, over all tests, if theta of the model is the
        true theta. At least 0.001. The check simulates 999 data sets if the level is at least 0.01,
        and more (``10 / level - 1``) if it is smaller, so that every test can have a finding.
    **settings
        `random_state`, `n_threads`; see `Settings`.

    Returns
    -------
    FitCheck
        Its `findings` are empty if all tests passed.

    Notes
    -----
    The tests do not take into account that the model was learned from the same data with a penalty,
    with one exception: pairs and triples may differ by as much as the penalty can explain. If there
    are no findings, this does not prove that the model is right. See "When the model fits" in the
    documentation for what the tests can detect.

    Examples
    --------
    >>> from sequela.data.examples import example_theta
    >>> data = simulate(example_theta(), 400, random_state=1).to_dataset().without_times()
    >>> check_fit(example_theta(), data, random_state=2).fits
    True
    >>> early = np.zeros((100, 10), dtype=bool)
    >>> print(check_fit(example_theta(), early, random_state=2).findings[0][:32])
    100 samples have no items at all
    """
    how = read_settings(settings, unused=("draws", "target_se", "budget", "sampling"))
    return check_models([as_model(model)], data, level, how)


def check_models(models: Sequence[Model], data: DataLike, level: float, how: Settings) -> FitCheck:
    """Test whether the mean predictions of some models agree with the data.

    `models` are one model, or draws from a posterior. Each model simulates the same number of data
    sets. The numbers of its data sets are moved to the mean over all models. So differences between
    the models do not count as random variation, and a posterior is tested as strictly as a fit.
    For the other parameters, see `check_fit`.
    """
    if not (is_number(level) and _LEAST_LEVEL <= level < 1.0):
        raise InputError(
            f"level is {level!r}; expected a number from {_LEAST_LEVEL} to 1, such as 0.01"
        )
    checked = models[0]
    values, missing = _comparable(as_samples(checked, data), how.seed)
    if not len(values):
        return FitCheck((), (), float(level), 0, 0, how.seed)
    counts = _Counts(checked, values)
    number = max(_FEWEST, ceil(2 * _TESTS / level) - 1)
    simulated = _simulate(models, counts, (number, len(values)), missing, how)
    tests = _tests(counts, counts.of(values), simulated, _allowance(checked, len(values)))
    # The smallest possible p can be equal to the bound, which must allow for rounding errors.
    bound = level / max(1, len(tests)) * (1.0 + 1e-9)
    found = [test for test in tests if test.p <= bound]
    return FitCheck(
        tests=tuple(tests),
        findings=tuple(describe(found, checked, len(values), has_missing=missing is not None)),
        level=float(level),
        data_sets=len(simulated),
        samples=len(values),
        seed=how.seed,
    )


def _comparable(data: Dataset, seed: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Return the values and the missing cells of the samples that can be compared.

    These are the samples without a known time, or a random subset of them. If the data have
    weights, no sample can be compared. The second result is None if no cells are missing.
    """
    rows = np.arange(data.n_samples)
    if data.weights is not None:
        rows = rows[:0]
    if data.times is not None:
        rows = rows[np.isnan(data.times[rows])]
    if len(rows) > _MOST_SAMPLES:
        chosen = stream(seed, Purpose.FIT_CHECK).choice(len(rows), _MOST_SAMPLES, replace=False)
        rows = rows[np.sort(chosen)]
    missing = None if data.missing is None else data.missing[rows]
    if missing is not None and not missing.any():
        missing = None
    return data.values[rows], missing  # a missing cell is False in `values`


class _Counts:
    """Count the samples of a data set by set size, and by pairs and triples of frequent items."""

    def __init__(self, model: Model, values: NDArray[np.bool_]) -> None:
        self.n = model.n_items
        by_frequency = np.argsort(-values.sum(axis=0), kind="stable")
        self.paired = np.sort(by_frequency[:_PAIRED_ITEMS])
        self.tripled = np.sort(by_frequency[:_TRIPLE_ITEMS])
        labels = model.items
        a, b = np.triu_indices(self.paired.size, 1)
        self._a, self._b = a, b
        self.pair_names = [
            (labels[self.paired[i]], labels[self.paired[j]]) for i, j in zip(a, b, strict=True)
        ]
        triples = list(combinations(range(self.tripled.size), 3))
        first, second, third = np.array(triples, dtype=np.int64).reshape(-1, 3).T
        c, d = np.triu_indices(self.tripled.size, 1)
        place = np.zeros((self.tripled.size, self.tripled.size), dtype=np.int64)
        place[c, d] = np.arange(c.size)
        self._both = (c, d)
        self._triples = (place[first, second], third)
        self.triple_names = [tuple(labels[self.tripled[i]] for i in triple) for triple in triples]

    def of(self, values: NDArray[np.bool_]) -> tuple[NDArray[np.float64], ...]:
        """Return the counts of one data set: by size, by pair, by triple."""
        sizes = np.bincount(values.sum(axis=1), minlength=self.n + 1).astype(np.float64)
        x = values[:, self.paired].astype(np.float32)
        pairs = (x.T @ x)[self._a, self._b].astype(np.float64)
        y = values[:, self.tripled].astype(np.float32)
        # One matrix product counts all triples. Its rows belong to the first two items of a triple,
        # and its columns belong to the third item.
        c, d = self._both
        together = (y[:, c] * y[:, d]).T @ y
        return sizes, pairs, together[self._triples].astype(np.float64)


def _simulate(
    models: Sequence[Model],
    counts: _Counts,
    shape: tuple[int, int],
    missing: NDArray[np.bool_] | None,
    settings: Settings,
) -> list[tuple[NDArray[np.float64], ...]]:
    """Return the counts of simulated data sets with the given missing cells.

    `shape` is the number of data sets, and the number of samples of each of them.
    """
    number, size = shape
    at_once = max(1, int(_CELLS_AT_ONCE / (size * models[0].n_items)))
    # The places at which the data sets of each model begin.
    begin = np.linspace(0, number, len(models) + 1).round().astype(int).tolist()
    found: list[tuple[NDArray[np.float64], ...]] = []
    # Several threads would make the small matrix products of `_Counts.of` many times slower on a
    # machine that also runs other programs.
    with blas_on_one_thread():
        for model, start, end in zip(models, begin[:-1], begin[1:], strict=True):
            for first in range(start, end, at_once):
                here = min(at_once, end - first)
                seed = int(stream(settings.seed, Purpose.FIT_CHECK, 1, first).integers(2**53))
                drawn = simulate(model, here * size, random_state=seed, n_threads=settings.threads)
                for at in range(here):
                    one = _values(drawn, at * size, (at + 1) * size)
                    found.append(counts.of(one if missing is None else one & ~missing))
    return found if len(models) == 1 else _with_one_mean(found, begin)


def _with_one_mean(
    simulated: list[tuple[NDArray[np.float64], ...]], begin: list[int]
) -> list[tuple[NDArray[np.float64], ...]]:
    """Return the counts, shifted so that each model has the mean of all models."""
    moved = []
    for column in zip(*simulated, strict=True):
        counted = np.stack(column)
        middle = counted.mean(axis=0)
        for start, end in pairwise(begin):
            own = counted[start:end].mean(axis=0)
            # Deviations from a mean of few data sets are too small by this factor.
            scale = np.sqrt((end - start) / (end - start - 1))
            counted[start:end] = middle + scale * (counted[start:end] - own)
        moved.append(counted)
    return list(zip(*moved, strict=True))


def _values(drawn: Simulation, first: int, last: int) -> NDArray[np.bool_]:
    """Return the draws from `first` to `last` as a table.

    Filling small tables one after another is faster than filling one table of all draws.
    """
    starts = drawn.indptr[first : last + 1]
    values = np.zeros((last - first, len(drawn.items)), dtype=np.bool_)
    rows = np.repeat(np.arange(last - first), np.diff(starts))
    values[rows, drawn.sequence[starts[0] : starts[-1]]] = True
    return values


def _tests(
    counts: _Counts,
    observed: tuple[NDArray[np.float64], ...],
    simulated: list[tuple[NDArray[np.float64], ...]],
    allowance: float,
) -> list[FitTest]:
    sizes, pairs, triples = (np.stack([part[k] for part in simulated]) for k in range(3))
    tests = [_size_test(observed[0], sizes), _empty_test(observed[0], sizes)]
    large = _large_test(observed[0], sizes)
    if large is not None:
        tests.append(large)
    if pairs.shape[1]:
        tests.append(_worst_test("pairs", counts.pair_names, observed[1], pairs, allowance))
    if triples.shape[1]:
        tests.append(_worst_test("triples", counts.triple_names, observed[2], triples, allowance))
    return tests


def _allowance(model: Model, n_samples: int) -> float:
    """Return the largest difference of observed and expected numbers that the penalty can explain.

    At an optimum, the derivative of the log-likelihood of all samples with respect to an
    interaction is at most the penalty times the number of samples. This derivative is about the
    difference between the observed and the expected number of samples.
    """
    penalty: Any = model.metadata.get("penalty")
    return float(penalty) * n_samples if is_number(penalty) else 0.0


def _share_beyond(observed: float, simulated: NDArray[np.float64]) -> float:
    """Return the share of the statistics that are at least as large as the observed statistic.

    The observed statistic is counted as one of the statistics, so the share is never 0.
    """
    return float((1 + np.sum(simulated >= observed - 1e-9)) / (len(simulated) + 1))


def _z(observed: float, simulated: NDArray[np.float64]) -> float:
    spread = max(float(simulated.std(ddof=1)), 1.0 / np.sqrt(len(simulated)))
    return float((observed - simulated.mean()) / spread)


def _size_test(observed: NDArray[np.float64], sizes: NDArray[np.float64]) -> FitTest:
    """Test all set sizes together with Pearson's statistic. Rare sizes are counted together."""
    expected = sizes.mean(axis=0)
    starts, total = [0], 0.0
    for size, count in enumerate(expected):
        if total >= _LEAST_EXPECTED and expected[size:].sum() >= _LEAST_EXPECTED:
            starts.append(size)
            total = 0.0
        total += count

    def statistic(counted: NDArray[np.float64]) -> NDArray[np.float64]:
        in_bins = np.add.reduceat(counted, starts, axis=-1)
        wanted = np.maximum(np.add.reduceat(expected, starts), 1e-9)
        found: NDArray[np.float64] = ((in_bins - wanted) ** 2 / wanted).sum(axis=-1)
        return found

    null = statistic(sizes)
    value = float(statistic(observed))
    spread = (observed - expected) / np.maximum(sizes.std(axis=0, ddof=1), 1.0)
    worst = int(np.argmax(np.abs(spread)))
    return FitTest(
        "set sizes", str(worst), float(observed[worst]), float(expected[worst]),
        _z(value, null), _share_beyond(value, null),
    )  # fmt: skip


def _empty_test(observed: NDArray[np.float64], sizes: NDArray[np.float64]) -> FitTest:
    null = sizes[:, 0]
    away = abs(observed[0] - null.mean())
    return FitTest(
        "empty sets", "0", float(observed[0]), float(null.mean()), _z(observed[0], null),
        _share_beyond(away, np.abs(null - null.mean())),
    )  # fmt: skip


def _large_test(observed: NDArray[np.float64], sizes: NDArray[np.float64]) -> FitTest | None:
    """Test the number of samples with more items than a limit that few samples should exceed.

    Return None if there is no such limit.
    """
    expected = sizes.mean(axis=0)
    beyond = 1.0 - np.cumsum(expected) / expected.sum()
    limits = sorted({int(np.nonzero(beyond <= share + 1e-12)[0][0]) for share in _LARGE_SHARES})
    limits = [limit for limit in limits if limit < len(expected) - 1]
    if not limits:
        return None
    counted = np.stack([sizes[:, limit + 1 :].sum(axis=1) for limit in limits], axis=1)
    values = np.array([observed[limit + 1 :].sum() for limit in limits])
    spread = np.maximum(counted.std(axis=0, ddof=1), 0.5)
    away = (values - counted.mean(axis=0)) / spread
    worst = int(np.argmax(away))
    null = ((counted - counted.mean(axis=0)) / spread).max(axis=1)
    return FitTest(
        "large sets", str(limits[worst]), float(values[worst]), float(counted[:, worst].mean()),
        float(away[worst]), _share_beyond(float(away[worst]), null),
    )  # fmt: skip


def _worst_test(
    name: str,
    names: Sequence[tuple[str, ...]],
    observed: NDArray[np.float64],
    simulated: NDArray[np.float64],
    allowance: float,
) -> FitTest:
    """Test all pairs or triples. The result names the one that is farthest from its expectation.

    Differences of up to `allowance` samples do not count.
    """
    expected = simulated.mean(axis=0)
    spread = np.maximum(simulated.std(axis=0, ddof=1), 1.0)
    # Two statistics are tested. The sum of squares detects many small differences, and the largest
    # difference (below) detects a single large one.
    null = (((simulated - expected) / spread) ** 2).sum(axis=1)
    away = observed - expected
    z = np.sign(away) * np.maximum(np.abs(away) - allowance, 0.0) / spread
    worst = int(np.argmax(np.abs(z)))
    value = float((z**2).sum())
    farthest = np.abs((simulated - expected) / spread).max(axis=1)
    # The factor 2 corrects for testing two statistics.
    p = 2.0 * min(_share_beyond(value, null), _share_beyond(abs(z[worst]), farthest))
    return FitTest(
        name, " and ".join(names[worst]), float(observed[worst]), float(expected[worst]),
        float(z[worst]), min(p, 1.0),
    )  # fmt: skip
