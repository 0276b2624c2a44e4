"""The worker of fastmhn. It uses clusters of events and the solver Adam.

The settings are those that the README of fastmhn shows. In fastmhn, as in mhn, columns of theta act
on rows. fastmhn starts one process per core.
"""

import resource
import warnings

import fastmhn
import numpy as np
from common import Stopped, peak_memory, run, time_of
from joblib import cpu_count
from joblib.externals.loky import get_reusable_executor

CLUSTER = 10
ADAM = {"alpha": 0.1, "beta1": 0.7, "beta2": 0.9, "eps": 1e-8, "verbose": False}


def learn(job, X, theta, recorder):
    data = X.astype(np.int32)
    inwards = np.ascontiguousarray(theta.T)
    evaluate = fastmhn.approx.approx_gradient_and_score
    evaluate(inwards, data[:2], max_cluster_size=CLUSTER)  # fastmhn starts its processes here
    result = {"gradient, s": time_of(lambda: evaluate(inwards, data, max_cluster_size=CLUSTER))}

    # `learn_mhn` does not report its progress, so record theta when it computes the gradient.
    def watched(theta, *args, **options):
        if recorder.keep(theta.T):
            raise Stopped
        return evaluate(theta, *args, **options)

    fastmhn.learn.approx_gradient_and_score = watched

    def once():
        stopped = False
        try:
            found = fastmhn.learn.learn_mhn(
                data,
                reg=job["penalty"],
                gradient_and_score_params={"max_cluster_size": CLUSTER},
                adam_params=dict(ADAM),
            )
            seconds = recorder.now()
            recorder.keep(found.T, always=True)
        except Stopped:
            seconds = recorder.now()
            stopped = True
        return {
            "seconds": seconds, "iterations": recorder.seen, "stopped": stopped, "message": ""
        }  # fmt: skip

    if job["learn"]:
        result.update(recorder.fastest(once))
    # The memory of a process is known only after it has ended.
    get_reusable_executor().shutdown(wait=True)
    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    result["peak memory, MB"] = peak_memory() + cpu_count() * worker
    return result


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run({"learn": learn}, ["fastmhn", "mhn", "numpy", "joblib"])
