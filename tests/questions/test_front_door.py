"""The public names of `sequela.questions` are loaded when they are first used."""

import subprocess
import sys

from sequela import questions


def test_every_name_leads_somewhere():
    assert sorted(questions.__all__) == dir(questions)
    for name in questions.__all__:
        assert getattr(questions, name).__name__ == name


def test_nothing_is_loaded_before_it_is_used():
    script = "import sequela.questions, sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert not {"numpy", "pandas", "numba", "scipy"} & set(run.stdout.split())
