"""The documentation site: sphinx-build -W --keep-going -b html docs docs/_build/html."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click
from docutils import nodes
from sphinx.domains.python import PyXRefRole
from sphinx.util import logging

import sequela
from sequela.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

project = "sequela"
version = release = sequela.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "numpydoc", "sphinx_click"]
exclude_patterns = ["_build"]
# The example report is written here when the site is built.
LIVE = Path(__file__).parent / "_live"
html_extra_path = ["_live"]
html_static_path = ["_static"]
html_css_files = ["site.css"]

# The tutorials and the gallery are notebooks that run when the site is built. An error in a cell
# stops the build.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 1800  # seconds per cell; the first cell may compile kernels
# Leave out notices of progress and of compilation: they depend on the speed of the machine.
nb_output_stderr = "remove"

# Convert quotes and ellipses, but not dashes: an option such as --json must stay as it is.
smartquotes_action = "qe"

html_theme = "furo"
html_title = f"sequela {release}"
html_copy_source = False
html_show_copyright = False

myst_enable_extensions = ["deflist"]  # the glossary
myst_heading_anchors = 3  # so that a link can point to a heading of another page

# Docstrings are numpydoc: names are in single backticks, and types are prose.
default_role = "name"
numpydoc_show_class_members = False  # autodoc lists them
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
# scikit-learn adds these methods to every estimator. They are left out, because their docstrings
# contain references that only the manual of scikit-learn can resolve.
autodoc_default_options = {"exclude-members": "set_fit_request, set_score_request"}

# Names that `sphinx-build -n` must not report as missing: types in signatures belong to other
# packages, or to modules that may move.
nitpick_ignore_regex = [("py:(class|data|exc)", ".*"), ("py:obj", r"(?!sequela\.).*")]


def name(
    role: str,  # noqa: ARG001 - docutils passes it
    rawtext: str,
    text: str,
    lineno: int,
    inliner: Any,
    options: Any = None,
    content: Any = (),
) -> Any:
    """Make single backticks a link if they contain a public name, and code otherwise."""
    target = where(text.removeprefix("sequela."))
    if target is None:
        return [nodes.literal(rawtext, text)], []
    link = f"{text} <{target}>"
    return PyXRefRole()("py:obj", rawtext, link, lineno, inliner, options or {}, content)


SUBPACKAGES = [name for name in sequela.__all__ if isinstance(getattr(sequela, name), ModuleType)]


def where(text: str) -> str | None:
    """Return the full name of a public name such as ``Model.save``, or None for other text."""
    owner, _, member = text.partition(".")
    if owner in SUBPACKAGES:
        return f"sequela.{text}" if member in getattr(sequela, owner).__all__ else None
    if owner in sequela.__all__:
        # Attributes that a fit sets, such as cv_results_, have no entry of their own.
        known = member and hasattr(getattr(sequela, owner), member)
        return f"sequela.{owner}{'.' + member if known else ''}"
    return None


def every_name_is_documented(app: Sphinx, env: BuildEnvironment) -> None:  # noqa: ARG001
    """Warn about public names without an entry in docs/api; -W turns the warning into an error."""
    described = env.get_domain("py").objects
    public = {f"sequela.{name}": getattr(sequela, name) for name in sequela.__all__}
    for owner in SUBPACKAGES:
        package = getattr(sequela, owner)
        public |= {f"sequela.{owner}.{name}": getattr(package, name) for name in package.__all__}
    # A name such as sequela.data.Dataset has its entry under the other name of the same object.
    found = {id(value) for full, value in public.items() if full in described}
    for full, value in public.items():
        if isinstance(value, ModuleType) or full == "sequela.__version__" or id(value) in found:
            continue
        logging.getLogger(__name__).warning(
            "%s is public but in no page of docs/api; add it to the page of its group", full
        )


def every_option_is_documented(app: Sphinx, env: BuildEnvironment) -> None:  # noqa: ARG001
    """Warn about commands and options that are not in the reference of commands."""
    described = env.get_domain("std").progoptions  # type: ignore[attr-defined]
    sections = {
        ident
        for section in env.get_doctree("commands/index").findall(nodes.section)
        for ident in section["ids"]
    }
    for path, command in commands(main, click.Context(main, info_name="sequela")):
        if path not in sections:
            logging.getLogger(__name__).warning("command %s is in no reference", path)
        for option in command.params:
            missing = [name for name in option.opts if (path, name) not in described]
            if isinstance(option, click.Option) and not option.hidden and missing:
                logging.getLogger(__name__).warning("%s of %s is in no reference", missing, path)


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all commands below it, with names such as sequela-plot-theta."""
    yield context.command_path.replace(" ", "-"), command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from commands(child, click.Context(child, parent=context, info_name=name))


def show_examples_as_code(app: Sphinx, context: click.Context, lines: list[str]) -> None:  # noqa: ARG001
    """Show the example at the end of the help of a command as code, as the other pages do."""
    examples = [line.removeprefix("|").strip() for line in lines]
    examples = [line for line in examples if line.startswith("sequela ")]
    if examples:
        code = [f"   $ {line}" for line in examples]
        lines[:] = ["", ".. rubric:: Example", "", ".. code-block:: console", "", *code, ""]


def describe_figures(app: Sphinx, doctree: nodes.document) -> None:  # noqa: ARG001
    """Describe each figure of a notebook by the paragraph before its code, for screen readers."""
    before = ""
    for node in doctree.findall():
        if isinstance(node, nodes.paragraph):
            before = node.astext().replace("\n", " ")
        elif isinstance(node, nodes.image) and not node.get("alt"):
            node["alt"] = before


def every_figure_is_shown(app: Sphinx, doctree: nodes.document) -> None:  # noqa: ARG001
    """Warn about cells of a notebook that call a function of plots, but show no picture."""
    for cell in doctree.findall(nodes.container):
        if "cell" not in cell["classes"]:
            continue
        code = "".join(block.astext() for block in cell.findall(nodes.literal_block))
        if "plots.plot_" in code and next(cell.findall(nodes.image), None) is None:
            logging.getLogger(__name__).warning("a cell shows no picture: %s", code, location=cell)


def write_live_report(app: Sphinx) -> None:  # noqa: ARG001
    """Write the example report, which takes some seconds."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tools.make_live_report import make_live_report

    make_live_report(LIVE)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the role of single backticks, the example report, and the checks of the site."""
    LIVE.mkdir(parents=True, exist_ok=True)
    app.add_role("name", name)
    app.connect("builder-inited", write_live_report)
    app.connect("sphinx-click-process-epilog", show_examples_as_code)
    app.connect("doctree-read", describe_figures)
    app.connect("doctree-read", every_figure_is_shown)
    app.connect("env-check-consistency", every_name_is_documented)
    app.connect("env-check-consistency", every_option_is_documented)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
