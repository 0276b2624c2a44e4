"""Run every command, and check its output and its files."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest
from click.testing import CliRunner

import sequela
from sequela.cli import main

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(main.commands)


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *arguments: runner.invoke(main, list(arguments))


def run_apart(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    """Run ``python -m sequela`` in a separate process."""
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "sequela", *arguments],
        capture_output=True, text=True, check=False, timeout=300, **options,
    )  # fmt: skip


def test_the_commands_are_those_that_the_help_lists(run):
    shown = run("--help").output
    assert set(COMMANDS) == {
        *(
            "import",
            "fit",
            "posterior",
            "plan",
            "path",
            "order",
            "rivals",
            "compare",
            "subtypes",
            "time",
            "next",
            "simulate",
            "score",
            "plot",
            "report",
        ),
        *("repeat", "collect", "demo", "info", "compile", "cite"),
    }
    for name in COMMANDS:
        assert f"\n  {name} " in shown


@pytest.mark.parametrize("arguments", [[], *[[name] for name in COMMANDS]])
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_shows_an_example_that_is_a_real_command(run, arguments, flag):
    result = run(*arguments, flag)
    assert result.exit_code == 0
    example = result.output.split("Example:\n")[1].split(">")[0].split()
    assert example[0] == "sequela"
    assert example[1] in COMMANDS
    if arguments:
        assert example[1] == arguments[0]
    # The option --help comes last. So click first reads the options of the example, and refuses
    # unknown options.
    assert run(*example[1:], "--help").exit_code == 0


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["demo", "--help"], ["cite"]])
def test_what_needs_no_numbers_imports_no_numbers(arguments):
    script = (
        "import sys\n"
        "from sequela.cli import main\n"
        "try:\n"
        f"    main({arguments!r}, prog_name='sequela')\n"
        "except SystemExit as ended:\n"
        "    assert ended.code == 0\n"
        "heavy = {'numpy', 'scipy', 'numba', 'pandas', 'sklearn', 'joblib', 'rich'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, f"imported: {done.stderr}"


def test_the_version_is_the_same_everywhere(run):
    assert run("--version").output == f"sequela {sequela.__version__}\n"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # The build reads the version from the source: see tests/test_version.py.
    assert project["dynamic"] == ["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {sequela.__version__}\n" in citation
    assert f"## [{sequela.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


class TestDemo:
    def test_it_reports_what_was_drawn(self, run):
        found = json.loads(
            run("demo", "--known", "--samples", "400", "--seed", "3", "--json").stdout
        )
        assert found["seed"] == 3
        assert found["samples"] == 400
        drawn = sequela.simulate(sequela.example_theta(), 400, random_state=3)
        frequencies = {row["item"]: row["frequency"] for row in found["items"]}
        assert frequencies == drawn.frequencies.to_dict()
        assert found["sets"] == {"exact": 400, "sampled": 0}

    def test_the_log_likelihoods_are_those_of_the_sets_without_times(self, run):
        found = json.loads(
            run("demo", "--known", "--samples", "400", "--seed", "3", "--json").stdout
        )
        theta = sequela.example_theta()
        sets = sequela.simulate(theta, 400, random_state=3).to_dataset().values
        shown = found["log_likelihood"]
        expected = sequela.log_likelihood(theta.to_numpy(), sets)
        assert shown["true_model"] == pytest.approx(expected, rel=1e-12)
        assert shown["true_model"] > shown["independent_model"] + 0.3

    def test_the_independent_model_fits_the_frequencies(self):
        from sequela.report.known_demo import _independent_theta

        data = sequela.Dataset([[1, 0, 1], [1, 0, 0], [1, 0, 0], [1, 0, 0]])
        sets = np.array(list(itertools.product([0, 1], repeat=3)))
        found = sequela.evaluate(_independent_theta(data), sets)
        shares = np.exp(found.log_likelihoods) @ sets
        # Base rates must be finite. So an item in all 4 samples counts as if it were in 3.5
        # samples, and an item in no sample counts as if it were in 0.5 samples.
        assert shares == pytest.approx([0.875, 0.125, 0.25], rel=1e-9)

    def test_the_expected_order_agrees_with_the_simulated_one(self, run):
        found = json.loads(run("demo", "--known", "--samples", "4000", "--json").stdout)["order"]
        share, count = found["expected_share"], found["samples_with_both"]
        # Allow five standard errors. The seed is fixed; about one of 2 million seeds exceeds them.
        assert abs(found["simulated_share"] - share) < 5 * (share * (1 - share) / count) ** 0.5
        # In the demo only the items first and second interact. The rate of "second" is 1 if "first"
        # is present, and e^-4 otherwise. So the odds that "first" comes first are e^4.
        for seen in found["looked_at"]:
            assert seen["early_before_late"] == pytest.approx(1 / (1 + 2.718281828459045**-4))
            assert sorted(seen["simulated_order"]) == sorted(seen["items"])
        early, late = found["looked_at"]
        assert early["time_mean"] < late["time_mean"]

    def test_the_same_seed_gives_the_same_bytes(self, run):
        arguments = ("demo", "--known", "--samples", "200", "--seed", "5", "--json")
        assert run(*arguments).stdout_bytes == run(*arguments).stdout_bytes
        assert run(*arguments).stdout_bytes != run(*arguments[:4], "6", "--json").stdout_bytes

    def test_the_text_has_the_same_numbers_as_the_json(self, run):
        found = json.loads(run("demo", "--known", "--samples", "300", "--json").stdout)
        text = run("demo", "--known", "--samples", "300").stdout
        for row in found["items"]:
            line = next(line for line in text.splitlines() if line.startswith(row["item"] + " "))
            assert f" {row['samples']} " in line
            assert f"{row['frequency']:.3f}" in line
        for name in ("true_model", "independent_model"):
            assert f"{found['log_likelihood'][name]:.4f}" in text
        assert "300 exact, 0 sampled" in text
        assert "seed 1" in text
        for seen in found["order"]["looked_at"]:
            assert f"{seen['time_mean']:.2f} +- {seen['time_sd']:.2f}" in text

    @pytest.mark.parametrize("samples", ["1", "2"])
    def test_few_samples(self, run, samples):
        for seed in range(6):  # for some seeds no sample has the item "second"
            result = run("demo", "--known", "--samples", samples, "--seed", str(seed))
            assert result.exit_code == 0, result.output
            assert ("No sample has both" in result.output) != ("came first" in result.output)
        outputs = [
            run("demo", "--known", "--samples", samples, "--seed", str(s)).output for s in range(6)
        ]
        assert any("No sample has both" in output for output in outputs)

    @pytest.mark.parametrize(
        "arguments", [["--samples", "0"], ["--samples", "x"], ["--seed", "-1"], ["--seeds", "1"]]
    )
    def test_wrong_options_are_refused(self, run, arguments):
        result = run("demo", "--known", *arguments)
        assert result.exit_code == 2
        assert arguments[0] in result.stderr
        assert result.stdout == ""


class TestInfo:
    def test_it_names_versions_threads_and_cache(self, run):
        found = json.loads(run("info", "--json").stdout)
        assert found["versions"]["sequela"] == sequela.__version__
        assert found["versions"]["numpy"] == np.__version__
        assert found["versions"]["numba"] == numba.__version__
        assert {"python", "scipy", "pandas", "scikit-learn"} <= set(found["versions"])
        assert found["threads"] >= 1
        text = run("info").stdout
        assert np.__version__ in text
        assert "threads" in text
        if found["numba_cache"]:
            assert found["numba_cache"] in text

    def test_it_follows_the_environment(self, tmp_path):
        done = run_apart(
            "info", "--json",
            env=os.environ | {"SLURM_CPUS_PER_TASK": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
        )  # fmt: skip
        found = json.loads(done.stdout)
        assert found["threads"] == 1
        assert Path(found["numba_cache"]).is_relative_to(tmp_path)
        assert found["cached_kernels"] == 0

    def test_no_cache_is_said_with_a_remedy(self, capsys):
        from sequela.cli.info import show
        from sequela.report import describe_environment

        show(replace(describe_environment(), numba_cache=None))
        assert "NUMBA_CACHE_DIR" in capsys.readouterr().out


class TestCite:
    def test_it_names_the_paper_the_family_and_the_software(self, run):
        text = run("cite").stdout
        for part in ("Gotovos", "2107.02911", "Schill", "btz513", f"sequela {sequela.__version__}"):
            assert part in text
        assert len(json.loads(run("cite", "--json").stdout)["references"]) == 3

    def test_bibtex_is_balanced(self, run):
        text = run("cite", "--bibtex").stdout
        assert text.count("{") == text.count("}")
        assert [line.split("{")[0] for line in text.splitlines() if line.startswith("@")] == [
            "@misc",
            "@article",
            "@misc",
        ]

    def test_the_citation_file_names_the_same_people(self, run):
        citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
        for reference in json.loads(run("cite", "--json").stdout)["references"]:
            for name in reference["authors"][:-1]:
                assert name.rsplit(" ", 1)[1] in citation

    def test_one_form_at_a_time(self, run):
        result = run("cite", "--bibtex", "--json")
        assert result.exit_code == 2
        assert "--json" in result.stderr


def test_a_terminal_gets_the_same_words_with_rules_and_bold_headings(run, monkeypatch):
    plain = run("demo", "--known", "--samples", "50").stdout
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then writes as to a terminal
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = run("demo", "--known", "--samples", "50").stdout
    assert "\x1b[1m" in shown
    assert re.sub(r"\x1b\[\d*m|[─\n]", " ", shown).split() == plain.split()


class TestProcess:
    def test_json_is_all_of_standard_output(self):
        done = run_apart("demo", "--known", "--samples", "100", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["samples"] == 100

    def test_a_pipe_gets_plain_text(self):
        kept = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "TTY_COMPATIBLE")}
        for arguments in (["demo", "--known", "--samples", "100"], ["info"], ["cite"]):
            done = run_apart(*arguments, env=kept | {"COLUMNS": "20"})
            assert done.returncode == 0, done.stderr
            assert done.stdout.isascii()
            assert "\x1b" not in done.stdout
            assert all(line == line.rstrip() for line in done.stdout.splitlines())
            if arguments[0] == "demo":
                # If the output is not a terminal, each row is one line, even if it is long.
                assert re.search(r"^second +\d+ +0\.\d+ +0\.018  first x 54\.6$", done.stdout, re.M)

    def test_an_error_has_no_traceback(self):
        done = run_apart("demo", "--known", "--samples", "none")
        assert done.returncode == 2
        assert done.stdout == ""
        assert "Traceback" not in done.stderr


def test_compile_leaves_every_kernel_in_the_cache(run, monkeypatch):
    done = run("compile", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    # The list has, for each part of the program, the kernels that take longest to compile.
    cached = {path.name.split("-")[0] for path in Path(report["numba_cache"]).glob("*.nbi")}
    assert cached >= {
        "lattice.evaluate_block", "relocation.relocate", "metropolis.metropolis",
        "components.component_forward", "contour.transient_set", "posterior_sweep.advance",
        "phases.evaluate_phases", "completions.draw_completions", "passage.log_best",
        "latent_histories.history_scores",
    }  # fmt: skip
    assert report["cached_kernels"] >= len(cached)
    assert report["seconds"] > 0
    from sequela import report as room

    for cache, said in (
        (Path("/cache"), "23 kernels are ready in /cache (2 s)"),
        (None, "set NUMBA_CACHE_DIR"),
    ):
        made = room.Compilation(cache, 23, 2.0)
        monkeypatch.setattr(room, "compile_kernels", lambda made=made: made)
        again = run("compile")
        assert again.exit_code == 0
        assert said in " ".join(again.stdout.split())
