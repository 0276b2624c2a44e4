"""Print the results of ``sequela demo --known`` next to the true values of the simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sequela.cli.output import make_console, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from sequela.report.known_demo import KnownDemo, LearnedCheck, OrderCheck

__all__ = ["show"]


def show(found: KnownDemo) -> None:
    """Print the results next to the true values."""
    console = make_console()
    console.print(
        f"Samples drawn from the example model: {found.samples}, seed {found.seed}\n",
        soft_wrap=True,
    )
    rows = [
        (
            row.item,
            str(row.samples),
            f"{row.frequency:.3f}",
            f"{row.base_rate:.3f}",
            ", ".join(f"{name} x {factor:.3g}" for name, factor in row.changed_by.items()),
        )
        for row in found.items
    ]
    columns = {"Item": False, "Samples": True, "Share": True, "Base rate": True}
    print_table(console, {**columns, "Changed by": False}, rows)
    fits = found.log_likelihood
    console.print()
    print_table(
        console,
        {"Model": False, "Mean log-likelihood per sample": True},
        [
            ("the model that drew the samples", _with_error(fits.true_model, fits.true_model_se)),
            (
                "independent items",
                _with_error(fits.independent_model, fits.independent_model_se),
            ),
            ("learned from the sets", f"{found.learned.log_likelihood:.4f}"),
        ],
    )
    _show_learned(console, found.learned)
    console.print(f"\nSets: {found.sets.exact} exact, {found.sets.sampled} sampled", soft_wrap=True)
    _show_order(console, found.order)
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    console.print(f"\n{versions}", soft_wrap=True)


def _show_learned(console: Console, learned: LearnedCheck) -> None:
    optima = "one optimum" if learned.optima == 1 else f"{learned.optima} optima"
    console.print(
        f"\nLearned with penalty {learned.penalty}: {learned.starts} starts ended at "
        f"{optima}; KKT residual of the best optimum: {learned.kkt_residual:.0e}",
        soft_wrap=True,
    )
    print_table(
        console,
        {"Strongest interactions": False, "Learned": True, "True": True},
        [
            (f"{row.source} -> {row.target}", f"{row.learned:.2f}", f"{row.true:.2f}")
            for row in learned.interactions
        ],
    )


def _with_error(value: float, error: float) -> str:
    return f"{value:.4f}" + (f" +- {error:.2g}" if error else "")


def _show_order(console: Console, order: OrderCheck) -> None:
    early, late = order.early, order.late
    if not order.samples_with_both:
        console.print(
            f'\nNo sample has both "{early}" and "{late}"; draw more with --samples.',
            soft_wrap=True,
        )
        return
    console.print(
        f'\nSamples with both "{early}" and "{late}": {order.samples_with_both}', soft_wrap=True
    )
    print_table(
        console,
        {f'Share of these samples in which "{early}" came first': False, "": True},
        [
            ("as the model expects, given the sets", f"{order.expected_share:.3f}"),
            ("in the simulation", f"{order.simulated_share:.3f}"),
        ],
    )
    console.print(
        "\nThe earliest and the latest of these samples, according to the model\n"
        "(times in units of the mean observation time)",
        soft_wrap=True,
    )
    for seen in order.looked_at:
        console.print(
            f"Sample {seen.sample}: {', '.join(seen.items)}\n"
            f"  time of observation: {seen.time_mean:.2f} +- {seen.time_sd:.2f}\n"
            f'  P("{early}" before "{late}"): {seen.early_before_late:.3f}\n'
            f"  simulated at {seen.simulated_time:.2f}: {', '.join(seen.simulated_order)}",
            soft_wrap=True,
        )
