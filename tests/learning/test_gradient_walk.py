"""There are only a few function calls between `fit` and a compiled kernel."""

import traceback
from pathlib import Path

import pytest

from learning.problems import quiet, simulated
from sequela import Budget, SetChain
from sequela.likelihood import exact

FEWER_THAN = 10


def walks(monkeypatch, fit):
    """Return, for every gradient, the names of the functions from `SetChain.fit` to `call`."""
    original = exact.call
    found = []

    def call(*arguments):
        stack = traceback.extract_stack()
        places = [(Path(frame.filename).parts[-2:], frame.name) for frame in stack]
        entry = places.index((("learning", "learner.py"), "fit"))
        found.append([name for _, name in places[entry:]])
        return original(*arguments)

    monkeypatch.setattr(exact, "call", call)
    fit()
    return found


@pytest.mark.parametrize(
    ("options", "functions"),
    [
        ({}, {"step", "init"}),
        ({"n_starts": 2, "random_state": 1}, {"step", "init"}),
        ({"budget": Budget(work=2e3), "tol": 2e-2, "random_state": 1}, {"step", "init", "_fresh"}),
    ],
    ids=["exact", "starts", "sampled"],
)
def test_fewer_than_ten_frames_lead_to_a_gradient(options, functions, monkeypatch):
    data = simulated(6, 40, 3, base=0.5).without_times()
    with quiet():
        found = walks(monkeypatch, lambda: SetChain(0.005, n_threads=1, **options).fit(data))
    assert found
    assert all(walk[0] == "fit" and walk[-1] == "call" for walk in found)
    # The calls include the gradients of the steps of the solver, not only the first gradient.
    assert functions <= {name for walk in found for name in walk}
    longest = max(found, key=len)
    assert len(longest) < FEWER_THAN, " -> ".join(longest)
