"""Slow and simple implementations of the kernels, written from the equations of the paper.

No function of this module was derived from a kernel, and none may be changed only to agree with a
kernel. If the paper has an error, the docstring of the function says what was corrected.

Conventions of all functions:

- ``theta[i, j]`` is the log-effect of the presence of item i on the rate of item j; ``theta[j, j]``
  is the log base rate of item j. Items are 0, ..., n - 1.
- A state R and an observed set S are any iterables of items; a sequence sigma is a tuple of items
  in the order of their arrival.
- ``stop_rate`` is the rate of the exponential observation time (1 in the paper).
- ``D(R) = stop_rate + exit_rate(theta, R)`` is the total rate of leaving R in the chain of section
  4.3, which has the additional state "observed".
- Vectors and matrices over the subsets of S are indexed by bit masks: bit b stands for
  ``sorted(S)[b]``.
- Equation numbers are those of the typeset paper: (1) marginal likelihood, (2) posterior over
  time, (3) penalised objective, (4) full sequence, (5) event B given A, (6) Proposition 2, (7)
  gradient by sampled orders.

Functions whose names start with ``mp_`` compute in mpmath and return floats. Use them for extreme
theta. The other functions compute in double precision, and are meant for moderate theta (rates must
not overflow).
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.integrate
import scipy.linalg
from mpmath import mp
from scipy.special import logsumexp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

DIGITS = 80  # working precision of the mp_ functions, in decimal digits

# --- Section 2: the chain -------------------------------------------------------------------------


def log_rate(theta: np.ndarray, R: Iterable[int], j: int) -> float:
    """Return log q(R -> R + j) = theta_jj + sum over i in R of theta_ij (section 2)."""
    return theta[j, j] + sum(theta[i, j] for i in R)


def rate(theta: np.ndarray, R: Iterable[int], j: int) -> float:
    """Return q(R -> R + j), the rate at which item j arrives in the state R (section 2)."""
    return math.exp(log_rate(theta, R, j))


def exit_rate(theta: np.ndarray, R: Iterable[int]) -> float:
    """Return q~(R), the total rate of arrivals in the state R; 0 for the full set (section 2)."""
    R = frozenset(R)
    return sum(rate(theta, R, j) for j in range(len(theta)) if j not in R)


def restricted_generator(theta: np.ndarray, S: Iterable[int]) -> np.ndarray:
    """Return the rows and columns of Q that belong to subsets of S, as a dense matrix (section 2).

    Items are never lost, so before a chain is in S, it is in subsets of S. A diagonal entry is
    minus the exit rate of the full chain, so it also contains the rates of the items outside S.
    """
    items = sorted(S)
    Q = np.zeros((2 ** len(items), 2 ** len(items)))
    for mask in range(2 ** len(items)):
        R = [item for bit, item in enumerate(items) if mask >> bit & 1]
        Q[mask, mask] = -exit_rate(theta, R)
        for bit, j in enumerate(items):
            if j not in R:
                Q[mask, mask | 1 << bit] = rate(theta, R, j)
    return Q


def generator(theta: np.ndarray) -> np.ndarray:
    """Return the dense 2^n x 2^n generator Q; bit j of a row number is item j (section 2)."""
    return restricted_generator(theta, range(len(theta)))


def transition_matrix(Q: np.ndarray, t: float) -> np.ndarray:
    """Return exp(t Q), by the function expm of SciPy without its shortcut for triangular matrices.

    The shortcut recomputes the first superdiagonal by a formula that loses digits if neighbouring
    diagonal entries are nearly equal. (In SciPy 1.17, the relative error is 3e-5 if they differ by
    1e-12.) Exit rates that differ only by rounding would cause this error. A block that is not
    triangular is appended to the matrix, so that SciPy does not use the shortcut.
    """
    return scipy.linalg.expm(scipy.linalg.block_diag(t * Q, [[0.0, 1.0], [1.0, 0.0]]))[:-2, :-2]


# --- Sections 2 and 4.4: marginal sets ------------------------------------------------------------


def _resolvent_row(Q: np.ndarray, stop_rate: float) -> np.ndarray:
    """Return the row of the empty set of the integral over t of lambda exp(-lambda t) exp(t Q).

    It is lambda (lambda I - Q^T)^-1 e, where lambda is the rate of observation and e the first unit
    vector. The paper has lambda = 1.
    """
    start = np.zeros(len(Q))
    start[0] = 1.0
    return stop_rate * np.linalg.solve(stop_rate * np.eye(len(Q)) - Q.T, start)


def set_distribution(theta: np.ndarray, stop_rate: float = 1.0) -> np.ndarray:
    """Return p(S) of all 2^n sets, eq. (1). A dense linear solve gives the integral over time."""
    return _resolvent_row(generator(theta), stop_rate)


def set_distribution_at(theta: np.ndarray, t: float) -> np.ndarray:
    """Return p(S | t) of all 2^n sets: the first row of exp(t Q), the integrand of eq. (1)."""
    return transition_matrix(generator(theta), t)[0]


def log_p_set(theta: np.ndarray, S: Iterable[int], *, stop_rate: float = 1.0) -> float:
    """Return log p(S), eq. (1), from a dense solve over the subsets of S (|S| <= 10, any n)."""
    return math.log(_resolvent_row(restricted_generator(theta, S), stop_rate)[-1])


def log_p_set_permutations(theta: np.ndarray, S: Iterable[int], *, stop_rate: float = 1.0) -> float:
    """Return log p(S), where p(S) is the sum of eq. (6) over all orders of S (section 4.4)."""
    return logsumexp(
        [log_p_sequence(theta, sigma, stop_rate=stop_rate) for sigma in itertools.permutations(S)]
    )


def log_p_set_given_time(theta: np.ndarray, S: Iterable[int], t: float) -> float:
    """Return log p(S | t) from the dense exponential in eq. (1) (|S| <= 10, any n).

    The error is relative to the largest entry of the exponential. If p(S | t) is very small, use
    `mp_log_p_set_given_time`.
    """
    return math.log(transition_matrix(restricted_generator(theta, S), t)[0, -1])


# --- Sections 4.1 to 4.3: sequences ---------------------------------------------------------------


def log_p_full_sequence(theta: np.ndarray, sigma: Sequence[int]) -> float:
    """Return log p(sigma) of a full sequence, observed at infinite time, eq. (4)."""
    return sum(
        log_rate(theta, sigma[:i], sigma[i]) - math.log(exit_rate(theta, sigma[:i]))
        for i in range(len(sigma))
    )


def log_p_sequence(theta: np.ndarray, sigma: Sequence[int], stop_rate: float = 1.0) -> float:
    """Return log p(sigma) of a partial sequence, observed at a random time (Prop. 2, eq. (6)).

    The last factor is the rate of the step to "observed", divided by D(sigma). In the paper this
    rate is 1.
    """
    k = len(sigma)
    steps = sum(log_rate(theta, sigma[:i], sigma[i]) for i in range(k))
    totals = [stop_rate + exit_rate(theta, sigma[:i]) for i in range(k + 1)]
    return steps + math.log(stop_rate) - sum(math.log(D) for D in totals)


def log_p_sequence_given_time(theta: np.ndarray, sigma: Sequence[int], t: float) -> float:
    """Return log p(sigma | t) (section 4.2) by the exponential of a bidiagonal generator.

    The generator belongs to a chain whose states are the prefixes of sigma. All other states are
    left out, because the process cannot come back from them to a prefix.
    """
    k = len(sigma)
    Q = np.zeros((k + 1, k + 1))
    for i in range(k + 1):
        Q[i, i] = -exit_rate(theta, sigma[:i])
        if i < k:
            Q[i, i + 1] = rate(theta, sigma[:i], sigma[i])
    return math.log(transition_matrix(Q, t)[0, k])


def mp_log_p_sequence_given_time(theta: np.ndarray, sigma: Sequence[int], t: float) -> float:
    """Return log p(sigma | t) = log P(A) + log P(B | A), eqs. (4) and (5), in mpmath.

    P(B | A) = F(t; first k rates) - F(t; first k + 1 rates), where F is the hypoexponential CDF.
    Corrected: the rates are the exit rates of the prefixes (), (sigma_1), ..., not "q~[sigma_i]".
    """
    k = len(sigma)

    def log_p() -> Any:
        exact = _mp_matrix(theta)
        rates = [_mp_exit_rate(exact, sigma[:i]) for i in range(k + 1)]
        p_A = mp.fprod(_mp_rate(exact, sigma[:i], sigma[i]) / rates[i] for i in range(k))
        rates = _separated(rates)
        p_B_given_A = _mp_hypoexponential_cdf(t, rates[:k]) - _mp_hypoexponential_cdf(t, rates)
        return mp.log(p_A * p_B_given_A) if p_B_given_A > 0 else mp.nan

    return float(_until_stable(log_p))


def hypoexponential_cdf(y: float, rates: Sequence[float]) -> float:
    """Return the CDF of a sum of independent exponential times, in mpmath.

    This is the closed form of section 4.2. It divides by differences of rates, so digits cancel.
    Therefore it is evaluated with more and more digits until the result is stable. Equal rates are
    replaced by nearly equal rates. A rate of 0 is a holding time that never ends.
    """
    return float(
        _until_stable(lambda: _mp_hypoexponential_cdf(y, _separated([mp.mpf(r) for r in rates])))
    )


def _mp_hypoexponential_cdf(y: float, rates: Sequence[Any]) -> Any:
    """Return F_HEXP of section 4.2 at the working precision, for distinct rates."""
    if not rates:  # an empty sum is 0, which is below every y > 0
        return mp.mpf(y > 0)
    if 0 in rates:
        return mp.mpf(0)
    terms = []
    for i, a in enumerate(rates):
        gaps = mp.fprod(b - a for j, b in enumerate(rates) if j != i)
        terms.append(-mp.expm1(-a * mp.mpf(y)) / (a * gaps))
    return mp.fprod(rates) * mp.fsum(terms)


# --- Section 4: gradients, as n x n matrices ------------------------------------------------------


def _add_gradient_of_log_rate(
    gradient: np.ndarray, R: Iterable[int], j: int, weight: float
) -> None:
    """Add `weight` times the gradient of log q(R -> R + j), with respect to theta.

    This gradient is 1 at theta_jj and at theta_ij for each i in R, and 0 elsewhere.
    """
    gradient[j, j] += weight
    for i in R:
        gradient[i, j] += weight


def _add_gradient_of_log_total(
    gradient: np.ndarray,
    theta: np.ndarray,
    R: Sequence[int],
    stop_rate: float,
    weight: float,
) -> None:
    """Add `weight` times the gradient of log D(R): the sum of grad(log-rate) * rate / D(R)."""
    total = stop_rate + exit_rate(theta, R)
    for j in range(len(theta)):
        if j not in R:
            _add_gradient_of_log_rate(gradient, R, j, weight * rate(theta, R, j) / total)


def gradient_full_sequence(theta: np.ndarray, sigma: Sequence[int]) -> np.ndarray:
    """Return the gradient of log p(sigma) of a full sequence, eq. (4), term by term."""
    gradient = np.zeros_like(theta, dtype=float)
    for i in range(len(sigma)):
        _add_gradient_of_log_rate(gradient, sigma[:i], sigma[i], 1.0)
        _add_gradient_of_log_total(gradient, theta, sigma[:i], 0.0, -1.0)
    return gradient


def gradient_sequence(
    theta: np.ndarray, sigma: Sequence[int], *, stop_rate: float = 1.0
) -> np.ndarray:
    """Return the gradient of log p(sigma) of a partial sequence, eq. (6), term by term."""
    gradient = np.zeros_like(theta, dtype=float)
    for i in range(len(sigma)):
        _add_gradient_of_log_rate(gradient, sigma[:i], sigma[i], 1.0)
    for i in range(len(sigma) + 1):
        _add_gradient_of_log_total(gradient, theta, sigma[:i], stop_rate, -1.0)
    return gradient


def gradient_set_permutations(
    theta: np.ndarray, S: Iterable[int], *, stop_rate: float = 1.0
) -> np.ndarray:
    """Return the gradient of log p(S): the mean of `gradient_sequence` over p(sigma | S).

    See the formula above eq. (7).
    """
    return sum(
        weight * gradient_sequence(theta, sigma, stop_rate=stop_rate)
        for sigma, weight in posterior_orders(theta, S, stop_rate=stop_rate).items()
    )


def finite_difference_gradient(
    f: Callable[[np.ndarray], float], theta: np.ndarray, step: float = 1e-6
) -> np.ndarray:
    """Return the gradient of f at theta by central differences, entry by entry."""
    gradient = np.zeros_like(theta, dtype=float)
    for index in np.ndindex(theta.shape):
        up, down = theta.astype(float), theta.astype(float)
        up[index] += step
        down[index] -= step
        gradient[index] = (f(up) - f(down)) / (up[index] - down[index])
    return gradient


# --- Likelihoods and gradients in mpmath, for extreme theta ---------------------------------------


def _mp_matrix(theta: np.ndarray) -> np.ndarray:
    """Convert the entries of theta to mpmath numbers, without rounding."""
    exact = np.empty(np.shape(theta), dtype=object)
    for index in np.ndindex(exact.shape):
        value = theta[index]
        exact[index] = value if isinstance(value, mp.mpf) else mp.mpf(float(value))
    return exact


def _mp_rate(theta: np.ndarray, R: Iterable[int], j: int) -> Any:
    """Return q(R -> R + j) (section 2)."""
    return mp.exp(theta[j, j] + mp.fsum(theta[i, j] for i in R))


def _mp_exit_rate(theta: np.ndarray, R: Iterable[int]) -> Any:
    """Return q~(R) (section 2)."""
    R = frozenset(R)
    return mp.fsum(_mp_rate(theta, R, j) for j in range(len(theta)) if j not in R)


def _subsets(S: Iterable[int]) -> Iterator[frozenset[int]]:
    """Yield all subsets of S, the smaller ones first."""
    S = sorted(S)
    for size in range(len(S) + 1):
        yield from map(frozenset, itertools.combinations(S, size))


def _mp_forward(theta: np.ndarray, S: Iterable[int], stop_rate: float) -> tuple[dict, dict]:
    """Return two dictionaries: D(R) and F(R) for all subsets R of S.

    F(R) is eq. (6) without the rate of the step to "observed", summed over all orders of R. It is
    computed by a recursion: each order of R that ends in c is an order of R - c, followed by c. All
    terms are positive, so no digits cancel.
    """
    D, F = {}, {}
    for R in _subsets(S):
        D[R] = mp.mpf(stop_rate) + _mp_exit_rate(theta, R)
        paths = mp.fsum(F[R - {c}] * _mp_rate(theta, R - {c}, c) for c in R) if R else mp.mpf(1)
        F[R] = paths / D[R]
    return D, F


def mp_log_p_set(
    theta: np.ndarray, S: Iterable[int], *, stop_rate: float = 1.0, digits: int = DIGITS
) -> float:
    """Return log p(S) (section 4.4) by recursion over the subsets of S in mpmath (|S| <= 10)."""
    S = frozenset(S)
    with mp.workdps(digits):
        _, F = _mp_forward(_mp_matrix(theta), S, stop_rate)
        return float(mp.log(mp.mpf(stop_rate) * F[S]))


def mp_gradient_set(
    theta: np.ndarray, S: Iterable[int], *, stop_rate: float = 1.0, digits: int = DIGITS
) -> np.ndarray:
    """Return the gradient of log p(S) as a sum over subsets instead of orders, in mpmath.

    The gradient of log p(sigma) has one term for each step R -> R + c of sigma (the gradient of
    log q), and one for each state R that sigma visits (minus the gradient of log D). The formula
    above eq. (7) takes the mean over p(sigma | S). In this mean, each term is weighted with the
    posterior probability of its step or visit. The probability of a visit to R is
    F(R) B(R) / F(S), where F(R) is a sum over all orders from the empty set to R, and B(R) a sum
    over all orders from R to S.
    """
    S = frozenset(S)
    n = len(theta)
    with mp.workdps(digits):
        exact = _mp_matrix(theta)
        D, F = _mp_forward(exact, S, stop_rate)
        B = {S: mp.mpf(1)}
        gradient = np.full((n, n), mp.mpf(0), dtype=object)
        for R in reversed(list(_subsets(S))):
            to_S = {c: _mp_rate(exact, R, c) * B[R | {c}] / D[R | {c}] for c in S - R}
            if R != S:
                B[R] = mp.fsum(to_S.values())
            for c, paths in to_S.items():
                _add_gradient_of_log_rate(gradient, R, c, F[R] * paths / F[S])
            visit = F[R] * B[R] / F[S]
            for j in set(range(n)) - R:
                _add_gradient_of_log_rate(gradient, R, j, -visit * _mp_rate(exact, R, j) / D[R])
        return gradient.astype(float)


def _separated(rates: Sequence[Any]) -> list[Any]:
    """Make equal rates distinct by relative changes of about 1e-60.

    The closed forms are not defined if two rates are equal. The probabilities are continuous
    functions of the rates, so they change much less than the precision of a float.
    """
    return [r * (1 + mp.mpf(10) ** -60 * position) for position, r in enumerate(rates)]


def _until_stable(evaluate: Callable[[], Any], digits: int = 70) -> Any:
    """Evaluate with more and more digits until two results agree to `digits` digits."""
    previous = mp.nan
    for doubling in range(8):
        with mp.workdps((digits + 30) * 2**doubling):
            value = evaluate()
            if mp.isfinite(value) and abs(value - previous) <= mp.mpf(10) ** -digits * abs(value):
                return value
        previous = value
    raise ArithmeticError("no stable value with 128 times the digits")


def _mp_log_p_set_given_time(
    theta: np.ndarray, S: frozenset[int], t: float, digits: int = 70
) -> Any:
    """Return log p(S | t) as an mpmath number: see `mp_log_p_set_given_time`."""

    def log_p() -> Any:
        exact = _mp_matrix(theta)
        subsets = list(_subsets(S))
        exits = dict(
            zip(subsets, _separated([_mp_exit_rate(exact, R) for R in subsets]), strict=True)
        )
        a = {(subsets[0], subsets[0]): mp.mpf(1)}
        for R in subsets[1:]:
            inflow = {c: _mp_rate(exact, R - {c}, c) for c in R}
            for T in _subsets(R):
                if T != R:
                    arriving = mp.fsum(q * a[R - {c}, T] for c, q in inflow.items() if c not in T)
                    a[R, T] = arriving / (exits[R] - exits[T])
            a[R, R] = -mp.fsum(a[R, T] for T in _subsets(R) if T != R)
        p = mp.fsum(a[S, T] * mp.exp(-exits[T] * mp.mpf(t)) for T in subsets)
        return mp.log(p) if p > 0 else mp.nan

    return _until_stable(log_p, digits)


def mp_log_p_set_given_time(theta: np.ndarray, S: Iterable[int], t: float) -> float:
    """Return log p(S | t) of eq. (1) in mpmath, for rates of any size (|S| <= 8, t > 0).

    p(R | t) solves dp(R)/dt = sum over c in R of q(R - c -> R) p(R - c) - q~(R) p(R). With distinct
    exit rates the solution is p(R | t) = sum over T within R of a(R, T) exp(-q~(T) t). Comparing
    coefficients gives (q~(R) - q~(T)) a(R, T) = sum over c in R - T of q(R - c -> R) a(R - c, T)
    for T != R, and p(R | 0) = 0 gives a(R, R). This is the closed form of section 4.2, summed over
    all orders. Digits cancel, so more digits are used until the result is stable.
    """
    return float(_mp_log_p_set_given_time(theta, frozenset(S), t))


def mp_gradient_set_given_time(theta: np.ndarray, S: Iterable[int], t: float) -> np.ndarray:
    """Return the gradient of log p(S | t) by central differences in mpmath.

    The step is so small that no exit rate, multiplied by t, changes by more than 1e-25. A change of
    more than 1 could decide which of two states with nearly equal exit rates dominates p(S | t).
    Then the gradient would be wrong.
    """
    S = frozenset(S)
    n = len(theta)
    exact = _mp_matrix(theta)
    highest = max(_mp_exit_rate(exact, R) for R in _subsets(S)) * mp.mpf(t)
    places = max(int(mp.ceil(mp.log10(highest))), 0) if highest > 0 else 0
    digits = 50 + 2 * places
    gradient = np.zeros((n, n))
    # A process that ends in S visits only subsets of S. So if an item is not in S, its row of theta
    # has no effect, except for the diagonal entry.
    for i, j in itertools.product(range(n), range(n)):
        if i in S or i == j:
            with mp.workdps(digits + 100):
                step = mp.mpf(10) ** -(25 + places)
                up, down = _mp_matrix(theta), _mp_matrix(theta)
                up[i, j] += step
                down[i, j] -= step
                difference = _mp_log_p_set_given_time(up, S, t, digits) - _mp_log_p_set_given_time(
                    down, S, t, digits
                )
                gradient[i, j] = float(difference / (2 * step))
    return gradient


# --- Section 3.2: independent items ---------------------------------------------------------------


def log_p_set_independent(
    theta: np.ndarray, S: Iterable[int], *, stop_rate: float = 1.0, digits: int = 30
) -> float:
    """Return log p(S) for a diagonal theta: eq. (1) with independent items, for any |S| and n.

    p(S) = integral over t of lambda exp(-lambda t) prod_{i in S} (1 - exp(-w_i t))
    prod_{j not in S} exp(-w_j t), by quadrature over u = log t. As a function of u, the integrand
    has a single peak, even if the rates are very different.
    """
    theta = np.asarray(theta, dtype=float)
    if np.any(theta != np.diag(np.diag(theta))):
        raise ValueError("log_p_set_independent: theta must be diagonal")
    S = frozenset(S)
    with mp.workdps(digits):
        w = [mp.exp(mp.mpf(float(x))) for x in np.diag(theta)]
        outside = mp.mpf(stop_rate) + mp.fsum(w[j] for j in range(len(w)) if j not in S)

        def log_integrand(u: Any) -> Any:
            t = mp.exp(u)
            arrived = mp.fsum(mp.log(-mp.expm1(-w[i] * t)) for i in S)
            return u + mp.log(stop_rate) - outside * t + arrived

        # The integral uses panels of half a unit of u. It covers all u at which the integrand is
        # above exp(-80) times its maximum. If u falls below the logarithm of all mean waiting
        # times, the integrand decreases like exp(u) or faster. So it is enough to begin 100 units
        # of u below them.
        last = math.log(10 * (len(S) + 100) / stop_rate)
        first = -float(mp.log(outside + mp.fsum(w[i] for i in S))) - 100
        grid = np.linspace(first, last, 2 * math.ceil(last - first) + 1)
        heights = [log_integrand(mp.mpf(float(u))) for u in grid]
        peak = max(heights)
        edges = [float(u) for u, height in zip(grid, heights, strict=True) if height > peak - 80]
        edges = [edges[0] - 0.5, *edges, edges[-1] + 0.5]
        total = mp.quad(
            lambda u: mp.exp(log_integrand(u) - peak), edges, method="gauss-legendre", maxdegree=4
        )
        return float(peak + mp.log(total))


# --- Times and orders, given one observed set -----------------------------------------------------


def posterior_orders(
    theta: np.ndarray, S: Iterable[int], stop_rate: float = 1.0
) -> dict[tuple[int, ...], float]:
    """Return p(sigma | S) = p(sigma) / p(S) of every order of S (section 4.4; |S| <= 7)."""
    orders = list(itertools.permutations(sorted(S)))
    log_p = [log_p_sequence(theta, sigma, stop_rate=stop_rate) for sigma in orders]
    return dict(zip(orders, np.exp(log_p - logsumexp(log_p)).tolist(), strict=True))


def _mixture_moments(parts: Iterable[tuple[float, Sequence[float]]]) -> tuple[float, float]:
    """Return mean and variance of a mixture of sums of independent exponential times.

    `parts` has a pair for each part of the mixture: its weight, and the rates of its sum.
    """
    weights, means, variances = [], [], []
    for weight, rates in parts:
        weights.append(weight)
        means.append(sum(1 / r for r in rates))
        variances.append(sum(1 / r**2 for r in rates))
    mean = np.average(means, weights=weights)
    # Law of total variance: the variance within the parts, and the variance between their means.
    within = np.average(variances, weights=weights)
    between = np.average((np.array(means) - mean) ** 2, weights=weights)
    return float(mean), float(within + between)


def posterior_time_moments(
    theta: np.ndarray, S: Iterable[int], stop_rate: float = 1.0
) -> tuple[float, float]:
    """Return mean and variance of the observation time given S (section 3.2; |S| <= 7).

    In the chain of section 4.3, if the order sigma is given, the holding times of the prefixes R of
    sigma are independent and have the distribution Exp(D(R)). The observation time is the sum of
    all holding times, including that of S.
    """
    return _mixture_moments(
        (weight, [stop_rate + exit_rate(theta, sigma[:i]) for i in range(len(sigma) + 1)])
        for sigma, weight in posterior_orders(theta, S, stop_rate=stop_rate).items()
    )


def posterior_arrival_moments(
    theta: np.ndarray, S: Iterable[int], *, stop_rate: float = 1.0
) -> dict[int, tuple[float, float]]:
    """Return mean and variance of the arrival time of each item of S, given S (|S| <= 7).

    The computation is the same as in `posterior_time_moments`, but only with the holding times
    before the arrival of the item.
    """
    orders = posterior_orders(theta, S, stop_rate=stop_rate)
    return {
        item: _mixture_moments(
            (
                weight,
                [stop_rate + exit_rate(theta, sigma[:i]) for i in range(sigma.index(item) + 1)],
            )
            for sigma, weight in orders.items()
        )
        for item in sorted(S)
    }


def posterior_before(theta: np.ndarray, S: Iterable[int], *, stop_rate: float = 1.0) -> np.ndarray:
    """Return P(a before b | S) as a matrix over sorted(S), with a diagonal of 0 (|S| <= 7)."""
    position = {item: index for index, item in enumerate(sorted(S))}
    before = np.zeros((len(position), len(position)))
    orders = posterior_orders(theta, position, stop_rate=stop_rate)
    for sigma, weight in orders.items():
        for a, b in itertools.combinations(sigma, 2):
            before[position[a], position[b]] += weight
    return before


def posterior_time_density(
    theta: np.ndarray, S: Iterable[int], t: float, stop_rate: float = 1.0
) -> float:
    """Return p(t | S) = p(S | t) p(t) / p(S), Bayes' rule above eq. (2) (|S| <= 6)."""
    p_S_given_t = transition_matrix(restricted_generator(theta, S), t)[0, -1]
    p_t = stop_rate * math.exp(-stop_rate * t)
    return p_S_given_t * p_t / math.exp(log_p_set(theta, S, stop_rate=stop_rate))


