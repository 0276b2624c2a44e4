"""The worker of mhn. It uses exact gradients, and L-BFGS-B with a smoothed L1 penalty.

All other settings are the defaults of mhn.

In mhn, theta[i, j] is the effect of j on i. So theta is transposed before and after a call of mhn.
"""

import warnings

import numpy as np
from common import curve, run, time_of
from mhn.optimizers import cMHNOptimizer
from mhn.training.likelihood_cmhn import gradient_and_score
from mhn.training.state_containers import StateContainer


def learn(job, X, theta, recorder):
    states = StateContainer(X.astype(np.int32))
    inwards = np.ascontiguousarray(theta.T)
    result = {"gradient, s": time_of(lambda: gradient_and_score(inwards, states))}
    if not job["learn"]:
        return result
    n = X.shape[1]

    def once():
        stopped = False

        def watch(x):
            nonlocal stopped
            if recorder.keep(x.reshape(n, n).T):
                stopped = True
                raise StopIteration  # StopIteration stops the minimiser of SciPy

        optimizer = cMHNOptimizer().load_data_matrix(X.astype(np.int32))
        optimizer.set_callback_func(watch)
        recorder.start()
        # By default `train` rounds theta to two decimals. Do not round here: the stage `score`
        # scores theta with and without rounding.
        model = optimizer.train(lam=job["penalty"], round_result=False)
        seconds = recorder.now()
        recorder.keep(model.log_theta.T, always=True)
        return {
            "seconds": seconds,
            "iterations": int(model.meta["nit"]),
            "stopped": stopped,
            "message": str(model.meta["message"]),
        }

    return {**result, **recorder.fastest(once)}


def sizes(job, X, theta, recorder):  # noqa: ARG001 - all tasks are called alike
    inwards = np.ascontiguousarray(theta.T)

    def some_sets(table):
        states = StateContainer(table)
        return lambda: gradient_and_score(inwards, states)

    return {"seconds by size": curve(job["sizes"], X, some_sets)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run({"learn": learn, "sizes": sizes}, ["mhn", "numpy", "scipy"])
