"""Kernels are compiled once in all, before the workers start, not once a worker or once a task."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from repeats.clusters import environment

SCRIPT = """
import dataclasses
import sys


def main():
    import sequela
    from sequela.repeats import plan_fits, run
    from repeats import tasks

    rows = [[1, 1, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1], [0, 0, 0], [0, 1, 0]] * 4
    data = sequela.Dataset(rows, items=["a", "b", "c"])
    plan = plan_fits(data, folds=8, penalty=0.02, seed=1)
    plan = dataclasses.replace(plan, task="repeats.tasks:learn_and_count_compilations")
    if sys.argv[3] == "cold":
        plan = dataclasses.replace(plan, warm_up=None)
    table = run(plan, sys.argv[2], backend=sys.argv[1], workers=2)
    here = [k.__name__ for k in tasks.kernels() if sum(k.stats.cache_misses.values())]
    print({"here": here, **table[["compiled", "used", "process"]].to_dict("list")})


if __name__ == "__main__":
    main()
"""


def compilations(backend, folder, cache, how="warm"):
    """Run a plan in a fresh process with a cache folder of its own; return who compiled what."""
    script = folder / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, script, backend, folder / f"{backend}-{how}", how],
        capture_output=True, text=True, check=False, timeout=280,
        env=environment(NUMBA_CACHE_DIR=str(cache)),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return ast.literal_eval(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_workers_compile_nothing(tmp_path):
    cache = tmp_path / "cache"
    first = compilations("processes", tmp_path, cache)
    assert "evaluate_block" in first["here"]  # the cache was cold
    assert all("evaluate_block" in used for used in first["used"])
    assert first["compiled"] == [[]] * 8
    assert len(set(first["process"])) == 2
    files = {path: path.stat().st_mtime_ns for path in cache.rglob("*.nb?")}
    pytest.importorskip("distributed")
    second = compilations("dask", tmp_path, cache)
    assert second["here"] == []
    assert second["compiled"] == [[]] * 8
    # Without the warm-up a warm cache is as good.
    third = compilations("processes", tmp_path, cache, "cold")
    assert third["compiled"] == [[]] * 8
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.nb?")} == files
