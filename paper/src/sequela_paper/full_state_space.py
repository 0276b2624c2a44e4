"""The exact method over all 2^n sets (Schill et al. 2019) in NumPy, for a comparison of times.

If samples are observed at rate 1, the distribution over all sets is p = (I - Q)^-1 e_0. Q is the
generator of the Markov chain, and each of its columns belongs to the set before an arrival:
Q[x + j, x] is the rate of item j in the set x, and Q[x, x] is minus the sum of the rates in x.
There are two ways to solve this linear system:

- "substitution": tabulate the rates of all items in all sets, and solve the triangular system by
  increasing set size. This needs n 2^n operations. No method over all sets can need much fewer.
- "sweeps": the published method. Jacobi's iteration ends after n sweeps, because the system is
  triangular. Each sweep multiplies by n Kronecker products of n factors, which are 2 x 2 matrices.
  This needs n^3 2^n operations, but only the memory of a few vectors of length 2^n.

The gradient needs a second solution with the transposed matrix. The penalised objective (eq. 3) is
maximised by L-BFGS-B over the positive and the negative parts of the interactions. In these
coordinates the L1 penalty is linear, so that zeros are exact.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from sequela.learning.independent_fit import fit_independent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset

__all__ = ["FullStateSpace", "Learned"]

_Level = tuple["NDArray[np.int32]", "NDArray[np.int8]", "NDArray[np.int8]"]


@dataclass(frozen=True)
class Learned:
    """The result of a fit.

    Attributes
    ----------
    theta : array
        The parameters; row i acts on column j.
    objective : float
        The penalised mean log-likelihood.
    evaluations : int
        Number of values with gradients.
    seconds : float
        Duration of the fit.
    finished : bool
        Whether the fit ended before the time limit.
    """

    theta: NDArray[np.float64]
    objective: float
    evaluations: int
    seconds: float
    finished: bool


class _OutOfTimeError(Exception):
    """Raised at the time limit, because SciPy's optimiser cannot be stopped in another way."""


