"""Every figure and table of the paper, made again by one command each.

Gotovos, Burkholz, Quackenbush and Jegelka, "Scaling up Continuous-Time Markov Chains Helps Resolve
Underspecification" (2021). An experiment is a module with a task that does one repeat, and four
functions: the cases to run, the tables made of their results, the figure drawn from the tables, and
the verdict on the paper's claim. Figure and verdict see the tables alone, so that both can be made
again from the files.
"""

from sequela.paper.experiment import Experiment, Settings, Verdict
from sequela.paper.registry import NAMES, find_experiment
from sequela.paper.running import make

__all__ = ["NAMES", "Experiment", "Settings", "Verdict", "find_experiment", "make"]
