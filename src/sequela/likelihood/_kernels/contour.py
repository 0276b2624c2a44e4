"""Sets and sequences given the observation time (section 4.2), exactly and without stiffness.

The probability at a time t is the inverse Laplace transform of the lattice's forward weight F_z,
which is the same recursion with the observation rate z complex:

    p(S | t) = 1 / (2 pi i) * integral of exp(z t) F_z(S) dz.

All poles lie at minus the exit rates, on the real axis left of -q, q the smallest. The path of
integration is the parabola ``z = -q + c (1 + i u)^2``, which crosses the real axis at the saddle
point, where the mean of the tilted chain's observation time is t. There the integrand is largest
and decays like a Gaussian on both sides, so that the trapezoidal rule converges geometrically and
its *relative* error is small however small p is: halving the step squares the error.

Unlike uniformisation, the cost does not grow with the largest rate; unlike the closed form with
its differences of rates, nothing cancels when rates are close.

Everything is relative to the saddle point z0 = c - q: with ``arrival`` and ``visit`` of the chain
tilted by z0 (see `passage`), u(R) = F_z(R) / F_z0(R) and eta(R) = visit(R) T_z(R) / T_z0(R) obey
recursions between numbers of size one.
"""

import cmath
import math

from sequela._jit import kernel
from sequela.likelihood._kernels.passage import arrival, log_forward

# exp(-38) is under the rounding error of the sum.
_TAIL = 38.0
_FIRST_NODES = 16
_MOST_NODES = 1024
# The next halving would leave about the square of this.
_CHANGE = 1e-6


@kernel
def tilted_moments(first, second, steps, log_F, Q, z, low_log, high_log, k, low):
    """Fill ``steps[R, c]`` = arrival_c(R); return mean and variance of the time S is left."""
    for R in range(1 << k):
        hold = 1.0 / (z + Q[R])
        mean = 0.0
        square = 0.0
        for c in range(k):
            if R >> c & 1:
                a = arrival(log_F, Q, z, low_log, high_log, low, R, c)
                steps[R, c] = a
                mean += a * first[R ^ (1 << c)]
                square += a * second[R ^ (1 << c)]
        first[R] = mean + hold
        second[R] = square + 2.0 * hold * first[R]
    last = (1 << k) - 1
    return first[last], max(second[last] - first[last] ** 2, 1e-300)


@kernel
def next_tilt(tilt, mean, variance, t):
    """Return a better c for the saddle point: a Newton step on log mean against log c."""
    slope = -variance * tilt / mean
    step = (math.log(t) - math.log(mean)) / slope
    return tilt * math.exp(min(max(step, -2.0), 2.0))


@kernel
def node_weight(u, spread):
    """Return the weight of the node at u, the factors common to all nodes left out."""
    return (1.0 + 1j * u) * cmath.exp(spread * (2j * u - u * u))


@kernel
def transient_set(
    t,
    Q,
    log_F,
    first,
    second,
    steps,
    u,
    eta,
    times,
    crossings,
    low_log,
    high_log,
    k,
    low,
    want_gradient,
):
    """Return log p(S | t).

    With `want_gradient` also fill ``times[R]``, mean time spent in R, divided by the mean holding
    time 1 / tilt there, and ``crossings[R, c]``, the probability of the step R -> R + c, both
    given S and t; return the saddle point z0 beside.
    """
    states = 1 << k
    last = states - 1
    smallest = Q[0]
    for R in range(1, states):
        smallest = min(smallest, Q[R])
    tilt = (k + 1) / t
    for _ in range(60):
        log_forward(log_F, Q, tilt - smallest, low_log, high_log, k, low)
        mean, variance = tilted_moments(
            first, second, steps, log_F, Q, tilt - smallest, low_log, high_log, k, low
        )
        if abs(math.log(mean / t)) < 0.05:
            break
        tilt = next_tilt(tilt, mean, variance, t)
    else:
        log_forward(log_F, Q, tilt - smallest, low_log, high_log, k, low)
        tilted_moments(first, second, steps, log_F, Q, tilt - smallest, low_log, high_log, k, low)
    z0 = tilt - smallest
    spread = tilt * t
    reach = math.sqrt(_TAIL / spread)
    nodes = _FIRST_NODES
    total = 0.0
    start = 0
    stride = 1
    while True:
        # On the first round all nodes, then only the new ones in between.
        change = 0.0
        for at in range(start, nodes, stride):
            position = at * (reach / nodes)
            shift = tilt * (2j * position - position * position)
            forward_ratio(u, steps, Q, z0, shift, k)
            weight = node_weight(position, spread)
            change += (1.0 if at == 0 else 2.0) * (weight * u[last]).real
        new = total + change
        settled = start == 1 and abs(change - total) < _CHANGE * abs(new)
        total = new
        if settled or nodes >= _MOST_NODES:
            break
        nodes *= 2
        start = 1
        stride = 2
    value = z0 * t + log_F[last] + math.log(total * reach / nodes * tilt / math.pi)
    if want_gradient:
        for R in range(states):
            times[R] = 0.0
            for c in range(k):
                crossings[R, c] = 0.0
        for at in range(nodes):
            position = at * (reach / nodes)
            shift = tilt * (2j * position - position * position)
            forward_ratio(u, steps, Q, z0, shift, k)
            backward_ratio(eta, steps, Q, z0, shift, k)
            weight = node_weight(position, spread) * ((1.0 if at == 0 else 2.0) / total)
            for R in range(states):
                w = weight * u[R]
                times[R] += (w * eta[R]).real
                for c in range(k):
                    if not R >> c & 1:
                        after = R | (1 << c)
                        crossings[R, c] += (w * eta[after]).real * steps[after, c]
    return value, z0


