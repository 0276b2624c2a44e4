from . import (
    data as data,
)
from . import (
    learning as learning,
)
from . import (
    likelihood as likelihood,
)
from . import (
    plots as plots,
)
from . import (
    posteriors as posteriors,
)
from . import (
    questions as questions,
)
from . import (
    repeats as repeats,
)
from . import (
    report as report,
)
from .budget import Budget as Budget
from .data.cbioportal import read_cbioportal as read_cbioportal
from .data.dataset import Dataset as Dataset
from .data.examples import example_samples as example_samples
from .data.examples import example_theta as example_theta
from .data.maf import read_maf as read_maf
from .data.tables import read_table as read_table
from .learning.cross_validation import SetChainCV as SetChainCV
from .learning.estimator import SetChain as SetChain
from .learning.learner import fit as fit
from .learning.penalty_path import path as path
from .likelihood.evaluation import Likelihood as Likelihood
from .likelihood.evaluation import evaluate as evaluate
from .likelihood.evaluation import log_likelihood as log_likelihood
from .model import Model as Model
from .observation import Exponential as Exponential
from .observation import Gamma as Gamma
from .observation import HeavyTailed as HeavyTailed
from .observation import ObservationEffects as ObservationEffects
from .posteriors.result import Posterior as Posterior
from .posteriors.sampling import posterior as posterior
from .questions.clock import pseudo_times as pseudo_times
from .questions.order import order_matrix as order_matrix
from .questions.order import order_probability as order_probability
from .settings import Sampling as Sampling
from .settings import Settings as Settings
from .simulation import simulate as simulate
from .support.errors import BudgetError as BudgetError
from .support.errors import InputError as InputError
from .support.errors import SequelaError as SequelaError

__version__: str
