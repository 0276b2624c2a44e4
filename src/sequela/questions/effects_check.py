"""Which orders would be opposite if items influenced the observation.

An item that makes a sample more likely to be observed changes which sets are seen. If observation
times are unknown, every model with such effects has a counterpart without them that gives all sets
the same probability (`ObservationEffects.absorb`). So sets can never exclude these effects. But a
model with effects and few interactions may predict new samples better or worse than the fitted
model without effects. If its predictions are not clearly worse, the orders that are opposite in the
two models depend on an assumption that the data do not support: that items do not influence the
observation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.learning.observation_effects import fit_observation_effects
from sequela.learning.observations import (
    LEARNED_EFFECTS,
    PLAUSIBLE_WITHIN,
    ObservationComparison,
    compare_observations,
)
from sequela.model import as_model
from sequela.observation import ObservationEffects
from sequela.questions.order import order_matrix
from sequela.samples import as_samples
from sequela.settings import read_settings
from sequela.support.errors import InputError

if TYPE_CHECKING:
    from typing import Unpack

    from sequela.data.dataset import DataLike
    from sequela.model import Model, ModelLike
    from sequela.settings import Settings, SettingsKeywords

__all__ = ["EffectsCheck", "check_effects"]

_DRAWS = 20_000
# The table has the pairs of at most this many items, the most frequent ones, as in orders.csv.
_ITEMS = 20
_SHOWN = 3


@dataclass(frozen=True)
class EffectsCheck:
    """Which orders would be opposite if items influenced the observation.

    Attributes
    ----------
    table : DataFrame
        One row per pair of the 20 most frequent items. "first" is the item that mostly arrives
        first in the checked model, and "second" is the other item. "probability" is P(first before
        second), given that both are observed. "with_effects" is the same probability in the model
        with effects on the observation. "opposite" says whether it is below one half. Opposite
        orders with the largest difference come first.
    model : Model
        The model with effects on the observation, learned with the same penalty.
    orders : DataFrame
        P(item of the row before item of the column) in the model with effects, for all items.
    behind, behind_se : float
        How much worse held-out samples are predicted with effects than with the kind of observation
        of the checked model: the difference of the two held-out log-likelihoods, in nats, and its
        standard error.
    """

    table: pd.DataFrame
    model: Model = field(repr=False)
    orders: pd.DataFrame = field(repr=False)
    behind: float
    behind_se: float

    @property
    def plausible(self) -> bool:
        """Whether the model with effects is not clearly worse: by less than 2 nats."""
        return self.behind < PLAUSIBLE_WITHIN

    @property
    def findings(self) -> tuple[str, ...]:
        """The result of the check, in plain words. Empty if effects are not plausible."""
        if not self.plausible:
            return ()
        turned = self.table[self.table["opposite"]]
        how = f"worse by only {self.behind:.1f}"
        if self.behind < 0:
            how = f"better by {-self.behind:.1f}"
        said = (
            "the data do not exclude that items influence when samples are observed: a model "
            f"with such effects predicts new samples {how} nats (standard error "
            f"{self.behind_se:.1f}). "
        )
        if turned.empty:
            return (f"{said}All {len(self.table)} orders are the same in this model",)
        examples = ", ".join(
            f"{row.first} before {row.second} ({row.probability:.2f}; {row.with_effects:.2f} with "
            "effects)"
            for row in turned.head(_SHOWN).itertuples(index=False)
        )
        return (
            f"{said}In this model, {len(turned)} of {len(self.table)} orders are opposite: for "
            f"example, {examples}. Rely on these orders only if you know that items do not "
            "influence the observation",
        )

    def opposite(self, first: str, second: str) -> bool:
        """Tell whether the model with effects has the order second before first.

        Examples
        --------
        >>> from sequela import example_samples, fit
        >>> data = example_samples().most_frequent(4)
        >>> check = check_effects(fit(data, penalty=0.02), data, random_state=1)
        >>> a, b = check.table.loc[0, ["first", "second"]]
        >>> bool(check.opposite(a, b)) == bool(check.table.loc[0, "opposite"])
        True
        """
        place = self.orders.index.get_indexer(pd.Index([first, second]))
        return bool(self.orders.to_numpy(dtype=float)[place[0], place[1]] < 0.5)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers and findings of the check as plain values for a JSON file."""
        return {
            "plausible": self.plausible,
            "behind": self.behind,
            "behind_se": self.behind_se,
            "orders": len(self.table),
            "opposite": int(self.table["opposite"].sum()),
            "findings": list(self.findings),
        }


