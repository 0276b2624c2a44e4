"""Errors in the text of the paper: what is printed, and what is correct.

The numbers of the first two errors are computed here; the others are checked by tests.
"""

from __future__ import annotations

import math

from sequela.questions.theory import identical_items_posterior, two_item_family_of

__all__ = ["slips"]


def _printed_lemma(w: float, m: int, k: int) -> tuple[float, float]:
    """Return mean and variance of the posterior time according to Lemma 1 as printed.

    The alpha in the printed lemma, alpha', is too large by 1. According to the lemma, exp(-w t) has
    the distribution Beta(alpha', beta). The mean of its logarithm is psi(alpha') - psi(alpha' +
    beta).
    """
    from scipy.special import polygamma, psi

    alpha = 1.0 / w + (m - k) + 1.0
    beta = k + 1.0
    mean = (psi(alpha + beta) - psi(alpha)) / w
    variance = (polygamma(1, alpha) - polygamma(1, alpha + beta)) / w**2
    return float(mean), float(variance)


def slips() -> list[tuple[str, str]]:
    """Return pairs (place in the paper, correction) in Markdown."""
    w, m, k = 0.3, 20, 6
    right = identical_items_posterior(w, m, k)
    printed = _printed_lemma(w, m, k)
    low, high = two_item_family_of([[0.0, 4.0], [0.0, -4.0]]).interval
    return [
        (
            "Lemma 1",
            'The Jacobian of y = exp(-w t) is missing: alpha is 1/w + (1 - r) m, without "+ 1". '
            f"With w = {w}, m = {m} and {k} items present, the posterior of the time has the mean "
            f"{right[0]:.5f} and the variance {right[1]:.5f}. The printed lemma gives the mean "
            f"{printed[0]:.5f} and the variance {printed[1]:.5f}. The limits of Theorem 1 do not "
            "change.",
        ),
        (
            "Proposition 1",
            "The printed interval for s, (0, 1/p0 - 1), allows negative rates. For alpha = 4 the "
            f"rates are non-negative for s from {low:.5f} to {high:.5f} (theta_11 from "
            f"{math.log(low):.3f} to {math.log(high):.3f}), which is what the paper's own figure "
            "shows.",
        ),
        (
            "Algorithm 1",
            "The algorithm adds the item that arrives after the observation. Only items that "
            "arrive before the observation should be added. The loop must also end when no item "
            "is left.",
        ),
        (
            "Algorithm 2",
            "The value of the proposal must start at 1, not at 0, and v_j in the last line must be "
            "u_j. "
            "The proposal is exact for all sets of at most two items, even if the model has more "
            "items. Its largest ratio to the target can be worse than that of the uniform "
            "proposal.",
        ),
        (
            "Section 4.2",
            "The rates are the total exit rates of the prefixes of the sequence, not those of "
            "single items as the notation suggests.",
        ),
        (
            "Proof of Theorem 1",
            "log((1 - r) exp(-w t)) should read log((1 - r) exp(+w t)), as in the next line. The "
            "printed m_3, a lower limit of the number of items, is too small: for w = 1 and t = 2 "
            "it is 1.02, but at least 1,614 items are needed.",
        ),
    ]
