"""Convert the state of the chains to plain values and arrays, and back, to continue a run."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.kernels.arguments import PosteriorState
from sequela.posteriors.jump_choice import PairTracks
from sequela.posteriors.metric import Metric
from sequela.posteriors.step_size import StepSize
from sequela.posteriors.walkers import Plan, Walkers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sequela.posteriors.problem import Problem

__all__ = ["restore_walkers", "store_walkers"]

# The attributes of `Walkers` that are arrays.
_ARRAYS = ("centres", "window", "jump_pairs", "counts", "swaps")


def store_walkers(walkers: Walkers) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the chains as JSON values and arrays for a file."""
    header = {
        "plan": asdict(walkers.plan),
        "seed": walkers.seed,
        "done": walkers.done,
        "gap": walkers.gap,
        "steps": [asdict(step) for step in walkers.steps],
        "generators": [
            [rng.bit_generator.state for rng in row] for row in walkers.generators
        ],
    }  # fmt: skip
    arrays = {
        f"state_{name}": np.array(
            [[getattr(state, name) for state in row] for row in walkers.states]
        )
        for name in PosteriorState._fields
    }
    for name in _ARRAYS:
        arrays[name] = getattr(walkers, name)
    arrays["track_sums"] = walkers.tracks.sums
    arrays["track_last"] = walkers.tracks.last
    for k, metric in enumerate(walkers.metrics):
        arrays[f"directions_{k}"] = metric.directions
        arrays[f"information_{k}"] = metric.information
    return header, arrays


def restore_walkers(
    problem: Problem, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> Walkers:
    """Return the chains that `store_walkers` stored, for the same problem."""
    plan = Plan(**header["plan"])
    chains, replicas = range(plan.chains), range(plan.replicas)
    return Walkers(
        problem=problem,
        plan=plan,
        seed=int(header["seed"]),
        states=[
            [
                PosteriorState(
                    *(arrays[f"state_{name}"][c, k].copy() for name in PosteriorState._fields)
                )
                for k in replicas
            ]
            for c in chains
        ],
        generators=[[_generator(header["generators"][c][k]) for k in replicas] for c in chains],
        steps=[StepSize(**stored) for stored in header["steps"]],
        metrics=[Metric(arrays[f"directions_{k}"], arrays[f"information_{k}"]) for k in replicas],
        **{name: arrays[name].copy() for name in _ARRAYS},
        tracks=PairTracks(arrays["track_sums"].copy(), arrays["track_last"].copy()),
        gap=float(header["gap"]),
        done=int(header["done"]),
    )


def _generator(stored: Any) -> np.random.Generator:
    bits = np.random.PCG64()
    bits.state = stored
    return np.random.Generator(bits)
