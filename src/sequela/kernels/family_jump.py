"""Jumps between models that explain two items equally well: the family of models in Proposition 1.

The four parameters of a pair of items can be computed from four other numbers. Three of them are
probabilities in a model of these two items alone: p1 for the set of item 1 only, p2 for the set of
item 2 only, and p12 for the set of both. The fourth is w, the probability that item 1 came first if
both are present. If only w changes, all sets of the two items keep their probabilities
(Proposition 1). The models that differ only in w are a family. A jump keeps p1, p2 and p12, and
changes w: the new value is near the current value of w, or near 1 - w, which means the opposite
order. The map from (p1, p2, p12, logit w) to the four parameters is one to one. The determinant of
its derivatives is 1 / (p0 p1 p2 p12), where p0 is the probability of the empty set. This is the
same number for all models of the family. So a symmetric step of logit w needs no Jacobian factor.

A `guided` jump draws the new w on the other side of 1/2, in proportion to the prior density of the
pair's parameters along the family. This density has narrow peaks where one of the two effects is
near zero, which a symmetric step rarely hits. The family is the same before and after the jump, and
so is the density. Therefore the ratio of the probabilities of this proposal and of the reverse
proposal is known.

If `follow` is true, the effects of one other item, or of all other items, on the pair change as
well. For each such item k, consider a chain in which k is present from the start. The new effects
of k are chosen so that this chain keeps its marginal probabilities of item 1 and of item 2.

The latent orders of large samples contradict a model with the opposite order. So three of ten jumps
that change which item mostly comes first also exchange the two items in these orders.

A proposal can consist of several jumps of different pairs. They are accepted or rejected together.
For example, a cascade a, then b, then c can be reversed in one proposal.
"""

import math

import numpy as np

from sequela.kernels.prior_transform import base_coordinate, interaction_coordinate
from sequela.support.jit import helper

# A pair whose share w is closer to 0 or 1 than this does not jump, because its new parameters would
# consist of rounding errors.
_LEAST_SHARE = 1e-12
_MAX_NEWTON = 60
# Guided jumps divide the interval of logits from -_FARTHEST to _FARTHEST into cells. The number of
# cells is even, so that the share 1/2 is the boundary between two cells.
_FARTHEST = 12.0
_CELLS = 96


@helper
def pair_shares(one, two, on_two, on_one):
    """Return (p0, p1, p2, f, s): nothing, 1 only, 2 only, both with 1 first, both with 2 first.

    `one` and `two` are log base rates in units of the observation's rate, `on_two` is the effect of
    item 1 on item 2, `on_one` the reverse.
    """
    a = math.exp(one)
    b = math.exp(two)
    late_a = math.exp(one + on_one)
    late_b = math.exp(two + on_two)
    p0 = 1.0 / (1.0 + a + b)
    p1 = p0 * a / (1.0 + late_b)
    p2 = p0 * b / (1.0 + late_a)
    return p0, p1, p2, p1 * late_b, p2 * late_a


@helper
def log_absent(one, two, on_two, on_one, x, y):
    """Return log P(no 1) and log P(no 2) with another item's effects x and y, and derivatives.

    The last four numbers are d log P(no 1) / dx, dy, then d log P(no 2) / dx, dy.
    """
    a = math.exp(one + x)
    b = math.exp(two + y)
    late_a = math.exp(one + on_one + x)
    late_b = math.exp(two + on_two + y)
    p0 = 1.0 / (1.0 + a + b)
    u = b / (1.0 + late_a)
    v = a / (1.0 + late_b)
    return (
        math.log(p0) + math.log1p(u),
        math.log(p0) + math.log1p(v),
        -a * p0 - u * late_a / ((1.0 + late_a) * (1.0 + u)),
        -b * p0 + u / (1.0 + u),
        -a * p0 + v / (1.0 + v),
        -b * p0 - v * late_b / ((1.0 + late_b) * (1.0 + v)),
    )


