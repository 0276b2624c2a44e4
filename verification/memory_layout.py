"""Check that results do not depend on where arrays lie in memory.

Run by hand (needs a C compiler): ``python verification/memory_layout.py [layouts]`` (5 layouts by
default).

The compiler can make two versions of a loop and choose one by the addresses of the arrays. A kernel
with an error can read memory that was never written. In both cases a result can change from run to
run, or with the number of threads, but so rarely that an ordinary test finds it only by chance. So
this script computes fits and posteriors in several processes. In each process, `malloc` puts random
distances between the blocks of memory and fills new blocks with other bytes. All bits of the
results must be the same in all processes, with one thread and with two. The script exits with 1 if
a result differs.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

MALLOC = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
extern void *__libc_malloc(size_t);
static int layout = -1;
static __thread uint64_t state;
void *malloc(size_t size) {
  if (layout < 0) { const char *text = getenv("LAYOUT"); layout = text ? atoi(text) : 0; }
  if (!layout || size > 65536) return __libc_malloc(size);
  if (!state) state = 0x9E3779B97F4A7C15ULL * (uint64_t)(layout + 1);
  state ^= state << 13; state ^= state >> 7; state ^= state << 17;
  char *block = __libc_malloc(size + (state % 9) * 16);
  if (block) memset(block, 40 * layout, size);
  return block;
}
"""


def digest(*arrays):
    """Return a short hash of the bits of arrays."""
    whole = hashlib.sha256()
    for array in arrays:
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()[:12]


def example_data():
    """Return complete samples, and the same samples with missing cells and known orders."""
    import sequela

    rng = np.random.default_rng(1)
    n = 6
    theta = rng.normal(0.0, 1.5, (n, n))
    complete = sequela.simulate(theta, 120, random_state=1).to_dataset().without_times()
    missing = rng.random(complete.values.shape) < 0.2
    missing[missing.all(axis=1)] = False
    statements = {}
    for row in range(len(complete)):
        known = np.flatnonzero((complete.values[row] == 1) & ~missing[row])
        if known.size > 1 and rng.random() < 0.4:
            pair = rng.permutation(known)[:2]
            names = [complete.items[i] for i in pair]
            statements[complete.samples[row]] = [(*names, 0.8)]
    partly = sequela.Dataset(complete.with_missing(missing), orders=statements)
    return complete, partly


def print_results():
    """Print one line per result: what was computed, and a hash of it."""
    import sequela
    from sequela import Budget

    warnings.simplefilter("ignore")
    complete, partly = example_data()
    for name, data in (("complete", complete), ("partly known", partly)):
        for threads in (1, 2):
            options = {"random_state": 3, "n_threads": threads}
            model = sequela.fit(data, penalty=0.01, **options)
            print(f"fit, {name}, exact: {digest(model.theta)}")
            # Samples with known orders have no sampled likelihood.
            few = Budget(work=2e2)
            model = sequela.fit(data.without_orders(), penalty=0.01, budget=few, **options)
            print(f"fit, {name}, sampled: {digest(model.theta)}")
            for replicas, largest in ((1, None), (2, None), (1, 2)):
                draws = sequela.posterior(
                    data, draws=40, warm_up=40, chains=2, replicas=replicas,
                    largest_lattice=largest, **options,
                ).draws  # fmt: skip
                hashed = digest(draws.theta, draws.log_likelihood, draws.orders)
                print(f"posterior, {name}, replicas {replicas}, largest {largest}: {hashed}")


def main():
    """Compute all results with several layouts, and compare them."""
    layouts = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "layout.c"), Path(folder, "layout.so")
        source.write_text(MALLOC)
        command = ["cc", "-O1", "-shared", "-fPIC", "-o", library, source]
        subprocess.run(command, check=True)  # noqa: S603 - our own command
        wanted: dict[str, str] = {}
        differing = 0
        for layout in range(layouts + 1):
            place = os.environ | {"LAYOUT": str(layout), "LD_PRELOAD": str(library)}
            run = subprocess.run(  # noqa: S603 - our own command
                [sys.executable, __file__, "--print"],
                env=place, check=True, capture_output=True, text=True,
            )  # fmt: skip
            for line in run.stdout.splitlines():
                what, _, found = line.rpartition(": ")
                if wanted.setdefault(what, found) != found:
                    differing += 1
                    print(f"layout {layout}, {what}: {found}, but {wanted[what]} before")
            print(f"layout {layout}: {len(run.stdout.splitlines())} results")
    print(f"{len(wanted)} different results, {differing} differences")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    if "--print" in sys.argv:
        print_results()
    else:
        main()
