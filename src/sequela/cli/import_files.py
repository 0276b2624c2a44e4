"""``sequela import``: convert cBioPortal, MAF and other files to a table of 0 and 1."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sequela.cli.inputs import check_output, force_option, most_frequent_option, split_items
from sequela.cli.long_tables import LONG_OPTIONS, long_options, read_long_tables
from sequela.cli.output import echo, json_option, print_json
from sequela.cli.table_options import TABLE_OPTIONS, read_one_table, table_options

if TYPE_CHECKING:
    from sequela.data.importing import Imported

__all__ = ["import_files"]

_FILE = click.Path(path_type=Path)


@click.command(
    "import",
    epilog="\b\nExample:\n  sequela import --mutations mutations.txt --cna cna.txt "
    "--at-least 4 -o samples.csv",
)
@click.option("--table", type=_FILE, help="Table: CSV, TSV or Parquet, optionally compressed.")
@click.option(
    "--mutations", type=_FILE, help="Mutations, downloaded from the results view of cBioPortal."
)
@click.option(
    "--cna", type=_FILE, help="Copy numbers, downloaded from the results view of cBioPortal."
)
@click.option("--study-folder", type=_FILE, help="Study folder of cBioPortal.")
@click.option("--maf", type=_FILE, help="MAF file.")
@click.option(
    "--long",
    "long_tables",
    type=_FILE,
    multiple=True,
    help="Table with one line per sample and item; may be given several times.",
)
@click.option("--study", metavar="ID", help="Id of a study to download from cBioPortal.")
@click.option(
    "--host",
    default=None,
    help="With --study: address of another server that has the API of cBioPortal.",
)
@click.option("--refresh", is_flag=True, help="With --study: download the study again.")
@long_options
@click.option("-o", "--output", type=_FILE, required=True, help="Table to write (CSV).")
@table_options
@click.option(
    "--amplification",
    type=int,
    default=2,
    show_default=True,
    help="Lowest copy-number level that counts as an amplification.",
)
@click.option(
    "--deletion",
    type=int,
    default=-2,
    show_default=True,
    help="Highest copy-number level that counts as a deletion.",
)
@click.option(
    "--consequences",
    help="With --maf: variant classes that count as mutations, separated by commas. Default: all "
    "classes except silent ones.",
)
@click.option("--germline", is_flag=True, help="With --maf: also count germline mutations.")
@click.option(
    "--barcode-length",
    metavar="N",
    type=click.IntRange(min=1),
    help="With --maf: use only the first N characters of the sample ids.",
)
@click.option(
    "--profiled",
    type=_FILE,
    help="With --maf or --long: file with the ids of all examined samples, one per line.",
)
@click.option(
    "--panel",
    metavar="NAME",
    help="With --study-folder or --study: read only the samples of this gene panel.",
)
@click.option(
    "--panels",
    type=_FILE,
    help="With --study-folder or --study: folder or file that defines the gene panels, if the "
    "study does not define them.",
)
@click.option(
    "--incomplete",
    type=click.Choice(["missing", "samples", "items"]),
    help="What to do if some items of a sample were not profiled: write NA in these cells "
    "(missing), drop all "
    "such samples (samples), or drop all such items (items). Default: missing.",
)
@click.option("--merge", type=_FILE, help="JSON file that maps a new name to the items to merge.")
@click.option(
    "--at-least",
    metavar="N",
    type=click.IntRange(min=1),
    help="Keep only items that occur in at least N samples.",
)
@most_frequent_option
@click.option("--keep", help="Items to keep even if they are rare, separated by commas.")
@click.option("--drop", help="Items to drop even if they are frequent, separated by commas.")
@click.option(
    "--propose-merges", is_flag=True, help="List items that nearly always occur together."
)
@force_option
@json_option
def import_files(
    output: Path, force: bool, propose_merges: bool, as_json: bool, **given: Any
) -> None:
    """Convert files of alterations to a table of samples and items.

    Give one source: --table, --mutations and/or --cna, --study-folder, --maf, --long, or --study.
    Items of genes are named as in the paper: EGFR is a mutation, EGFR(A) is an amplification, and
    EGFR(D) is a deletion. A sample without any alteration is kept as an empty set. The summary
    lists what was read, dropped and merged.
    """
    from sequela.report.tables import samples_table, statements_table, write_table

    orders = given["orders_file"]
    for path in (output, orders):
        check_output(path, force=force)
    found = read(given)
    write_table(samples_table(found.data), output)
    report = {"written": str(output), **found.summary.to_dict()}
    if orders is not None:
        write_table(statements_table(found.data), orders, index=False)
        report["written_orders"] = str(orders)
    if propose_merges:
        from sequela.data.merging import propose_merges as propose

        report["proposed_merges"] = {name: list(old) for name, old in propose(found.data).items()}
    if as_json:
        print_json(report)
    else:
        show(found, report)


def read(given: dict[str, Any]) -> Imported:
    """Read the source that the options name; raise an error unless they name exactly one source."""
    sources = {
        "--table": given["table"],
        "--mutations/--cna": given["mutations"] or given["cna"],
        "--study-folder": given["study_folder"],
        "--maf": given["maf"],
        "--long": given["long_tables"] or None,
        "--study": given["study"],
    }
    named = [name for name, value in sources.items() if value is not None]
    if len(named) != 1:
        raise click.UsageError(
            f"give exactly one of {', '.join(sources)}"
            + (f"; {' and '.join(named)} were given" if named else "")
        )
    selection: dict[str, Any] = {
        "merge": given["merge"],
        "at_least": given["at_least"],
        "most_frequent": given["most_frequent"],
        "keep": split_items(given["keep"]) or (),
        "drop": split_items(given["drop"]) or (),
    }
    source = named[0]
    _check_only(source, given)
    if source == "--table":
        return read_one_table(given, selection)
    if source == "--long":
        return read_long_tables(given, selection)
    if source == "--maf":
        from sequela.data.maf import read_maf

        return read_maf(
            given["maf"], consequences=split_items(given["consequences"]),
            profiled=given["profiled"], germline=given["germline"],
            barcode_length=given["barcode_length"], **selection,
        )  # fmt: skip
    from sequela.data.cbioportal import read_cbioportal

    if given["incomplete"] is not None:
        selection["incomplete"] = given["incomplete"]
    folder = given["study_folder"]
    if source == "--study":
        from sequela.data.download import PUBLIC_HOST, download_study

        host = given["host"] or PUBLIC_HOST
        folder = download_study(given["study"], host=host, refresh=given["refresh"])
    return read_cbioportal(
        given["mutations"], given["cna"], folder=folder, panel=given["panel"],
        panels=given["panels"],
        amplification=given["amplification"], deletion=given["deletion"], **selection,
    )  # fmt: skip


def _check_only(source: str, given: dict[str, Any]) -> None:
    """Raise an error if an option belongs to another source and would have no effect."""
    belongs = {
        "consequences": ("--maf",), "germline": ("--maf",), "barcode_length": ("--maf",),
        "profiled": ("--maf", "--long"),
        "host": ("--study",), "refresh": ("--study",), "panel": ("--study-folder", "--study"),
        "panels": ("--study-folder", "--study"),
        "incomplete": ("--mutations/--cna", "--study-folder", "--study", "--long"),
        **dict.fromkeys(LONG_OPTIONS, ("--long",)),
        **dict.fromkeys(TABLE_OPTIONS, ("--table",)),
    }  # fmt: skip
    for name, owners in belongs.items():
        used = given[name] is not None and given[name] is not False
        if used and source not in owners:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} belongs to {' or '.join(owners)}, not to {source}")


def show(found: Imported, report: dict[str, Any]) -> None:
    """Print the summary, the proposed merges and the names of the files."""
    echo(found.summary.text())
    for name, old in report.get("proposed_merges", {}).items():
        echo(
            f"items that nearly always occur together: {', '.join(old)}. To merge them into "
            f"{name!r}, list them in a file for --merge."
        )
    echo(f"written: {report['written']}")
    if "written_orders" in report:
        echo(f"written: {report['written_orders']}")
