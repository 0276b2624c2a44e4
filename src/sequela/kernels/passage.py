"""The lattice in logarithms: correct for any theta, and the basis for posteriors of times.

The forward weights F of `lattice` are products over whole orders, which can be too large or too
small for a double. This module uses two probabilities, which always lie between 0 and 1. One is
``arrival_c(R)``, the probability that c was the last item to arrive, given that the chain is in R.
The other is ``visit(R)``, the probability that R was visited on the way to S. It is computed
backwards from S.

The kernels of this module have an argument z, which is a rate. For the marginal likelihood, z is
the rate of the observation. For the likelihood at a given time, z is a tilt (see `contour`). These
kernels are slower than the kernels of `lattice`, because they need one exp per step.
"""

import math

import numpy as np

from sequela.support.jit import helper, kernel

# Number of points of the Laplace transform that are computed together in one pass.
LANES = 8


@kernel
def log_tables(lattice, theta, columns):
    """Fill ``low_log[c, L]`` and ``high_log[c, H]`` of a `LogLattice`."""
    low_log = lattice.low_log
    high_log = lattice.high_log
    k = lattice.k
    low = lattice.low
    for c in range(lattice.m):
        j = columns[c]
        low_log[c, 0] = 0.0
        for b in range(low):
            half = 1 << b
            effect = 0.0 if b == c else theta[columns[b], j]
            for x in range(half):
                low_log[c, half + x] = low_log[c, x] + effect
        high_log[c, 0] = theta[j, j]
        for b in range(low, k):
            half = 1 << (b - low)
            effect = 0.0 if b == c else theta[columns[b], j]
            for x in range(half):
                high_log[c, half + x] = high_log[c, x] + effect


@kernel
def exit_rates(lattice, rest):
    """Fill Q[R], the sum of rates out of R without the observation; `rest` is a constant part."""
    low_log = lattice.low_log
    high_log = lattice.high_log
    Q = lattice.Q
    m = lattice.m
    k = lattice.k
    low = lattice.low
    width = 1 << low
    for R in range(1 << k):
        H = R >> low
        L = R & (width - 1)
        total = rest
        for c in range(m):
            if c >= k or not R >> c & 1:
                total += math.exp(high_log[c, H] + low_log[c, L])
        Q[R] = total


@helper
def log_step(lattice, before, c):
    """Return the log-rate of c in the state `before`; -inf if known orders exclude this step."""
    low = lattice.low
    high = before >> low
    rest = before & ((1 << low) - 1)
    log_rate = lattice.high_log[c, high] + lattice.low_log[c, rest]
    if lattice.guided:
        if before & lattice.must[c] != lattice.must[c]:
            return -np.inf
        log_rate += lattice.guide_high[c, high] + lattice.guide_low[c, rest]
    return log_rate


@helper
def weigh_ends(log_F, lattice):
    """Fill the probabilities of the possible final states; return the log of their summed F."""
    need = lattice.need
    ends = lattice.ends
    states = 1 << lattice.k
    largest = -np.inf
    for R in range(need, states):
        if R & need == need:
            largest = max(largest, log_F[R])
    total = 0.0
    for R in range(need, states):
        if R & need == need:
            ends[R] = math.exp(log_F[R] - largest)
            total += ends[R]
    for R in range(need, states):
        if R & need == need:
            ends[R] /= total
    return largest + math.log(total)


@kernel
def log_forward(log_F, lattice, z):
    """Fill log F, where ``F(R) = sum_c F(R - c) r_c(R - c) / (z + Q(R))``.

    Also fill the probabilities of the possible final states, and return the logarithm of the sum of
    F over these states.
    """
    Q = lattice.Q
    k = lattice.k
    terms = np.empty(k)
    log_F[0] = -math.log(z + Q[0])
    for R in range(1, 1 << k):
        count = 0
        largest = -np.inf
        for c in range(k):
            if R >> c & 1:
                before = R ^ (1 << c)
                term = log_F[before] + log_step(lattice, before, c)
                terms[count] = term
                largest = max(largest, term)
                count += 1
        if largest == -np.inf:  # known orders make this state impossible
            log_F[R] = -np.inf
            continue
        total = 0.0
        for at in range(count):
            total += math.exp(terms[at] - largest)
        log_F[R] = largest + math.log(total) - math.log(z + Q[R])
    return weigh_ends(log_F, lattice)


