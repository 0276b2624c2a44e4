"""Arrays that belong together and travel through the kernels as one argument.

Named tuples cost nothing inside compiled code, and a microsecond for each call from Python.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BlockSums",
    "ColumnRoom",
    "CrossTables",
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
    "ThetaTables",
    "Trajectory",
    "TransientRoom",
]


class ThetaTables(NamedTuple):
    """Theta in the forms that the lattice reads.

    ``W`` is exp(theta) with ones on the diagonal, ``rate`` the base rates. The non-zero effects of
    item i are on the items ``row_item[row_start[i]:row_start[i + 1]]``. ``shared`` tells which
    items take the shared-sum shortcut (`columns.SHORTCUT_LIMIT`), ``constant`` is the sum of their
    base rates, and ``fast`` lists the others. ``stop_rate`` is the rate of the observation.
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
    """Distinct sets: set s has the items ``items[start[s]:start[s + 1]]`` and a weight.

    The first ``known[s]`` of these items are present, the others are missing cells; where ``known``
    is empty, all items are present.
    """

    start: NDArray[np.int64]
    items: NDArray[np.int64]
    weights: NDArray[np.float64]
    known: NDArray[np.int64] = np.empty(0, np.int64)


class PhaseTables(NamedTuple):
    """An observation time as phases: a mixture of exponential times, then equal stages.

    The mixture has the exponential `rates` with `weights` that add up to 1; it is followed by
    `stages` exponential times with the rate `stage_rate`. See `phases`.
    """

    rates: NDArray[np.float64]
    weights: NDArray[np.float64]
    stages: int
    stage_rate: float


class BlockSums(NamedTuple):
    """What a block of sets fills in: log p of each set, and sums over the block.

    ``in_range[s]`` is False for a set whose weights may leave the range of a double. ``gradient``
    and ``present`` are the sums that `lattice.scatter` describes.
    """

    log_p: NDArray[np.float64]
    in_range: NDArray[np.bool_]
    gradient: NDArray[np.float64]
    present: NDArray[np.float64]


class ColumnRoom(NamedTuple):
    """Room for the columns of one set: see `columns.choose_columns`."""

    columns: NDArray[np.int64]
    above: NDArray[np.float64]
    below: NDArray[np.float64]
    mark: NDArray[np.int64]


class SetColumns(NamedTuple):
    """What the samplers of orders need of theta for one set of k items and m columns.

    ``effects[b, c]`` is the log-effect of item b on column c and ``Wc`` its exponential, ``rate``
    are the base rates of the columns, ``rest`` is the constant rate of all other items, and
    ``stop_rate`` that of the observation.
    """

    Wc: NDArray[np.float64]
    effects: NDArray[np.float64]
    rate: NDArray[np.float64]
    rest: float
    stop_rate: float


class LogLattice(NamedTuple):
    """The lattice of one set in logarithms, and the total rate Q out of each state.

    The log-rate of column c in the state (H, L) is ``high_log[c, H] + low_log[c, L]``; the set has
    k items, of which `low` are the low bits of a state, and m columns.

    States that have all bits of ``need`` are ends: those in which the sample may have been
    observed. ``ends[R]`` receives the probability of each (`passage.log_forward`). All items of a
    complete sample are needed, so that it has one end, the full state.

    If `guided`, something is known about the order: item c cannot arrive before all bits of
    ``must[c]`` are there, and its arrival in the state (H, L) has the log-weight
    ``guide_high[c, H] + guide_low[c, L]``.
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

    ``times`` has two entries, ``arrival_mean`` and ``arrival_second`` k each, ``before`` and
    ``place`` k x k.
    """

    times: NDArray[np.float64]
    arrival_mean: NDArray[np.float64]
    arrival_second: NDArray[np.float64]
    before: NDArray[np.float64]
    place: NDArray[np.float64]


