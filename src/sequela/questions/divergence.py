"""How far two models are apart: KL divergence of their marginal sequences over chosen items.

A marginal sequence is the order in which the chosen items arrived before the observation, all
other items unseen (Fig. 2 of the paper). Exact by a walk over all such sequences, with the hidden
items that act on chosen ones summed out on their lattice; else from simulated sequences.
"""

from __future__ import annotations

from math import perm
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.questions.arguments import as_model, find_items, rate_of
from sequela.questions.dependence import ancestors
from sequela.questions.precision import Estimate, until_precise
from sequela.simulation import simulate
from sequela.support.errors import BudgetError, InputError
from sequela.support.random import materialise_seed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from sequela.support.random import RandomState

__all__ = ["sequence_divergence", "sequence_probabilities"]

DEFAULT_DRAWS = 1_000_000
# Sequences times states of the hidden items that an exact answer may visit.
_MOST_WORK = 4e6
_MOST_CHOSEN = 7
_BATCHES = 20


def sequence_divergence(
    model: Any,
    other: Any,
    items: Iterable[Any] | None = None,
    *,
    method: str = "auto",
    draws: int | None = None,
    target_se: float | None = None,
    observation_rate: float | None = None,
    random_state: RandomState = None,
    n_threads: int | None = None,
) -> Estimate:
    """Return KL(model || other) between the marginal sequences of some items, in nats.

    Parameters
    ----------
    model, other : Model, fitted SetChain, or theta
        Two chains; `model` is the reference. Both must have the items.
    items : list of labels or None
        At most a dozen; None: those that both models have.
    method : {"auto", "exact", "simulation"}
        "auto" is exact for up to 7 items if few others act on them.
    draws : int or None
        Simulated sequences of a model that is not exact (default 1,000,000).
    target_se : float or None
        Instead of `draws`: the standard error that is wanted.
    observation_rate, random_state, n_threads
        As in `simulate`.

    Returns
    -------
    Estimate
        With its jackknife standard error where simulated; the jackknife also takes off most of
        the bias that counting has.

    Examples
    --------
    >>> import numpy as np, sequela
    >>> theta = np.array([[0.0, 4.0], [0.0, -4.0]])
    >>> print(sequela.sequence_divergence(theta, theta))
    0
    >>> print(sequela.sequence_divergence(theta, np.diag(np.diag(theta))))
    0.656489
    """
    one, two = as_model(model), as_model(other)
    if method not in ("auto", "exact", "simulation"):
        raise InputError(f"method is {method!r}; expected 'auto', 'exact' or 'simulation'")
    places = find_items(one, [x for x in one.items if x in two.items] if items is None else items)
    listed = [one.items[place] for place in places]
    chosen = (places, find_items(two, listed))
    rates = (rate_of(one, observation_rate), rate_of(two, observation_rate))
    if not 1 <= len(listed) <= 12:
        raise InputError(
            f"{len(listed)} items were chosen, or are in both models; expected 1 to 12, of which "
            "sequences can be counted"
        )
    thetas = (one.theta, two.theta)
    exact = [
        _log_probabilities(theta, places, rate)
        if method != "simulation" and _is_small(theta, places)
        else None
        for theta, places, rate in zip(thetas, chosen, rates, strict=True)
    ]
    p, q = exact
    if p is not None and q is not None:
        # Rounding may leave a difference of nothing below zero.
        return Estimate(max(_divergence(p, q), 0.0))
    if method == "exact":
        raise BudgetError(
            f"too many sequences of {len(listed)} items, or of hidden items that act on them; use "
            "method='auto', or fewer items"
        )
    seed = materialise_seed(random_state)
    streams = np.random.SeedSequence(seed).generate_state(2, np.uint64)

    def ask(size: int) -> Estimate:
        sides = [
            found if found is not None else _counted(theta, places, rate, size, int(own), n_threads)
            for theta, places, rate, found, own in zip(
                thetas, chosen, rates, exact, streams, strict=True
            )
        ]
        value, error = _jackknife(*sides)
        return Estimate(value, error, "simulation", size, seed)

    return until_precise(
        ask, lambda found: found.se, draws, target_se, default=DEFAULT_DRAWS, first=100_000
    )


def _is_small(theta: NDArray[np.float64], chosen: NDArray[np.int64]) -> bool:
    hidden = ancestors(theta, chosen).size - chosen.size
    count = sum(perm(chosen.size, k) for k in range(chosen.size + 1))
    return (
        chosen.size <= _MOST_CHOSEN and hidden <= 20 and count * (hidden + 1) * 2.0**hidden
        <= _MOST_WORK
    )  # fmt: skip


def sequence_probabilities(
    theta: NDArray[np.float64], chosen: NDArray[np.int64], observation_rate: float = 1.0
) -> dict[tuple[int, ...], float]:
    """Return the probability of every marginal sequence over `chosen`, exactly.

    Keys hold places in `chosen`.
    """
    found = _log_probabilities(theta, chosen, observation_rate)
    return {key: float(np.exp(log_p)) for key, log_p in found.items()}


