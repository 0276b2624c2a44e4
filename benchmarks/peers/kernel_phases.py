"""Profile the phases of the exact kernel: time each phase, and compare it with the peak speed.

A profiler of Python shows the kernel as one call of compiled code. This module calls the parts of
the kernel one by one for the same set, in the sequence in which the kernel calls them. So each part
has the same input as in a real evaluation. The time of the two matrix products of the gradient is
also measured separately.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from sequela.kernels.columns import high_table, low_table
from sequela.kernels.gemm import add_product
from sequela.kernels.lattice import gradient, holding_times
from sequela.kernels.recursion import (
    LOW_BITS,
    TILE_BITS,
    backward,
    forward,
    split_bits,
    tile_rates,
)
from sequela.support.jit import kernel

PHASES = _HOLDING, _FORWARD, _BACKWARD, _GRADIENT = range(4)
_PRODUCTS = 4
_TIMES = 5
_SECONDS = 0.2


@kernel
def _run(
    phase,
    repeats,
    k,
    m,
    rate,
    W,
    columns,
    I,
    F,
    T,
    flat_T,
    scratch,
    E,
    U,
    VS,
    VA,
    h,
    table,
    l,
    lT,
    G,
    base,
):
    """Run one phase of the kernel `repeats` times, for the set of the first k of m columns."""
    low, tile, tops = split_bits(k)
    rows = 1 << tile
    width = 1 << low
    zero = m - m
    one = zero + 1
    low_table(l, W, columns, m, k, low)
    high_table(table, W, columns, m, low, tile)
    for c in range(k, m):
        for x in range(width):
            lT[x, c] = l[c, x]
    flat = E.reshape(-1)
    flat_h = h.reshape(-1)
    for _ in range(repeats):
        if phase == 0:
            holding_times(I, h, flat_h, base, table, l, rate, W, columns, m, k, 0.0, 1.0)
        elif phase == 1:
            forward(F, I, h, base, table, l, rate, W, columns, k)
        elif phase == 2:
            backward(T, I, h, base, table, l, rate, W, columns, k, (1 << k) - 1)
        elif phase == 3:
            gradient(
                G,
                F,
                T,
                flat_T,
                F[-1, -1],
                scratch,
                E,
                U,
                VS,
                VA,
                h,
                base,
                table,
                l,
                lT,
                rate,
                W,
                columns,
                m,
                k,
            )
        else:
            for top in range(1 << tops):
                tile_rates(h, base, table, rate, W, columns, m, k, low + tile, top)
                add_product(VA, flat, one, E.shape[1], h, k, m, width, rows)
                add_product(U, flat, E.shape[1], one, lT, k, m, rows, width)


def arrays(n: int, k: int) -> dict[str, np.ndarray]:
    """Return the arrays of the kernel for the set of the first k of n items; theta has no zeros."""
    width, rows = 1 << min(k, LOW_BITS), 1 << min(k - min(k, LOW_BITS), TILE_BITS)
    flat_T = np.zeros((1 << k) + width)
    shape = (-1, width)
    return {
        "rate": np.exp(np.full(n, -3.0)),
        "W": np.exp(np.random.default_rng(0).uniform(-0.2, 0.2, (n, n))),
        "columns": np.arange(n),
        "I": np.empty(1 << k).reshape(shape),
        "F": np.empty(1 << k).reshape(shape),
        "T": flat_T[: 1 << k].reshape(shape),
        "flat_T": flat_T,
        "scratch": np.empty((2, width)),
        "E": np.empty((rows, width)),
        "U": np.empty((rows, n)),
        "VS": np.empty((k + 1, width)),
        "VA": np.empty((width, n)),
        "h": np.zeros((rows, n)),
        "table": np.empty((rows, n)),
        "l": np.empty((n, width)),
        "lT": np.empty((width, n)),
        "G": np.empty((k + 1, n + 1)),
        "base": np.empty(n),
    }


def run(phase: int, repeats: int, n: int, k: int, given: dict[str, np.ndarray]) -> float:
    """Run one phase `repeats` times; return the seconds."""
    start = time.perf_counter()
    _run(phase, repeats, k, n, *given.values())
    return time.perf_counter() - start


def phases(n: int, k: int, peak: float) -> list[dict[str, Any]]:
    """Return the times of the phases of a value and gradient, for one set of k of n items.

    Parameters
    ----------
    n, k : int
        Number of items, and number of items in the set (at least 8, so that rows are complete).
    peak : float
        GFlop/s of a matrix product on one thread, in this run.
    """
    given = arrays(n, k)

    run(_HOLDING, 1, n, k, given)  # this first call compiles the kernel if necessary

    def seconds(phase: int) -> float:
        repeats = max(1, int(_SECONDS / max(run(phase, 1, n, k, given), 1e-6)))
        return min(run(phase, repeats, n, k, given) / repeats for _ in range(_TIMES))

    states = 2.0**k
    spent = {phase: seconds(phase) for phase in PHASES}
    # Run this phase last, because it overwrites the input of the gradient.
    products = seconds(_PRODUCTS)
    # Number of operations: three per step into a state or out of it (k / 2 steps per state), six
    # per step in the gradient, and the operations of the matrix products.
    listed = [
        ("exit rates: a matrix product, and one division per state", spent[_HOLDING],
         (2 * n + 1) * states),
        ("forward over the subsets", spent[_FORWARD], 1.5 * k * states),
        ("backward over the subsets", spent[_BACKWARD], 1.5 * k * states),
        ("gradient: two matrix products", products, 4 * (n - k) * states),
        ("gradient: steps of the set's own items", max(spent[_GRADIENT] - products, 1e-9),
         (3 * k + 5) * states),
    ]  # fmt: skip
    total = sum(spent.values())
    return [
        {
            "n": n, "k": k, "phase": name, "seconds": taken, "share": taken / total,
            "GFlop/s": operations / taken / 1e9,
            "share of GEMM peak": operations / taken / 1e9 / peak,
        }
        for name, taken, operations in listed
    ]  # fmt: skip