@helper
def solve_effects(one, two, on_two, on_one, no_one, no_two, x, y):
    """Find effects x, y with the given log P(no 1) and log P(no 2), by Newton's method from x, y.

    Return (found, x, y, log of the absolute determinant of the derivatives).
    """
    for _ in range(_MAX_NEWTON):
        q1, q2, a, b, c, d = log_absent(one, two, on_two, on_one, x, y)
        determinant = a * d - b * c
        r = q1 - no_one
        s = q2 - no_two
        dx = (b * s - d * r) / determinant
        dy = (c * r - a * s) / determinant
        longest = max(abs(dx), abs(dy))
        if not longest < 1e6:
            return False, x, y, 0.0
        if longest > 1.0:
            dx /= longest
            dy /= longest
        x += dx
        y += dy
        if longest < 1e-11:
            q1, q2, a, b, c, d = log_absent(one, two, on_two, on_one, x, y)
            close = abs(q1 - no_one) + abs(q2 - no_two) < 1e-9
            return close, x, y, math.log(abs(a * d - b * c))
    return False, x, y, 0.0


@helper
def follow_effects(theta, z, old, new, i, j, third, unit, prior):
    """Change the effects of other items on i and j to follow the pair, in theta and z.

    These are the effects of the item `third`, or of all items but i and j if it is -1.

    `old` and `new` are the pair's four parameters. Return (found, log of the ratio of prior
    densities and Jacobians). A solution is used only if the reverse move leads back to the start.
    """
    n = theta.shape[0]
    gain = 0.0
    for k in range(n):
        if k in (i, j) or third not in (-1, k):
            continue
        x = theta[k, i]
        y = theta[k, j]
        q1, q2, a, b, c, d = log_absent(old[0], old[1], old[2], old[3], x, y)
        found, x1, y1, forth = solve_effects(new[0], new[1], new[2], new[3], q1, q2, x, y)
        if not found:
            return False, 0.0
        found, x2, y2, _ = solve_effects(old[0], old[1], old[2], old[3], q1, q2, x1, y1)
        if not found or abs(x2 - x) + abs(y2 - y) > 1e-6:
            return False, 0.0
        gain += math.log(abs(a * d - b * c)) - forth
        for target, before, after in ((i, x, x1), (j, y, y1)):
            _, density = interaction_coordinate(before, unit, prior)
            gain -= density
            z[k, target], density = interaction_coordinate(after, unit, prior)
            gain += density
            theta[k, target] = after
    return True, gain


@helper
def pair_density(pair, unit, shift, prior):
    """Return the four coordinates of a pair's parameters and the log-density of their prior."""
    z1, first = base_coordinate(pair[0] + shift, prior)
    z2, second = base_coordinate(pair[1] + shift, prior)
    z12, third = interaction_coordinate(pair[2], unit, prior)
    z21, fourth = interaction_coordinate(pair[3], unit, prior)
    return z1, z2, z12, z21, first + second + third + fourth


@helper
def pair_of_share(logit, p0, p1, p2, both):
    """Return the pair's parameters in the model of the family whose share w has this logit."""
    share = 1.0 / (1.0 + math.exp(-logit))
    first = share * both
    second = both - first if share < 0.5 else both / (1.0 + math.exp(logit))
    one = math.log((p1 + first) / p0)
    two = math.log((p2 + second) / p0)
    return one, two, math.log(first / p1) - two, math.log(second / p2) - one


@helper
def approximate_log_density(value, unit, prior):
    """Return the approximate log-density of an interaction's prior, without its constants.

    It is precise enough for proposals, and several times as fast as `interaction_coordinate`.
    """
    nodes = prior.nodes
    last = nodes.shape[1] - 1
    x = abs(value) / unit
    if x >= nodes[0, last]:
        z = last * prior.step + (x - nodes[0, last]) / nodes[1, last]
        return -0.5 * z * z - math.log(nodes[1, last])
    low = 0
    high = last
    while high - low > 1:
        middle = (low + high) // 2
        if nodes[0, middle] <= x:
            low = middle
        else:
            high = middle
    part = (x - nodes[0, low]) / (nodes[0, high] - nodes[0, low])
    z = (low + part) * prior.step
    return -0.5 * z * z - math.log((1.0 - part) * nodes[1, low] + part * nodes[1, high])


