"""What the slow simulations of planned studies share: clock items, and weights of models."""

from __future__ import annotations

import numpy as np

import sequela


def with_clocks(theta, clocks, rate):
    """Return theta with `clocks` additional items, which are independent and have this rate."""
    n = len(theta)
    whole = np.zeros((n + clocks, n + clocks))
    whole[:n, :n] = theta
    whole[range(n, n + clocks), range(n, n + clocks)] = np.log(rate)
    return whole


def probability_of_truth(models, truth, ahead, table, now):
    """Return the posterior probability of the true order, given a simulated study.

    `models` are pairs (chain, theta with clock items), and ``models[truth]`` is the true model.
    `ahead` says for each model which order the pair has. `table` are the samples of the study, and
    `now` the present samples, without clock items. Models from the same chain as the true model are
    left out.
    """
    n = now.shape[1] if isinstance(now, np.ndarray) else now.n_items
    log_w = np.array(
        [
            -np.inf if chain == models[truth][0] else
            len(table) * sequela.log_likelihood(theta, table)
            - len(now) * sequela.log_likelihood(theta[:n, :n], now)
            for chain, theta in models
        ]
    )  # fmt: skip
    weights = np.exp(log_w - log_w.max())
    return weights[ahead == ahead[truth]].sum() / weights.sum()
