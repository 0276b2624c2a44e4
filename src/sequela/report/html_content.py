"""Build the content of a report from a model or a posterior, with or without samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sequela.model import as_model
from sequela.posteriors.result import Posterior
from sequela.questions.clock import pseudo_times
from sequela.questions.order import order_matrix
from sequela.report.html_payload import ReportContent
from sequela.report.html_posterior import mean_model, posterior_verdicts
from sequela.report.html_verdicts import Verdicts
from sequela.samples import as_samples

if TYPE_CHECKING:
    import pandas as pd

    from sequela.data.dataset import DataLike, Dataset
    from sequela.model import ModelLike

__all__ = ["model_content", "posterior_content", "posterior_times"]

# Maximum number of items whose orders are listed: a hundred items have 4,950 pairs.
_ORDERED_ITEMS = 20
# Number of draws of a posterior from which the times of samples are computed. It is small because
# quantiles of times take long to compute if all items of a model interact.
_TIME_MODELS = 12
_QUANTILES = (0.05, 0.95)
# If a partly known sample has more present and missing items than this, no times are computed,
# because exact times of such samples would take too long.
_LARGEST_PARTLY_KNOWN = 10


def model_content(
    model: ModelLike | Posterior,
    data: DataLike | None,
    title: str,
    *,
    seed: int,
    threads: int | None,
) -> ReportContent:
    """Return the content of a report about a model or a posterior."""
    if isinstance(model, Posterior):
        return posterior_content(model, data, title, seed=seed, threads=threads)
    chain = as_model(model)
    samples = None if data is None else as_samples(chain, data)
    ranked = chain.items if samples is None else samples.frequencies.nlargest(_ORDERED_ITEMS).index
    items = list(ranked)[:_ORDERED_ITEMS]
    verdicts = Verdicts()
    if len(items) > 1:
        pairs = order_matrix(chain, items, random_state=seed, n_threads=threads).pairs()
        verdicts = Verdicts(
            pairs,
            command="sequela fit samples.csv -o fit\n"
            "sequela rivals fit samples.csv -o fit/rivals.csv\nsequela report fit",
        )
    times = None
    if samples is not None:
        times = pseudo_times(chain, samples, random_state=seed, n_threads=threads)
    return ReportContent(chain, samples, title, verdicts, pseudo_times=times)


def posterior_content(
    posterior: Posterior,
    data: DataLike | None,
    title: str,
    *,
    seed: int,
    threads: int | None,
) -> ReportContent:
    """Return the content of a report about a posterior."""
    model = mean_model(posterior)
    samples = None if data is None else as_samples(model, data)
    times = None
    if samples is not None and _largest_partly_known(samples) <= _LARGEST_PARTLY_KNOWN:
        times = posterior_times(posterior, samples, seed=seed, threads=threads)
    return ReportContent(
        model, samples, title, posterior_verdicts(posterior), pseudo_times=times,
        posterior=posterior,
    )  # fmt: skip


def _largest_partly_known(samples: Dataset) -> int:
    """Return the largest number of present and missing items of a partly known sample."""
    if samples.is_plain:
        return 0
    sizes = samples.set_sizes.copy()
    partly = np.zeros(samples.n_samples, dtype=np.bool_)
    if samples.missing is not None:
        sizes += samples.missing.sum(axis=1)
        partly |= samples.missing.any(axis=1)
    if samples.orders is not None:
        partly |= [bool(statements) for statements in samples.orders]
    return int(sizes[partly].max(initial=0))


def posterior_times(
    posterior: Posterior, samples: Dataset, *, seed: int, threads: int | None
) -> pd.DataFrame:
    """Return the pseudo-times of samples, averaged over some of the draws of a posterior."""
    settings: dict[str, Any] = {"random_state": seed, "n_threads": threads}
    most = max(_TIME_MODELS, len(posterior.draws.scale))
    return pseudo_times(posterior, samples, quantiles=_QUANTILES, max_models=most, **settings)
