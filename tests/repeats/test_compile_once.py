"""Kernels are compiled once, before the workers start, and not again by each worker."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.caching import _CacheLocator

import sequela
from repeats.clusters import environment
from sequela.kernels import lattice

ROWS = [[1, 1, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1], [0, 0, 0], [0, 1, 0]] * 4
MISSING = "minimise_model"

SCRIPT = """
import dataclasses
import sys

ROWS = {rows}


def main():
    import sequela
    from sequela.repeats import plan_fits, run
    from repeats import tasks

    data = sequela.Dataset(ROWS, items=["a", "b", "c"])
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
    """Run a plan in a new process with this cache folder; return what its processes compiled."""
    script = folder / "script.py"
    script.write_text(SCRIPT.replace("{rows}", repr(ROWS)))
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, script, backend, folder / f"{backend}-{how}", how],
        capture_output=True, text=True, check=False, timeout=280,
        env=environment(NUMBA_CACHE_DIR=str(cache)),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return ast.literal_eval(done.stdout.splitlines()[-1])


def fill(cache):
    """Copy all cached kernels of a fit except `MISSING` to a new cache folder."""
    # This fit compiles all kernels that it needs and that are not in the usual cache.
    sequela.SetChain(0.02, random_state=1).fit(sequela.Dataset(ROWS))
    new = cache / _CacheLocator.get_suitable_cache_subpath(lattice.__file__)
    new.mkdir(parents=True)
    for path in Path(lattice.evaluate_block.stats.cache_path).glob("*.nb[ci]"):
        if MISSING not in path.name:
            shutil.copy2(path, new)


@pytest.mark.slow
def test_workers_compile_nothing(tmp_path):
    """The first process compiles the missing kernel, and the workers compile nothing.

    Only one kernel is missing from the cache, because it takes a minute to compile all of them.
    """
    cache = tmp_path / "cache"
    fill(cache)
    first = compilations("processes", tmp_path, cache)
    assert MISSING in first["here"]
    assert "evaluate_block" not in first["here"]
    assert all({MISSING, "evaluate_block"} <= set(used) for used in first["used"])
    assert first["compiled"] == [[]] * 8
    assert len(set(first["process"])) == 2
    files = {path: path.stat().st_mtime_ns for path in cache.rglob("*.nb?")}
    pytest.importorskip("distributed")
    second = compilations("dask", tmp_path, cache)
    assert second["here"] == []
    assert second["compiled"] == [[]] * 8
    # If the cache is complete, workers compile nothing even without the warm-up.
    third = compilations("processes", tmp_path, cache, "cold")
    assert third["compiled"] == [[]] * 8
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.nb?")} == files
