"""The data of a report page, as plain values for JSON; docs/report.md describes the format."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.observation import ObservationEffects
from sequela.questions.cohort import cohort_orders
from sequela.questions.goodness import goodness_of_fit
from sequela.questions.order import order_matrix
from sequela.questions.positions import QUANTILES, item_positions
from sequela.report.citations import citation_texts
from sequela.report.effects_run import plain_words
from sequela.report.html_cohorts import comparison_values, survival_values
from sequela.report.html_posterior import (
    encoded_draws,
    posterior_edges,
    posterior_orders,
    sample_orders,
)
from sequela.report.html_verdicts import NUMBERS, Verdicts, baseline_firsts
from sequela.report.repeat_command import repeat_command
from sequela.samples import as_samples
from sequela.support.schema import Place, read_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from sequela.data.dataset import Dataset
    from sequela.model import Model
    from sequela.posteriors.result import Posterior
    from sequela.report.html_cohorts import ComparedCohort
    from sequela.report.run import Run

__all__ = ["FORMAT", "VERSION", "ReportContent", "build_payload"]

FORMAT = "sequela report"
VERSION = 1

_ORDER_DRAWS = 100_000  # simulated sequences for the order matrix
_DRAWS = 40_000  # simulated sequences for positions and for the goodness of fit
_LARGEST_SET = 14  # for larger sets, the most likely order is not computed
_LARGEST_DENSE = 12  # the same limit for a posterior, in whose draws all items interact
# For the goodness of fit of a posterior, one data set is simulated from each of this many draws, or
# from one draw per chain if there are more chains.
_DATA_SETS = 100
_MOST_ORDERED = 500  # the order matrix contains at most this many items
_MOST_PAIRS = 400  # the goodness of fit lists at most this many pairs, with the worst fit first
_MOST_PAIRED = 1500  # with more items, goodness of fit is left out: all pairs need too much memory
_MOST_NAMES = 500
_DIGITS = {"evidence": 3, "samples": 0, "effective": 0, "r_hat": 3}


@dataclass(frozen=True)
class ReportContent:
    """The content of a report; everything except the model is optional.

    Attributes
    ----------
    model : Model
        The model.
    data : Dataset or None
        The samples that it was learned from.
    title : str
        Heading of the page.
    verdicts : Verdicts
        The orders and their certainty.
    certainty : DataFrame or None
        Certainty of interactions, with the columns "from", "to", and any of "sign_probability",
        "low" and "high".
    pseudo_times : DataFrame or None
        The table that `pseudo_times` returns, one row per sample. If None, times are not shown.
    run : Run or None
        How the model was learned.
    posterior : Posterior or None
        The draws, if the report is about a posterior; `model` is then the mean of theta.
    clinical : DataFrame or None
        Survival times, from `read_clinical`. They are shown only if `pseudo_times` is given, too.
    comparison : ComparedCohort or None
        Another cohort, whose orders are shown next to the orders of this report.
    findings : tuple of dict
        Results of a check of the fit, each with "severity" ("note" or "warning"), "text" and
        "advice".
    """

    model: Model
    data: Dataset | None = None
    title: str = "Model"
    verdicts: Verdicts = field(default_factory=Verdicts)
    certainty: pd.DataFrame | None = None
    pseudo_times: pd.DataFrame | None = None
    run: Run | None = None
    posterior: Posterior | None = None
    clinical: pd.DataFrame | None = None
    comparison: ComparedCohort | None = None
    findings: tuple[dict[str, str], ...] = ()


def build_payload(
    content: ReportContent,
    *,
    seed: int = 0,
    threads: int | None = None,
    announce: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Return all data of the page; compute the data that `content` does not contain.

    Examples
    --------
    >>> from sequela import Model, example_theta
    >>> theta = example_theta()
    >>> payload = build_payload(ReportContent(Model(theta.to_numpy(), list(theta.columns))))
    >>> payload["version"], payload["samples"], len(payload["items"]["labels"])
    (1, None, 10)
    """
    model = content.model
    data = None if content.data is None else as_samples(model, content.data)
    how = {"random_state": seed, "n_threads": threads}
    tell = announce or (lambda _: None)
    tell("report: orders and positions")
    frequency: NDArray[np.float64] | None = None
    if data is not None:
        shares = data.frequencies.loc[list(model.items)]
        frequency = np.asarray(shares, dtype=np.float64)
    goodness = None
    if data is not None and model.n_items <= _MOST_PAIRED:
        goodness = {**_goodness(content, data, how), "check": _fit_check(content.run)}
    orders = _orders(content, frequency, how)
    positions = _positions(content, how)
    samples = None
    if data is not None:
        tell("report: samples")
        samples = _samples(content, data, how)
    return {
        "format": FORMAT,
        "version": VERSION,
        "title": content.title,
        "warnings": _warnings(content),
        "items": {
            "labels": list(model.items),
            "frequency": None if frequency is None else _numbers(frequency, 5),
            "expected": positions["observed"],
        },
        "model": _model(content),
        "verdicts": _verdicts(content.verdicts, model, data),
        "orders": orders,
        "positions": positions,
        "samples": samples,
        "survival": survival_values(content.clinical, content.pseudo_times),
        "comparison": comparison_values(content.comparison, content.posterior or model, how),
        "goodness": goodness,
        "findings": [*_fit_findings(content.run), *map(dict, content.findings)],
        "import": _import_summary(content.run),
        "made": _made(content.run),
    }


