"""Slow reference functions for partly known samples: sums over all completions and orders."""

import itertools

import numpy as np
from scipy.special import logsumexp

import reference


def completions(present, missing):
    for size in range(len(missing) + 1):
        for more in itertools.combinations(missing, size):
            yield sorted([*present, *more])


def report(order, statements):
    """Return the probability of all statements, given the order in which all items arrived."""
    place = {item: at for at, item in enumerate(order)}
    factors = [p if place[a] < place[b] else 1.0 - p for a, b, p in statements]
    return float(np.prod(factors))


def log_p(theta, present, missing, statements=(), stop_rate=1.0):
    """Return log p of a partly known sample. Here p is a sum over completions and their orders."""
    terms = []
    for T in completions(present, missing):
        for order in itertools.permutations(T):
            weight = report(order, statements)
            if weight > 0.0:
                terms.append(
                    np.log(weight) + reference.log_p_sequence(theta, order, stop_rate=stop_rate)
                )
    return float(logsumexp(terms))


def log_p_sum_of_sets(theta, present, missing, stop_rate=1.0):
    """Return log p of a sample without statements. Here p is the sum over all completions."""
    whole = reference.set_distribution(theta, stop_rate)
    masks = [sum(1 << i for i in T) for T in completions(present, missing)]
    return float(np.log(whole[masks].sum()))


def log_p_at(theta, present, missing, t):
    whole = reference.set_distribution_at(theta, t)
    masks = [sum(1 << i for i in T) for T in completions(present, missing)]
    return float(np.log(whole[masks].sum()))


def posterior(theta, present, missing, statements=()):
    """Yield all orders of all completions, each with its posterior probability."""
    total = log_p(theta, present, missing, statements)
    for T in completions(present, missing):
        for order in itertools.permutations(T):
            weight = report(order, statements)
            if weight > 0.0:
                yield order, weight * np.exp(reference.log_p_sequence(theta, order) - total)


def holding_means(theta, order):
    """Return the mean time in each state of an order: the inverse of the rate of leaving it."""
    states = [order[:at] for at in range(len(order) + 1)]
    return np.array([1.0 / (1.0 + reference.exit_rate(theta, R)) for R in states])
