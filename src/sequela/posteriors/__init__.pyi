from .priors import BaseRates as BaseRates
from .priors import Laplace as Laplace
from .priors import LearnedScale as LearnedScale
from .priors import Normal as Normal
from .priors import Prior as Prior
from .priors import StudentT as StudentT
