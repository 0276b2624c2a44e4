"""Groups of arrays that are passed to kernels as one argument.

A named tuple takes no extra time inside compiled code. To pass one from Python takes about a
microsecond per call.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BlockSums",
    "ColumnRoom",
    "CrossTables",
    "CurrentRates",
    "HistoryList",
    "LogLattice",
    "Moments",
    "PanelPoints",
    "PhaseTables",
    "Places",
    "PosteriorState",
    "PosteriorTarget",
    "PriorShape",
    "ProductLists",
    "SetColumns",
    "SetList",
    "SetMoments",
    "SharedLattice",
    "ThetaTables",
    "Trajectory",
    "TransientRoom",
]


class ThetaTables(NamedTuple):
    """Theta in the forms that the lattice needs.

    ``W`` is exp(theta) with ones on the diagonal, and ``rate`` holds the base rates. Item i has
    non-zero effects on the items ``row_item[row_start[i]:row_start[i + 1]]``. ``shared`` marks the
    items whose base rates are added up once for all sets (see `columns.SHORTCUT_LIMIT`).
    ``constant`` is the sum of these base rates, and ``fast`` lists the items that are not marked.
    ``stop_rate`` is the rate of the observation.
    """

    theta: NDArray[np.float64]
    W: NDArray[np.float64]
    rate: NDArray[np.float64]
    row_start: NDArray[np.int64]
    row_item: NDArray[np.int64]
    shared: NDArray[np.bool_]
    constant: float
    fast: NDArray[np.int64]
    stop_rate: float


class SetList(NamedTuple):
    """Distinct sets: set s has the items ``items[start[s]:start[s + 1]]`` and ``weights[s]``.

    The first ``known[s]`` of these items are present, and the others are missing cells. If
    ``known`` is empty, all items of all sets are present.
    """

    start: NDArray[np.int64]
    items: NDArray[np.int64]
    weights: NDArray[np.float64]
    known: NDArray[np.int64] = np.empty(0, np.int64)


class PhaseTables(NamedTuple):
    """The distribution of an observation time that is a sum of exponential times (see `phases`).

    The first time comes from a mixture of exponential distributions, which has these `rates` and
    `weights`; the weights add up to 1. The other `stages` times all have the rate `stage_rate`.
    """

    rates: NDArray[np.float64]
    weights: NDArray[np.float64]
    stages: int
    stage_rate: float


class BlockSums(NamedTuple):
    """The results of a block of sets: log p of each set, and sums over the block.

    ``in_range[s]`` is False if the forward weights of set s may leave the range of a double.
    ``gradient`` is the sum of the gradients of the sets, each times the weight of its set. For each
    item i, ``present[i]`` is the weighted sum over the sets of the mean time for which item i has
    been present. The last entry of ``present`` is the weighted sum of the mean observation times.
    `lattice.scatter` adds the terms of one set to ``gradient`` and to ``present``.
    """

    log_p: NDArray[np.float64]
    in_range: NDArray[np.bool_]
    gradient: NDArray[np.float64]
    present: NDArray[np.float64]


class ColumnRoom(NamedTuple):
    """Arrays for the columns of one set: see `columns.choose_columns`."""

    columns: NDArray[np.int64]
    above: NDArray[np.float64]
    below: NDArray[np.float64]
    mark: NDArray[np.int64]


class SetColumns(NamedTuple):
    """The entries of theta for one set of k items and m columns, for the samplers of orders.

    ``effects[b, c]`` is the log-effect of item b on column c, and ``Wc`` its exponential. ``rate``
    holds the base rates of the columns, ``rest`` is the sum of the rates of all other items, which
    is constant, and ``stop_rate`` is the rate of the observation.
    """

    Wc: NDArray[np.float64]
    effects: NDArray[np.float64]
    rate: NDArray[np.float64]
    rest: float
    stop_rate: float


class LogLattice(NamedTuple):
    """The lattice of one set in logarithms, and the total rate Q out of each state.

    The set has k items and m columns. The low bits of a state, L, are the first `low` items; the
    high bits, H, are the others. The log-rate of column c in the state (H, L) is
    ``high_log[c, H] + low_log[c, L]``.

    The states that have all bits of ``need`` are called ends, because the sample may have been
    observed in any of them. If R is an end, ``ends[R]`` receives its probability
    (`passage.log_forward`). A complete sample needs all its items, so its only end is the full
    state.

    If `guided`, the order is partly known: item c cannot arrive before all items of ``must[c]``
    are present, and ``guide_high[c, H] + guide_low[c, L]`` is added to the log-rate of its arrival
    in the state (H, L).
    """

    low_log: NDArray[np.float64]
    high_log: NDArray[np.float64]
    Q: NDArray[np.float64]
    m: int
    k: int
    low: int
    need: int
    ends: NDArray[np.float64]
    guided: bool
    must: NDArray[np.int64]
    guide_low: NDArray[np.float64]
    guide_high: NDArray[np.float64]


class SetMoments(NamedTuple):
    """Moments of the times of one set of k items: see `passage.passage_moments`.

    ``times`` has the mean and the second moment of the observation time. ``arrival_mean`` and
    ``arrival_second`` have the same moments of the arrival time of each item (k entries).
    ``before[b, c]`` is the probability that b arrived before c, and ``place[c, p]`` is the
    probability that c arrived after exactly p other items (k x k arrays).
    """

    times: NDArray[np.float64]
    arrival_mean: NDArray[np.float64]
    arrival_second: NDArray[np.float64]
    before: NDArray[np.float64]
    place: NDArray[np.float64]


class TransientRoom(NamedTuple):
    """Results and scratch arrays of `contour.transient_set`.

    ``times[R]`` and ``crossings[R, c]`` are results. The other arrays are scratch. ``u`` and
    ``eta`` have one row for the real parts and one row for the imaginary parts.
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    u: NDArray[np.float64]
    eta: NDArray[np.float64]
    times: NDArray[np.float64]
    crossings: NDArray[np.float64]


