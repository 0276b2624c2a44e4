"""Estimate the joint probability of a set and of statements about its order, for large sets.

If all effects grow from zero to the effects of theta, log p changes from its value in a model
without effects to its value at theta. The derivative of log p along this path is a mean over
histories that are drawn given the statements (`drawn_histories.sample_histories` does the same
without statements).

The value without effects is estimated by building many orders of the set at the same time, item by
item (a particle filter). The next item is drawn from the items of the set that may come next, with
weights: the rate of the item times the probability of the statements that say that it came after
other items. The sum of these weights, divided by the rate of leaving the state, is a factor of the
weight of the order. From time to time, orders with small weights are replaced by copies of orders
with large weights. The mean weight is an unbiased estimate. Its error is estimated from independent
repeats. If this method were used for a theta with strong effects, the weights would vary too much.
Therefore it is used only at the start of the path.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import logsumexp

from sequela.likelihood.parameters import Parameters
from sequela.likelihood.stated_histories import STATED_CHAINS, StatedHistories
from sequela.observation import Exponential
from sequela.support.random import Purpose, stream
from sequela.support.threads import run_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.likelihood.partial import PartialSet

__all__ = ["log_p_with_statements"]

# Number of independent repeats, and number of orders that each of them builds at the same time.
_REPEATS = 16
_ORDERS = 2_000
# Number of points on the path from no effects to all effects, and number of histories per chain and
# point.
_NODES = 16
_DRAWS = 200


class _Statements(NamedTuple):
    """Statements as arrays (items, items): row b, column a is about "a came before b".

    ``must`` marks certain statements. ``late`` is the sum over the other statements about b of
    log(1 - p). ``gain`` is log(p) - log(1 - p). It is added if a is present when b arrives.
    """

    must: NDArray[np.float64]
    gain: NDArray[np.float64]
    late: NDArray[np.float64]


def log_p_with_statements(
    parameters: Parameters,
    known: PartialSet,
    key: tuple[int, tuple[int, ...]],
    n_threads: int,
) -> tuple[float, float]:
    """Return an estimate of log P(set, statements) of a complete sample, and its variance.

    `key` holds the seed and the index of the random streams.
    """
    log_p, variance = _without_effects(parameters, known, (key[0], (*key[1], 0)), n_threads)
    nodes, factors = np.polynomial.legendre.leggauss(_NODES)
    base = np.diag(np.diagonal(parameters.theta))
    effects = parameters.theta - base
    each = np.zeros(STATED_CHAINS)
    draws: StatedHistories | None = None
    for at, node in enumerate((nodes + 1.0) / 2.0):
        scaled = Parameters(base + node * effects, Exponential(parameters.stop_rate))
        index = (key[0], (*key[1], 1 + at))
        draws = StatedHistories.drawn(scaled, known, _DRAWS, index, n_threads, draws)
        each += factors[at] / 2.0 * draws.slopes(scaled, effects, n_threads).mean(axis=1)
    return log_p + float(each.mean()), variance + float(each.var(ddof=1)) / STATED_CHAINS


def _without_effects(
    parameters: Parameters,
    known: PartialSet,
    key: tuple[int, tuple[int, ...]],
    n_threads: int,
) -> tuple[float, float]:
    statements = _arrays(known)
    logs = np.diagonal(parameters.theta)
    stop_log = float(np.log(parameters.stop_rate))

    def one(repeat: int) -> float:
        rng = stream(key[0], Purpose.COMPLETIONS, *key[1], repeat)
        return _filtered(logs, stop_log, known.present, statements, rng)

    log_p = np.array(run_all([partial(one, repeat) for repeat in range(_REPEATS)], n_threads))
    top = float(log_p.max())
    each = np.exp(log_p - top)
    mean = float(each.mean())
    return top + float(np.log(mean)), float(each.var(ddof=1)) / _REPEATS / mean**2


def _arrays(known: PartialSet) -> _Statements:
    k = known.present.size
    place = {int(item): at for at, item in enumerate(known.present)}
    must, gain, late = np.zeros((k, k)), np.zeros((k, k)), np.zeros(k)
    for before, after, p in known.statements:
        a, b = place[before], place[after]
        if p == 1.0:
            must[b, a] = 1.0
        else:
            gain[b, a] += np.log(p) - np.log1p(-p)
            late[b] += np.log1p(-p)
    return _Statements(must, gain, late)


def _filtered(
    logs: NDArray[np.float64],
    stop_log: float,
    items: NDArray[np.int64],
    statements: _Statements,
    rng: np.random.Generator,
) -> float:
    """Return one estimate of log P(set, statements) for items with the log-rates `logs`."""
    rows = np.arange(_ORDERS)
    placed = np.zeros((_ORDERS, items.size))
    others = np.logaddexp.reduce([*np.delete(logs, items), stop_log])
    weight, total = np.zeros(_ORDERS), 0.0
    for _ in range(items.size):
        rates = np.where(placed > 0.0, -np.inf, logs[items])
        exits = np.logaddexp(logsumexp(rates, axis=1), others)
        steps = rates + placed @ statements.gain.T + statements.late
        steps[(1.0 - placed) @ statements.must.T > 0.0] = -np.inf
        weight += logsumexp(steps, axis=1) - exits
        # The largest sum of a logarithm and a Gumbel variate is a draw with these weights.
        chosen = np.argmax(steps + rng.gumbel(size=steps.shape), axis=1)
        placed[rows, chosen] = 1.0
        share = np.exp(weight - logsumexp(weight))
        if 1.0 / float(share @ share) < 0.5 * _ORDERS:
            total += float(logsumexp(weight)) - float(np.log(_ORDERS))
            # Systematic resampling: replace orders with small weights by copies of others.
            at = (rng.random() + rows) / _ORDERS
            kept = np.minimum(np.searchsorted(np.cumsum(share), at), _ORDERS - 1)
            placed, weight = placed[kept], np.zeros(_ORDERS)
    return total + float(logsumexp(weight) - np.log(_ORDERS) + stop_log - others)