@kernel
def forward_ratio(u, steps, Q, z0, shift, k):
    """Fill u(R) = F_z(R) / F_z0(R) for z = z0 + shift."""
    for R in range(1 << k):
        arrived = 1.0 + 0.0j if R == 0 else 0.0 + 0.0j
        for c in range(k):
            if R >> c & 1:
                arrived += steps[R, c] * u[R ^ (1 << c)]
        u[R] = arrived / (1.0 + shift / (z0 + Q[R]))


@kernel
def backward_ratio(eta, steps, Q, z0, shift, k):
    """Fill eta(R) = visit(R) * T_z(R) / T_z0(R) for z = z0 + shift."""
    last = (1 << k) - 1
    for R in range(last, -1, -1):
        leaving = 1.0 + 0.0j if last == R else 0.0 + 0.0j
        for c in range(k):
            if not R >> c & 1:
                after = R | (1 << c)
                leaving += steps[after, c] * eta[after]
        eta[R] = leaving / (1.0 + shift / (z0 + Q[R]))


@kernel
def transient_gradient(G, times, crossings, Q, z0, low_log, high_log, m, k, low):
    """Fill G as `lattice.gradient` does, from what `transient_set` found."""
    width = 1 << low
    for b in range(k + 1):
        for c in range(m + 1):
            G[b, c] = 0.0
    for R in range(1 << k):
        tilted = z0 + Q[R]
        log_tilted = math.log(tilted)
        for c in range(m + 1):
            if c == m:
                g = times[R] / tilted
            elif c >= k or not R >> c & 1:
                log_rate = high_log[c, R >> low] + low_log[c, R & (width - 1)]
                g = -times[R] * math.exp(log_rate - log_tilted)
                if c < k:
                    g += crossings[R, c]
            else:
                continue
            G[k, c] += g
            for b in range(k):
                if R >> b & 1:
                    G[b, c] += g


@kernel
def transient_chain(t, exits, times):
    """Return log of the density factor of a sequence with these exit rates, given t.

    That is log P(at the last state at t) - sum of the log-rates of its steps. ``times[i]``
    receives the mean time spent in state i.
    """
    states = exits.shape[0]
    smallest = exits[0]
    for i in range(1, states):
        smallest = min(smallest, exits[i])
    tilt = states / t
    for _ in range(60):
        mean = 0.0
        variance = 0.0
        for i in range(states):
            hold = 1.0 / (tilt + (exits[i] - smallest))
            mean += hold
            variance += hold * hold
        if abs(math.log(mean / t)) < 0.05:
            break
        tilt = next_tilt(tilt, mean, variance, t)
    spread = tilt * t
    reach = math.sqrt(_TAIL / spread)
    log_F = 0.0
    for i in range(states):
        log_F -= math.log(tilt + (exits[i] - smallest))
    nodes = _FIRST_NODES
    total = 0.0
    start = 0
    stride = 1
    while True:
        change = 0.0
        for at in range(start, nodes, stride):
            position = at * (reach / nodes)
            shift = tilt * (2j * position - position * position)
            u = node_weight(position, spread)
            for i in range(states):
                u /= 1.0 + shift / (tilt + (exits[i] - smallest))
            change += (1.0 if at == 0 else 2.0) * u.real
        new = total + change
        settled = start == 1 and abs(change - total) < _CHANGE * abs(new)
        total = new
        if settled or nodes >= _MOST_NODES:
            break
        nodes *= 2
        start = 1
        stride = 2
    for i in range(states):
        times[i] = 0.0
    for at in range(nodes):
        position = at * (reach / nodes)
        shift = tilt * (2j * position - position * position)
        u = node_weight(position, spread) * ((1.0 if at == 0 else 2.0) / total)
        for i in range(states):
            u /= 1.0 + shift / (tilt + (exits[i] - smallest))
        for i in range(states):
            times[i] += (u / (tilt + (exits[i] - smallest) + shift)).real
    return (tilt - smallest) * t + log_F + math.log(total * reach / nodes * tilt / math.pi)
