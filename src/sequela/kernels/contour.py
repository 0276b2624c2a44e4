"""Exact probabilities of sets and sequences at a given observation time (section 4.2).

The probability at time t is the inverse Laplace transform of a forward weight of the lattice. This
weight, F_z, satisfies the usual recursion with a complex observation rate z:

    p(S | t) = 1 / (2 pi i) * integral of exp(z t) F_z(S) dz.

All poles are at minus the exit rates: on the real axis, at or left of -q, where q is the smallest
exit rate. The path of integration is a parabola ``z = z0 + b (2 i u - u^2)`` through the saddle
point z0 = c - q. In the *tilted* chain, q is subtracted from every exit rate, and the rate of the
observation is c, which is called the tilt. The tilt is chosen so that the mean observation time of
the tilted chain is t. The integrand has its maximum at z0 and decreases along the path on both
sides of it. So the trapezoidal rule converges geometrically: halving the step squares the error.
The *relative* error is small even if p is very small. The narrowest parabola, b = c, is best if
there are few poles. If there are many poles far to the left, the integrand can increase along the
path. Then b is doubled until the integrand decreases. This always succeeds: if b is half the
distance to a pole, the factor of this pole never increases.

Two other methods are not used: uniformisation, whose cost grows with the largest rate, and the
closed form. The closed form contains differences of rates, and loses digits if rates are close to
each other.

All quantities are relative to the saddle point z0 = c - q. Let T_z be the backward weight, and let
``arrival`` and ``visit`` be the probabilities of the chain tilted by z0 (see `passage`). Then u(R)
= F_z(R) / F_z0(R) and eta(R) = visit(R) T_z(R) / T_z0(R) satisfy recursions in which all numbers
are of order 1.
"""

import math

import numpy as np

from sequela.kernels.passage import arrival, log_forward
from sequela.support.jit import helper, kernel

# The first step size is chosen so that, after _FIRST_NODES steps, the exponential factor of the
# integrand is exp(-_TAIL), which is negligible.
_TAIL = 38.0
_FIRST_NODES = 16
# The integrand is 1 at the saddle point, and the sum ends where the integrand is below _NOTHING. If
# the integrand becomes larger than _GROWTH times its smallest value so far, it increases along the
# path. Then a wider parabola is tried.
_NOTHING = 1e-17
_GROWTH = 4.0
_MOST_NODES = 1 << 14
# Stop if halving the step changes the sum by a relative amount of less than this. The error that
# remains is about the square of the change.
_CHANGE = 1e-6
_MOST_ATTEMPTS = 60
_MOST_BENDS = 40


@kernel
def tilted_moments(first, second, steps, log_F, lattice, z):
    """Fill ``steps[R, c]`` = arrival_c(R); return the mean and variance of the observation time.

    ``first[R]`` and ``second[R]`` receive the first two moments of the time at which R is left. The
    mean and the variance are taken over the possible final states, with their probabilities from
    `log_forward`.
    """
    Q = lattice.Q
    k = lattice.k
    for R in range(1 << k):
        hold = 1.0 / (z + Q[R])
        mean = 0.0
        square = 0.0
        for c in range(k):
            if R >> c & 1:
                a = arrival(log_F, lattice, z, R, c)
                steps[R, c] = a
                mean += a * first[R ^ (1 << c)]
                square += a * second[R ^ (1 << c)]
        first[R] = mean + hold
        second[R] = square + 2.0 * hold * first[R]
    need = lattice.need
    mean = 0.0
    square = 0.0
    for R in range(need, 1 << k):
        if R & need == need:
            mean += lattice.ends[R] * first[R]
            square += lattice.ends[R] * second[R]
    return mean, max(square - mean**2, 1e-300)


@helper
def next_tilt(tilt, mean, variance, t):
    """Return a better tilt c, by a Newton step for log mean as a function of log c.

    `mean` and `variance` are the mean and the variance of the observation time of the tilted chain,
    and `t` is the mean that this time should have.
    """
    slope = -variance * tilt / mean
    step = (math.log(t) - math.log(mean)) / slope
    return tilt * math.exp(min(max(step, -2.0), 2.0))


@helper
def node_weight(u, spread):
    """Return the weight of the node at u as a pair (real, imaginary).

    Factors that all weights have in common are left out.
    """
    size = math.exp(-spread * u * u)
    c = math.cos(2.0 * spread * u) * size
    s = math.sin(2.0 * spread * u) * size
    return c - u * s, s + u * c


@helper
def damp(re, im, shift_re, shift_im, hold):
    """Return (re + i im) / (1 + shift * hold) for a complex shift, as a pair (real, imaginary)."""
    a = 1.0 + shift_re * hold
    b = shift_im * hold
    size = 1.0 / (a * a + b * b)
    return (re * a + im * b) * size, (im * a - re * b) * size


