"""Draw histories of samples with missing cells and too many items for a lattice.

A draw is an order of a completed set. Its probability and gradient are simple products and sums, so
sets may have any size. In comparison with `completions` the error is larger, because orders are
drawn as well.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sequela.kernels.histories import draw_histories, weigh_histories
from sequela.likelihood.completions import independent_log_p
from sequela.likelihood.parameters import Parameters
from sequela.support.errors import InputError
from sequela.support.jit import call
from sequela.support.random import Purpose, stream
from sequela.support.threads import run_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sequela.likelihood.partial import PartialSet
    from sequela.observation import Observation
    from sequela.settings import Settings

__all__ = ["DrawnHistories", "sample_histories"]

_CHAINS = 4
_FIRST_BURN_IN = 5
_BURN_IN = 1
_VALUE_DRAWS = 16
_VALUE_NODES = 12


class _History(NamedTuple):
    """The current states of the chains of one sample, and their draws."""

    states: NDArray[np.int64]
    sizes: NDArray[np.int64]
    kept: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def weigh(
        self, parameters: Parameters, shares: NDArray[np.float64] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the log-probabilities (chains, draws), and the gradient if shares are given."""
        chains, draws, n = self.kept.shape
        log_p = np.empty(chains * draws)
        gradient = np.zeros((n, n))
        given = np.empty(0) if shares is None else np.ascontiguousarray(shares.ravel())
        call(
            weigh_histories, gradient, log_p, given, self.kept.reshape(-1, n),
            self.lengths.ravel(), parameters.tables,
        )  # fmt: skip
        return log_p.reshape(chains, draws), gradient


def _move(
    parameters: Parameters,
    known: PartialSet,
    before: _History | None,
    kept: int,
    key: tuple[int, tuple[int, ...]],
) -> _History:
    """Advance the chains of a sample; return their states and the new draws."""
    rng = stream(key[0], Purpose.COMPLETIONS, *key[1])
    n = parameters.n
    if before is None:
        states = np.zeros((_CHAINS, n), dtype=np.int64)
        for chain in range(_CHAINS):
            states[chain, : known.present.size] = rng.permutation(known.present)
        sizes = np.full(_CHAINS, known.present.size, dtype=np.int64)
    else:
        states, sizes = before.states.copy(), before.sizes.copy()
    found = _History(
        states, sizes, np.zeros((_CHAINS, kept, n), dtype=np.int64),
        np.zeros((_CHAINS, kept), dtype=np.int64),
    )  # fmt: skip
    burn_in = _FIRST_BURN_IN if before is None else _BURN_IN
    if not call(
        draw_histories, found.kept, found.lengths, states, sizes, known.present, known.missing,
        parameters.tables, burn_in, rng,
    ):  # fmt: skip
        raise InputError(
            f"the rates of a sample of {known.present.size} items are beyond the range of a "
            "double; use a theta with smaller entries"
        )
    return found


