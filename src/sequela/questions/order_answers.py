"""The results of `order_matrix`: P(a before b) for every pair, for a model or a posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["Orders", "PosteriorOrders"]


@dataclass(frozen=True)
class Orders:
    """Which of several items arrived first, for every pair.

    Attributes
    ----------
    probability : DataFrame
        Row a, column b: P(a before b), given that both are observed (or given the sample). NaN on
        the diagonal, and for two items that were never observed together in a simulation.
    se : DataFrame
        Monte Carlo standard errors; 0 for exact probabilities.
    observed : DataFrame
        P(a and b are both observed); on the diagonal, P(the item is observed). For the orders in
        one sample, all entries are 1.
    method : DataFrame
        "exact", "components" (exact as well), "simulation" or "relocation", for each pair.
    draws : int
        Number of simulated sequences, or of orders drawn; 0 if all pairs are exact.
    seed : int or None
        The seed from which all draws were derived; None if all pairs are exact.
    """

    probability: pd.DataFrame
    se: pd.DataFrame
    observed: pd.DataFrame
    method: pd.DataFrame
    draws: int
    seed: int | None

    def pairs(self, *, as_given: bool = False) -> pd.DataFrame:
        """Return one row per pair, the most certain orders first: ``first`` before ``second``.

        "first" is the item that arrives first with a probability of at least one half. If
        `as_given` is True, pairs and rows stay in the order of the items.

        Examples
        --------
        >>> from sequela import example_theta, order_matrix
        >>> orders = order_matrix(example_theta(), ["first", "second"])
        >>> orders.pairs()[["first", "second", "probability"]].round(3)
           first  second  probability
        0  first  second        0.982
        """
        labels = list(self.probability.index)
        rows = []
        for i, a in enumerate(labels):
            for b in labels[i + 1 :]:
                p = self.probability.loc[a, b]
                ahead = as_given or p >= 0.5 or np.isnan(p)
                one, other = (a, b) if ahead else (b, a)
                rows.append(
                    {
                        "first": one,
                        "second": other,
                        "probability": self.probability.loc[one, other],
                        "se": self.se.loc[one, other],
                        "observed": self.observed.loc[one, other],
                        "method": self.method.loc[one, other],
                    }
                )
        columns = ["first", "second", "probability", "se", "observed", "method"]
        table = pd.DataFrame(rows, columns=columns)
        if as_given:
            return table
        return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)


@dataclass(frozen=True)
class PosteriorOrders(Orders):
    """Which of several items arrived first, for every pair, under the posterior of the model.

    ``probability`` is the mean of P(a before b) over the models, ``observed`` the mean of P(both
    are observed), and ``se`` the Monte Carlo standard error of ``probability``.

    Attributes
    ----------
    low, high : DataFrame
        The interval of P(a before b) over the models.
    usually_first : DataFrame
        Row a, column b: the probability that item a usually arrives before item b. This is the
        share of the models in which P(a before b) is above one half. If it is near one half, the
        data cannot tell the order.
    effective : DataFrame
        Effective number of draws. NaN if there are fewer than four draws per chain, or if P(a
        before b) is not defined in some model.
    r_hat : DataFrame
        R-hat of P(a before b). If it is above 1.01, the chains do not agree yet.
    models : int
        Number of models that were used.
    """

    low: pd.DataFrame
    high: pd.DataFrame
    usually_first: pd.DataFrame
    effective: pd.DataFrame
    r_hat: pd.DataFrame
    models: int

    def pairs(self, *, as_given: bool = False) -> pd.DataFrame:
        """Return one row per pair, like `Orders.pairs`, with additional columns.

        The additional columns are "low", "high", "usually_first", "effective" and "r_hat".
        """
        table = super().pairs(as_given=as_given)
        at = self.probability.index
        rows, columns = (at.get_indexer(pd.Index(table[name])) for name in ("first", "second"))
        for place, name in enumerate(("low", "high", "usually_first"), start=3):
            values: Any = getattr(self, name).to_numpy()[rows, columns]
            table.insert(place, name, values)
        for name in ("effective", "r_hat"):
            table[name] = getattr(self, name).to_numpy()[rows, columns]
        return table