@kernel
def log_best(best, lattice, z):
    """Fill the log-weight of the most likely order of the items of each state R.

    The recursion of `log_forward` is used, with a maximum instead of the sum.
    """
    Q = lattice.Q
    k = lattice.k
    best[0] = -math.log(z + Q[0])
    for R in range(1, 1 << k):
        largest = -np.inf
        for c in range(k):
            if R >> c & 1:
                before = R ^ (1 << c)
                largest = max(largest, best[before] + log_step(lattice, before, c))
        best[R] = largest - math.log(z + Q[R])


@helper
def arrival(log_F, lattice, z, R, c):
    """Return the probability that c was the last item to arrive, given that the chain is in R."""
    if log_F[R] == -np.inf:
        return 0.0
    before = R ^ (1 << c)
    log_rate = log_step(lattice, before, c)
    return math.exp(log_F[before] + log_rate - math.log(z + lattice.Q[R]) - log_F[R])


@kernel
def laplace_transform(values, shifts, steps, lattice, z, u):
    """Fill ``values`` with F_{z + shift}(S) / F_z(S) for `LANES` shifts.

    A value is the posterior mean of exp(-shift T), where T is the observation time given S.
    ``steps[R, c]`` is the probability that c arrived last, given R (`contour.tilted_moments`).
    `values`, `shifts` and the rows of the scratch array `u` contain `LANES` real parts and then
    `LANES` imaginary parts. `LANES` is a constant, so that the loops over it are vectorised.
    """
    Q = lattice.Q
    k = lattice.k
    need = lattice.need
    ends = lattice.ends
    total = np.empty(2 * LANES)
    for R in range(1 << k):
        for i in range(2 * LANES):
            total[i] = 0.0
        for c in range(k):
            if R >> c & 1:
                before = u[R ^ (1 << c)]
                p = steps[R, c]
                for i in range(2 * LANES):
                    total[i] += p * before[i]
        if R == 0:
            for i in range(LANES):
                total[i] = 1.0
        here = u[R]
        hold = 1.0 / (z + Q[R])
        for i in range(LANES):
            x = 1.0 + shifts[i] * hold
            y = shifts[LANES + i] * hold
            size = 1.0 / (x * x + y * y)
            here[i] = (total[i] * x + total[LANES + i] * y) * size
            here[LANES + i] = (total[LANES + i] * x - total[i] * y) * size
    for i in range(2 * LANES):
        values[i] = 0.0
    for R in range(need, 1 << k):
        if R & need == need:
            for i in range(2 * LANES):
                values[i] += ends[R] * u[R, i]


@helper
def start_at_ends(visit, lattice):
    """Fill `visit` with the probabilities of the possible final states, and 0 for other states."""
    need = lattice.need
    for R in range(1 << lattice.k):
        visit[R] = lattice.ends[R] if R & need == need else 0.0


@kernel
def passage_gradient(G, visit, log_F, lattice, z):
    """Fill G as `lattice.gradient` does; `visit` receives the probabilities of visiting states."""
    low_log = lattice.low_log
    high_log = lattice.high_log
    Q = lattice.Q
    m = lattice.m
    k = lattice.k
    low = lattice.low
    width = 1 << low
    for b in range(k + 1):
        for c in range(m + 1):
            G[b, c] = 0.0
    start_at_ends(visit, lattice)
    present = np.empty(k + 1, np.int64)
    for R in range((1 << k) - 1, -1, -1):
        count = 0
        for b in range(k):
            if R >> b & 1:
                present[count] = b
                count += 1
        present[count] = k
        # Steps into R.
        for c in range(k):
            if R >> c & 1:
                step = visit[R] * arrival(log_F, lattice, z, R, c)
                visit[R ^ (1 << c)] += step
                for at in range(count + 1):
                    if present[at] != c:
                        G[present[at], c] += step
        # Expected steps out of R: the time spent in R times the rates.
        log_exit = math.log(z + Q[R])
        for at in range(count + 1):
            G[present[at], m] += visit[R] / (z + Q[R])
        for c in range(m):
            if c >= k or not R >> c & 1:
                log_rate = high_log[c, R >> low] + low_log[c, R & (width - 1)]
                steps = visit[R] * math.exp(log_rate - log_exit)
                for at in range(count + 1):
                    G[present[at], c] -= steps