@helper
def forward_ratio(u_re, u_im, steps, Q, z0, shift_re, shift_im, k):
    """Fill u(R) = F_z(R) / F_z0(R), the ratio of forward weights, for z = z0 + shift."""
    for R in range(1 << k):
        re = 1.0 if R == 0 else 0.0
        im = 0.0
        for c in range(k):
            if R >> c & 1:
                before = R ^ (1 << c)
                re += steps[R, c] * u_re[before]
                im += steps[R, c] * u_im[before]
        u_re[R], u_im[R] = damp(re, im, shift_re, shift_im, 1.0 / (z0 + Q[R]))


@helper
def at_ends(u_re, u_im, lattice):
    """Return the mean of u over the possible final states, as a pair (real, imaginary)."""
    need = lattice.need
    re = 0.0
    im = 0.0
    for R in range(need, 1 << lattice.k):
        if R & need == need:
            re += lattice.ends[R] * u_re[R]
            im += lattice.ends[R] * u_im[R]
    return re, im


@helper
def backward_ratio(eta_re, eta_im, steps, lattice, z0, shift_re, shift_im):
    """Fill eta(R) = visit(R) * T_z(R) / T_z0(R) for z = z0 + shift."""
    Q = lattice.Q
    k = lattice.k
    need = lattice.need
    last = (1 << k) - 1
    for R in range(last, -1, -1):
        re = lattice.ends[R] if R & need == need else 0.0
        im = 0.0
        for c in range(k):
            if not R >> c & 1:
                after = R | (1 << c)
                re += steps[after, c] * eta_re[after]
                im += steps[after, c] * eta_im[after]
        eta_re[R], eta_im[R] = damp(re, im, shift_re, shift_im, 1.0 / (z0 + Q[R]))


@kernel
def transient_set(t, lattice, log_F, steps, room, want_gradient):
    """Return log p(S | t), or NaN if rates are too large for a double; also return the tilt c.

    The smallest entry of Q is subtracted from Q in place. Otherwise, if exit rates are above 1e16 /
    t, adding the tilt to them would have no effect because of rounding.

    If `want_gradient` is true, two fields of `room` (a `TransientRoom`) are also filled. Both are
    conditional on S and t. ``times[R]`` is the mean time spent in R, divided by the tilted mean
    holding time 1 / (c + Q(R)). ``crossings[R, c]`` is the probability of the step R -> R + c.
    """
    Q = lattice.Q
    k = lattice.k
    first = room.first
    second = room.second
    u = room.u
    eta = room.eta
    times = room.times
    crossings = room.crossings
    states = 1 << k
    log_total = 0.0
    smallest = Q[0]
    for R in range(1, states):
        smallest = min(smallest, Q[R])
    for R in range(states):
        Q[R] -= smallest
    tilt = (k + 1) / t
    for attempt in range(_MOST_ATTEMPTS):
        log_total = log_forward(log_F, lattice, tilt)
        mean, variance = tilted_moments(first, second, steps, log_F, lattice, tilt)
        # Every point to the right of the poles is valid. So the saddle point need not be exact.
        if abs(math.log(mean / t)) < 0.05 or attempt == _MOST_ATTEMPTS - 1:
            break
        tilt = next_tilt(tilt, mean, variance, t)
    bend = 0.5 * tilt
    nodes = _MOST_NODES
    for _ in range(_MOST_BENDS):
        bend *= 2.0
        spread = bend * t
        step = math.sqrt(_TAIL / spread) / _FIRST_NODES
        total = 0.0
        lowest = 1.0
        nodes = 0
        # Add nodes until the integrand is negligible. Their number depends on the rates of all
        # items.
        while nodes < _MOST_NODES:
            x = nodes * step
            forward_ratio(u[0], u[1], steps, Q, tilt, -bend * x * x, 2.0 * bend * x, k)
            w_re, w_im = node_weight(x, spread)
            u_re, u_im = at_ends(u[0], u[1], lattice)
            re = w_re * u_re - w_im * u_im
            im = w_re * u_im + w_im * u_re
            total += re if nodes == 0 else 2.0 * re
            nodes += 1
            size = abs(re) + abs(im)
            if size < _NOTHING:
                break
            # End the loop: the integrand increases, or it is NaN because a rate is out of range.
            if not size <= _GROWTH * lowest:
                nodes = _MOST_NODES
            lowest = min(lowest, size)
        if nodes < _MOST_NODES:
            break
    if nodes >= _MOST_NODES:
        return np.nan, tilt
    while nodes < _MOST_NODES:
        # Halve the step. The integrand is then computed only at the new nodes, which lie between
        # the old nodes.
        step *= 0.5
        nodes *= 2
        added = 0.0
        for at in range(1, nodes, 2):
            x = at * step
            forward_ratio(u[0], u[1], steps, Q, tilt, -bend * x * x, 2.0 * bend * x, k)
            w_re, w_im = node_weight(x, spread)
            u_re, u_im = at_ends(u[0], u[1], lattice)
            added += 2.0 * (w_re * u_re - w_im * u_im)
        settled = abs(added - total) < _CHANGE * abs(added + total)
        total += added
        if settled:
            break
    if want_gradient:
        for R in range(states):
            times[R] = 0.0
            for c in range(k):
                crossings[R, c] = 0.0
        for at in range(nodes):
            x = at * step
            forward_ratio(u[0], u[1], steps, Q, tilt, -bend * x * x, 2.0 * bend * x, k)
            backward_ratio(eta[0], eta[1], steps, lattice, tilt, -bend * x * x, 2.0 * bend * x)
            w_re, w_im = node_weight(x, spread)
            share = (1.0 if at == 0 else 2.0) / total
            for R in range(states):
                re = (w_re * u[0, R] - w_im * u[1, R]) * share
                im = (w_re * u[1, R] + w_im * u[0, R]) * share
                times[R] += re * eta[0, R] - im * eta[1, R]
                for c in range(k):
                    if not R >> c & 1:
                        after = R | (1 << c)
                        crossed = re * eta[0, after] - im * eta[1, after]
                        crossings[R, c] += crossed * steps[after, c]
    return (tilt - smallest) * t + log_total + math.log(total * step * bend / math.pi), tilt


