"""Run the Python blocks of the documents. They must print the text blocks that follow them."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts),
]

# A fenced block of Markdown: its language and its content.
_BLOCK = re.compile(r"^```(?P<language>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(document: Path) -> list[tuple[str, str | None]]:
    """Return each Python block with the text block that directly follows it, or None."""
    blocks = [(m["language"], m["body"]) for m in _BLOCK.finditer(document.read_text("utf-8"))]
    found = []
    for at, (language, body) in enumerate(blocks):
        if language == "python":
            follows = blocks[at + 1] if at + 1 < len(blocks) else ("", "")
            found.append((body, follows[1] if follows[0] == "text" else None))
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_blocks_print_what_the_document_shows(document):
    namespace: dict[str, object] = {}
    for source, shown in examples(document):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, str(document), "exec"), namespace)  # noqa: S102 - our own text
        # Lines of tables of pandas end with blanks. Lines of documents do not.
        lines = [line.rstrip() for line in printed.getvalue().splitlines()]
        assert shown is None or lines == shown.splitlines()
        assert shown is not None or not printed.getvalue(), (
            "the block prints text that the document does not show"
        )


def test_the_readme_has_an_example_with_its_output():
    assert [shown is not None for _, shown in examples(ROOT / "README.md")] == [True]


def write_export(folder: Path) -> None:
    """Write the embedded example in the format of files from the results view of cBioPortal."""
    from sequela import example_samples

    frame = example_samples().to_frame()
    ids = "\t".join(frame.index)
    mutations, levels = [], {}
    for item in frame.columns:
        gene, _, kind = item.rpartition("(")
        if kind in ("A)", "D)"):
            sign = 2 if kind == "A)" else -2
            levels[gene] = levels.get(gene, 0) + sign * frame[item].astype(int)
        else:
            mutations.append("\t".join([item, *("p.X1Y" if x else "WT" for x in frame[item])]))
    study = "\t".join(["STUDY_ID", *["example"] * len(frame)])
    head = f"{study}\nSAMPLE_ID\t{ids}\n"
    (folder / "mutations.txt").write_text(head + "\n".join(mutations) + "\n")
    rows = ["\t".join([gene, *map(str, level)]) for gene, level in levels.items()]
    (folder / "cna.txt").write_text(head + "\n".join(rows) + "\n")


# A fit in one of the documents takes a minute. To save time, the test replaces the options on the
# left by those on the right.
SMALLER = {"--most-frequent 40 --starts 3 ": "--most-frequent 12 --starts 2 "}


@pytest.mark.parametrize("name", ["README.md", "docs/tutorials/cbioportal.md"])
def test_the_commands_that_a_document_shows_work(name, tmp_path, monkeypatch):
    from click.testing import CliRunner

    from sequela.cli import main

    write_export(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = (ROOT / name).read_text("utf-8")
    assert name == "README.md" or all(text.count(shown) == 1 for shown in SMALLER)
    for shown, smaller in SMALLER.items():
        text = text.replace(shown, smaller)
    blocks = [m["body"] for m in _BLOCK.finditer(text) if m["language"] == "console"]
    lines = [line for block in blocks for line in block.splitlines()]
    commands = [line.removeprefix("$ sequela ") for line in lines if line.startswith("$ sequela ")]
    assert len(commands) >= 5
    for command in commands:
        done = CliRunner().invoke(main, shlex.split(command))
        assert done.exit_code == 0, f"{command}\n{done.output}"
    assert (tmp_path / "orders.png").stat().st_size > 10_000


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_links_to_files_lead_somewhere(document):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text("utf-8"))
    for target in targets:
        if "://" not in target:
            assert (document.parent / target).exists(), target


def heading_anchors(document: Path) -> set[str]:
    """Return the anchors of a page: one per heading, and its labels such as (fig1)=."""
    text = _BLOCK.sub("", document.read_text("utf-8"))
    headings = re.findall(r"^#{1,3} (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_links_to_headings_lead_to_a_heading(document):
    text = _BLOCK.sub("", document.read_text("utf-8"))
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
        page = document.parent / target if target else document
        assert anchor in heading_anchors(page), f"{target}#{anchor}"


def test_the_readme_names_commands_that_exist():
    from sequela.cli import main

    text = (ROOT / "README.md").read_text("utf-8")
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake (\w+)`?$", text, re.MULTILINE)) <= targets
    for name in re.findall(r"^\$ sequela (\w+)", text, re.MULTILINE):
        assert name in main.commands
