"""Represent functions of time on panels, and solve linear differential equations for them.

A function of the time t >= 0 is a table of Legendre coefficients: ``y[n, j]`` belongs to the
polynomial of degree n on panel j. Panels begin at 0 and double in length. This is fine enough for
all time scales between the first and the last panel: at time t, a sum of terms t^a exp(-q t)
changes only on the scale of t.

The source f of the equation y' = f - q y is a function on panels. The equation is integrated once.
The integral of a Legendre polynomial is proportional to the difference of the polynomials of the
next and the previous degree. So the integrated equation is a tridiagonal system for the
coefficients of each panel. All pivots are positive, for any q. The systems of all panels are solved
together in vectorised loops. Then the solutions are connected by their values at the ends of the
panels.
"""

import numpy as np

from sequela.support.jit import helper, kernel

# Number of coefficients per panel. With this number, the errors of functions t^a exp(-q t) on a
# panel [h, 2h], and of gradients, are about 1e-13. With 16 coefficients, the gradient for ten items
# had an error of 2e-10.
DEGREES = 20


@helper
def solve_forward(y, f, q, start, half, room):
    """Fill y with the solution of y' = f - q y, y(0) = start.

    `half` contains half the length of each panel. `room` is scratch of shape (2, DEGREES, panels).
    It must not share memory with y or f.
    """
    degrees, panels = y.shape
    slope = room[0]
    alone = room[1]
    # Solve the tridiagonal systems by elimination. On each panel, y receives the solution that
    # starts at 0, and `alone` receives the solution without source that starts at 1.
    for j in range(panels):
        z = q * half[j]
        inverse = 1.0 / (1.0 + z)
        slope[0, j] = -z / 3.0 * inverse
        alone[0, j] = inverse
        y[0, j] = half[j] * (f[0, j] - f[1, j] / 3.0) * inverse
    for n in range(1, degrees):
        below = 1.0 / (2 * n - 1)
        above = 1.0 / (2 * n + 3)
        more = n + 1 < degrees
        for j in range(panels):
            z = q * half[j]
            lower = z * below
            inverse = 1.0 / (1.0 - lower * slope[n - 1, j])
            source = f[n - 1, j] * below
            if more:
                source -= f[n + 1, j] * above
            y[n, j] = (half[j] * source - lower * y[n - 1, j]) * inverse
            alone[n, j] = -lower * alone[n - 1, j] * inverse
            slope[n, j] = -z * above * inverse
    for n in range(degrees - 2, -1, -1):
        for j in range(panels):
            y[n, j] -= slope[n, j] * y[n + 1, j]
            alone[n, j] -= slope[n, j] * alone[n + 1, j]
    # Connect the panels. The rows of `slope` are used again: row 0 for the values of y at the ends
    # of the panels, row 1 for the values of `alone` at the ends, and row 2 for the values of y at
    # the beginnings.
    for j in range(panels):
        slope[0, j] = 0.0
        slope[1, j] = 0.0
    for n in range(degrees):
        for j in range(panels):
            slope[0, j] += y[n, j]
            slope[1, j] += alone[n, j]
    value = start
    for j in range(panels):
        slope[2, j] = value
        value = slope[0, j] + value * slope[1, j]
    for n in range(degrees):
        for j in range(panels):
            y[n, j] += slope[2, j] * alone[n, j]


@helper
def reverse_time(reversed_, y, scale):
    """Fill the coefficients of y(T - t), given those of y(t); T is the end of the last panel.

    Each coefficient of y is multiplied by its entry of `scale`. The panels are stored in reverse
    sequence, and polynomials of odd degree change their sign.
    """
    degrees, panels = y.shape
    for n in range(degrees):
        sign = -1.0 if n & 1 else 1.0
        for j in range(panels):
            reversed_[n, panels - 1 - j] = sign * y[n, j] * scale[n, j]


@kernel
def legendre_at(panel, values, edges, times):
    """Fill ``panel[a]``, the panel of time a, and ``values[a, n]``, the polynomials at this time.

    These are the Legendre polynomials of degree n on the panel. `edges` contains 0 and the ends of
    the panels.
    """
    panels = edges.shape[0] - 1
    degrees = values.shape[1]
    for a in range(times.shape[0]):
        j = 0
        while j < panels - 1 and times[a] > edges[j + 1]:
            j += 1
        panel[a] = j
        x = 2.0 * (times[a] - edges[j]) / (edges[j + 1] - edges[j]) - 1.0
        row = values[a]
        row[0] = 1.0
        row[1] = x
        for n in range(1, degrees - 1):
            row[n + 1] = ((2 * n + 1) * x * row[n] - n * row[n - 1]) / (n + 1)


@helper
def integral_at(x, coefficients):
    """Return the integral from -1 to x of a sum of Legendre polynomials."""
    before = 1.0
    here = x
    total = coefficients[0] * (x + 1.0)
    for n in range(1, coefficients.shape[0]):
        # The integral of the polynomial of degree n is the difference of the polynomials of degree
        # n + 1 and n - 1, divided by 2n + 1.
        after = ((2 * n + 1) * x * here - n * before) / (n + 1)
        total += coefficients[n] * (after - before) / (2 * n + 1)
        before = here
        here = after
    return total


@kernel
def panel_quantiles(times, probabilities, mass, polynomials, edges):
    """Fill `times` with the quantiles of a distribution on panels.

    ``mass[j, i]`` contains the probabilities of the Gauss points, which add up to 1.
    ``polynomials[i, n]`` contains the Legendre polynomials at these points. There are as many
    degrees as points.
    """
    panels, points = mass.shape
    coefficients = np.empty(points)
    for a in range(probabilities.shape[0]):
        wanted = probabilities[a]
        j = 0
        inside = 0.0
        for i in range(points):
            inside += mass[0, i]
        while j < panels - 1 and inside < wanted:
            wanted -= inside
            j += 1
            inside = 0.0
            for i in range(points):
                inside += mass[j, i]
        for n in range(points):
            total = 0.0
            for i in range(points):
                total += mass[j, i] * polynomials[i, n]
            coefficients[n] = total * (2 * n + 1) / 2.0
        low = -1.0
        high = 1.0
        # The integral increases with the time. So bisection finds the quantile to the last digit.
        while True:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if integral_at(middle, coefficients) < wanted:
                low = middle
            else:
                high = middle
        times[a] = edges[j] + 0.5 * (edges[j + 1] - edges[j]) * (1.0 + middle)


@kernel
def solve_once(y, f, q, start, half):
    """Solve one equation, for tests; see `solve_forward`."""
    solve_forward(y, f, q, start, half, np.empty((2, y.shape[0], y.shape[1])))