@kernel
def transient_gradient(G, room, lattice, tilt):
    """Fill G as `lattice.gradient` does, from the results of `transient_set`.

    The Q of the lattice must be as `transient_set` changed it.
    """
    low_log = lattice.low_log
    high_log = lattice.high_log
    Q = lattice.Q
    m = lattice.m
    k = lattice.k
    low = lattice.low
    times = room.times
    crossings = room.crossings
    width = 1 << low
    for b in range(k + 1):
        for c in range(m + 1):
            G[b, c] = 0.0
    for R in range(1 << k):
        tilted = tilt + Q[R]
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


@helper
def chain_product(x, bend, spread, hold):
    """Return the integrand for a sequence at the node x, as a pair (real, imaginary).

    It is the weight of the node times one factor per state. `hold` contains the mean holding times
    of the states in the tilted chain.
    """
    re, im = node_weight(x, spread)
    for i in range(hold.shape[0]):
        re, im = damp(re, im, -bend * x * x, 2.0 * bend * x, hold[i])
    return re, im


@helper
def transient_chain(t, exits, times):
    """Return the part of log p(sequence | t) that depends on the exit rates of the states.

    This part is log P(in the last state at time t) minus the sum of the log-rates of all steps. It
    is NaN if rates are too large for a double. ``times[i]`` receives the mean time spent in state
    i.
    """
    states = exits.shape[0]
    smallest = exits[0]
    for i in range(1, states):
        smallest = min(smallest, exits[i])
    hold = np.empty(states)
    tilt = states / t
    for attempt in range(_MOST_ATTEMPTS):
        mean = 0.0
        variance = 0.0
        for i in range(states):
            h = 1.0 / (tilt + (exits[i] - smallest))
            mean += h
            variance += h * h
        # Every point to the right of the poles is valid. So the saddle point need not be exact.
        if abs(math.log(mean / t)) < 0.05 or attempt == _MOST_ATTEMPTS - 1:
            break
        tilt = next_tilt(tilt, mean, variance, t)
    log_F = 0.0
    for i in range(states):
        hold[i] = 1.0 / (tilt + (exits[i] - smallest))
        log_F += math.log(hold[i])
    bend = 0.5 * tilt
    nodes = _MOST_NODES
    for _ in range(_MOST_BENDS):
        bend *= 2.0
        spread = bend * t
        step = math.sqrt(_TAIL / spread) / _FIRST_NODES
        total = 0.0
        lowest = 1.0
        nodes = 0
        while nodes < _MOST_NODES:
            re, im = chain_product(nodes * step, bend, spread, hold)
            total += re if nodes == 0 else 2.0 * re
            nodes += 1
            size = abs(re) + abs(im)
            if size < _NOTHING:
                break
            # End the loop: the integrand increases, or it is NaN because a rate is out of range.
            if not size <= _GROWTH * lowest:
                nodes = _MOST_NODES
            lowest = min(lowest, size)
        if nodes < _MOST_NODES:
            break
    if nodes >= _MOST_NODES:
        return np.nan
    while nodes < _MOST_NODES:
        step *= 0.5
        nodes *= 2
        added = 0.0
        for at in range(1, nodes, 2):
            re, im = chain_product(at * step, bend, spread, hold)
            added += 2.0 * re
        settled = abs(added - total) < _CHANGE * abs(added + total)
        total += added
        if settled:
            break
    for i in range(states):
        times[i] = 0.0
    for at in range(nodes):
        x = at * step
        re, im = chain_product(x, bend, spread, hold)
        share = (1.0 if at == 0 else 2.0) / total
        for i in range(states):
            once_more, _ = damp(re, im, -bend * x * x, 2.0 * bend * x, hold[i])
            times[i] += once_more * share * hold[i]
    return (tilt - smallest) * t + log_F + math.log(total * step * bend / math.pi)
