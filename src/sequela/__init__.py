"""Learn in which order items accumulate, from sets that were each seen once.

Attributes are loaded when they are first used, so that ``import sequela`` stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_WHERE = {
    "BudgetError": "sequela.support.errors",
    "InputError": "sequela.support.errors",
    "SequelaError": "sequela.support.errors",
    "Dataset": "sequela.data",
    "Budget": "sequela.budget",
    "Evaluation": "sequela.likelihood",
    "Likelihood": "sequela.likelihood",
    "Sampling": "sequela.settings",
    "evaluate": "sequela.likelihood",
    "log_likelihood": "sequela.likelihood",
    "sequence_log_likelihood": "sequela.likelihood",
    "sample_posteriors": "sequela.likelihood",
    "Simulation": "sequela.simulation",
    "simulate": "sequela.simulation",
    "example_theta": "sequela.data.examples",
    "Model": "sequela.model",
    "SeparationWarning": "sequela.learning.estimator",
    "SetChain": "sequela.learning.estimator",
    "SeveralOptimaWarning": "sequela.learning.estimator",
    "fit": "sequela.learning.estimator",
    "Refit": "sequela.learning.refit",
    "compare_optima": "sequela.learning.refit",
    "refit": "sequela.learning.refit",
    "SetChainCV": "sequela.learning.cross_validation",
    "path": "sequela.learning.path",
    "penalty_max": "sequela.learning.penalty_max",
    "Rivals": "sequela.questions.rivals",
    "rival_orders": "sequela.questions.rivals",
    "Orders": "sequela.questions.order",
    "order_matrix": "sequela.questions.order",
    "order_probability": "sequela.questions.order",
    "sample_arrivals": "sequela.questions.samples",
    "likely_orders": "sequela.questions.likely_orders",
    "item_arrivals": "sequela.questions.item_arrivals",
    "TimePosterior": "sequela.questions.clock",
    "pseudo_times": "sequela.questions.clock",
    "time_posterior": "sequela.questions.clock",
    "NextStep": "sequela.questions.next_item",
    "items_within": "sequela.questions.next_item",
    "next_items": "sequela.questions.next_item",
    "item_frequencies": "sequela.questions.distributions",
    "sequence_probability": "sequela.questions.distributions",
    "set_probability": "sequela.questions.distributions",
    "sequence_divergence": "sequela.questions.divergence",
    "GoodnessOfFit": "sequela.questions.goodness",
    "goodness_of_fit": "sequela.questions.goodness",
    "clock_curve": "sequela.questions.clock_information",
    "clock_items": "sequela.questions.clock_information",
    "Estimate": "sequela.questions.precision",
    "Imported": "sequela.data.importing",
    "ImportSummary": "sequela.data.importing",
    "read_table": "sequela.data.tables",
    "read_cbioportal": "sequela.data.cbioportal",
    "read_maf": "sequela.data.maf",
    "propose_merges": "sequela.data.merging",
    "example_samples": "sequela.data.examples",
    "plot_clock_curve": "sequela.plots.clock_curve",
    "plot_co_occurrence": "sequela.plots.co_occurrence",
    "plot_frequencies": "sequela.plots.frequencies",
    "plot_interactions": "sequela.plots.interactions",
    "plot_order_curve": "sequela.plots.order_curve",
    "plot_order_matrix": "sequela.plots.order_matrix",
    "plot_path": "sequela.plots.path",
    "plot_set_sizes": "sequela.plots.set_sizes",
    "save_figure": "sequela.plots.style",
    "plot_theta": "sequela.plots.theta",
    "plot_time_densities": "sequela.plots.time_densities",
    "plot_timeline": "sequela.plots.timeline",
    "plot_cross_validation": "sequela.plots.cross_validation",
}

if TYPE_CHECKING:
    from sequela.data import Dataset
    from sequela.data.cbioportal import read_cbioportal
    from sequela.data.examples import example_samples, example_theta
    from sequela.data.importing import Imported, ImportSummary
    from sequela.data.maf import read_maf
    from sequela.data.merging import propose_merges
    from sequela.data.tables import read_table
    from sequela.learning.estimator import (
        SeparationWarning,
        SetChain,
        SeveralOptimaWarning,
        fit,
    )
    from sequela.learning.path import SetChainCV, path
    from sequela.learning.penalty_max import penalty_max
    from sequela.learning.refit import Refit, compare_optima, refit
    from sequela.likelihood import (
        Budget,
        Evaluation,
        Likelihood,
        Sampling,
        evaluate,
        log_likelihood,
        sample_posteriors,
        sequence_log_likelihood,
    )
    from sequela.model import Model
    from sequela.plots.clock_curve import plot_clock_curve
    from sequela.plots.co_occurrence import plot_co_occurrence
    from sequela.plots.cross_validation import plot_cross_validation
    from sequela.plots.frequencies import plot_frequencies
    from sequela.plots.interactions import plot_interactions
    from sequela.plots.order_curve import plot_order_curve
    from sequela.plots.order_matrix import plot_order_matrix
    from sequela.plots.path import plot_path
    from sequela.plots.set_sizes import plot_set_sizes
    from sequela.plots.style import save_figure
    from sequela.plots.theta import plot_theta
    from sequela.plots.time_densities import plot_time_densities
    from sequela.plots.timeline import plot_timeline
    from sequela.questions.clock import TimePosterior, pseudo_times, time_posterior
    from sequela.questions.clock_information import clock_curve, clock_items
    from sequela.questions.distributions import (
        item_frequencies,
        sequence_probability,
        set_probability,
    )
    from sequela.questions.divergence import sequence_divergence
    from sequela.questions.goodness import GoodnessOfFit, goodness_of_fit
    from sequela.questions.item_arrivals import item_arrivals
    from sequela.questions.likely_orders import likely_orders
    from sequela.questions.next_item import NextStep, items_within, next_items
    from sequela.questions.order import Orders, order_matrix, order_probability
    from sequela.questions.precision import Estimate
    from sequela.questions.rivals import Rivals, rival_orders
    from sequela.questions.samples import sample_arrivals
    from sequela.simulation import Simulation, simulate
    from sequela.support.errors import BudgetError, InputError, SequelaError

__all__ = [
    "Budget",
    "BudgetError",
    "Dataset",
    "Estimate",
    "Evaluation",
    "GoodnessOfFit",
    "ImportSummary",
    "Imported",
    "InputError",
    "Likelihood",
    "Model",
    "NextStep",
    "Orders",
    "Refit",
    "Rivals",
    "Sampling",
    "SeparationWarning",
    "SequelaError",
    "SetChain",
    "SetChainCV",
    "SeveralOptimaWarning",
    "Simulation",
    "TimePosterior",
    "__version__",
    "clock_curve",
    "clock_items",
    "compare_optima",
    "evaluate",
    "example_samples",
    "example_theta",
    "fit",
    "goodness_of_fit",
    "item_arrivals",
    "item_frequencies",
    "items_within",
    "likely_orders",
    "log_likelihood",
    "next_items",
    "order_matrix",
    "order_probability",
    "path",
    "penalty_max",
    "plot_clock_curve",
    "plot_co_occurrence",
    "plot_cross_validation",
    "plot_frequencies",
    "plot_interactions",
    "plot_order_curve",
    "plot_order_matrix",
    "plot_path",
    "plot_set_sizes",
    "plot_theta",
    "plot_time_densities",
    "plot_timeline",
    "propose_merges",
    "pseudo_times",
    "read_cbioportal",
    "read_maf",
    "read_table",
    "refit",
    "rival_orders",
    "sample_arrivals",
    "sample_posteriors",
    "save_figure",
    "sequence_divergence",
    "sequence_log_likelihood",
    "sequence_probability",
    "set_probability",
    "simulate",
    "time_posterior",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'sequela' has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