def posterior_time_moments_by_quadrature(
    theta: np.ndarray, S: Iterable[int], *, stop_rate: float = 1.0
) -> tuple[float, float]:
    """Return mean and variance of the time given S, by the integral of eq. (1) (|S| <= 6)."""
    Q = restricted_generator(theta, S)

    def integrand(t: float) -> np.ndarray:
        p_t = stop_rate * math.exp(-stop_rate * t)
        return p_t * transition_matrix(Q, t)[0, -1] * np.array([1.0, t, t**2])

    (p_S, first, second), _ = scipy.integrate.quad_vec(
        integrand, 0, np.inf, epsabs=1e-15, epsrel=1e-9
    )
    mean = first / p_S
    return float(mean), float(second / p_S - mean**2)


# --- What is known about all sequences ------------------------------------------------------------


def sequence_distribution(
    theta: np.ndarray, stop_rate: float = 1.0
) -> dict[tuple[int, ...], float]:
    """Return p(sigma) of every partial sequence of every length, eq. (6) (n <= 5)."""
    return {
        sigma: math.exp(log_p_sequence(theta, sigma, stop_rate=stop_rate))
        for k in range(len(theta) + 1)
        for sigma in itertools.permutations(range(len(theta)), k)
    }


def order_probability_by_enumeration(
    theta: np.ndarray, a: int, b: int, *, stop_rate: float = 1.0
) -> float:
    """Return P(a before b | both are observed): sums of eq. (6) over partial sequences (n <= 5)."""
    sequences = sequence_distribution(theta, stop_rate=stop_rate)
    both = {sigma: p for sigma, p in sequences.items() if a in sigma and b in sigma}
    return sum(p for sigma, p in both.items() if sigma.index(a) < sigma.index(b)) / sum(
        both.values()
    )


