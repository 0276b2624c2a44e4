"""Compute gradients, to count their instructions: ``count_worker.py samples.npz count``.

There are few imports, because they take long if the processor is emulated.
"""

import sys

import numpy as np

from sequela.likelihood import Likelihood

if __name__ == "__main__":
    with np.load(sys.argv[1], allow_pickle=False) as file:
        likelihood = Likelihood(file["X"], random_state=1, n_threads=1)
        theta = file["theta"]
    for _ in range(int(sys.argv[2])):
        likelihood.evaluate(theta)
