"""The distribution of the arrival time of an item, from the states of items that act on it."""

from sequela.support.jit import kernel


@kernel
def arrival_functions(present, density, whole, P, rates, k):
    """Fill ``present[b]``, P(b has arrived), and ``density[b]``, the density of its arrival time.

    b is one of the k items of a component. Both are functions of the time, stored as coefficients.
    `P` contains the probabilities of all states in the same form (`components.component_forward`).
    `whole` receives the sum of the probabilities of all states, which must be 1 at every time.
    """
    states, degrees, panels = P.shape
    for n in range(degrees):
        for j in range(panels):
            whole[n, j] = 0.0
            for b in range(k):
                present[b, n, j] = 0.0
                density[b, n, j] = 0.0
    for R in range(states):
        function = P[R]
        for n in range(degrees):
            for j in range(panels):
                whole[n, j] += function[n, j]
        for b in range(k):
            into = present[b] if R >> b & 1 else density[b]
            factor = 1.0 if R >> b & 1 else rates[R, b]
            for n in range(degrees):
                for j in range(panels):
                    into[n, j] += factor * function[n, j]