# --- Algorithms 1 and 2 ---------------------------------------------------------------------------


def simulate_sequence(
    theta: np.ndarray, rng: np.random.Generator, stop_rate: float = 1.0
) -> tuple[float, list[int], list[float]]:
    """Run Algorithm 1, corrected; return observation time, items in order, and arrival times.

    Corrected: the item that would arrive after the observation time is not added, and the loop ends
    when no item is left.
    """
    t_obs = rng.exponential(1 / stop_rate)
    t, items, times = 0.0, [], []
    while len(items) < len(theta):
        total = exit_rate(theta, items)
        t += rng.exponential(1 / total)
        if t >= t_obs:
            break
        candidates = [i for i in range(len(theta)) if i not in items]
        x = rng.choice(candidates, p=[rate(theta, items, i) / total for i in candidates])
        items.append(int(x))
        times.append(t)
    return t_obs, items, times


def _log_proposal_weights(
    theta: np.ndarray, S: frozenset[int], sigma: Sequence[int], stop_rate: float
) -> dict[int, float]:
    """Return log(u_nu / sum_j u_j) for each nu in S - sigma: the inner loop of Algorithm 2."""
    log_u = {}
    for nu in sorted(S - set(sigma)):
        extended = {*sigma, nu}
        d = stop_rate + exit_rate(theta, extended)
        log_u[nu] = sum(theta[nu, j] for j in S - extended) - math.log(d)
    normaliser = logsumexp(list(log_u.values()))
    return {nu: value - normaliser for nu, value in log_u.items()}


