"""Every move leaves its target distribution unchanged.

The check needs no converged chain. If theta is drawn from the prior, data from the model at theta,
and latent orders with the data, then theta is a draw of its posterior given these data. If the
moves leave the posterior invariant, theta stays such a draw. So over many such data sets, theta has
the distribution of the prior. In the coordinates z, this is a standard normal distribution for
every prior.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import reference as ref
from posteriors import twins
from sequela.posteriors import BaseRates, Laplace, LearnedScale, Normal, StudentT

N = 3
PAIRS = np.array([[0, 1], [0, 2], [1, 2]])
BASE = BaseRates(-0.5, 1.0)
FIXED = [Laplace(0.7, BASE), StudentT(3.0, 0.6, BASE), Normal(0.9, BASE)]
LEARNED = [
    Laplace(LearnedScale(0.5, 0.6), BASE),
    StudentT(4.0, LearnedScale(0.4, 0.6), BASE),
]
# Seeds are fixed. With a random seed, a correct program would fail each check with at most this
# probability.
FALSE_ALARM = 1e-4

# The step of the trajectories, and the number of jumps per sweep. With step 0, trajectories do not
# move. Rows of theta are shifted in every sweep.
MOVES = {"shifts": (0.0, 0), "trajectories": (0.45, 0), "jumps": (0.0, 3), "all": (0.45, 3)}


def chains_from_the_prior(prior, moves, *, chains, samples=0, largest=12, stop_rate=1.0):
    """Start chains at draws of the prior, and advance each by 12 sweeps.

    Return the final coordinates of theta and scale, and how many moves were tried and accepted.
    """
    rng = np.random.default_rng(11)
    learned = isinstance(prior.scale, LearnedScale)
    step, jumps = MOVES[moves]
    how = twins.trajectory(N, step, rng=np.random.default_rng(2), learned=learned)
    ends, counts = [], []
    while len(ends) < chains:
        state = twins.state_at(rng.standard_normal((N, N)), rng.standard_normal() * learned)
        nothing, _ = twins.target_of([], prior, N)
        theta, _, good = twins.read(state, nothing)
        if not good:  # fewer than 1 of 1,000 draws have a log-rate above the limit of 40
            continue
        orders = twins.simulated_orders(theta, rng, samples, stop_rate)
        target, latent = twins.target_of(orders, prior, N, largest, stop_rate)
        state = twins.state_at(state.z, state.scale[0], latent)
        counts.append(twins.sweep(state, target, how, PAIRS, jumps=jumps, sweeps=12, rng=rng))
        ends.append(np.append(state.z.ravel(), state.scale))
    total = {name: sum(count[name] for count in counts) for name in counts[0]}
    return np.array(ends), total


def assert_standard_normal(ends, *, learned):
    """Test each kind of coordinate by Kolmogorov-Smirnov, then means, squares and products."""
    diagonal = np.arange(N) * (N + 1)
    kinds = {"base rates": diagonal, "interactions": np.delete(np.arange(N * N), diagonal)}
    if learned:
        kinds["scale"] = np.array([N * N])
    for kind, columns in kinds.items():
        p = scipy.stats.kstest(ends[:, columns].ravel(), "norm").pvalue
        assert p > FALSE_ALARM / 6, f"{kind}: {p:.2g}"
    z = ends if learned else ends[:, :-1]
    moments = z.T @ z / len(z)
    se = np.sqrt(np.where(np.eye(z.shape[1]) > 0, 2.0, 1.0) / len(z))
    errors = np.append(
        ((moments - np.eye(z.shape[1])) / se).ravel(), z.mean(axis=0) * len(z) ** 0.5
    )
    limit = scipy.stats.norm.isf(FALSE_ALARM / 4 / errors.size)
    assert np.abs(errors).max() < limit


def assert_moves(counts, moves, *, learned, with_data=True):
    """Check that moves of each kind are accepted and rejected.

    If no move were accepted, the other checks could not fail. Without data, all swaps are accepted.
    """
    shares = [("shifts tried", "shifts accepted")]
    if moves in ("trajectories", "all"):
        shares.append(("trajectories", "acceptance"))
    if moves in ("jumps", "all"):
        shares.append(("jumps tried", "jumps accepted"))
        if with_data:
            shares.append(("swaps tried", "swaps accepted"))
        else:
            assert counts["swaps accepted"] == counts["swaps tried"] > 0
    if learned:
        shares.append(("scales tried", "scales accepted"))
    for tried, accepted in shares:
        assert 0.15 < counts[accepted] / counts[tried] < 0.995, accepted


@pytest.mark.parametrize("prior", [*FIXED, *LEARNED], ids=str)
@pytest.mark.parametrize("moves", MOVES)
def test_without_data_moves_keep_the_prior(prior, moves):
    learned = isinstance(prior.scale, LearnedScale)
    ends, counts = chains_from_the_prior(prior, moves, chains=2000)
    assert_moves(counts, moves, learned=learned, with_data=False)
    assert_standard_normal(ends, learned=learned)


@pytest.mark.parametrize(
    ("prior", "moves", "largest", "stop_rate"),
    [
        (LEARNED[0], "all", 12, 1.0),
        (LEARNED[1], "all", 1, 2.0),
        (FIXED[0], "jumps", 12, 0.5),
        (FIXED[1], "jumps", 1, 1.0),
        (FIXED[2], "trajectories", 1, 1.0),
        (FIXED[1], "shifts", 2, 1.0),
    ],
    ids=str,
)
def test_with_data_moves_keep_the_posterior(prior, moves, largest, stop_rate):
    learned = isinstance(prior.scale, LearnedScale)
    ends, counts = chains_from_the_prior(
        prior, moves, chains=1200, samples=10, largest=largest, stop_rate=stop_rate
    )
    assert_moves(counts, moves, learned=learned)
    assert_standard_normal(ends, learned=learned)


def test_latent_orders_of_larger_sets_follow_their_distribution():
    """Twenty samples have the same six of eight items. A relocation moves fewer items at once.

    A very narrow prior keeps theta fixed, so only the orders move. The items are not the first
    items of the model. The start is an unlikely order, with the slowest item first.
    """
    items = [1, 2, 3, 5, 6, 7]
    base = np.array([0.0, 1.5, -2.0, 0.5, -0.5, -1.0, 1.0, 0.0])
    theta = np.diag(base)
    prior = Normal(1e-4, BaseRates(0.0, 1e-4))
    slow_first = sorted(items, key=lambda i: base[i])
    target, latent = twins.target_of([slow_first] * 20, prior, 8, 5)
    state = twins.state_at(1e4 * theta, 0.0, latent)
    still = twins.trajectory(8, 0.0)
    rng = np.random.default_rng(13)
    shares = []
    for sweep in range(320):
        twins.sweep(state, target, still, rng=rng)
        if sweep >= 20:
            # Column i has the place of items[i] in each order.
            place = np.argsort(state.orders.reshape(20, 6), axis=1)
            shares.append(place[:, :, None] < place[:, None, :])
    np.testing.assert_allclose(twins.read(state, target)[0], theta, atol=0.01)
    mean, se = twins.batch_mean(np.array(shares, dtype=float), batches=60)
    wanted = ref.posterior_before(theta, items)
    error = np.abs(mean - wanted)[~np.eye(6, dtype=bool)]
    assert se.max() < 0.02
    assert (error < scipy.stats.norm.isf(FALSE_ALARM / 60) * se[~np.eye(6, dtype=bool)]).all()
    value = sum(ref.log_p_sequence(theta, order) for order in state.orders.reshape(20, 6))
    assert state.values[1] == pytest.approx(value, rel=1e-3)


def test_the_check_sees_a_wrong_target():
    """If the data come from another theta than the theta of the state, the check fails."""
    prior = FIXED[2]
    rng = np.random.default_rng(11)
    how = twins.trajectory(N, 0.45)
    ends = []
    for _ in range(300):
        state = twins.state_at(rng.standard_normal((N, N)))
        theta = twins.read(state, twins.target_of([], prior, N)[0])[0]
        theta += 0.5 * np.eye(N)
        target, _ = twins.target_of(twins.simulated_orders(theta, rng, 10), prior, N)
        twins.sweep(state, target, how, sweeps=4, rng=rng)
        ends.append(np.append(state.z.ravel(), 0.0))
    with pytest.raises(AssertionError):
        assert_standard_normal(np.array(ends), learned=False)
