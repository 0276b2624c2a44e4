"""The worker of sequela, in the environment of the benchmark: ours, and the paper's method.

The iterates on the way are taken from the callback that a solver is given anyway.
"""

import warnings

import numpy as np
from common import curve, ready, run, time_of

from sequela import SetChain
from sequela.learning import fitting
from sequela.likelihood import Budget, Likelihood, Sampling


def watch_solvers(recorder):
    """Let every iterate pass the recorder, and the limit end the solver."""

    recorder.solved = 0.0

    def watched(solver):
        def solve(*args, callback, **options):
            def watch(now):
                ended = recorder.keep(now.theta)
                if ended:
                    now.message = "stopped by the limit"
                return callback(now) or ended

            state = solver(*args, callback=watch, **options)
            recorder.solved = recorder.now()
            return state

        return solve

    fitting.newton = watched(fitting.newton)
    fitting.adagrad = watched(fitting.adagrad)


def load_kernels():
    """Load what a fit needs from the disk cache: start-up, which is measured elsewhere."""
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
    # Of sampled sets a value costs far more than a gradient, and the paper's method has no use for
    # it: the two are compared by the gradient alone.
    result["gradient alone, s"] = time_of(lambda: gradient.evaluate(theta, value=False))
    result["gradient, s"] = result["gradient alone, s"]
    if not paper:
        result["gradient, s"] = time_of(lambda: gradient.evaluate(theta))
    if not job["learn"]:
        return result
    watch_solvers(recorder)

    def once():
        chain = SetChain(
            job["penalty"], solver=job["solver"], random_state=job["seed"],
            n_threads=job["threads"],
        ).fit(X)  # fmt: skip
        # The paper's method has no value to find at its end; that ours does is for the table.
        seconds = recorder.solved if paper else recorder.now()
        recorder.keep(chain.theta_, always=True)
        return {"seconds": seconds, **described(chain)}

    result.update(recorder.fastest(once))
    end = np.load(recorder.folder / recorder.steps[-1]["file"], allow_pickle=False)
    result["gradient at the end, s"] = time_of(lambda: gradient.evaluate(end, value=not paper))
    return result


def described(chain):
    """Return what a fitted estimator says of itself."""
    theta = chain.theta_
    return {
        "iterations": int(chain.n_iter_),
        "evaluations": int(chain.n_evaluations_),
        "own objective": float(chain.objective_),
        "own objective, error": float(chain.objective_se_),
        "interactions": int(np.count_nonzero(theta) - np.count_nonzero(np.diagonal(theta))),
        "stopped": chain.message_.startswith("stopped"),
        "message": chain.message_,
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