def draw_informed_proposal(
    theta: np.ndarray, S: Iterable[int], rng: np.random.Generator, *, stop_rate: float = 1.0
) -> tuple[tuple[int, ...], float]:
    """Run Algorithm 2, corrected: draw an order of S by the informed proposal; return its log Q.

    Corrected: Q starts at 1 (log Q at 0), and the last line divides by the sum of u_j.
    """
    S = frozenset(S)
    sigma, log_q = (), 0.0
    for _ in range(len(S)):
        log_u = _log_proposal_weights(theta, S, sigma, stop_rate)
        x = int(rng.choice(list(log_u), p=np.exp(list(log_u.values()))))
        sigma += (x,)
        log_q += log_u[x]
    return sigma, log_q


def log_q_informed(
    theta: np.ndarray, S: Iterable[int], sigma: Sequence[int], *, stop_rate: float = 1.0
) -> float:
    """Return log Q of an order sigma of S in the informed proposal (Algorithm 2, corrected)."""
    S = frozenset(S)
    return sum(
        _log_proposal_weights(theta, S, sigma[:i], stop_rate)[sigma[i]] for i in range(len(sigma))
    )


# --- For tests ------------------------------------------------------------------------------------


def random_theta(
    rng: np.random.Generator, n: int, scale: float = 1.0, sparsity: float = 0.0
) -> np.ndarray:
    """Return a random theta with base rates around exp(-1).

    `scale` is the standard deviation of the entries of theta. A share `sparsity` of the effects is
    0.
    """
    theta = rng.normal(0.0, scale, (n, n))
    theta[rng.random((n, n)) < sparsity] = 0.0
    np.fill_diagonal(theta, rng.normal(-1.0, scale, n))
    return theta