def _numbers(values: NDArray[Any] | pd.Series[Any], digits: int | None = None) -> list[Any]:
    """Return a list of numbers for JSON; None for those that are not finite."""
    array = np.asarray(values, dtype=np.float64)
    if digits is not None:
        array = np.round(array, digits)
    return [x if np.isfinite(x) else None for x in array.tolist()]


def _model(content: ReportContent) -> dict[str, Any]:
    model, certainty = content.model, content.certainty
    theta = model.theta
    about: dict[str, Any] = {
        "base": np.diagonal(theta).tolist(),
        "observation": model.observation.to_json(),
        "stop_rate": model.observation.constant_rate,
        "draws": None,
    }
    if content.posterior is not None:
        draws = encoded_draws(content.posterior)
        return {**about, "draws": draws, **posterior_edges(content.posterior)}
    effects = theta.copy()
    np.fill_diagonal(effects, 0.0)
    source, target = np.nonzero(effects)
    sure = None
    if certainty is not None:
        rows = certainty.set_index(["from", "to"])
        pairs = [(model.items[i], model.items[j]) for i, j in zip(source, target, strict=True)]
        aligned = rows.reindex(pairs)
        columns = [c for c in ("sign_probability", "low", "high") if c in rows.columns]
        sure = {name: _numbers(aligned[name], 4) for name in columns}
    return {
        **about,
        "from": source.tolist(),
        "to": target.tolist(),
        "effect": effects[source, target].tolist(),
        "certainty": sure,
    }


def _verdicts(verdicts: Verdicts, model: Model, data: Dataset | None) -> dict[str, Any]:
    table = verdicts.filled()
    place = {label: at for at, label in enumerate(model.items)}
    known = table["first"].isin(list(place)) & table["second"].isin(list(place))
    table = table[known]
    # In the table of a fit, "baseline" says whether the baseline agrees with the order. The page
    # needs the label of the item that comes first according to the baseline.
    if data is not None and not table["baseline"].isin(list(place)).any():
        table = table.assign(baseline=np.array(baseline_firsts(table, data), dtype=object))
    rows: dict[str, list[Any]] = {
        name: [place.get(label) for label in table[name]]
        for name in ("first", "second", "baseline")
    }
    for name in NUMBERS:
        if table[name].notna().any():
            rows[name] = _numbers(table[name], _DIGITS.get(name, 5))
    rows["verdict"] = table["verdict"].tolist()
    return {
        "kind": verdicts.kind,
        "notes": list(verdicts.notes),
        "command": verdicts.command,
        "rows": rows,
    }