class ProductLists(NamedTuple):
    """The components and isolated items of each set, as row numbers of two tables.

    Set s has the components ``components[component_start[s]:component_start[s + 1]]``. Isolated
    items are stored in the same way. `components.integrate_sets` explains the two tables.
    """

    component_start: NDArray[np.int64]
    components: NDArray[np.int64]
    isolated_start: NDArray[np.int64]
    isolated: NDArray[np.int64]


class PanelPoints(NamedTuple):
    """Several times on panels (see `panels`).

    ``panel[a]`` is the number of the panel that contains time a, and ``values[a, n]`` is the value
    of the Legendre polynomial of degree n at this time.
    """

    panel: NDArray[np.int64]
    values: NDArray[np.float64]


class PriorShape(NamedTuple):
    """A prior as a map from standard normal coordinates z to theta: see `prior_transform`.

    An interaction is a function h of its coordinate z, times the scale of the prior. ``nodes`` has
    the values of h (first row) and its slopes (second row) at z = 0, step, 2 step, ... A log base
    rate is ``base_mean + base_sd * z``. The log of the scale is ``log_median + log_spread * z``. If
    ``log_spread`` is 0, the scale is fixed.
    """

    nodes: NDArray[np.float64]
    step: float
    base_mean: float
    base_sd: float
    log_median: float
    log_spread: float


