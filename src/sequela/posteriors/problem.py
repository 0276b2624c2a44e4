"""Data and prior in the form that the sampler of theta needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sequela.kernels.arguments import PosteriorState, PosteriorTarget, Trajectory
from sequela.kernels.posterior_sweep import COUNTS, advance, read_theta
from sequela.likelihood.distinct import DistinctSamples
from sequela.posteriors.partly_known import (
    known_together,
    list_histories,
    start_histories,
    summable_samples,
)
from sequela.posteriors.priors import prior_shape
from sequela.posteriors.shared_states import choose_largest_lattice, share_lattices
from sequela.support.errors import InputError
from sequela.support.jit import call

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.observation import Observation
    from sequela.posteriors.priors import Prior

__all__ = ["LARGEST_LATTICE", "Problem"]

# In weighted data, sets with more items than this have latent orders. A set with a latent order can
# only have the weight 1, so the limit is as large as possible without slow evaluations: a
# lattice of 10 items has 1,024 states.
LARGEST_LATTICE = 10
# Jumps are tried for at most _MOST_PAIRS pairs of items. The pair with the strongest association is
# listed _MOST_COPIES times.
_MOST_PAIRS = 2000
_MOST_COPIES = 60
# The coordinates of the interactions of a start are between -_START_LIMIT and _START_LIMIT. While a
# rate is too large or too small for the arithmetic of the kernels, these coordinates are multiplied
# by 0.8, at most _MOST_SHRINKS times.
_START_LIMIT = 2.0
_MOST_SHRINKS = 40


@dataclass(frozen=True)
class Problem:
    """The posterior to be sampled: samples, prior and observation, prepared for the kernels.

    Attributes
    ----------
    data : Dataset
        The samples.
    prior : Prior
        The prior of theta.
    observation : Observation
        How samples are observed.
    target : PosteriorTarget
        The posterior in the form that the kernels need. Its power is 1: it is not heated.
    pair_copies : arrays of int, (m, 2) and (m,)
        Pairs of items for jumps, and the number of copies of each. Pairs with a stronger
        association have more copies, so that they are tried more often.
    together : array of int, (n, n)
        Number of samples that are known to have both items.
    known : array of int, (n,)
        Number of samples in which the cell of each item is not missing.
    largest_lattice : int
        Complete samples with more items than this number have latent orders. Partly known samples
        with more present and missing items have latent histories. All samples with known orders,
        and samples with rare combinations of missing cells (see `summable_samples`), also have
        latent histories.
    """

    data: Dataset
    prior: Prior
    observation: Observation
    target: PosteriorTarget
    pair_copies: tuple[NDArray[np.int64], NDArray[np.int64]]
    together: NDArray[np.int64]
    known: NDArray[np.int64]
    largest_lattice: int

    @classmethod
    def of(
        cls, data: Dataset, prior: Prior, observation: Observation, largest_lattice: int | None
    ) -> Problem:
        """Prepare data and prior for the kernels.

        If `largest_lattice` is None, it is chosen so that an evaluation is fast.
        """
        stop_rate = observation.constant_rate
        if stop_rate is None:
            raise InputError(
                f"the posterior of theta is not available for an observation of kind "
                f"{observation.kind!r}; use an observation with a constant rate, such as "
                "sequela.Exponential()"
            )
        distinct = DistinctSamples.of(data, partial=True)
        summable = summable_samples(distinct, data.n_items)
        if largest_lattice is None and data.weights is None:
            kept = np.nonzero(~distinct.partial | summable)[0]
            largest_lattice = choose_largest_lattice(
                distinct.as_partial(s).on_lattice for s in kept.tolist()
            )
        elif largest_lattice is None:
            largest_lattice = LARGEST_LATTICE
        sizes = np.array(
            [distinct.as_partial(s).on_lattice.size for s in range(len(distinct))], dtype=np.int64
        )
        summed = summable & (sizes <= largest_lattice)
        latent = distinct.partial & ~summed
        _refuse_weighted_orders(data, latent[distinct.inverse], largest_lattice)
        if distinct.timed.any():
            row = int(distinct.first[np.nonzero(distinct.timed)[0][0]])
            raise InputError(
                f"sample {data.samples[row]!r} (row {row}) has a known observation time; the "
                "posterior of theta does not support known times. To sample it without the times, "
                "use data.without_times()"
            )
        is_large = (sizes > largest_lattice) & ~distinct.partial
        complete = np.nonzero((sizes <= largest_lattice) & ~distinct.partial)[0]
        large = np.nonzero(is_large[distinct.inverse])[0]
        sets = [distinct.items(int(s)) for s in distinct.inverse[large]]
        start = np.zeros(len(sets) + 1, dtype=np.int64)
        np.cumsum([items.size for items in sets], out=start[1:])
        partly = distinct.inverse[latent[distinct.inverse]]
        histories, more = list_histories(
            [distinct.as_partial(int(s)) for s in partly], int(start[-1])
        )
        counts = distinct.weights * data.total_weight
        target = PosteriorTarget(
            sets=(distinct.on_whole_lattices(summed) if summed.any() else distinct).sets,
            lattice=np.nonzero((sizes <= largest_lattice) & ~latent)[0],
            shared=share_lattices(
                map(distinct.items, complete.tolist()),
                counts[complete],
                data.n_items,
                [(distinct.as_partial(int(s)), float(counts[s])) for s in np.nonzero(summed)[0]],
            ),
            large_start=start,
            large_items=np.concatenate([*sets, *more, np.empty(0, dtype=np.int64)]).astype(
                np.int64
            ),
            total=data.total_weight,
            power=1.0,
            stop_rate=float(stop_rate),
            prior=prior_shape(prior),
            histories=histories,
        )
        together, with_known, known = known_together(data)
        return cls(
            data=data,
            prior=prior,
            observation=observation,
            target=target,
            pair_copies=_pair_copies(together, with_known, known),
            together=together.astype(np.int64),
            known=np.diagonal(known).astype(np.int64),
            largest_lattice=largest_lattice,
        )

    @property
    def n(self) -> int:
        """Number of items."""
        return self.data.n_items

    @property
    def pairs(self) -> NDArray[np.int64]:
        """The pairs of items, (m, 2), for which a sample is known to have both items."""
        return np.argwhere(np.triu(self.together, 1) > 0).astype(np.int64)

    @property
    def jump_pairs(self) -> NDArray[np.int64]:
        """Pairs of items for jumps, each repeated as often as `pair_copies` says."""
        return np.repeat(*self.pair_copies, axis=0)

    def theta(self, state: PosteriorState) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return theta at a state, and the derivative of each entry with respect to `state.z`."""
        theta, slope = np.empty((2, self.n, self.n))
        call(read_theta, theta, slope, state.z, state.scale, self.target.prior)
        return theta, slope

    def scale(self, state: PosteriorState) -> float:
        """Return the scale of the interactions at a state."""
        prior = self.target.prior
        return float(np.exp(prior.log_median + prior.log_spread * state.scale[0]))

    def start(self, rng: np.random.Generator) -> PosteriorState:
        """Draw a random state at which a chain starts.

        Interactions are drawn from the prior. Base rates are drawn around the rates at which
        independent items would have the observed frequencies.
        """
        prior = self.target.prior
        n = self.n
        z = np.clip(rng.standard_normal((n, n)), -_START_LIMIT, _START_LIMIT)
        frequency = (np.diagonal(self.together) + 0.5) / (self.known + 1.0)
        odds = np.log(frequency / (1.0 - frequency)) + np.log(self.target.stop_rate)
        base = (odds - prior.base_mean) / prior.base_sd
        np.fill_diagonal(z, base + rng.standard_normal(n) / prior.base_sd)
        orders = [
            rng.permutation(self.target.large_items[first:last])
            for first, last in zip(
                self.target.large_start[:-1], self.target.large_start[1:], strict=True
            )
        ]
        orders += start_histories(self.target, rng)
        state = PosteriorState(
            z=z,
            scale=np.zeros(1),
            orders=np.concatenate([*orders, np.empty(0, dtype=np.int64)]).astype(np.int64),
            values=np.zeros(2),
        )
        off = ~np.eye(n, dtype=bool)
        for _ in range(_MOST_SHRINKS):
            if self._in_range(state, rng):
                return state
            state.z[off] *= 0.8
        raise InputError(
            "no starting point was found, because some rates are always too large or too small to "
            f"compute with; use a prior with a smaller scale than {self.prior!r}"
        )

    def _in_range(self, state: PosteriorState, rng: np.random.Generator) -> bool:
        """Evaluate a state; return whether no rate is too large or too small to compute with."""
        size = self.n**2 + 1
        none, rounded = np.zeros((1, size)), np.zeros((1, size), dtype=np.float32)
        nowhere = Trajectory(1.0, 1, 1, np.zeros(size), none, np.zeros(1), rounded)
        no_pairs = np.empty((0, 2), dtype=np.int64)
        counts, force = np.zeros(len(COUNTS)), np.empty(0)
        return bool(call(advance, state, self.target, nowhere, no_pairs, 0, 0, counts, force, rng))