def _orders(
    content: ReportContent, frequency: NDArray[np.float64] | None, how: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the upper triangle of the order matrix, in thousandths; None for unknown entries.

    If the table of verdicts has a probability and its standard error for a pair, the matrix
    contains this probability.
    """
    model, known = content.model, content.verdicts.table
    if content.posterior is not None:
        count = None if content.data is None else content.data.n_samples
        return posterior_orders(content.posterior, count)
    n = model.n_items
    if n < 2:
        return None
    rank = np.arange(n) if frequency is None else np.argsort(-frequency, kind="stable")
    chosen = np.sort(rank[:_MOST_ORDERED])
    method: Any = "auto" if n <= 12 else "simulation"
    found = order_matrix(
        model, [model.items[j] for j in chosen], method=method, draws=_ORDER_DRAWS, **how
    )
    upper = np.triu_indices(chosen.size, 1)
    matrix = found.probability.to_numpy().copy()
    place = {model.items[j]: at for at, j in enumerate(chosen)}
    if {"probability", "se"} <= set(known.columns):
        exact = known.dropna(subset=["probability", "se"])
        columns = (exact[name] for name in ("first", "second", "probability"))
        for a, b, p in zip(*columns, strict=True):
            if a in place and b in place:
                matrix[place[a], place[b]], matrix[place[b], place[a]] = p, 1.0 - p
    probability = 1000.0 * matrix[upper]
    together = 1e5 * found.observed.to_numpy()[upper]
    return {
        "items": chosen.tolist(),
        "probability": [None if np.isnan(p) else round(p) for p in probability.tolist()],
        "together": [round(x) for x in np.nan_to_num(together).tolist()],
        "draws": found.draws,
    }


def _positions(content: ReportContent, how: dict[str, Any]) -> dict[str, Any]:
    model = content.model
    table = item_positions(content.posterior or model, draws=_DRAWS, **how).loc[list(model.items)]
    parts: dict[str, Any] = {}
    for name, what, digits in (("position", "place", 0), ("time", "time", 4)):
        columns = [f"{what}_{round(100 * q):02d}" for q in QUANTILES]
        rows = np.round(table[columns].to_numpy(), digits)
        parts[name] = [None if np.isnan(row).any() else row.tolist() for row in rows]
    return {
        "items": list(range(model.n_items)),
        "observed": _numbers(table["observed"], 5),
        "draws": _DRAWS,
        **parts,
    }


def _samples(content: ReportContent, data: Dataset, how: dict[str, Any]) -> dict[str, Any]:
    model, times, threads = content.model, content.pseudo_times, how["n_threads"]
    if model.observation.constant_rate is None:
        # If observation times are not exponential, orders of single samples cannot be computed.
        return {
            "labels": list(data.samples),
            "sets": [np.flatnonzero(row).tolist() for row in data.select_items(model.items).values],
            "orders": [None] * data.n_samples,
            "arrivals": None,
            "largest": 0,
            "incomplete": 0,
            "time": None if times is None else _times(times, data),
        }
    orders: Sequence[Any]
    found_arrivals: Sequence[Any]
    if content.posterior is None:
        cohort = cohort_orders(model, data, max_size=_LARGEST_SET, n_threads=threads)
        orders, found_arrivals, largest = cohort.orders, cohort.arrivals, cohort.largest
    else:
        orders, found_arrivals, largest = sample_orders(
            content.posterior, data, max_size=_LARGEST_DENSE, threads=threads
        )
    place = {label: at for at, label in enumerate(model.items)}
    sets = [np.flatnonzero(row).tolist() for row in data.values]
    order = [data.items.index(label) for label in model.items]
    if order != list(range(len(order))):
        sets = [np.flatnonzero(row[order]).tolist() for row in data.values]
    arrivals = [
        None if found is None else [round(found[model.items[j]], 3) for j in items]
        for found, items in zip(found_arrivals, sets, strict=True)
    ]
    return {
        "labels": list(data.samples),
        "sets": sets,
        "orders": [
            None if found is None else [place[label] for label in found] for found in orders
        ],
        "arrivals": arrivals,
        "largest": largest,
        "incomplete": _incomplete(data, orders),
        "time": None if times is None else _times(times, data),
    }


def _incomplete(data: Dataset, orders: Sequence[Any]) -> int:
    """Return the number of samples that have missing cells and an order of their known items."""
    if data.missing is None:
        return 0
    return int(
        sum(row.any() for row, found in zip(data.missing, orders, strict=True) if found is not None)
    )


def _times(times: pd.DataFrame, data: Dataset) -> dict[str, Any] | None:
    if len(times) != data.n_samples or "mean" not in times.columns:
        return None
    low, high = times.get("q05", times["mean"]), times.get("q95", times["mean"])
    return {
        "mean": _numbers(times["mean"], 4), "low": _numbers(low, 4), "high": _numbers(high, 4)
    }  # fmt: skip


def _goodness(content: ReportContent, data: Dataset, how: dict[str, Any]) -> dict[str, Any]:
    model, posterior = content.model, content.posterior
    if posterior is None:
        found = goodness_of_fit(model, data, draws=_DRAWS, **how)
    else:
        most = max(_DATA_SETS, len(posterior.draws.scale))
        found = goodness_of_fit(posterior, data, max_models=most, **how)
    place = {label: at for at, label in enumerate(model.items)}
    items = found.items.loc[list(model.items)]
    worst = found.pairs.head(_MOST_PAIRS)
    return {
        "draws": found.draws,
        "sizes": {name: _numbers(found.sizes[name], 3) for name in ("observed", "expected")},
        "items": {name: _numbers(items[name], 3) for name in ("observed", "expected", "z")},
        "pairs": {
            "a": [place[label] for label in worst["a"]],
            "b": [place[label] for label in worst["b"]],
            **{name: _numbers(worst[name], 3) for name in ("observed", "expected", "z")},
            "count": len(found.pairs),
            "beyond": int((found.pairs["z"].abs() > 2.0).sum()),
        },
    }


@dataclass(frozen=True)
class _File:
    path: str


@dataclass(frozen=True)
class _Part:
    reason: str
    names: list[str]


@dataclass(frozen=True)
class _Summary:
    """The fields of the import summary of a run that the page uses."""

    kind: str
    files: list[_File] = field(default_factory=list)
    dropped_samples: list[_Part] = field(default_factory=list)
    dropped_items: list[_Part] = field(default_factory=list)


def _import_summary(run: Run | None) -> dict[str, Any] | None:
    summary = None if run is None else run.data.get("import_summary")
    if not isinstance(summary, dict):
        return None
    read_fields(_Summary, summary, Place("run.json", "Make the run again", "data.import_summary"))
    short = {**summary, "files": []}  # the page does not show paths
    for file in summary.get("files", []):
        short["kind"] = short["kind"].replace(file["path"], Path(file["path"]).name)
    for name in ("dropped_samples", "dropped_items"):
        short[name] = [
            {**part, "names": part["names"][:_MOST_NAMES], "count": len(part["names"])}
            for part in summary.get(name, [])
        ]
    return short


def _made(run: Run | None) -> dict[str, Any]:
    about: dict[str, Any] = {"citations": citation_texts()}
    if run is not None:
        options = dict(run.options)
        if "random_state" in options:
            options["seed"] = options.pop("random_state")
        # Show the names of files without their folders, because the names of folders may be
        # private, and a report is often given to others.
        others = run.other_files()
        options = {
            name: Path(value).name if isinstance(value, str) and value in others else value
            for name, value in options.items()
        }
        about.update(
            options=options,
            versions=run.versions,
            result=run.result,
            data={"path": Path(run.data["path"]).name, "sha256": run.data["sha256"]},
            command=repeat_command(run),
        )
    return about


def _fit_check(run: Run | None) -> dict[str, Any] | None:
    """Return the recorded check of whether the model describes the data; None if there is none."""
    check = None if run is None else run.result.get("fit_check")
    return check if isinstance(check, dict) else None


def _warnings(content: ReportContent) -> list[str]:
    if content.posterior is not None:
        state = content.posterior.convergence
        return [*([] if state.converged else [state.message]), *_misfit(content.run)]
    warnings = []
    if isinstance(content.model.observation, ObservationEffects):
        words = plain_words(content.model)
        warnings.append(f"{words[0].upper()}{words[1:]}.")
    run = content.run
    if run is not None and not run.result.get("converged", True):
        warnings.append(
            "The fit did not converge, so its numbers may still change. Run it again with more "
            "iterations (--max-iter)."
        )
    warnings += _misfit(run)
    check = (None if run is None else run.result.get("effects_check")) or {}
    warnings += [f"{text[0].upper()}{text[1:]}." for text in check.get("findings", [])]
    return warnings


def _misfit(run: Run | None) -> list[str]:
    """Return the warning that the model does not describe the data, if it does not."""
    if not _fit_findings(run):
        return []
    return ['The model does not describe the data well: see "Does the model fit?" below.']


def _fit_findings(run: Run | None) -> list[dict[str, str]]:
    """Return the recorded findings about data that the model does not describe."""
    check = _fit_check(run) or {}
    return [{"severity": "warning", "text": str(text)} for text in check.get("findings", [])]
