"""Slow reference functions for the sampler of theta, and helpers that tests share."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import scipy.optimize
import scipy.special
import scipy.stats

import reference as ref
from likelihood import partly_known
from sequela.kernels.arguments import PosteriorState, PosteriorTarget, SetList, Trajectory
from sequela.kernels.posterior_sweep import COUNTS, advance, read_theta
from sequela.kernels.stretched_coordinates import BEND
from sequela.likelihood.partial import PartialSet
from sequela.posteriors.partly_known import list_histories
from sequela.posteriors.priors import Laplace, LearnedScale, StudentT, prior_shape
from sequela.posteriors.shared_states import share_lattices
from sequela.support.jit import call

shape_of = functools.cache(prior_shape)
NO_PAIRS = np.empty((0, 2), dtype=np.int64)
NOTHING = np.empty(0)


# --- Priors ---------------------------------------------------------------------------------------


def shape_distribution(prior):
    """Return the prior distribution of an interaction at scale 1, as an object of SciPy."""
    if isinstance(prior, Laplace):
        return scipy.stats.laplace()
    if isinstance(prior, StudentT):
        return scipy.stats.t(prior.df)
    return scipy.stats.norm()


def shape_quantile(prior, z):
    """Return h(z), the quantile of an interaction at scale 1, by SciPy.

    The probability is counted from the nearer tail, so that no digits are lost.
    """
    z = np.asarray(z, dtype=float)
    upper = shape_distribution(prior).isf(scipy.special.ndtr(-np.abs(z)))
    return np.sign(z) * upper


def scale_of(prior, z):
    """Return the scale that belongs to the standard normal coordinate z."""
    if isinstance(prior.scale, LearnedScale):
        return prior.scale.median * np.exp(prior.scale.spread * np.asarray(z))
    return np.full(np.shape(z), prior.scale)


def theta_of(prior, z, scale_z=0.0):
    """Return theta at the coordinates z of shape (..., n, n) and of the scale of shape (...)."""
    theta = np.asarray(scale_of(prior, scale_z))[..., None, None] * shape_quantile(prior, z)
    diagonal = np.arange(z.shape[-1])
    rates = prior.base_rates
    theta[..., diagonal, diagonal] = rates.mean + rates.sd * z[..., diagonal, diagonal]
    return theta


# --- Two items ------------------------------------------------------------------------------------


def two_item_sets(theta, stop_rate=1.0):
    """Return P of nothing, 1 only, 2 only, 1 then 2, 2 then 1 for theta (..., 2, 2), eq. (6)."""
    first, second = np.exp(theta[..., 0, 0]), np.exp(theta[..., 1, 1])
    then_second = second * np.exp(theta[..., 0, 1])
    then_first = first * np.exp(theta[..., 1, 0])
    out = first + second + stop_rate
    return np.stack(
        [
            stop_rate / out,
            first / out * stop_rate / (then_second + stop_rate),
            second / out * stop_rate / (then_first + stop_rate),
            first / out * then_second / (then_second + stop_rate),
            second / out * then_first / (then_first + stop_rate),
        ],
        axis=-1,
    )


def two_item_posterior(prior, counts, stop_rate=1.0, log_points=18):
    """Return quasi-random draws of the prior of two items, with their weights.

    These are theta, the coordinate of the scale, weights and log-likelihoods. `counts` are the
    numbers of samples with nothing, 1 only, 2 only, and both. The weights are normalised
    likelihoods, so weighted means are posterior means. As in the sampler, the likelihood is 0 if an
    entry of theta is 40 or more.
    """
    points = scipy.stats.qmc.Sobol(5, rng=np.random.default_rng(5)).random_base2(log_points)
    z = scipy.special.ndtri(np.clip(points, 1e-12, 1 - 1e-12))
    theta = theta_of(prior, z[:, :4].reshape(-1, 2, 2), z[:, 4])
    shown = np.where(theta < 40.0, theta, 0.0)
    p = two_item_sets(shown, stop_rate)
    p = np.stack([p[:, 0], p[:, 1], p[:, 2], p[:, 3] + p[:, 4]], axis=-1)
    log_likelihood = np.log(p) @ np.asarray(counts, dtype=float)
    log_likelihood[(theta >= 40.0).any(axis=(1, 2))] = -np.inf
    weights = np.exp(log_likelihood - log_likelihood.max())
    return theta, z[:, 4], weights / weights.sum(), log_likelihood


def two_item_counts(data):
    """Return the numbers of samples with nothing, 1 only, 2 only, and both."""
    which = data.values.astype(int) @ [1, 2]
    return np.bincount(which, minlength=4)


# --- Data -----------------------------------------------------------------------------------------


def simulated_orders(theta, rng, samples, stop_rate=1.0):
    """Return the items of simulated samples in order of arrival, by the corrected Algorithm 1."""
    return [ref.simulate_sequence(theta, rng, stop_rate)[1] for _ in range(samples)]


def _lattice_sets(sets, largest_lattice):
    """Return the sets that are summed on lattices, and the count 1 for each."""
    chosen = [items for items in sets if len(items) <= largest_lattice]
    return chosen, [1.0] * len(chosen)


def target_of(orders, prior, n, largest_lattice=12, stop_rate=1.0):
    """Return the target for samples with known orders, and the latent orders of large samples.

    Large samples have more than `largest_lattice` items. Each of the N samples is a separate set of
    weight 1 / N; equal sets are not merged here.
    """
    sets = [sorted(order) for order in orders]
    large = [order for order in orders if len(order) > largest_lattice]
    together = [item for items in sets for item in items]
    target = PosteriorTarget(
        sets=SetList(
            start=np.cumsum([0, *map(len, sets)]),
            items=np.array(together, dtype=np.int64),
            weights=np.full(len(sets), 1.0 / max(len(sets), 1)),
        ),
        lattice=np.array(
            [s for s, items in enumerate(sets) if len(items) <= largest_lattice], dtype=np.int64
        ),
        shared=share_lattices(*_lattice_sets(sets, largest_lattice), n),
        large_start=np.cumsum([0, *map(len, large)]),
        large_items=np.array([i for order in large for i in sorted(order)], dtype=np.int64),
        total=float(len(sets)),
        power=1.0,
        stop_rate=float(stop_rate),
        prior=shape_of(prior),
    )
    return target, np.array([i for order in large for i in order], dtype=np.int64)


# --- Chains ---------------------------------------------------------------------------------------


def state_at(z, scale=0.0, orders=()):
    """Return a state of a chain; its log-likelihoods (`values`) are set by `advance`."""
    return PosteriorState(
        z=np.array(z, dtype=float),
        scale=np.array([scale], dtype=float),
        orders=np.array(orders, dtype=np.int64),
        values=np.zeros(2),
    )


def unstretched_place(q, n):
    """Return the coordinates z of theta at stretched coordinates, and the log of dz/dy.

    q has the stretched coordinates of theta and the coordinate of the scale. The equation
    y = z sqrt(1 + (z / b)^2) is solved by bisection, and dz/dy is a difference of solutions.
    """

    def solved(y):
        far = 1.0 + abs(y)
        return scipy.optimize.brentq(
            lambda z: z * np.sqrt(1.0 + (z / BEND) ** 2) - y, -far, far, xtol=1e-14, rtol=1e-14
        )

    z, log_rise = q[: n * n].reshape(n, n).copy(), 0.0
    for i, j in zip(*np.nonzero(~np.eye(n, dtype=bool)), strict=True):
        y, h = z[i, j], 1e-4
        log_rise += np.log((solved(y + h) - solved(y - h)) / (2.0 * h))
        z[i, j] = solved(y)
    return z, log_rise


def trajectory(n, step, most_steps=6, rng=None, *, learned=False):
    """Return trajectories with the metric of the prior or, with `rng`, a random metric.

    Directions of a random metric include the scale only if it is learned, because trajectories do
    not move a fixed scale.
    """
    directions, shrink = np.zeros((n + 1, n * n + 1)), np.zeros(n + 1)
    if rng is not None:
        size = n * n + learned
        directions[:, :size] = scipy.stats.ortho_group(size, seed=rng).rvs()[: n + 1]
        shrink = rng.random(n + 1)
    centre = np.zeros(n * n + 1)
    if rng is not None:
        centre[:size] = 0.5 * rng.standard_normal(size)
    rounded = directions.astype(np.float32)
    return Trajectory(step, 1, most_steps, centre, directions, shrink, rounded)


def sweep(state, target, how, pairs=NO_PAIRS, *, jumps=0, sweeps=1, force=NOTHING, rng=None):
    """Advance a state in place; return how many moves of each kind were tried and accepted.

    `pairs` has the pairs of items for jumps and swaps.
    """
    counts = np.zeros(len(COUNTS))
    assert call(advance, state, target, how, pairs, jumps, sweeps, counts, force, rng)
    return dict(zip(COUNTS, counts, strict=True))


def read(state, target):
    """Return theta at a state, its derivative by z, and whether theta is in range."""
    theta, slope = np.empty((2, *state.z.shape))
    good = call(read_theta, theta, slope, state.z, state.scale, target.prior)
    return theta, slope, good


def batch_mean(draws, batches=100):
    """Return the mean of draws (draws, chains, ...), and its standard error from batch means."""
    length = len(draws) * draws.shape[1] // batches
    rows = np.moveaxis(draws, 1, 0).reshape(-1, *draws.shape[2:])
    rows = rows[: length * batches].reshape(batches, length, *draws.shape[2:])
    means = rows.mean(axis=1)
    return means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(batches)


# --- Partly known samples -------------------------------------------------------------------------


def with_histories(target, samples):
    """Return the target with latent histories of partly known samples (PartialSet) as well."""
    histories, items = list_histories(samples, len(target.large_items))
    together = [target.large_items, *items]
    return target._replace(large_items=np.concatenate(together), histories=histories)


def with_groups(target, samples, n):
    """Return the target with sums over the missing cells of samples (PartialSet)."""
    groups = [(known, 1.0) for known in samples]
    return target._replace(shared=share_lattices([], [], n, groups))


def padded_histories(orders, samples):
    """Return histories in the layout of a state: -1 after the last item of each one."""
    rows = [
        [*order, *[-1] * (known.on_lattice.size - len(order))]
        for order, known in zip(orders, samples, strict=True)
    ]
    return np.array([item for row in rows for item in row], dtype=np.int64)


def simulated_knowledge(order, n, rng, missing=0.3, stated=0.4):
    """Return what is known about a sample with this order: a PartialSet.

    Cells are missing at random. Of some pairs of known items, the order is stated: with certainty,
    or right with the probability 0.8. A wrong statement has the probability 0.2.
    """
    hidden = rng.random(n) < missing
    present = np.array(sorted(i for i in order if not hidden[i]), dtype=np.int64)
    place = {item: at for at, item in enumerate(order)}
    statements = []
    for a, b in itertools.combinations(present.tolist(), 2):
        if rng.random() >= stated:
            continue
        first, second = (a, b) if place[a] < place[b] else (b, a)
        right = 1.0 if rng.random() < 0.4 else 0.8
        if rng.random() >= right:
            first, second = second, first
        statements.append((first, second, right))
    return PartialSet(present, np.flatnonzero(hidden).astype(np.int64), tuple(statements))


def sequence_table(theta, stop_rate=1.0):
    """Return all sequences of n items, and their probabilities for theta (..., n, n), eq. (6)."""
    n = theta.shape[-1]
    found = {(): np.ones(theta.shape[:-2])}
    for size in range(n):
        for sequence in [each for each in found if len(each) == size]:
            rates = _rates(theta, sequence)
            total = stop_rate + sum(rates.values())
            for item, rate in rates.items():
                found[(*sequence, item)] = found[sequence] * rate / total
    for sequence in list(found):
        found[sequence] = (
            found[sequence] * stop_rate / (stop_rate + sum(_rates(theta, sequence).values()))
        )
    return list(found), np.stack(list(found.values()), axis=-1)


def _rates(theta, sequence):
    """Return the rates of all absent items, for theta (..., n, n)."""
    absent = [j for j in range(theta.shape[-1]) if j not in sequence]
    return {j: np.exp(theta[..., j, j] + sum(theta[..., i, j] for i in sequence)) for j in absent}


def possible_shares(sequences, known):
    """Return for each sequence the probability of what is known about a sample (PartialSet)."""
    present, missing = set(known.present.tolist()), set(known.missing.tolist())
    return np.array(
        [
            partly_known.report(sequence, known.statements)
            if present <= set(sequence) <= present | missing
            else 0.0
            for sequence in sequences
        ]
    )