@kernel
def passage_moments(moments, scratch, log_F, lattice, z):
    """Fill the posterior moments of the times of one set, and the orders of its items.

    In the `SetMoments`, ``times[:2]`` receives the mean and the second moment of the observation
    time. ``arrival_mean`` and ``arrival_second`` receive the mean and the second moment of the
    arrival time of each item. ``before[b, c]`` receives P(b before c | S). ``place[c, p]`` receives
    the probability that c arrived after exactly p other items that are known to be present. The
    first row of `scratch` is the probability of visiting each state R. The other two rows are the
    first two moments of the time at which R is left, given that the chain visits R. Given the
    order, holding times are independent and exponential with rate z + Q.
    """
    times = moments.times
    arrival_mean = moments.arrival_mean
    arrival_second = moments.arrival_second
    before = moments.before
    place = moments.place
    visit = scratch[0]
    first = scratch[1]
    second = scratch[2]
    Q = lattice.Q
    k = lattice.k
    need = lattice.need
    for R in range(1 << k):
        hold = 1.0 / (z + Q[R])
        mean = 0.0
        square = 0.0
        for c in range(k):
            if R >> c & 1:
                a = arrival(log_F, lattice, z, R, c)
                mean += a * first[R ^ (1 << c)]
                square += a * second[R ^ (1 << c)]
        first[R] = mean + hold
        second[R] = square + 2.0 * hold * first[R]
    last = (1 << k) - 1
    start_at_ends(visit, lattice)
    times[0] = 0.0
    times[1] = 0.0
    for R in range(need, last + 1):
        times[0] += visit[R] * first[R]
        times[1] += visit[R] * second[R]
    for b in range(k):
        arrival_mean[b] = 0.0
        arrival_second[b] = 0.0
        for c in range(k):
            before[b, c] = 0.0
            place[b, c] = 0.0
    for R in range(last, 0, -1):
        needed = 0
        for b in range(k):
            needed += (R & need) >> b & 1
        for c in range(k):
            if R >> c & 1:
                left = R ^ (1 << c)
                step = visit[R] * arrival(log_F, lattice, z, R, c)
                visit[left] += step
                place[c, needed - (need >> c & 1)] += step
                arrival_mean[c] += step * first[left]
                arrival_second[c] += step * second[left]
                for b in range(k):
                    if left >> b & 1:
                        before[b, c] += step


@kernel
def order_moments(moments, order, columns, exits, rates):
    """Add the moments along one order to `SetMoments`.

    ``exits[a]`` receives the total rate out of the state after the first a items, including the
    rate of the observation. `rates` is scratch with one entry per column.
    """
    before = moments.before
    Wc = columns.Wc
    rate = columns.rate
    k, m = Wc.shape
    for c in range(m):
        rates[c] = rate[c]
    mean = 0.0
    variance = 0.0
    for a in range(k + 1):
        total = columns.stop_rate + columns.rest
        for c in range(m):
            total += rates[c]
        exits[a] = total
        mean += 1.0 / total
        variance += 1.0 / (total * total)
        if a < k:
            v = order[a]
            moments.place[v, a] += 1.0
            moments.arrival_mean[v] += mean
            moments.arrival_second[v] += variance + mean * mean
            for earlier in range(a):
                before[order[earlier], v] += 1.0
            for c in range(m):
                rates[c] *= Wc[v, c]
            rates[v] = 0.0
    moments.times[0] += mean
    moments.times[1] += variance + mean * mean
