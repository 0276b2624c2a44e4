"""Make tests/learning/omhn_values.json, with values of the model oMHN of the package mhn.

In this model, items have effects on the observation.

The tests compare results of sequela with these values. Run this script in a separate Python
environment that has the package mhn (1.2.3):

    python tools/make_omhn_values.py tests/learning/omhn_values.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from mhn import optimizers
from mhn.model import oMHN
from mhn.training.likelihood_omhn import gradient_and_score
from mhn.training.penalties_omhn import sym_sparse
from mhn.training.state_containers import StateContainer

N, SAMPLES, PENALTY = 5, 150, 0.02


def main(path: str) -> None:
    """Write parameters, samples, likelihoods and the result of a fit to the file `path`."""
    rng = np.random.default_rng(20)
    log_theta = rng.normal(0.0, 1.0, (N + 1, N))
    log_theta[:N][np.diag_indices(N)] = rng.uniform(-2.0, 0.0, N)
    samples = (rng.random((SAMPLES, N)) < rng.uniform(0.2, 0.6, N)).astype(np.int32)
    model = oMHN(log_theta, events=list("abcde"))
    sets = (np.arange(1 << N)[:, None] >> np.arange(N) & 1).astype(np.int32)
    probabilities = [float(model.compute_marginal_likelihood(row)) for row in sets]
    gradient, score = gradient_and_score(log_theta, StateContainer(samples))
    optimizer = optimizers.oMHNOptimizer()
    optimizer.load_data_matrix(samples)
    optimizer.set_penalty(optimizer.Penalty.SYM_SPARSE)
    learned = optimizer.train(lam=PENALTY, reltol=1e-9, round_result=False).log_theta
    _, value = gradient_and_score(learned, StateContainer(samples))
    content = {
        "mhn": "1.2.3",
        "log_theta": log_theta.tolist(),
        "samples": samples.tolist(),
        "probabilities": probabilities,
        "score": float(score),
        "gradient": np.asarray(gradient).tolist(),
        "symmetric_penalty": float(sym_sparse(log_theta)),
        "penalty": PENALTY,
        "learned": np.asarray(learned).tolist(),
        "objective": float(value - PENALTY * sym_sparse(learned)),
    }
    Path(path).write_text(json.dumps(content) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
