"""The measurement of whole processes: time, memory, sequence of the runs, and the table."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from benchmarks import compare, start_up

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


def python(code):
    return [sys.executable, "-c", code + start_up.STATUS]


def test_time_and_memory_are_those_of_the_process():
    nothing = start_up.spent(python("pass"), os.environ)
    room = start_up.spent(
        python("x = bytearray(200_000_000); x[::4096] = b'1' * len(x[::4096])"), os.environ
    )
    busy = start_up.spent(python("for _ in range(20_000_000): pass"), os.environ)
    assert nothing[1] < 40.0
    assert 190.0 < room[1] - nothing[1] < 260.0
    assert busy[0] > nothing[0]


def test_a_process_that_fails_is_an_error():
    with pytest.raises(SystemExit, match="status 3"):
        start_up.spent(python("raise SystemExit(3)"), os.environ)


def test_programs_run_in_turn_and_the_first_round_does_not_count(monkeypatch):
    ran = []

    def spent(command, environment):
        ran.append(command[0])
        return float(len(ran)), 1.0

    monkeypatch.setattr(start_up, "spent", spent)
    found = start_up.measure({"base": (["b"], {}), "head": (["h"], {})}, 2)
    assert ran == ["b", "h"] * 3
    assert found == {"base": [(3.0, 1.0), (5.0, 1.0)], "head": [(4.0, 1.0), (6.0, 1.0)]}


def test_ratios_are_to_the_base_of_the_same_kind():
    shown = start_up.lines(
        {
            "base": [(1.0, 300.0), (3.0, 300.0), (2.0, 300.0)],
            "head": [(1.0, 150.0)],
            "base, cold": [(10.0, 400.0)],
            "head, cold": [(9.0, 200.0)],
        }
    )
    assert shown[2].split() == ["head", "1.00", "150", "0.50", "0.50"]
    assert shown[4].split() == ["head,", "cold", "9.00", "200", "0.90", "0.50"]


def test_each_side_finds_its_own_revision_and_mhn_finds_none():
    sides = {side: compare.Revision(side, "0" * 40, Path("work") / side) for side in compare.SIDES}
    programs = start_up.commands(sides, Path("table.csv"), Path("/mhn/bin/python"))
    assert programs["base"][1]["PYTHONPATH"].endswith("base/src")
    assert programs["head"][1]["PYTHONPATH"].endswith("head/src")
    assert "PYTHONPATH" not in programs["mhn"][1]
    assert programs["mhn"][0][0] == "/mhn/bin/python"
    assert [command[-2:] for command, _ in programs.values()] == [["table.csv", "0.01"]] * 3
