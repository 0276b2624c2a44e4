"""Sample the posterior of theta: the public function `posterior`."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from sequela.data.dataset import Dataset
from sequela.learning.checkpoint import check_place, fingerprint
from sequela.learning.interrupt import graceful_stop
from sequela.observation import as_observation
from sequela.posteriors.priors import as_prior, prior_to_json
from sequela.posteriors.problem import Problem
from sequela.posteriors.result import Draws, Posterior
from sequela.posteriors.stored_walkers import restore_walkers, store_walkers
from sequela.posteriors.walkers import Plan, Walkers
from sequela.support.errors import InputError
from sequela.support.keywords import build_options, check_keywords
from sequela.support.naming import argument, option
from sequela.support.progress import WorkProgress
from sequela.support.random import RandomState, materialise_seed
from sequela.support.threads import resolve_threads
from sequela.support.validation import positive_integer

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Unpack

    from numpy.typing import NDArray

    from sequela.data.dataset import DataLike
    from sequela.observation import Observation
    from sequela.posteriors.priors import Prior

__all__ = ["NotConvergedWarning", "PosteriorKeywords", "posterior"]

# Seconds between two checkpoints.
_BETWEEN_CHECKPOINTS = 30.0
# Each chain makes draws for about _SECONDS_TOGETHER seconds, but at most _MOST_TOGETHER draws. Then
# the chains wait for each other. If a signal (such as Ctrl-C) arrives, the run ends at this point.
_SECONDS_TOGETHER = 1.0
_MOST_TOGETHER = 32
# Convergence is checked for the first time after this many draws per chain. The intervals between
# the later checks grow, because with very many checks one of them would pass by chance.
_FIRST_CHECK = 250
# The number of sweeps in the warm-up of a run that ends when its chains have converged.
_WARM_UP_SWEEPS = 500
# By default, the number of jumps per sweep is 4/5 of the number of items, but not less than the
# first and not more than the second of these numbers.
_JUMPS = (12, 60)
# The number of draws at a check of convergence, divided by the number at the previous check.
_CHECK_GROWTH = 1.3


class PosteriorKeywords(TypedDict, total=False):
    """The options of `posterior`."""

    chains: int
    replicas: int
    draws: int | None
    most_draws: int
    warm_up: int | None
    thin: int | None
    jumps: int
    largest_lattice: int | None
    random_state: RandomState
    n_threads: int | None


class NotConvergedWarning(UserWarning):
    """The chains of a posterior have not converged; the message gives advice."""


def posterior(
    data: DataLike,
    *,
    prior: Prior | str | None = None,
    observation: Observation | None = None,
    continue_from: Posterior | str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    **options: Unpack[PosteriorKeywords],
) -> Posterior:
    """Draw models from the posterior of theta.

    A fit returns one model, but other models with opposite orders may explain the data equally
    well. The posterior contains all of them, each as often as it is plausible, so that the
    probability of an order takes all models into account. The likelihood of a set of at most
    `largest_lattice` items is the sum over all its orders. The order of a larger set is sampled
    together with theta, so no approximation is needed. Missing cells are treated in the same way:
    the likelihood is the sum over all their values, or the values are sampled together with theta.

    Parameters
    ----------
    data : Dataset, DataFrame, array or list of sets
        The samples, at unknown times. Cells may be missing, and orders may be known.
    prior : Prior, "laplace", "student-t", "normal" or None
        The prior of the interactions. If it is given by its name, its scale is learned. None:
        Student's t with 2 degrees of freedom and a learned scale.
    observation : Observation or None
        How samples are observed; None: at an exponential time with rate 1.
    continue_from : Posterior, path or None
        An earlier run with the same data. `draws` draws per chain are added to it. If `draws` is
        None, draws are added until the chains have converged. The result contains all draws and
        equals that of a single longer run.
    checkpoint : path or None
        A file to which the state is saved every half minute. If the file exists, the run continues
        from it. The result is identical to that of a run that was not interrupted.
    **options
        Defaults are in parentheses. `draws`: number of draws per chain. If it is None, the run ends
        when R-hat is at most 1.01 and there are at least 400 effective draws, for every order and
        for the log-likelihood, or after `most_draws` draws per chain (6000). `chains`: number of
        chains (4). `warm_up`: number of draws that are discarded at the beginning (as many as 500
        sweeps give; if `draws` is given, half of `draws`). `thin`: sweeps per draw (2 to 10; more
        if there are few items). `jumps`: number of proposals per sweep to change the order of a
        pair; the same number of proposals swaps interactions (12 to 60; more if there are more
        items). `replicas`: number of replicas per chain (1). The first samples the posterior, and
        the others sample flatter distributions, in which chains change more easily between distant
        models. Use 8 if a cascade of several items may be reversed. The time is proportional to the
        number of replicas. `largest_lattice`: largest set whose orders are summed (8 to 10 items,
        so that an evaluation is fast). `random_state`, `n_threads`: as in `Settings`.

    Returns
    -------
    Posterior
        The draws, tables of orders and interactions, and whether the chains have converged.

    Examples
    --------
    >>> from sequela import simulate
    >>> sets = simulate([[0.0, 2.0], [0.0, -2.0]], 50, random_state=1).to_dataset()
    >>> draws = posterior(sets.without_times(), draws=200, random_state=1)
    >>> draws.orders()[["first", "second", "verdict"]].to_numpy().tolist()
    [['0', '1', 'the data cannot tell']]
    """
    check_keywords(posterior, options, PosteriorKeywords)
    samples = Dataset.coerce(data)
    threads = resolve_threads(options.get("n_threads"))
    run = _Run.prepare(samples, prior, observation, continue_from, checkpoint, options)
    run.sample(threads)
    result = run.result()
    if not result.convergence.converged:
        warnings.warn(result.convergence.message, NotConvergedWarning, stacklevel=2)
    return result


@dataclass
class _Run:
    """One run: the chains, the draws so far, and the number of draws at the end."""

    problem: Problem
    walkers: Walkers
    draws: Draws | None
    end: int
    until_converged: bool
    checkpoint: Path | None
    fresh: list[tuple[NDArray[np.float64], ...]] = field(default_factory=list)
    interrupted: bool = False

    @classmethod
    def prepare(  # the arguments of `posterior`
        cls,
        data: Dataset,
        prior: Prior | str | None,
        observation: Observation | None,
        continue_from: Posterior | str | os.PathLike[str] | None,
        checkpoint: str | os.PathLike[str] | None,
        options: Mapping[str, Any],
    ) -> _Run:
        """Start a run, or continue an earlier run or a checkpoint."""
        place = None
        if checkpoint is not None:
            check_place(checkpoint)
            place = Path(checkpoint)
        if continue_from is not None:
            earlier = (
                continue_from
                if isinstance(continue_from, Posterior)
                else Posterior.load(continue_from)
            )
            _refuse_changes(options, "an earlier run")
            problem = _same_problem(earlier, data, prior, observation)
            draws, until = _read_draws(options)
            run = cls.resume(problem, earlier, draws, place)
            run.end = run.walkers.done + draws
            run.until_converged = until
            return run
        chosen = as_prior(prior)
        plan = _read_plan(options, data.n_items)
        largest = options.get("largest_lattice")
        if largest is not None:
            largest = positive_integer("largest_lattice", largest)
        if place is not None and place.exists():
            earlier = Posterior.load(place)
            problem = _same_problem(earlier, data, chosen, observation)
            _same_plan(earlier, plan, options)
            return cls.resume(problem, earlier, plan.draws, place)
        problem = Problem.of(data, chosen, as_observation(observation), largest)
        seed = materialise_seed(options.get("random_state"))
        walkers = Walkers.begin(problem, plan, seed)
        return cls(problem, walkers, None, plan.warm_up + plan.draws, plan.until_converged, place)

    @classmethod
    def resume(
        cls, problem: Problem, earlier: Posterior, draws: int, checkpoint: Path | None
    ) -> _Run:
        """Continue an earlier run."""
        walkers = restore_walkers(problem, *earlier.chain_states)
        end = walkers.plan.warm_up + draws
        until = walkers.plan.until_converged
        return cls(problem, walkers, earlier.draws, end, until, checkpoint)

    def sample(self, threads: int) -> None:
        """Advance the chains to the end, or until a signal asks to stop."""
        saved = time.monotonic()
        walkers = self.walkers
        first = walkers.done
        together = 1
        with graceful_stop() as stop, WorkProgress("models", self.end - first) as bar:
            while walkers.done < self.end and not stop and not self._is_enough():
                begun = time.monotonic()
                count = min(together, self._draws_to_next_stop())
                drawn = walkers.draw(count, threads)
                self.fresh += drawn
                bar.reach(walkers.done - first)
                if drawn:
                    together = _next_together(len(drawn), time.monotonic() - begun)
                if self.checkpoint and time.monotonic() - saved > _BETWEEN_CHECKPOINTS:
                    self.result().save(self.checkpoint)
                    saved = time.monotonic()
        self.interrupted = bool(stop) and walkers.done < self.end
        if self.checkpoint:
            self.result().save(self.checkpoint)

    def _draws_to_next_stop(self) -> int:
        """Return the number of draws to the next check of convergence, or to the end of the run."""
        walkers = self.walkers
        to_end = self.end - walkers.done
        if not (self.until_converged and walkers.is_warm):
            return to_end
        drawn = walkers.done - walkers.plan.warm_up
        next_check = min(at for at in _checks(2 * drawn + _FIRST_CHECK) if at > drawn)
        return min(to_end, next_check - drawn)

    def _is_enough(self) -> bool:
        """Return whether a check of convergence is due and the chains have converged."""
        drawn = self.walkers.done - self.walkers.plan.warm_up
        return (
            self.until_converged and drawn in _checks(drawn) and self.result().convergence.converged
        )

    def result(self) -> Posterior:
        """Return the posterior with the draws so far."""
        problem = self.problem
        pairs = problem.pairs
        self._gather()
        assert self.draws is not None  # noqa: S101 - gathered
        header, arrays = store_walkers(self.walkers)
        header["largest_lattice"] = problem.largest_lattice
        return Posterior(
            items=tuple(problem.data.items),
            draws=self.draws,
            pairs=pairs,
            together=problem.together[pairs[:, 0], pairs[:, 1]],
            prior=problem.prior,
            observation=problem.observation,
            seed=self.walkers.seed,
            rates=self.walkers.rates(),
            fingerprint=fingerprint(problem.data),
            chain_states=(header, arrays),
            interrupted=self.interrupted,
        )

    def _gather(self) -> None:
        """Append the new draws to the earlier ones."""
        chains, n = self.walkers.plan.chains, self.problem.n
        if self.fresh:
            columns = zip(*self.fresh, strict=True)
            fresh = Draws(*(np.stack(column, axis=1) for column in columns))
            self.draws = fresh if self.draws is None else self.draws.then(fresh)
            self.fresh = []
        elif self.draws is None:
            self.draws = Draws(
                theta=np.empty((chains, 0, n, n)),
                scale=np.empty((chains, 0)),
                log_likelihood=np.empty((chains, 0)),
                orders=np.empty((chains, 0, len(self.problem.pairs))),
            )


def _next_together(drawn: int, seconds: float) -> int:
    """Return how many draws per chain are made before the chains wait for each other again.

    The last `drawn` draws took `seconds` seconds. The result is the number of draws that fit into
    _SECONDS_TOGETHER, but at most _MOST_TOGETHER, and at most 2 * `drawn`, because the last draws
    may have been fast by chance.
    """
    fit = drawn * _SECONDS_TOGETHER / max(seconds, 1e-9)
    return int(np.clip(fit, 1, min(2 * drawn, _MOST_TOGETHER)))


def _checks(last: int) -> set[int]:
    """Return the numbers of draws, up to the last, after which convergence is checked."""
    checks, at = set(), _FIRST_CHECK
    while at <= last:
        checks.add(at)
        at = int(np.ceil(at * _CHECK_GROWTH))
    return checks


def _read_draws(options: Mapping[str, Any]) -> tuple[int, bool]:
    """Return the (largest) number of draws, and whether the run ends when its chains converge."""
    draws = options.get("draws")
    if draws is None:
        most = options.get("most_draws", Plan.draws)
        return positive_integer("most_draws", most), True
    if "most_draws" in options:
        raise InputError(
            f"{argument('draws')} ({draws!r}) and {argument('most_draws')} "
            f"({options['most_draws']!r}) were both given. Give {argument('draws')} for a fixed "
            f"number of draws, or {argument('most_draws')} for a run until convergence"
        )
    return positive_integer("draws", draws), False


def _read_plan(options: Mapping[str, Any], n_items: int) -> Plan:
    """Check the options, and return the plan of the run."""
    given = {k: v for k, v in options.items() if v is not None}
    # With few items, sweeps are fast, but successive draws are as correlated as with many items. So
    # use more sweeps per draw.
    given.setdefault("thin", int(np.clip(40 // max(n_items, 1), 2, 10)))
    # With many items, a jump takes much less time than a trajectory, and a few slow pairs determine
    # how long a run takes.
    given.setdefault("jumps", int(np.clip(4 * n_items // 5, *_JUMPS)))
    given["draws"], given["until_converged"] = _read_draws(options)
    plan = build_options(Plan, given)
    for name in ("chains", "replicas", "thin"):
        positive_integer(name, getattr(plan, name))
    positive_integer("jumps", plan.jumps, least=0)
    warm_up = options.get("warm_up")
    if warm_up is None:
        usual = _WARM_UP_SWEEPS // plan.thin if plan.until_converged else plan.draws // 2
        return replace(plan, warm_up=max(usual, 50))
    return replace(plan, warm_up=positive_integer("warm_up", warm_up, least=10))


def _refuse_changes(options: Mapping[str, Any], what: str) -> None:
    fixed = set(options) - {"draws", "most_draws", "n_threads"}
    if fixed:
        raise InputError(
            f"{argument(sorted(fixed)[0])} cannot be changed when {what} is continued; only "
            f"{argument('draws')}, {argument('most_draws')} and {argument('n_threads')} can"
        )


def _same_problem(
    earlier: Posterior, data: Dataset, prior: Prior | str | None, observation: Observation | None
) -> Problem:
    """Return the problem of an earlier run; raise an error if the given one is different."""
    if tuple(data.items) != earlier.items or fingerprint(data) != earlier.fingerprint:
        raise InputError(
            "the earlier run used other data; give the same samples and items, listed in the "
            "same sequence, or start a new run"
        )
    if prior is not None and prior_to_json(as_prior(prior)) != prior_to_json(earlier.prior):
        raise InputError(
            f"the earlier run has the prior {earlier.prior!r}, not {as_prior(prior)!r}; omit "
            f"{argument('prior')}, or start a new run"
        )
    if observation is not None and observation.to_json() != earlier.observation.to_json():
        raise InputError(
            f"the earlier run has the observation {earlier.observation!r}, not {observation!r}; "
            f"omit {argument('observation')}, or start a new run"
        )
    largest = int(earlier.chain_states[0]["largest_lattice"])
    return Problem.of(data, earlier.prior, earlier.observation, largest)


def _same_plan(earlier: Posterior, plan: Plan, options: Mapping[str, Any]) -> None:
    """Raise an error if a checkpoint belongs to a run with other options or another seed."""
    stored = earlier.chain_states[0]
    for name in ("chains", "replicas", "warm_up", "thin", "jumps"):
        found, wanted = stored["plan"][name], getattr(plan, name)
        if found != wanted:
            raise InputError(
                f"the checkpoint has {option(name, found)}, not {wanted}; use the same options, or "
                "choose another file"
            )
    seed = options.get("random_state")
    if seed is not None and materialise_seed(seed) != earlier.seed:
        raise InputError(
            f"the checkpoint has the seed {earlier.seed}, not {seed!r}; use the same seed, or "
            "choose another file"
        )