class FullStateSpace:
    """The mean log-likelihood of a data set, from the probabilities of all 2^n sets.

    Parameters
    ----------
    data : Dataset
        The samples, with at most about 20 items.
    method : {"substitution", "sweeps"}
        How the two linear systems are solved.

    Examples
    --------
    >>> from sequela import Dataset
    >>> space = FullStateSpace(Dataset(np.array([[1, 0], [1, 1]])))
    >>> round(space.evaluate(np.zeros((2, 2)))[0], 7)
    -1.4451859
    """

    def __init__(self, data: Dataset, method: str = "substitution") -> None:
        self.n = data.n_items
        self.presence = data.values.astype(np.float64)
        self.seen, counts = np.unique(data.values @ (1 << np.arange(self.n)), return_counts=True)
        self.share = counts / data.n_samples
        self.method = method

    def evaluate(self, theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the mean log-likelihood and its gradient with respect to theta."""
        n = self.n
        weights = np.exp(theta)
        solve: Any = _Sweeps(weights)
        if self.method == "substitution":
            solve = _Substitution(weights, self._levels)
        start = np.zeros(1 << n)
        start[0] = 1.0
        p = solve(start, transposed=False)
        slope = np.zeros(1 << n)
        slope[self.seen] = self.share / p[self.seen]
        q = solve(slope, transposed=True)
        gradient = np.empty((n, n))
        for j in range(n):
            # An entry of the gradient is q' (dQ / d theta_ij) p. Here theta_ij changes the rate of
            # item j in the sets that contain i, or in all sets if i = j.
            flow = solve.rates_of(j) * p
            without, with_ = _halves(q, j)
            _halves(flow, j)[0][...] *= with_ - without
            gradient[:, j] = _sums_with_each(flow, n, j)
        return float(self.share @ np.log(p[self.seen])), gradient

    def learn(self, penalty: float, *, tol: float = 1e-4, time_limit: float = np.inf) -> Learned:
        """Maximise the penalised log-likelihood from the model without interactions.

        Parameters
        ----------
        penalty : float
            Weight of the L1 penalty.
        tol : float
            Stop when no entry of the projected gradient is larger than `tol`. In these coordinates
            the largest entry is the KKT residual.
        time_limit : float
            Seconds after which the fit stops, with the best theta so far.
        """
        began = time.perf_counter()
        n = self.n
        pairs = n * (n - 1)
        off = ~np.eye(n, dtype=bool)
        equal = np.full(len(self.presence), 1.0 / len(self.presence))
        base = fit_independent(self.presence, equal).log_rates
        best: tuple[float, float, NDArray[np.float64]] = (np.inf, np.nan, np.diag(base))
        evaluations = 0

        def loss(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            nonlocal best, evaluations
            if evaluations and time.perf_counter() - began > time_limit:
                raise _OutOfTimeError
            theta = np.diag(x[:n])
            theta[off] = x[n : n + pairs] - x[n + pairs :]
            value, gradient = self.evaluate(theta)
            evaluations += 1
            penalised = penalty * float(x[n:].sum()) - value
            if penalised < best[0]:
                best = (penalised, value, theta)
            slopes = gradient[off]
            return penalised, np.concatenate(
                [-np.diagonal(gradient), penalty - slopes, penalty + slopes]
            )

        finished = False
        try:
            found = minimize(
                loss, np.concatenate([base, np.zeros(2 * pairs)]), jac=True, method="L-BFGS-B",
                bounds=[(None, None)] * n + [(0.0, None)] * (2 * pairs),
                options={"gtol": tol, "ftol": 1e-14, "maxiter": 10_000, "maxfun": 10_000},
            )  # fmt: skip
            finished = bool(found.success)
        except _OutOfTimeError:
            pass
        seconds = time.perf_counter() - began
        _, value, theta = best
        objective = value - penalty * float(np.abs(theta[off]).sum())
        return Learned(theta, objective, evaluations, seconds, finished)

    @cached_property
    def _levels(self) -> list[_Level]:
        """Return the sets of each size, with the present items and the absent items of each set."""
        n = self.n
        sets = np.arange(1 << n, dtype=np.int32)
        places = np.arange(n, dtype=np.int32)
        present = sets[:, None] >> places & 1
        sizes = present.sum(axis=1)
        levels = []
        for size in range(n + 1):
            members = np.nonzero(sizes == size)[0]
            has = present[members].astype(bool)
            shape = (members.size, -1)
            levels.append(
                (
                    members.astype(np.int32),
                    np.nonzero(has)[1].astype(np.int8).reshape(shape),
                    np.nonzero(~has)[1].astype(np.int8).reshape(shape),
                )
            )
        return levels


class _Substitution:
    """Solve (I - Q) x = right, or the transposed system, with a table of all rates."""

    def __init__(self, weights: NDArray[np.float64], levels: list[_Level]) -> None:
        n = len(weights)
        self.levels = levels
        self.rates = np.stack([_rates_of(weights, j) for j in range(n)])
        self.total = 1.0 + self.rates.sum(axis=0)

    def rates_of(self, j: int) -> NDArray[np.float64]:
        """Return the rate of item j in every set."""
        found: NDArray[np.float64] = self.rates[j]
        return found

    def __call__(self, right: NDArray[np.float64], *, transposed: bool) -> NDArray[np.float64]:
        """Solve by increasing set size, or for the transposed matrix by decreasing set size."""
        x: NDArray[np.float64] = right / self.total
        if transposed:
            for members, _, lacks in reversed(self.levels[:-1]):
                later = members[:, None] | np.int32(1) << lacks.astype(np.int32)
                inflow = np.einsum("mi,mi->m", self.rates[lacks, members[:, None]], x[later])
                x[members] += inflow / self.total[members]
        else:
            for members, has, _ in self.levels[1:]:
                earlier = members[:, None] ^ np.int32(1) << has.astype(np.int32)
                inflow = np.einsum("mi,mi->m", self.rates[has, earlier], x[earlier])
                x[members] += inflow / self.total[members]
        return x


class _Sweeps:
    """Solve (I - Q) x = right, or the transposed system, by the method of Schill et al.

    This method needs no table of rates.
    """

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self.weights = weights
        self.total = np.ones(1 << len(weights))
        for j in range(len(weights)):
            self.total += _rates_of(weights, j)

    def rates_of(self, j: int) -> NDArray[np.float64]:
        """Return the rate of item j in every set."""
        return _rates_of(self.weights, j)

    def __call__(self, right: NDArray[np.float64], *, transposed: bool) -> NDArray[np.float64]:
        """Repeat n times x = (right + R x) / total, where R is Q without its diagonal."""
        x: NDArray[np.float64] = right / self.total
        for _ in range(len(self.weights)):
            x = (right + self._apply(x, transposed=transposed)) / self.total
        return x

    def _apply(self, x: NDArray[np.float64], *, transposed: bool) -> NDArray[np.float64]:
        """Return R x, a sum of one Kronecker product per item (eq. 4 of Schill et al.)."""
        n = len(self.weights)
        result = np.zeros_like(x)
        for j in range(n):
            part = x.copy()
            for i in range(n):
                without, with_ = _halves(part, i)
                if i != j:
                    with_ *= self.weights[i, j]
                elif transposed:
                    np.multiply(with_, self.weights[j, j], out=without)
                    with_[...] = 0.0
                else:
                    np.multiply(without, self.weights[j, j], out=with_)
                    without[...] = 0.0
            result += part
        return result


def _rates_of(weights: NDArray[np.float64], j: int) -> NDArray[np.float64]:
    """Return the rate of item j in every set; 0 if the set contains j (section 2)."""
    n = len(weights)
    rate = np.empty(1 << n)
    rate[0] = weights[j, j]
    for i in range(n):
        half = 1 << i
        np.multiply(rate[:half], 0.0 if i == j else weights[i, j], out=rate[half : 2 * half])
    return rate


def _halves(x: NDArray[np.float64], j: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two views: the entries of the sets without item j, and of the sets with item j."""
    split = x.reshape(-1, 2, 1 << j)
    return split[:, 0], split[:, 1]


def _sums_with_each(x: NDArray[np.float64], n: int, j: int) -> NDArray[np.float64]:
    """Return for each item i the sum of x over the sets with i; the sum for j is over all sets."""
    sums = np.empty(n)
    for i in reversed(range(n)):
        half = 1 << i
        sums[i] = x[half:].sum()
        x = x[:half] + x[half:]
    sums[j] = x[0]
    return sums