def _refuse_weighted_orders(data: Dataset, latent: NDArray[np.bool_], largest_lattice: int) -> None:
    """Raise an error if a sample with a latent order or history has a weight other than 1.

    A weight of 2 stands for two samples. But each of them has its own order, and the sampler keeps
    only one latent order (or history) per row. So such a sample must be repeated instead.
    """
    if data.weights is None:
        return
    rows = np.nonzero(latent & (data.weights != 1.0))[0]
    if rows.size:
        raise InputError(
            f"sample {data.samples[rows[0]]!r} (row {rows[0]}) has the weight "
            f"{data.weights[rows[0]]:g}; the posterior of theta supports only the weight 1 for "
            f"samples with known orders, with more than {largest_lattice} present and missing "
            "items, or with a rare combination of missing cells. Leave such samples out. If their "
            "weights are whole numbers, you can repeat their rows instead"
        )
    rows = np.nonzero((data.set_sizes > largest_lattice) & (data.weights != 1.0))[0]
    if rows.size:
        raise InputError(
            f"sample {data.samples[rows[0]]!r} (row {rows[0]}) has {data.set_sizes[rows[0]]} items "
            f"and the weight {data.weights[rows[0]]:g}; the posterior of theta supports only the "
            f"weight 1 for sets of more than {largest_lattice} items. Leave such samples out. If "
            "their weights are whole numbers, you can repeat their rows instead"
        )


