"""Stop a run of chains before a given draw, also in the middle of a batch of draws."""

from __future__ import annotations

import itertools

from sequela.posteriors import sampling, walkers

# With these values of `_SECONDS_TOGETHER`, the sizes of batches do not depend on the clock.
# With SINGLE, chains wait for each other after every draw. With GROWING, the batches have 1, 2, 4,
# 8, ... draws.
SINGLE, GROWING = 0.0, float("inf")


def before_draw(monkeypatch, number, seconds, action):
    """Call `action` before draw `number` of this process, and write a checkpoint after each batch.

    `seconds` is the value of `_SECONDS_TOGETHER`: SINGLE or GROWING. The count starts at 0 and
    includes the draws of all chains and of the warm-up. With one thread, a batch makes all draws of
    one chain, then all draws of the next chain.
    """
    call, numbers = walkers.call, itertools.count()

    def counted(function, *arguments):
        if function is walkers.advance and next(numbers) == number:
            action()
        return call(function, *arguments)

    monkeypatch.setattr(walkers, "call", counted)
    monkeypatch.setattr(sampling, "_BETWEEN_CHECKPOINTS", -1.0)
    monkeypatch.setattr(sampling, "_SECONDS_TOGETHER", seconds)
