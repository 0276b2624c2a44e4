"""The KL divergence between two models, for the marginal sequences of chosen items.

A marginal sequence is the order in which the chosen items arrived before the observation. All other
items are hidden (Fig. 2 of the paper). The divergence is exact if all such sequences can be
enumerated. The probability of a sequence is then a sum over the lattice of those hidden items that
act on chosen items. Otherwise the divergence is estimated from simulated sequences.
"""

from __future__ import annotations

from math import perm
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sequela.likelihood.parameters import Parameters
from sequela.model import as_model
from sequela.questions.arguments import find_items
from sequela.questions.dependence import ancestors
from sequela.questions.order import check_method
from sequela.questions.precision import (
    BATCHES,
    Estimate,
    batch_of_draws,
    jackknife_error,
    until_precise,
)
from sequela.settings import read_settings
from sequela.simulation import simulate
from sequela.support.errors import BudgetError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.model import Model, ModelLike
    from sequela.questions.order import Method
    from sequela.settings import SettingsKeywords

__all__ = ["sequence_divergence", "sequence_log_probabilities"]

DEFAULT_DRAWS = 1_000_000
# Limit for an exact answer. It limits the product of three numbers: sequences, states of the hidden
# items, and steps from a state (the number of hidden items plus one).
_MAX_WORK = 4e6
_MAX_EXACT_ITEMS = 7
_MAX_HIDDEN = 20
_MAX_ITEMS = 12

# A marginal sequence: positions in the list of chosen items.
MarginalSequence: TypeAlias = tuple[int, ...]


def sequence_divergence(
    model: ModelLike,
    other: ModelLike,
    items: Iterable[Any] | None = None,
    *,
    method: Method = "auto",
    **settings: Unpack[SettingsKeywords],
) -> Estimate:
    """Return KL(model || other) between the marginal sequences of some items, in nats.

    Parameters
    ----------
    model, other : Model, fitted SetChain, or theta
        Two models; `model` is the reference. Both models must have the chosen items.
    items : list of labels or None
        At most 12 items; None: the items that both models have.
    method : {"auto", "exact", "simulation"}
        "auto" is exact for at most 7 items if few other items act on them.
    **settings
        `random_state`, `n_threads`. If sequences must be simulated, also `draws` (number of
        sequences, default 1,000,000) or `target_se`. See `Settings`.

    Returns
    -------
    Estimate
        The divergence. If it is simulated, it has a jackknife standard error. The probabilities are
        then computed from counts of draws, which causes a bias. The jackknife removes most of this
        bias.

    Examples
    --------
    >>> theta = np.array([[0.0, 4.0], [0.0, -4.0]])
    >>> print(sequence_divergence(theta, theta))
    0
    >>> print(sequence_divergence(theta, np.diag(np.diag(theta))))
    0.656489
    """
    how = read_settings(settings, unused=("budget", "sampling"))
    check_method(method)
    one, two = as_model(model), as_model(other)
    places = find_items(one, [x for x in one.items if x in two.items] if items is None else items)
    labels = [one.items[place] for place in places]
    if not 1 <= len(labels) <= _MAX_ITEMS:
        raise InputError(
            f"items has {len(labels)} items; expected 1 to {_MAX_ITEMS} items of both models, "
            "so that their sequences can be counted"
        )
    sides = [(one, places), (two, find_items(two, labels))]
    exact = [
        sequence_log_probabilities(side, chosen)
        if method != "simulation" and _is_small(side.theta, chosen)
        else None
        for side, chosen in sides
    ]
    p, q = exact
    if p is not None and q is not None:
        # Rounding may give a negative number if the models are equal.
        return Estimate(max(_divergence(p, q), 0.0))
    if method == "exact":
        raise BudgetError(
            f"too many sequences of {len(labels)} items, or too many hidden items that act on "
            "them, for an exact answer; use method='auto', or fewer items"
        )
    seeds = [int(x) for x in np.random.SeedSequence(how.seed).generate_state(2, np.uint64)]

    def ask(draws: int) -> Estimate:
        one, two = (
            _count(side, chosen, draws, seed, how.threads) if known is None else known
            for (side, chosen), known, seed in zip(sides, exact, seeds, strict=True)
        )
        value, error = _jackknife(one, two)
        return Estimate(value, error, "simulation", draws, how.seed)

    return until_precise(
        ask, lambda estimate: estimate.se, how, default=DEFAULT_DRAWS, first=100_000
    )


def _is_small(theta: NDArray[np.float64], chosen: NDArray[np.int64]) -> bool:
    hidden = ancestors(theta, chosen).size - chosen.size
    count = sum(perm(chosen.size, k) for k in range(chosen.size + 1))
    few = chosen.size <= _MAX_EXACT_ITEMS and hidden <= _MAX_HIDDEN
    return few and count * (hidden + 1) * 2.0**hidden <= _MAX_WORK


