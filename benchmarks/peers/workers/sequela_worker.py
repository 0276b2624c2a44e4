"""The worker of sequela. It runs the solver of sequela, or the method of the paper.

The worker uses the same Python environment as the benchmark. It records the thetas over time in the
function `watch`, which a solver calls at every state.
"""

import warnings

import numpy as np
from common import curve, ready, run, time_of

from sequela import Budget, Likelihood, Sampling, SetChain
from sequela.learning import fitting
from sequela.learning.solvers.contract import Status


def watch_solvers(recorder):
    """Record every state of the solver, and stop it at the time limit."""

    recorder.solved = 0.0

    def watched(loop):
        def run_loop(solver, objective, start, limits, watch):
            def watch_too(state, info):
                ended = recorder.keep(state.theta)
                return watch(state, info) or ended

            end = loop(solver, objective, start, limits, watch_too)
            recorder.solved = recorder.now()
            return end

        return run_loop

    fitting.solve = watched(fitting.solve)
    fitting.descend_by_gradients = watched(fitting.descend_by_gradients)


def load_kernels():
    """Load compiled code from the disk cache, so that the time of loading is not measured."""
    X = np.random.default_rng(0).random((12, 6)) < 0.5
    for options in ({}, {"budget": Budget(work=100.0)}, {"solver": "adagrad", "max_iter": 3}):
        SetChain(random_state=1, **options).fit(X)


def learn(job, X, theta, recorder):
    load_kernels()
    result = ready(job)
    paper = job["solver"] == "adagrad"
    gradient = (
        Likelihood(
            X, method="metropolis", sampling=Sampling(chains=1, draws=50, draws_burn_in=10),
            random_state=1, n_threads=job["threads"],
        )
        if paper
        else Likelihood(X, random_state=1, n_threads=job["threads"])
    )  # fmt: skip
    # If sets are sampled, a value takes much longer than a gradient, and the paper's method does
    # not need the value. So the solver of sequela and the paper's method are compared by the times
    # of the gradient alone.
    result["gradient alone, s"] = time_of(lambda: gradient.evaluate(theta, value=False))
    result["gradient, s"] = result["gradient alone, s"]
    if not paper:
        result["gradient, s"] = time_of(lambda: gradient.evaluate(theta))
    if not job["learn"]:
        return result
    watch_solvers(recorder)

    def once():
        learner = SetChain(
            job["penalty"], solver=job["solver"], random_state=job["seed"],
            n_threads=job["threads"],
        ).fit(X)  # fmt: skip
        # For the paper's method, leave out the time of the final value, which it does not need.
        seconds = recorder.solved if paper else recorder.now()
        recorder.keep(learner.theta_, always=True)
        return {"seconds": seconds, **described(learner)}

    result.update(recorder.fastest(once))
    end = np.load(recorder.folder / recorder.steps[-1]["file"], allow_pickle=False)
    result["gradient at the end, s"] = time_of(lambda: gradient.evaluate(end, value=not paper))
    return result


def described(learner):
    """Return the status of a fitted estimator as plain values."""
    theta = learner.theta_
    stopped = learner.status_ is Status.INTERRUPTED
    return {
        "iterations": int(learner.n_iter_),
        "evaluations": int(learner.n_evaluations_),
        "own objective": float(learner.objective_),
        "own objective, error": float(learner.objective_se_),
        "interactions": int(np.count_nonzero(theta) - np.count_nonzero(np.diagonal(theta))),
        "stopped": stopped,
        "message": "stopped by the limit" if stopped else learner.message_,
    }


def sizes(job, X, theta, recorder):  # noqa: ARG001 - all tasks are called alike
    load_kernels()

    def some_sets(table):
        budget = Budget(memory="2GB", work=1e12)
        likelihood = Likelihood(table, n_threads=1, budget=budget)
        return lambda: likelihood.evaluate(theta)

    return {"seconds by size": curve(job["sizes"], X, some_sets)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    names = ["numpy", "scipy", "numba", "scikit-learn", "sequela"]
    run({"learn": learn, "sizes": sizes}, names)