class DrawnHistories:
    """The samples of a fit whose histories are drawn, and their likelihood at any theta.

    Parameters
    ----------
    partials : list of PartialSet
        The samples.
    weights : array
        The share of each sample in the data.
    n : int
        Number of items.

    Attributes
    ----------
    effective : float
        The effective share of the draws at the last evaluation: a mean over the samples.
    """

    def __init__(
        self, partials: Sequence[PartialSet], weights: NDArray[np.float64], n: int
    ) -> None:
        self.partials = list(partials)
        self.weights = weights
        self.n = n
        self.effective = 1.0
        self._histories: list[_History] = []
        self._drawn: list[NDArray[np.float64]] = []
        self._offset: NDArray[np.float64] = np.empty(0)

    @property
    def most_kept(self) -> int:
        """The largest number of draws per chain with which an evaluation is fast enough."""
        return int(np.clip(64 * 100 / max(len(self.partials), 1), 4, 64))

    def draw(
        self, parameters: Parameters, kept: int, settings: Settings, index: tuple[int, ...]
    ) -> None:
        """Draw new histories at theta; they replace the old ones."""
        old: list[_History | None] = list(self._histories)
        if not old:
            old = [None] * len(self.partials)
            self._offset = np.array([independent_log_p(parameters, k) for k in self.partials])
        else:
            self._offset = np.array([w[1] for w in self._weigh(parameters, settings.threads)])
        self._histories = run_all(
            [
                partial(_move, parameters, known, before, kept, (settings.seed, (5, *index, s)))
                for s, (known, before) in enumerate(zip(self.partials, old, strict=True))
            ],
            settings.threads,
        )
        self._drawn = [history.weigh(parameters)[0] for history in self._histories]

    def _weigh(
        self, parameters: Parameters, n_threads: int
    ) -> list[tuple[NDArray[np.float64], float, float]]:
        """Return (shares of the draws, log p, effective share) for every sample."""

        def one(s: int) -> tuple[NDArray[np.float64], float, float]:
            log_ratio = self._histories[s].weigh(parameters)[0] - self._drawn[s]
            top = float(log_ratio.max())
            weight = np.exp(log_ratio - top)
            shares = weight / weight.sum()
            effective = float(1.0 / np.sum(shares**2) / shares.size)
            return shares, float(self._offset[s] + top + np.log(weight.mean())), effective

        return run_all([partial(one, s) for s in range(len(self.partials))], n_threads)

    def evaluate(self, parameters: Parameters, n_threads: int) -> tuple[float, NDArray[np.float64]]:
        """Return the weighted sum of log p and its gradient; NaN if rates are out of range."""
        with np.errstate(invalid="ignore"):
            weighed = self._weigh(parameters, n_threads)
        value = float(self.weights @ np.array([log_p for _, log_p, _ in weighed]))
        gradient = np.zeros((self.n, self.n))
        if not np.isfinite(value):
            return value, gradient
        self.effective = float(
            self.weights @ np.array([e for _, _, e in weighed]) / self.weights.sum()
        )
        parts = run_all(
            [
                partial(history.weigh, parameters, w * shares)
                for history, w, (shares, _, _) in zip(
                    self._histories, self.weights, weighed, strict=True
                )
            ],
            n_threads,
        )
        for _, part in parts:
            gradient += part
        return value, gradient

    def gradient_variance(self, parameters: Parameters, n_threads: int) -> NDArray[np.float64]:
        """Return the variance of the gradient, at the theta at which histories were drawn."""
        return _over_chains(parameters, self._histories, self.weights, n_threads)[1]

    def arrays(self) -> dict[str, Any]:
        """Return the arrays that a checkpoint needs to continue with the same draws."""
        state: dict[str, Any] = {"history_offset": self._offset}
        for s, history in enumerate(self._histories):
            state |= {f"history_{s}_{k}": v for k, v in history._asdict().items()}
            state[f"history_{s}_drawn"] = self._drawn[s]
        return state if self._histories else {}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the `arrays` of an earlier run."""
        if "history_offset" not in state:
            return
        self._offset = state["history_offset"]
        self._histories = [
            _History(*(state[f"history_{s}_{k}"] for k in _History._fields))
            for s in range(len(self.partials))
        ]
        self._drawn = [state[f"history_{s}_drawn"] for s in range(len(self.partials))]


def _over_chains(
    parameters: Parameters,
    histories: Sequence[_History],
    weights: NDArray[np.float64],
    n_threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weighted gradient, averaged over the chains, and its variance."""

    def one(chain: int) -> NDArray[np.float64]:
        total = np.zeros((parameters.n, parameters.n))
        for history, w in zip(histories, weights, strict=True):
            shares = np.zeros(history.lengths.shape)
            shares[chain] = w / history.lengths.shape[1]
            total += history.weigh(parameters, shares)[1]
        return total

    stack = np.stack(run_all([partial(one, c) for c in range(_CHAINS)], n_threads))
    return stack.mean(axis=0), stack.var(axis=0, ddof=1) / _CHAINS


def sample_histories(
    parameters: Parameters,
    partials: Sequence[PartialSet],
    weights: NDArray[np.float64],
    observation: Observation,
    settings: Settings,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return log p of samples, their variances, the weighted gradient, and its variance.

    Without effects log p is known. Its derivative along the path on which all effects grow from
    zero to theta is a mean over drawn histories. The value is the integral along this path.
    """
    nodes, factors = np.polynomial.legendre.leggauss(_VALUE_NODES)
    log_p = np.array([independent_log_p(parameters, known) for known in partials])
    each = np.zeros((len(partials), _CHAINS))
    theta = parameters.theta
    effects = theta - np.diag(np.diagonal(theta))
    histories: list[_History] | None = None
    threads = settings.threads
    for at, point in enumerate([*((nodes + 1.0) / 2.0), 1.0]):
        scaled = Parameters(np.diag(np.diagonal(theta)) + point * effects, observation)
        histories = run_all(
            [
                partial(
                    _move, scaled, known, None if histories is None else histories[s],
                    _VALUE_DRAWS, (settings.seed, (6, at, s)),
                )
                for s, known in enumerate(partials)
            ],
            threads,
        )  # fmt: skip
        if at == nodes.size:
            break
        for s, history in enumerate(histories):
            for chain in range(_CHAINS):
                shares = np.zeros(history.lengths.shape)
                shares[chain] = 1.0 / _VALUE_DRAWS
                slope = history.weigh(scaled, shares)[1]
                each[s, chain] += factors[at] / 2.0 * float(np.sum(slope * effects))
    assert histories is not None  # noqa: S101 - there are nodes
    gradient, variance = _over_chains(parameters, histories, weights, threads)
    return log_p + each.mean(axis=1), each.var(axis=1, ddof=1) / _CHAINS, gradient, variance