def _pair_copies(
    together: NDArray[np.float64], with_known: NDArray[np.float64], known: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of items that occur together, and how often each is listed for jumps.

    Two items that depend on each other can have two plausible orders. So jumps of a pair are tried
    more often if the likelihood-ratio statistic of its 2 x 2 table is larger. The table of a pair
    counts only the samples in which both cells are known. The arguments are the three arrays of
    `known_together`.
    """
    first, second = np.nonzero(np.triu(together, 1) > 0)
    if not first.size:
        return np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.int64)
    total = known[first, second]
    one, two = with_known[first, second], with_known[second, first]
    both = together[first, second]
    table = np.stack([both, one - both, two - both, total - one - two + both])
    share_one, share_two = one / total, two / total
    expected = total * np.stack(
        [
            share_one * share_two,
            share_one * (1 - share_two),
            (1 - share_one) * share_two,
            (1 - share_one) * (1 - share_two),
        ]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(table > 0.0, table * np.log(table / expected), 0.0)
    statistic = np.maximum(2.0 * terms.sum(axis=0), 0.0)
    kept = np.argsort(-statistic, kind="stable")[:_MOST_PAIRS]
    weight = 1.0 + np.minimum(statistic[kept], 100.0)
    copies = np.maximum(1, np.round(_MOST_COPIES * weight / weight.max())).astype(np.int64)
    pairs = np.stack([first[kept], second[kept]], axis=1).astype(np.int64)
    return pairs, copies