class SharedLattice(NamedTuple):
    """The states that are subsets of several sets, each listed once, sorted by their bit masks.

    For each state, ``size`` is its number of items, ``item`` its lowest item, ``parent`` the state
    without this item, and ``samples`` the number of complete samples with exactly this set.
    ``observed`` lists the states with such samples. ``largest`` is the largest size. The steps from
    state s to states with one more item have the numbers from ``step_start[s]`` to
    ``step_start[s + 1] - 1``. For each step, ``step_item`` is the item that arrives, and
    ``step_to`` is the next state.

    A second list has the same steps, sorted by the state to which they lead. In this list, the
    steps to state s have the numbers from ``way_start[s]`` to ``way_start[s + 1] - 1``. The last of
    them comes from the parent of s. For each step of this list, ``way_from`` is the state before
    the step, and ``way_item`` is the item that arrives. The numbers of the steps at which item i
    arrives are ``item_way[item_start[i]:item_start[i + 1]]``.

    Equal samples with missing cells form a group. Group g has ``group_count[g]`` samples. Each of
    them may be in any of the states ``end[end_start[g]:end_start[g + 1]]``. In the groups from
    ``pattern_start[p]`` to ``pattern_start[p + 1] - 1``, the cells of the same items are missing.
    ``is_known[p]`` marks the items whose cells are known in these groups.
    """

    size: NDArray[np.int64]
    largest: int
    item: NDArray[np.int64]
    parent: NDArray[np.int64]
    step_start: NDArray[np.int64]
    step_item: NDArray[np.uint32]
    step_to: NDArray[np.uint32]
    way_start: NDArray[np.int64]
    way_from: NDArray[np.uint32]
    way_item: NDArray[np.uint32]
    item_start: NDArray[np.int64]
    item_way: NDArray[np.uint32]
    samples: NDArray[np.float64]
    observed: NDArray[np.int64]
    group_count: NDArray[np.float64]
    end_start: NDArray[np.int64]
    end: NDArray[np.int64]
    pattern_start: NDArray[np.int64]
    is_known: NDArray[np.bool_]


class HistoryList(NamedTuple):
    """Partly known samples, each of which has a latent history.

    The items of sample s are ``items[start[s]:start[s + 1]]``, where `items` is ``large_items`` of
    `PosteriorTarget`. The first ``present[s]`` of them are present, and the others are missing
    cells. A history is an order of the present items and some of the missing items. The current
    history of sample s is stored in ``orders`` of `PosteriorState`, at the same positions as these
    items. Entries after its last item are -1.

    The statements about the order of sample s have the numbers from ``statement_start[s]`` to
    ``statement_start[s + 1] - 1``. Each one says that the item ``before`` arrived before the item
    ``after``, and is right with the probability ``right``.
    """

    start: NDArray[np.int64]
    present: NDArray[np.int64]
    statement_start: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    right: NDArray[np.float64]


_NO_ITEMS = np.empty(0, np.int64)
_NO_HISTORIES = HistoryList(
    np.zeros(1, np.int64), _NO_ITEMS, np.zeros(1, np.int64), _NO_ITEMS, _NO_ITEMS, np.empty(0)
)


class PosteriorTarget(NamedTuple):
    """The target distribution of a Markov chain over theta.

    ``sets`` are the distinct sets. ``lattice`` lists the sets whose likelihood is summed exactly
    (the lattice sets), and ``shared`` is the union of their lattices. Each of the other complete
    samples has a latent order. ``large_start`` and ``large_items`` hold the items of these samples,
    concatenated. Partly known samples have latent ``histories``. The items of these samples are at
    the end of ``large_items``. ``total`` is the number of samples. ``power`` is the exponent of the
    likelihood of the lattice sets: 1 in the posterior, smaller in a heated replica. ``stop_rate``
    is the rate of the observation.
    """

    sets: SetList
    lattice: NDArray[np.int64]
    shared: SharedLattice
    large_start: NDArray[np.int64]
    large_items: NDArray[np.int64]
    total: float
    power: float
    stop_rate: float
    prior: PriorShape
    histories: HistoryList = _NO_HISTORIES


class PosteriorState(NamedTuple):
    """The state of a Markov chain over theta; kernels change it in place.

    ``z`` holds the coordinates of theta, and ``scale`` the coordinate of the scale of the prior.
    ``orders`` holds the current orders of the large samples and the current histories of the partly
    known samples, in the layout of ``large_items``. ``values`` holds two log-likelihoods: one of
    the lattice sets, and one of these orders and histories.
    """

    z: NDArray[np.float64]
    scale: NDArray[np.float64]
    orders: NDArray[np.int64]
    values: NDArray[np.float64]