def check_effects(
    model: ModelLike,
    data: DataLike,
    compared: ObservationComparison | None = None,
    **settings: Unpack[SettingsKeywords],
) -> EffectsCheck:
    """Find the orders that would be opposite if items influenced the observation.

    Sets at unknown times cannot exclude that items influence when a sample is observed. This
    function learns a model with such effects, with the L1 penalty (see `fit_observation_effects`),
    and compares its orders with those of the given model. If the held-out likelihood of the
    model with effects is not clearly worse, the data do not support the assumption that there are
    no such effects.

    Parameters
    ----------
    model : Model or fitted SetChain
        The model whose orders are checked. It has no effects on the observation.
    data : Dataset, DataFrame, array or list of sets
        The samples from which the model was learned. Known times are not used.
    compared : ObservationComparison or None
        A comparison of kinds of observation that includes effects and that chose the kind of the
        model. None: `compare_observations` compares the kind of the model with effects.
    **settings
        `budget` (a set that needs more raises a `BudgetError`), `random_state`, and `n_threads`.
        See `Settings`.

    Returns
    -------
    EffectsCheck

    Examples
    --------
    >>> from sequela import Model, fit, simulate
    >>> truth = Model(np.diag(np.full(4, -0.3)), observation=ObservationEffects([1.5, -1, 1, -1.5]))
    >>> data = simulate(truth, 500, random_state=1).to_dataset().without_times()
    >>> check = check_effects(fit(data, penalty=0.01), data, random_state=1)
    >>> check.plausible
    True
    """
    how = read_settings(settings, unused=("draws", "target_se", "sampling"))
    given = as_model(model)
    if isinstance(given.observation, ObservationEffects):
        raise InputError(
            "model has effects on the observation; expected a model without them, whose orders can "
            "be compared with those of a model with effects"
        )
    samples = as_samples(given, data).without_times()
    penalty = float(given.metadata.get("penalty", 0.01))
    if compared is None:
        compared = compare_observations(
            samples, [given.observation, LEARNED_EFFECTS], penalty=penalty,
            random_state=how.seed, n_threads=how.threads,
        )  # fmt: skip
    behind = _behind(given, compared)
    other = fit_observation_effects(
        samples, penalty, penalty_kind="l1", budget=how.budget, random_state=how.seed,
        n_threads=how.threads,
    )  # fmt: skip
    ours, theirs = (_orders(each, how) for each in (given, other))
    top = list(samples.most_frequent(min(_ITEMS, samples.n_items)).items)
    return EffectsCheck(_table(top, ours, theirs), other, theirs, *behind)


def _behind(model: Model, compared: ObservationComparison) -> tuple[float, float]:
    """Return how much worse the held-out likelihood is with effects than without, and its error."""
    if model.observation not in compared.observations:
        raise InputError(
            f"compared has no observation {model.observation!r}, which is that of the model; give "
            "a comparison that includes it, or leave out compared"
        )
    own = compared.observations.index(model.observation)
    found = ObservationComparison(
        compared.observations, compared.held_out, own, compared.folds, compared.seed
    ).effects_behind
    if found is None:
        raise InputError(
            'compared has no effects on the observation; include "effects" in its list, or leave '
            "out compared"
        )
    return found


def _orders(model: Model, how: Settings) -> pd.DataFrame:
    return order_matrix(
        model, method="simulation", draws=_DRAWS, random_state=how.seed, n_threads=how.threads
    ).probability


def _table(items: list[str], ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs that both models observe, the opposite ones first."""
    p, q = (each.loc[items, items].to_numpy(dtype=float) for each in (ours, theirs))
    rows = []
    for i, j in zip(*np.triu_indices(len(items), 1), strict=True):
        a, b = (i, j) if p[i, j] >= 0.5 else (j, i)
        if np.isfinite(p[i, j]) and np.isfinite(q[i, j]):
            rows.append((items[a], items[b], p[a, b], q[a, b], q[a, b] < 0.5))
    columns = ["first", "second", "probability", "with_effects", "opposite"]
    table = pd.DataFrame(rows, columns=columns).astype({"opposite": bool})
    gap = (table["probability"] - table["with_effects"]).abs()
    ranked = np.lexsort((-gap.to_numpy(dtype=float), ~table["opposite"].to_numpy()))
    return table.iloc[ranked].reset_index(drop=True)