def sequence_log_probabilities(
    model: Model, chosen: NDArray[np.int64]
) -> dict[MarginalSequence, float]:
    """Return the exact log-probability of every marginal sequence of the items `chosen`.

    For each beginning of a sequence, every subset of the hidden items has a weight. A beginning and
    a subset together are a state. The weight is the probability that the process visits this state,
    divided by its exit rate. All numbers are stored as logarithms, because a sequence that is
    practically impossible in one model may be likely in the other.
    """
    theta = model.theta
    members = ancestors(theta, chosen)
    hidden = np.setdiff1d(members, chosen)
    h = hidden.size
    subsets = np.arange(1 << h)
    has = (subsets[:, None] >> np.arange(h) & 1).astype(np.bool_)
    order = np.concatenate([chosen, hidden])
    base = theta[order, order]
    effects = theta[np.ix_(order, order)].copy()
    np.fill_diagonal(effects, 0.0)
    from_hidden = has.astype(np.float64) @ effects[chosen.size :]
    from_hidden[:, chosen.size :][has] = -np.inf  # a present item does not arrive again
    by_size = [np.nonzero(has.sum(axis=1) == size)[0] for size in range(h + 1)]
    log_observed = float(np.log(Parameters.of(model).stop_rate))
    log_p: dict[MarginalSequence, float] = {}

    def walk(beginning: MarginalSequence, inflow: NDArray[np.float64]) -> None:
        present = list(beginning)
        rates = base + effects[present].sum(axis=0) + from_hidden
        rates[:, present] = -np.inf
        out = np.logaddexp(log_observed, np.logaddexp.reduce(rates, axis=1, initial=-np.inf))
        weight = inflow.copy()
        weight[0] -= out[0]
        for here in by_size[1:]:
            for x in range(h):
                with_x = here[has[here, x]]
                before = with_x ^ (1 << x)
                step = weight[before] + rates[before, chosen.size + x]
                weight[with_x] = np.logaddexp(weight[with_x], step)
            weight[here] -= out[here]
        log_p[beginning] = log_observed + float(np.logaddexp.reduce(weight))
        for c in range(chosen.size):
            if c not in beginning:
                walk((*beginning, c), weight + rates[:, c])

    start = np.full(1 << h, -np.inf)
    start[0] = 0.0
    walk((), start)
    return log_p


def _divergence(p: dict[MarginalSequence, float], q: dict[MarginalSequence, float]) -> float:
    """Return KL(p || q) from log-probabilities."""
    return float(sum(np.exp(log_p) * (log_p - q[key]) for key, log_p in p.items()))


class _Counts:
    """Counts of marginal sequences in each batch of draws."""

    def __init__(self, table: dict[MarginalSequence, NDArray[np.float64]]) -> None:
        self.table = table
        self.total = np.sum(list(table.values()), axis=0)

    def log_shares(self, keys: list[MarginalSequence], without: int | None) -> NDArray[np.float64]:
        """Return the logarithms of the shares of the sequences `keys`.

        One half is added to each count, so that no share is 0. The draws of the batch `without` are
        not counted. If `without` is None, all batches are counted.
        """
        each = np.array([self.table.get(key, np.zeros(BATCHES)) for key in keys])
        counts, total = each.sum(axis=1), self.total.sum()
        if without is not None:
            counts, total = counts - each[:, without], total - self.total[without]
        shares: NDArray[np.float64] = np.log((counts + 0.5) / (total + 0.5 * len(keys)))
        return shares


def _count(model: Model, chosen: NDArray[np.int64], draws: int, seed: int, threads: int) -> _Counts:
    """Count the marginal sequences over `chosen` in simulated draws."""
    drawn = simulate(model, draws, random_state=seed, n_threads=threads)
    digit = np.zeros(model.n_items, dtype=np.int64)
    digit[chosen] = np.arange(1, chosen.size + 1)
    kept = digit[drawn.sequence]
    draw = np.repeat(np.arange(draws), drawn.set_sizes)[kept > 0]
    kept = kept[kept > 0]
    # Encode a sequence as a number with one digit per arrival.
    lengths = np.bincount(draw, minlength=draws)
    position = np.arange(kept.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    radix = chosen.size + 1
    codes = np.zeros(draws, dtype=np.int64)
    np.add.at(codes, draw, kept * radix**position)
    distinct, which = np.unique(codes, return_inverse=True)
    table = np.zeros((distinct.size, BATCHES))
    np.add.at(table, (which, batch_of_draws(draws)), 1.0)
    return _Counts(
        {_digits(int(code), radix): row for code, row in zip(distinct, table, strict=True)}
    )


def _digits(code: int, radix: int) -> MarginalSequence:
    digits = []
    while code:
        code, digit = divmod(code, radix)
        digits.append(digit - 1)
    return tuple(digits)


# The probabilities of the sequences under one model: as exact log-probabilities, or as counts of
# draws.
Known: TypeAlias = "dict[MarginalSequence, float] | _Counts"


def _jackknife(p: Known, q: Known) -> tuple[float, float]:
    """Return the divergence, corrected for the bias of counts, and its standard error."""
    keys = list(p.table if isinstance(p, _Counts) else p)
    if isinstance(p, _Counts) and isinstance(q, _Counts):
        keys = list(dict.fromkeys([*p.table, *q.table]))

    def log_shares(side: Known, without: int | None) -> NDArray[np.float64]:
        if isinstance(side, _Counts):
            return side.log_shares(keys, without)
        return np.array([side[key] for key in keys])

    def divergence(without: int | None) -> float:
        one, two = log_shares(p, without), log_shares(q, without)
        return float(np.exp(one) @ (one - two))

    each = np.array([divergence(batch) for batch in range(BATCHES)])
    value = BATCHES * divergence(None) - (BATCHES - 1) * float(each.mean())
    return value, float(jackknife_error(each))