class CurrentRates(NamedTuple):
    """Rates at the current theta of a chain; see `sequela.kernels.column_change`.

    ``factors`` is exp(theta) with zeros on the diagonal, and ``base`` has the base rates. ``exits``
    are the exit rates of the states of the shared lattice. ``ways`` are the rates of the steps of
    this lattice, in the sequence of ``SharedLattice.way_from``. The other arrays belong to a
    proposed theta, in which some columns have changed. ``old`` and ``new`` (columns, states) have
    the rates of the items of these columns before and after the change. ``old_factors`` and
    ``new_factors`` (columns, n) are these columns of the factors. ``new_exits``, ``holding`` and
    ``times`` are the exit rates of all states, their inverses, and the expected times in all
    states.
    """

    theta: NDArray[np.float64]
    factors: NDArray[np.float64]
    base: NDArray[np.float64]
    exits: NDArray[np.float64]
    ways: NDArray[np.float64]
    old: NDArray[np.float64]
    new: NDArray[np.float64]
    old_factors: NDArray[np.float64]
    new_factors: NDArray[np.float64]
    new_exits: NDArray[np.float64]
    holding: NDArray[np.float64]
    times: NDArray[np.float64]


class Trajectory(NamedTuple):
    """Settings of Hamiltonian trajectories: step size, numbers of steps, reference distribution.

    The reference is a normal distribution with the mean ``centre``. Its covariance is the identity
    minus ``directions.T @ diag(shrink) @ directions``; the rows of ``directions`` are orthonormal.
    The coordinates are the stretched coordinates of the entries of theta (`stretched_coordinates`),
    row by row, and then the coordinate of the scale. ``rounded`` is ``directions`` in single
    precision.
    """

    step: float
    fewest_steps: int
    most_steps: int
    centre: NDArray[np.float64]
    directions: NDArray[np.float64]
    shrink: NDArray[np.float64]
    rounded: NDArray[np.float32]


class JumpWay(NamedTuple):
    """How a jump of a pair of items changes theta; see `sequela.kernels.family_jump`.

    Items 1 and 2 are the pair. Let w be the probability that item 1 came first, if both are
    present. If ``reflect`` is true, w is first replaced by 1 - w. Then a normal random number with
    the standard deviation ``width`` is added to the logit of w. If ``guided`` is true, the new w is
    instead drawn in proportion to the prior density, on the other side of 1/2. If ``follow`` is
    true, effects on the pair change, too: the effects of the item ``third`` or, if ``third`` is -1,
    the effects of all other items.
    """

    reflect: bool
    width: float
    guided: bool
    follow: bool
    third: int = -1


class Moments(NamedTuple):
    """Points in time ("moments") between 0 and each of several observation times.

    The moments of all observation times are in one array. The moments before observation time
    number q are those from ``start[q]`` to ``start[q + 1] - 1``. For each moment, `before` is the
    time from 0 to the moment, and `after` is the time from the moment to the observation. Both are
    given as points on panels.
    """

    start: NDArray[np.int64]
    before: PanelPoints
    after: PanelPoints


class CrossTables(NamedTuple):
    """The functions and the rates of one component (see `crossing`).

    ``forward`` and ``backward`` are the coefficients of the forward and backward probabilities,
    with the axes panel, degree and state. ``rates[c, R]`` is the rate of column c in state R.
    """

    forward: NDArray[np.float64]
    backward: NDArray[np.float64]
    rates: NDArray[np.float64]


class Places(NamedTuple):
    """The rows (or the columns) of a table of products: see `crossing.add_pairs`.

    Row r belongs to the item ``item[r]`` of the part ``part[r]``. A part is a component of the sets
    or an isolated item.
    """

    item: NDArray[np.int64]
    part: NDArray[np.int64]