class TransientRoom(NamedTuple):
    """What `contour.transient_set` fills in and works with.

    ``times[R]`` and ``crossings[R, c]`` are its results, the rest is scratch: ``u`` and ``eta``
    have a row for real and one for imaginary parts.
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    u: NDArray[np.float64]
    eta: NDArray[np.float64]
    times: NDArray[np.float64]
    crossings: NDArray[np.float64]


class ProductLists(NamedTuple):
    """Of which components and isolated items each set is made, as places in two tables.

    Set s has the components ``components[component_start[s]:component_start[s + 1]]``, and the
    same of isolated items.
    """

    component_start: NDArray[np.int64]
    components: NDArray[np.int64]
    isolated_start: NDArray[np.int64]
    isolated: NDArray[np.int64]


class PanelPoints(NamedTuple):
    """Times on the panels of a grid: their panels, and the Legendre polynomials there."""

    panel: NDArray[np.int64]
    values: NDArray[np.float64]


class PriorShape(NamedTuple):
    """A prior as a map from standard normal coordinates z to theta: see `prior_transform`.

    ``nodes`` are values (first row) and slopes (second row) of the map of an interaction, in units
    of the scale, at z = 0, step, 2 step, ... A log base rate is ``base_mean + base_sd * z``. The
    log of the scale is ``log_median + log_spread * z``; a spread of 0 fixes it.
    """

    nodes: NDArray[np.float64]
    step: float
    base_mean: float
    base_sd: float
    log_median: float
    log_spread: float


class PosteriorTarget(NamedTuple):
    """What a Markov chain over theta samples from.

    ``sets`` are the distinct sets, of which ``lattice`` lists those that are summed exactly.
    ``large_start`` and ``large_items`` are the samples that carry a latent order instead, one row
    of items after the other. ``total`` is the number of samples, ``power`` the exponent of the
    likelihood of the lattice sets (1 in the posterior, less in a heated replica), and
    ``stop_rate`` the rate of the observation.
    """

    sets: SetList
    lattice: NDArray[np.int64]
    large_start: NDArray[np.int64]
    large_items: NDArray[np.int64]
    total: float
    power: float
    stop_rate: float
    prior: PriorShape


class PosteriorState(NamedTuple):
    """Where a Markov chain over theta stands; kernels change it in place.

    ``z`` are the coordinates of theta, ``scale`` holds the coordinate of the scale, ``orders`` the
    current orders of the large samples (items, laid out as ``large_items``), and ``values`` the
    log-likelihood of the lattice sets and that of the large samples.
    """

    z: NDArray[np.float64]
    scale: NDArray[np.float64]
    orders: NDArray[np.int64]
    values: NDArray[np.float64]


class Trajectory(NamedTuple):
    """How Hamiltonian trajectories run: step size, fewest and most steps, and the reference.

    The reference is a normal distribution with the mean ``centre``. Its covariance is the identity
    minus ``directions.T @ diag(shrink) @ directions``; the rows of ``directions`` are orthonormal.
    Coordinates are those of theta, row by row, then that of the scale.
    """

    step: float
    fewest_steps: int
    most_steps: int
    centre: NDArray[np.float64]
    directions: NDArray[np.float64]
    shrink: NDArray[np.float64]


class Moments(NamedTuple):
    """Moments before several observation times, one after the other.

    ``start[q]`` is where those before time q begin; `before` and `after` say where they lie after
    0 and before the observation time.
    """

    start: NDArray[np.int64]
    before: PanelPoints
    after: PanelPoints


class CrossTables(NamedTuple):
    """Functions of a component, forward and backward as (panel, degree, state), and its rates."""

    forward: NDArray[np.float64]
    backward: NDArray[np.float64]
    rates: NDArray[np.float64]


class Places(NamedTuple):
    """Rows or columns of a table: the item of each, and the part of a set that it belongs to."""

    item: NDArray[np.int64]
    part: NDArray[np.int64]