def _log_probabilities(
    theta: NDArray[np.float64], chosen: NDArray[np.int64], observation_rate: float
) -> dict[tuple[int, ...], float]:
    """Return the logarithms of `sequence_probabilities`.

    For each beginning of a sequence a vector over the subsets X of the hidden items holds the
    probability of passing through it, divided by the rate out: the forward weights of the lattice,
    one beginning after the other. In logarithms throughout, for a sequence that is all but
    impossible in one model may be likely in the other.
    """
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
    from_hidden[:, chosen.size :][has] = -np.inf  # what is present does not arrive
    by_size = [np.nonzero(has.sum(axis=1) == size)[0] for size in range(h + 1)]
    log_observed = float(np.log(observation_rate))
    found: dict[tuple[int, ...], float] = {}

    def walk(beginning: tuple[int, ...], inflow: NDArray[np.float64]) -> None:
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
        found[beginning] = log_observed + float(np.logaddexp.reduce(weight))
        for c in range(chosen.size):
            if c not in beginning:
                walk((*beginning, c), weight + rates[:, c])

    start = np.full(1 << h, -np.inf)
    start[0] = 0.0
    walk((), start)
    return found


def _divergence(log_p: dict[tuple[int, ...], float], log_q: dict[tuple[int, ...], float]) -> float:
    return float(sum(np.exp(x) * (x - log_q[key]) for key, x in log_p.items()))


class _Counts:
    """Counts of marginal sequences, by batch."""

    def __init__(self, table: dict[tuple[int, ...], NDArray[np.float64]]) -> None:
        self.table = table
        self.total = np.sum(list(table.values()), axis=0)

    def probabilities(
        self, keys: list[tuple[int, ...]], without: int | None
    ) -> NDArray[np.float64]:
        """Return smoothed shares of `keys`, all batches or all but one."""
        each = np.array([self.table.get(key, np.zeros(_BATCHES)) for key in keys])
        counts, total = each.sum(axis=1), self.total.sum()
        if without is not None:
            counts, total = counts - each[:, without], total - self.total[without]
        shares: NDArray[np.float64] = (counts + 0.5) / (total + 0.5 * len(keys))
        return shares


def _counted(
    theta: NDArray[np.float64],
    chosen: NDArray[np.int64],
    rate: float,
    size: int,
    seed: int,
    n_threads: int | None,
) -> _Counts:
    drawn = simulate(theta, size, observation_rate=rate, random_state=seed, n_threads=n_threads)
    place = np.zeros(len(theta), dtype=np.int64)
    place[chosen] = np.arange(1, chosen.size + 1)
    kept = place[drawn.sequence]
    draw = np.repeat(np.arange(size), drawn.set_sizes)[kept > 0]
    kept = kept[kept > 0]
    # Horner's scheme: a sequence as a number with one digit for each arrival.
    counts = np.bincount(draw, minlength=size)
    position = np.arange(kept.size) - np.repeat(np.cumsum(counts) - counts, counts)
    radix = chosen.size + 1
    codes = np.zeros(size, dtype=np.int64)
    np.add.at(codes, draw, kept * radix**position)
    batch = np.arange(size) * _BATCHES // size
    distinct, which = np.unique(codes, return_inverse=True)
    table = np.zeros((distinct.size, _BATCHES))
    np.add.at(table, (which, batch), 1.0)
    return _Counts({_digits(int(c), radix): row for c, row in zip(distinct, table, strict=True)})


def _digits(code: int, radix: int) -> tuple[int, ...]:
    digits = []
    while code:
        code, digit = divmod(code, radix)
        digits.append(digit - 1)
    return tuple(digits)


def _jackknife(p: Any, q: Any) -> tuple[float, float]:
    """Return the divergence without most of the bias of counting, and its standard error."""
    keys = list(p.table if isinstance(p, _Counts) else p)
    if isinstance(p, _Counts) and isinstance(q, _Counts):
        keys = list(dict.fromkeys([*p.table, *q.table]))

    def log_shares(side: Any, without: int | None) -> NDArray[np.float64]:
        if isinstance(side, _Counts):
            return np.log(side.probabilities(keys, without))
        return np.array([side[key] for key in keys])

    def divergence(without: int | None) -> float:
        one, two = log_shares(p, without), log_shares(q, without)
        return float(np.exp(one) @ (one - two))

    whole = divergence(None)
    each = np.array([divergence(batch) for batch in range(_BATCHES)])
    value = _BATCHES * whole - (_BATCHES - 1) * float(each.mean())
    error = np.sqrt((_BATCHES - 1) / _BATCHES * np.sum((each - each.mean()) ** 2))
    return value, float(error)
