"""The version is stated in ``sequela.__version__``. All other files must agree with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from sequela import __version__

ROOT = Path(__file__).parents[1]


def test_the_build_takes_the_version_from_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" not in project["project"]
    assert "version" in project["project"]["dynamic"]
    source = (ROOT / project["tool"]["hatch"]["version"]["path"]).read_text("utf-8")
    assert f'__version__ = "{__version__}"' in source


def test_the_citation_names_the_same_version():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [__version__]


def test_the_changelog_has_a_section_for_the_version():
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert __version__ in re.findall(r"^## \[(.+?)\]", changelog, re.MULTILINE)