@helper
def guide_share(logit, level, p0, p1, p2, both, unit, shift, prior):
    """Draw a logit of the share with the opposite sign, by the prior density along the family.

    `level` is a uniform random number. Return (possible, new logit, log ratio). The log ratio is
    the log of the probability of proposing the reverse jump, divided by the probability of
    proposing this jump.
    """
    width = 2.0 * _FARTHEST / _CELLS
    here = math.floor((logit + _FARTHEST) / width)
    if here < 0 or here >= _CELLS:
        return False, logit, 0.0
    half = _CELLS // 2
    log_weight = np.empty(_CELLS)
    for at in range(_CELLS):
        one, two, on_two, on_one = pair_of_share((at + 0.5) * width - _FARTHEST, p0, p1, p2, both)
        z1, _ = base_coordinate(one + shift, prior)
        z2, _ = base_coordinate(two + shift, prior)
        log_weight[at] = (
            approximate_log_density(on_two, unit, prior)
            + approximate_log_density(on_one, unit, prior)
            - 0.5 * (z1 * z1 + z2 * z2)
        )
    largest = log_weight.max()
    weight = np.exp(log_weight - largest)
    left = weight[:half].sum()
    right = weight[half:].sum()
    first = half if here < half else 0
    there_sum = right if here < half else left
    here_sum = left if here < half else right
    if not (there_sum > 0.0 and here_sum > 0.0 and weight[here] > 0.0):
        return False, logit, 0.0
    rest = level * there_sum
    at = first
    while at < first + half - 1 and rest >= weight[at]:
        rest -= weight[at]
        at += 1
    if not weight[at] > 0.0:
        return False, logit, 0.0
    inside = min(max(rest / weight[at], 1e-9), 1.0 - 1e-9)
    ratio = log_weight[here] - math.log(here_sum) - log_weight[at] + math.log(there_sum)
    return True, (at + inside) * width - _FARTHEST, ratio


@helper
def change_order(theta, z, i, j, way, step, unit, target):
    """Change the share of the orders of i and j in a `JumpWay`, in theta and its coordinates z.

    `step` is a standard normal number, or a uniform number if the way is `guided`. Return
    (possible, log of the ratio of prior densities, Jacobians and proposals, whether another item
    now mostly comes first). Unless the way is guided, a second call leads back to the start. It
    needs the same step if `reflect` is true, and the opposite step (-step) otherwise.
    """
    prior = target.prior
    shift = math.log(target.stop_rate)
    old = (theta[i, i] - shift, theta[j, j] - shift, theta[i, j], theta[j, i])
    p0, p1, p2, f, s = pair_shares(old[0], old[1], old[2], old[3])
    both = f + s
    share = f / both
    if not (_LEAST_SHARE < share < 1.0 - _LEAST_SHARE):
        return False, 0.0, False
    logit = math.log(f) - math.log(s)
    ratio = 0.0
    if way.guided:
        possible, logit, ratio = guide_share(logit, step, p0, p1, p2, both, unit, shift, prior)
        if not possible:
            return False, 0.0, False
    else:
        logit = (-logit if way.reflect else logit) + way.width * step
    moved = 1.0 / (1.0 + math.exp(-logit))
    if not (_LEAST_SHARE < moved < 1.0 - _LEAST_SHARE):
        return False, 0.0, False
    new = pair_of_share(logit, p0, p1, p2, both)
    _, _, _, _, before = pair_density(old, unit, shift, prior)
    z[i, i], z[j, j], z[i, j], z[j, i], after = pair_density(new, unit, shift, prior)
    gain = after - before + ratio
    crossed = (share > 0.5) != (moved > 0.5)
    if way.follow:
        found, more = follow_effects(theta, z, old, new, i, j, way.third, unit, prior)
        if not found:
            return False, 0.0, False
        gain += more
    theta[i, i] = new[0] + shift
    theta[j, j] = new[1] + shift
    theta[i, j] = new[2]
    theta[j, i] = new[3]
    return True, gain, crossed


@helper
def exchange_items(orders, target, i, j):
    """Exchange the places of two items in all latent orders that have both."""
    for s in range(target.large_start.shape[0] - 1):
        first = -1
        second = -1
        for at in range(target.large_start[s], target.large_start[s + 1]):
            if orders[at] == i:
                first = at
            elif orders[at] == j:
                second = at
        if first >= 0 and second >= 0:
            orders[first] = j
            orders[second] = i
