"""``sequela demo --known``: samples from a made-up model, of which every answer is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sequela.cli.output import make_console, print_table
from sequela.report.run import package_versions

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray
    from rich.console import Console

    from sequela.data.dataset import Dataset
    from sequela.likelihood.posterior import SamplePosteriors
    from sequela.simulation import Simulation

__all__ = ["make_report", "show"]

# The pair of items whose order is asked for; the example model settles it by construction.
_EARLY, _LATE = "first", "second"
_PENALTY = 0.01
_STARTS = 4


def make_report(samples: int, seed: int) -> dict[str, Any]:
    """Simulate, evaluate two models on the sets, and look into a few samples."""
    from sequela.data.examples import example_theta
    from sequela.likelihood import evaluate, sample_posteriors
    from sequela.simulation import simulate

    theta = example_theta()
    drawn = simulate(theta, samples, random_state=seed)
    # The frame has the sets alone: a Dataset with times would be evaluated at these times.
    data = drawn.to_dataset().without_times()
    true = evaluate(theta, data, gradient=False, random_state=seed)
    independent = evaluate(_independent_theta(data), data, gradient=False, random_state=seed)
    posteriors = sample_posteriors(theta, data, random_state=seed)
    exact = int((true.methods == "exact").sum())
    return {
        "seed": drawn.seed,
        "samples": samples,
        "items": _describe_items(theta, data),
        "log_likelihood": {
            "true_model": true.value,
            "true_model_se": true.value_se,
            "independent_model": independent.value,
            "independent_model_se": independent.value_se,
        },
        "sets": {"exact": exact, "sampled": samples - exact},
        "learned": _learn(data, theta, seed),
        "order": _compare_orders(drawn, data, posteriors),
        "versions": package_versions(),
    }


def _independent_theta(data: Dataset) -> NDArray[np.float64]:
    """Return the diagonal theta that fits the frequencies.

    An item alone, with rate w, has arrived before the observation (rate 1) with probability
    f = w / (1 + w), so log w = log(f / (1 - f)). Half a sample is the least that an item, or its
    absence, counts for, so that no rate is 0 or infinite.
    """
    import numpy as np

    n = data.n_samples
    counts = np.clip(data.values.sum(axis=0), 0.5, n - 0.5)
    return np.diag(np.log(counts / (n - counts)))


def _learn(data: Dataset, theta: pd.DataFrame, seed: int) -> dict[str, Any]:
    """Learn a model from the sets alone; set its strongest interactions against the true ones."""
    import warnings

    from sequela.learning.estimator import SetChain

    with warnings.catch_warnings():
        # What the warnings say is in the report: convergence, and the number of optima.
        warnings.simplefilter("ignore")
        chain = SetChain(penalty=_PENALTY, n_starts=_STARTS, random_state=seed).fit(data)
    strongest = chain.model_.interactions().head(6)
    return {
        "penalty": _PENALTY,
        "starts": len(chain.starts_),
        "optima": len(chain.optima_),
        "converged": bool(chain.converged_),
        "objective": chain.objective_,
        "kkt_residual": chain.kkt_residual_,
        "log_likelihood": chain.score(data),
        "interactions": [
            {
                "from": row["from"],
                "to": row["to"],
                "learned": float(row["effect"]),
                "true": float(theta.loc[row["from"], row["to"]]),
            }
            for _, row in strongest.iterrows()
        ],
    }


def _describe_items(theta: pd.DataFrame, data: Dataset) -> list[dict[str, Any]]:
    import numpy as np

    effects = theta.to_numpy()
    counts = data.values.sum(axis=0).tolist()
    return [
        {
            "item": item,
            "samples": counts[j],
            "frequency": counts[j] / data.n_samples,
            "base_rate": float(np.exp(effects[j, j])),
            "changed_by": {
                data.items[i]: float(np.exp(effects[i, j]))
                for i in np.flatnonzero(effects[:, j])
                if i != j
            },
        }
        for j, item in enumerate(data.items)
    ]


def _compare_orders(
    drawn: Simulation, data: Dataset, posteriors: SamplePosteriors
) -> dict[str, Any]:
    """Set the order that the model expects from the sets against what was simulated."""
    import numpy as np

    early, late = data.items.index(_EARLY), data.items.index(_LATE)
    both = np.flatnonzero(data.values[:, early] & data.values[:, late])
    expected = np.array([_probability(posteriors, int(s), early, late) for s in both])
    place = np.zeros((2, len(drawn)), dtype=np.int64)
    for row, item in zip(place, (early, late), strict=True):
        at = np.flatnonzero(drawn.sequence == item)
        row[np.searchsorted(drawn.indptr, at, side="right") - 1] = at
    happened = (place[0] < place[1])[both]
    report: dict[str, Any] = {
        "early": _EARLY,
        "late": _LATE,
        "samples_with_both": both.size,
        "expected_share": float(expected.mean()) if both.size else None,
        "simulated_share": float(happened.mean()) if both.size else None,
        "looked_at": [],
    }
    # The two that seem to have been observed first and last.
    by_time = both[np.argsort(posteriors.time_mean[both], kind="stable")]
    for s in dict.fromkeys([*by_time[:1].tolist(), *by_time[-1:].tolist()]):
        order = drawn.sequence[drawn.indptr[s] : drawn.indptr[s + 1]]
        report["looked_at"].append(
            {
                "sample": data.samples[s],
                "items": [data.items[j] for j in posteriors.present(s)],
                "method": str(posteriors.methods[s]),
                "time_mean": float(posteriors.time_mean[s]),
                "time_sd": float(np.sqrt(posteriors.time_variance[s])),
                "early_before_late": _probability(posteriors, s, early, late),
                "simulated_time": float(drawn.observation_times[s]),
                "simulated_order": [data.items[j] for j in order],
            }
        )
    return report


def _probability(posteriors: SamplePosteriors, sample: int, a: int, b: int) -> float:
    """Return P(a before b) given the set of a sample that has both."""
    present = posteriors.present(sample).tolist()
    return float(posteriors.before(sample)[present.index(a), present.index(b)])


def show(report: dict[str, Any]) -> None:
    """Print the report for people."""
    console = make_console()
    console.print(
        f"Samples drawn from the example model: {report['samples']}, seed {report['seed']}\n",
        soft_wrap=True,
    )
    rows = [
        (
            row["item"],
            str(row["samples"]),
            f"{row['frequency']:.3f}",
            f"{row['base_rate']:.3f}",
            ", ".join(f"{name} x {factor:.3g}" for name, factor in row["changed_by"].items()),
        )
        for row in report["items"]
    ]
    columns = {"Item": False, "Samples": True, "Share": True, "Base rate": True}
    print_table(console, {**columns, "Changed by": False}, rows)
    found = report["log_likelihood"]
    console.print()
    print_table(
        console,
        {"Model": False, "Mean log-likelihood per sample": True},
        [
            ("the model that drew the samples", _with_error(found, "true_model")),
            ("independent items", _with_error(found, "independent_model")),
            ("learned from the sets", f"{report['learned']['log_likelihood']:.4f}"),
        ],
    )
    _show_learned(console, report["learned"])
    sets = report["sets"]
    console.print(f"\nSets: {sets['exact']} exact, {sets['sampled']} sampled", soft_wrap=True)
    _show_order(console, report["order"])
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    console.print(f"\n{versions}", soft_wrap=True)


def _show_learned(console: Console, learned: dict[str, Any]) -> None:
    optima = "one optimum" if learned["optima"] == 1 else f"{learned['optima']} optima"
    console.print(
        f"\nLearned with penalty {learned['penalty']}: {learned['starts']} starts ended at "
        f"{optima}; KKT residual of the best {learned['kkt_residual']:.0e}",
        soft_wrap=True,
    )
    print_table(
        console,
        {"Strongest interactions": False, "Learned": True, "True": True},
        [
            (f"{row['from']} -> {row['to']}", f"{row['learned']:.2f}", f"{row['true']:.2f}")
            for row in learned["interactions"]
        ],
    )


def _with_error(found: dict[str, float], name: str) -> str:
    error = found[f"{name}_se"]
    return f"{found[name]:.4f}" + (f" +- {error:.2g}" if error else "")


def _show_order(console: Console, order: dict[str, Any]) -> None:
    early, late = order["early"], order["late"]
    if not order["samples_with_both"]:
        console.print(
            f'\nNo sample has both "{early}" and "{late}"; draw more with --samples.',
            soft_wrap=True,
        )
        return
    console.print(
        f'\nSamples with both "{early}" and "{late}": {order["samples_with_both"]}', soft_wrap=True
    )
    print_table(
        console,
        {f'Share in which "{early}" came first': False, "": True},
        [
            ("as the model expects, given the sets", f"{order['expected_share']:.3f}"),
            ("in the simulation", f"{order['simulated_share']:.3f}"),
        ],
    )
    console.print(
        "\nThe samples among them that seem the earliest and the latest\n"
        "(times in units of the mean observation time)",
        soft_wrap=True,
    )
    for seen in order["looked_at"]:
        console.print(
            f"Sample {seen['sample']}: {', '.join(seen['items'])}\n"
            f"  time of observation: {seen['time_mean']:.2f} +- {seen['time_sd']:.2f}\n"
            f'  P("{early}" before "{late}"): {seen["early_before_late"]:.3f}\n'
            f"  simulated at {seen['simulated_time']:.2f}: {', '.join(seen['simulated_order'])}",
            soft_wrap=True,
        )
