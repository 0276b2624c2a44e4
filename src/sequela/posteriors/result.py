"""The posterior of theta, given by draws of models: tables, convergence and files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sequela.data._reading import read_labels
from sequela.model import Model
from sequela.observation import read_observation
from sequela.posteriors.diagnostics import effective_size, judge, r_hat
from sequela.posteriors.files import read_file, write_file
from sequela.posteriors.priors import prior_to_json, read_prior
from sequela.support.errors import InputError
from sequela.support.naming import either
from sequela.support.schema import Count, Place, read_fields
from sequela.support.validation import is_number, positive_integer

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from sequela.observation import Observation
    from sequela.posteriors.diagnostics import Convergence
    from sequela.posteriors.priors import Prior

__all__ = ["Draws", "Posterior", "summarise"]

# The verdict of an order whose chains disagree: R-hat is above the first limit, or the number of
# effective draws is below the second one. The limits of a whole run (`diagnostics`) are stricter,
# because they hold for the worst of many pairs.
NOT_CONVERGED = "not sure yet: the chains have not converged"
_LARGEST_R_HAT = 1.05
_LEAST_EFFECTIVE = 100.0


@dataclass(frozen=True)
class Draws:
    """Arrays of draws, all with the axes (chain, draw, ...).

    Attributes
    ----------
    theta : array (chains, draws, n, n)
        The models.
    scale : array (chains, draws)
        The scale of the interactions. If it is not learned, it is the same in all draws.
    log_likelihood : array (chains, draws)
        Log-likelihood of all samples. A sample with a latent order or history contributes the
        log-probability of this order or history.
    orders : array (chains, draws, pairs)
        P(a before b) for each pair in `Posterior.pairs`, averaged over the samples that are known
        to have both items.
    """

    theta: NDArray[np.float64]
    scale: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]
    orders: NDArray[np.float64]

    def then(self, later: Draws) -> Draws:
        """Return these draws followed by later ones."""
        return Draws(
            *(
                np.concatenate([getattr(self, name), getattr(later, name)], axis=1)
                for name in self.__dataclass_fields__
            )
        )


def summarise(values: NDArray[np.float64], level: float) -> dict[str, NDArray[np.float64]]:
    """Return mean, interval, number of effective draws and R-hat of draws (chains, draws, ...)."""
    tail = 0.5 * (1.0 - level)
    # `np.quantile` over both axes at once would fail if there are no quantities to summarise.
    flat = values.reshape(values.shape[0] * values.shape[1], *values.shape[2:])
    low, high = np.quantile(flat, [tail, 1.0 - tail], axis=0)
    return {
        "mean": values.mean(axis=(0, 1)),
        "low": low,
        "high": high,
        "effective": effective_size(values),
        "r_hat": r_hat(values),
    }


def check_level(level: float) -> float:
    """Return the probability of an interval; raise an error if it is not between 0 and 1."""
    if not is_number(level) or not 0.0 < level < 1.0:
        raise InputError(f"level is {level!r}; expected a probability such as 0.9")
    return float(level)


@dataclass(frozen=True)
class Posterior:
    """Draws from the posterior of theta, made by `sequela.posterior`.

    Attributes
    ----------
    items : tuple of str
        Labels.
    draws : Draws
        The draws.
    pairs : array of int, (m, 2)
        The pairs of items a, b for which at least one sample is known to have both items.
    together : array of int, (m,)
        Number of samples that are known to have both items of each pair.
    prior : Prior
        The prior of theta.
    observation : Observation
        How samples are observed.
    seed : int
        The seed from which all random numbers were derived.
    rates : tuple of float
        Acceptance of trajectories, of jumps, and of exchanges between replicas.
    fingerprint : str
        Checksum of the data.
    chain_states : tuple of a dict and a dict of arrays
        The state of the chains, from which `sequela.posterior(..., continue_from=...)` continues.
    interrupted : bool
        Whether a signal ended the run early.
    """

    items: tuple[str, ...]
    draws: Draws
    pairs: NDArray[np.int64]
    together: NDArray[np.int64]
    prior: Prior
    observation: Observation
    seed: int
    rates: tuple[float, float, float]
    fingerprint: str
    chain_states: tuple[dict[str, Any], dict[str, NDArray[Any]]] = field(repr=False)
    interrupted: bool = field(default=False, compare=False)

    def __repr__(self) -> str:
        chains, draws = self.draws.scale.shape
        state = "converged" if self.convergence.converged else "not converged"
        return f"<Posterior: {self.n_items} items, {chains} x {draws} draws, {state}>"

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    def n_draws(self) -> int:
        """Number of draws of all chains together."""
        return int(self.draws.scale.size)

    @property
    def theta(self) -> NDArray[np.float64]:
        """All draws of theta, (draws, n, n): chain after chain."""
        return self.draws.theta.reshape(-1, self.n_items, self.n_items)

    @cached_property
    def convergence(self) -> Convergence:
        """Whether the draws can be trusted, in numbers and words."""
        labels = [(self.items[a], self.items[b]) for a, b in self.pairs]
        return judge(self.draws.orders, self.draws.log_likelihood, labels, self.rates)

    def require_draws(self) -> None:
        """Raise an error if the run was stopped in its warm-up, before the first draw."""
        if not self.n_draws:
            raise InputError(
                "the posterior has no draws yet, because it was stopped in its warm-up. "
                "Continue it "
                + either(
                    "with sequela.posterior(data, continue_from=...)",
                    "with `sequela posterior --continue`",
                )
            )

    def models(self, count: int | None = None) -> list[Model]:
        """Return draws as models, evenly spread over all chains.

        Parameters
        ----------
        count : int or None
            Number of models; None: all draws.
        """
        self.require_draws()
        total = self.n_draws
        wanted = total if count is None else min(positive_integer("count", count), total)
        chosen = np.linspace(0, total - 1, wanted).round().astype(np.int64)
        theta = self.theta
        return [
            Model(theta[at], self.items, {"draw": int(at), "seed": self.seed},
                  observation=self.observation)
            for at in chosen
        ]  # fmt: skip

    def orders(self, *, level: float = 0.9, least_together: int = 1) -> pd.DataFrame:
        """Return which of two items came first, in the samples that have both.

        Parameters
        ----------
        level : float
            Probability of the intervals.
        least_together : int
            Return only pairs whose items occur together in at least this many samples.

        Returns
        -------
        DataFrame
            One row per pair, the most certain first. ``first`` is the item that is more likely to
            come first. Columns: "probability" that ``first`` came before ``second`` in a sample
            that is known to have both, averaged over all models; its interval "low" to "high";
            "usually_first", the probability that ``first`` comes first in more than half of the
            samples; "evidence", the log-odds of "usually_first", in nats; "samples", the number of
            samples that are known to have both; "effective", the number of effective draws;
            "r_hat"; "verdict". An order with R-hat above 1.05 or fewer than 100 effective draws
            never has the verdict "the data can tell" or "the data suggest it".
        """
        self.require_draws()
        check_level(level)
        kept = self.together >= least_together
        values = self.draws.orders[:, :, kept]
        summary = summarise(values, level)
        ahead = (values > 0.5).mean(axis=(0, 1))
        rows = []
        for k, (a, b) in enumerate(self.pairs[kept]):
            turned = summary["mean"][k] < 0.5
            i, j = (b, a) if turned else (a, b)
            low, high = summary["low"][k], summary["high"][k]
            share = float(1.0 - ahead[k] if turned else ahead[k])
            effective = float(summary["effective"][k])
            rows.append(
                {
                    "first": self.items[i],
                    "second": self.items[j],
                    "probability": 1.0 - summary["mean"][k] if turned else summary["mean"][k],
                    "low": 1.0 - high if turned else low,
                    "high": 1.0 - low if turned else high,
                    "usually_first": share,
                    "evidence": _log_odds(share, effective),
                    "samples": int(self.together[kept][k]),
                    "effective": effective,
                    "r_hat": float(summary["r_hat"][k]),
                    "verdict": _verdict(share, effective, float(summary["r_hat"][k])),
                }
            )
        columns = [
            "first", "second", "probability", "low", "high", "usually_first", "evidence",
            "samples", "effective", "r_hat", "verdict",
        ]  # fmt: skip
        table = pd.DataFrame(rows, columns=columns)
        return table.sort_values("usually_first", ascending=False, kind="stable", ignore_index=True)

    def interactions(self, *, level: float = 0.9, least_effect: float = 0.5) -> pd.DataFrame:
        """Return the effects of items on others, the most certain first.

        Parameters
        ----------
        level : float
            Probability of the intervals.
        least_effect : float
            Smallest size of a log-effect that counts as an interaction (0.5 changes a rate by a
            factor of 1.6).

        Returns
        -------
        DataFrame
            One row per effect of an item ("from") on another ("to"). Columns: "mean", the
            mean effect; its interval "low" to "high"; "present", the probability that the size of
            the effect is at least `least_effect`; "positive", the probability that the effect is
            positive; "effective", the number of effective draws; "r_hat".
        """
        self.require_draws()
        check_level(level)
        summary = summarise(self.draws.theta, level)
        theta = self.draws.theta
        summary["present"] = (np.abs(theta) >= least_effect).mean(axis=(0, 1))
        summary["positive"] = (theta > 0.0).mean(axis=(0, 1))
        source, target = np.nonzero(~np.eye(self.n_items, dtype=bool))
        table = pd.DataFrame(
            {
                "from": np.array(self.items)[source],
                "to": np.array(self.items)[target],
                **{
                    name: summary[name][source, target]
                    for name in ("mean", "low", "high", "present", "positive", "effective", "r_hat")
                },
            }
        )
        return table.sort_values("present", ascending=False, kind="stable", ignore_index=True)

    def scale(self, *, level: float = 0.9) -> dict[str, float]:
        """Return mean and interval of the scale of the prior."""
        self.require_draws()
        check_level(level)
        return {name: float(x) for name, x in summarise(self.draws.scale, level).items()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write draws and the state of the chains to one file (a zip of arrays and JSON)."""
        states, state_arrays = self.chain_states
        header = {
            "items": list(self.items),
            "prior": prior_to_json(self.prior),
            "observation": self.observation.to_json(),
            "seed": self.seed,
            "rates": [None if np.isnan(x) else x for x in self.rates],
            "fingerprint": self.fingerprint,
            "chain_states": states,
        }
        arrays = {
            "pairs": self.pairs,
            "together": self.together,
            **{name: getattr(self.draws, name) for name in self.draws.__dataclass_fields__},
            **{f"chain_{name}": array for name, array in state_arrays.items()},
        }
        write_file(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Posterior:
        """Read a file that `save` wrote."""
        header, arrays = read_file(path)
        place = Place(path, "Sample the posterior again")
        stored = read_fields(_Stored, header, place)
        if "plan" in stored.chain_states:
            read_fields(_StoredStates, stored.chain_states, place.at("chain_states"))
        try:
            items = read_labels("items", stored.items)
            _check_arrays(arrays, len(items), place)
            states = {
                name.removeprefix("chain_"): array
                for name, array in arrays.items()
                if name.startswith("chain_")
            }
            return cls(
                items=items,
                draws=Draws(*(arrays[name] for name in Draws.__dataclass_fields__)),
                pairs=arrays["pairs"],
                together=arrays["together"],
                prior=read_prior(header["prior"]),
                observation=read_observation(header["observation"]),
                seed=int(header["seed"]),
                rates=tuple(np.nan if x is None else float(x) for x in header["rates"]),  # type: ignore[arg-type]
                fingerprint=str(header["fingerprint"]),
                chain_states=(header["chain_states"], states),
            )
        except InputError as error:
            if str(path) in str(error):
                raise
            raise InputError(f"{str(path)!r} cannot be used as a posterior: {error}") from None
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise InputError(
                f"{str(path)!r} cannot be used as a posterior ({type(error).__name__}: {error}); "
                "sample the posterior again"
            ) from None

    def to_arviz(self) -> Any:
        """Return the draws as an ArviZ object (an xarray DataTree), for its plots and statistics.

        Needs the extra ``posterior``: ``pip install "sequela[posterior]"``.
        """
        self.require_draws()
        try:
            from arviz_base import from_dict
        except ImportError as error:
            raise InputError(
                'to_arviz needs arviz-base; install it with: pip install "sequela[posterior]"'
            ) from error
        first = [self.items[a] for a in self.pairs[:, 0]]
        second = [self.items[b] for b in self.pairs[:, 1]]
        return from_dict(
            {
                "posterior": {
                    "theta": self.draws.theta,
                    "scale": self.draws.scale,
                    "order": self.draws.orders,
                },
                "sample_stats": {"lp": self.draws.log_likelihood},
            },
            coords={
                "source": list(self.items),
                "target": list(self.items),
                "pair": [f"{a} before {b}" for a, b in zip(first, second, strict=True)],
            },
            dims={"theta": ["source", "target"], "order": ["pair"]},
        )

    def but(self, **changes: Any) -> Posterior:
        """Return this posterior with some attributes changed."""
        return replace(self, **changes)


@dataclass(frozen=True)
class _StoredPlan:
    """The numbers of the stored plan of the run. They are read before the states of the chains."""

    warm_up: Count
    draws: Count
    chains: Count = 1
    replicas: Count = 1


@dataclass(frozen=True)
class _StoredStates:
    """The stored states of the chains. The functions of `stored_walkers` read them."""

    plan: _StoredPlan
    seed: Count
    done: Count
    gap: float
    steps: list[dict[str, float]]
    generators: list[list[dict[str, Any]]]
    largest_lattice: Count


@dataclass(frozen=True)
class _Stored:
    """The header of a posterior file."""

    items: list[str]
    prior: dict[str, Any]
    observation: dict[str, Any]
    seed: Count
    rates: list[float | None]
    fingerprint: str
    chain_states: dict[str, Any]


def _check_arrays(arrays: Mapping[str, NDArray[Any]], n: int, place: Place) -> None:
    """Raise an error if the shapes of arrays do not agree, or if an array has a wrong type."""
    pairs, theta = arrays["pairs"], arrays["theta"]
    chains, draws = theta.shape[:2] if theta.ndim == 4 else (0, 0)
    shapes = {
        "theta": (chains, draws, n, n),
        "scale": (chains, draws),
        "log_likelihood": (chains, draws),
        "orders": (chains, draws, len(pairs)),
        "pairs": (len(pairs), 2),
        "together": (len(pairs),),
    }
    for name, shape in shapes.items():
        found = arrays[name]
        kind = "iu" if name == "pairs" else "iuf"
        if found.shape != shape or found.dtype.kind not in kind:
            raise place.at(name).error(
                f"is an array of {found.dtype} with shape {found.shape}", f"shape {shape}"
            )
    if len(pairs) and not 0 <= pairs.min() <= pairs.max() < n:
        raise place.at("pairs").error("has items that do not exist", f"numbers below {n}")
    if not np.isfinite(theta).all():
        raise place.at("theta").error("has entries that are not finite", "finite numbers")


def _log_odds(share: float, effective: float) -> float:
    """Return the log-odds of a share of draws.

    The number of effective draws limits the size of the log-odds. So they are finite even if the
    share is 0 or 1.
    """
    resolution = 0.5 / max(effective, 1.0)
    return float(np.log(share + resolution) - np.log(1.0 - share + resolution))


def _verdict(share: float, effective: float, r_hat: float) -> str:
    """Return in words whether the data can tell which of two items usually comes first."""
    mixed = effective >= _LEAST_EFFECTIVE and r_hat <= _LARGEST_R_HAT
    if share >= 0.8 and not mixed:
        return NOT_CONVERGED
    if share >= 0.95:
        return "the data can tell"
    if share >= 0.8:
        return "the data suggest it"
    return "the data cannot tell"
