"""Describe in plain words what a failed test of a fit means, and what to try."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sequela.support.naming import either

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sequela.learning.fit_check import FitTest
    from sequela.model import Model

__all__ = ["describe"]


DRAW = "draw"  # the metadata of a model that was drawn from a posterior have this entry
# The last finding ends with this text if cells are missing.
_WHY_MISSING = (
    ". This can also happen if cells are missing for a reason that has to do with their values, "
    "for example if more genes were tested only in samples without a driver mutation"
)


def _compare() -> str:
    return either(
        "sequela.learning.compare_observations shows which kind of observation fits best",
        "`sequela fit --observation any` chooses the kind of observation that fits best",
    )


def _heavy() -> str:
    return either("observation=sequela.HeavyTailed(2.0)", "`sequela fit --observation heavy`")


def _which_checks() -> str:
    """Return a sentence that says which checks of orders there are for other observation times."""
    return either(
        ". For observation times that are not exponential, sequela.questions.rival_orders checks "
        "orders; order_ranges and sequela.posterior are not available",
        ". For observation times that are not exponential, only `sequela rivals` checks orders: "
        "`sequela fit` does not check them, and `sequela posterior` assumes exponential times",
    )


def describe(
    found: Sequence[FitTest], model: Model, samples: int, *, has_missing: bool = False
) -> list[str]:
    """Return one finding per failed test, except for tests that a more specific finding explains.

    Parameters
    ----------
    found : sequence of FitTest
        The tests that failed.
    model : Model
        The model that was tested.
    samples : int
        Number of samples that were compared.
    has_missing : bool
        Whether cells are missing. Then only known cells are counted.
    """
    known = " among their known cells" if has_missing else ""
    by_name = {test.name: test for test in found}
    findings = []
    if "empty sets" in by_name:
        findings.append(_empty(by_name["empty sets"], model, known))
    if "large sets" in by_name:
        findings.append(_large(by_name["large sets"], known))
    if "set sizes" in by_name and not findings:
        findings.append(_sizes(by_name["set sizes"], samples, known))
    if findings:
        findings[-1] += _which_checks()
    if "pairs" in by_name:
        findings.append(_together(by_name["pairs"], model))
    elif "triples" in by_name:
        findings.append(_together(by_name["triples"], model))
    if findings and has_missing:
        findings[-1] += _WHY_MISSING
    return findings


def _numbers(test: FitTest) -> str:
    return f"the model expects {test.expected:.3g} (p {_p(test.p)})"


def _p(p: float) -> str:
    return f"{p:.3f}" if p >= 0.0015 else "at most 0.001"


def _empty(test: FitTest, model: Model, known: str) -> str:
    none = f"no items{known}" if known else "no items at all"
    said = f"{test.observed:.0f} samples have {none}; {_numbers(test)}. "
    kind = model.observation.kind
    if test.observed < test.expected:
        return said + (
            "Samples seem to be observed later than the model assumes, or samples without items "
            "are missing in the table. Orders that were learned from such data can be wrong, "
            "even reversed. Try observation times that are rarely close to 0: "
            f"{either('observation=sequela.Gamma(2.0)', '`sequela fit --observation gamma`')}; "
            f"{_compare()}"
            if kind == "exponential"
            else f"Try another distribution of the observation time; {_compare()}"
        )
    return said + (
        "Some samples may not have been examined for all items, or items may accumulate faster in "
        "some samples than in others. Leave out samples that were not examined for all items, or "
        "try observation times with a heavy tail: "
        f"{_heavy()}; {_compare()}"
    )


def _large(test: FitTest, known: str) -> str:
    return (
        f"{test.observed:.0f} samples have more than {test.about} items{known}; {_numbers(test)}. "
        "Hypermutated or contaminated samples look like very late samples and can bias the "
        "observation times. Leave them out, analyse them separately, or try observation times "
        "with a heavy tail: "
        f"{_heavy()}; {_compare()}"
    )


def _sizes(test: FitTest, samples: int, known: str) -> str:
    return (
        f"the number of items per sample does not follow the model: for example, "
        f"{test.observed:.0f} of {samples} samples have {test.about} items{known}, and "
        f"{_numbers(test)}. "
        "Items may change the rate of observation, or the observation times may have another "
        f"distribution; {_compare()}. Interpret orders with caution"
    )


def _together(test: FitTest, model: Model) -> str:
    penalty = model.metadata.get("penalty")
    strong = f" (it is {penalty:g})" if isinstance(penalty, float) else ""
    more = "more" if test.observed > test.expected else "less"
    said = (
        f"{test.about} occur together {more} often than the model predicts: in "
        f"{test.observed:.0f} samples, and {_numbers(test)}. "
    )
    if DRAW in model.metadata:  # a posterior has no penalty
        return f"{said}The samples may be of several subtypes: analyse each subtype separately"
    return (
        f"{said}The penalty may be too strong{strong}: try a smaller one, or choose it by "
        "cross-validation (--cv). Or the samples may be of several subtypes: learn a model from "
        "each subtype separately"
    )
