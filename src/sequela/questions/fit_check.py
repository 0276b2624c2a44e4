"""Test whether a model or a posterior describes its data; see `sequela.learning.fit_check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sequela.learning.fit_check import FitCheck, FitTest, check_models
from sequela.learning.fit_check import check_fit as _check_model
from sequela.posteriors.result import Posterior
from sequela.settings import read_settings

if TYPE_CHECKING:
    from typing import Unpack

    from sequela.data.dataset import DataLike
    from sequela.model import ModelLike
    from sequela.settings import SettingsKeywords

__all__ = ["FitCheck", "FitTest", "check_fit"]

# Largest number of draws of a posterior from which data sets are simulated. With the default level,
# 999 data sets are simulated, about 20 from each draw.
_MODELS = 50


def check_fit(
    model: ModelLike | Posterior,
    data: DataLike,
    *,
    level: float = 0.01,
    **settings: Unpack[SettingsKeywords],
) -> FitCheck:
    """Test whether a model describes the data, and describe in plain words where it does not.

    The data are compared with simulated data sets in which the same cells are missing, sample by
    sample. So all samples are used, and all tests count only known cells. The tests are on the set
    sizes, the number of empty sets, the number of very large sets, and the items that occur
    together. Samples with a known observation time are left out. Known orders are not used. Data
    with sample weights are not tested.

    Parameters
    ----------
    model : Model, fitted SetChain, theta (n, n), or Posterior
        The model, usually learned from the same data. For a posterior, the data sets are simulated
        from 50 draws, and the data are compared with the mean over these draws. As for a single
        model, only the variation between data sets of the same model counts as random.
    data : Dataset, DataFrame, array or list of sets
        The samples.
    level : float
        Largest probability of at least one finding, over all tests, if theta of the model is the
        true theta. At least 0.001. The check simulates 999 data sets if the level is at least 0.01,
        and more (``10 / level - 1``) if it is smaller, so that every test can have a finding.
    **settings
        `random_state`, `n_threads`; see `Settings`.

    Returns
    -------
    FitCheck
        Its `findings` are empty if all tests passed.

    Notes
    -----
    The tests do not take into account that the model was learned from the same data with a penalty,
    with one exception: pairs and triples may differ by as much as the penalty can explain. If there
    are no findings, this does not prove that the model is right. See "When the model fits" in the
    documentation for what the tests can detect.

    Examples
    --------
    >>> import numpy as np
    >>> from sequela import simulate
    >>> from sequela.data.examples import example_theta
    >>> data = simulate(example_theta(), 400, random_state=1).to_dataset().without_times()
    >>> check_fit(example_theta(), data, random_state=2).fits
    True
    >>> early = np.zeros((100, 10), dtype=bool)
    >>> print(check_fit(example_theta(), early, random_state=2).findings[0][:32])
    100 samples have no items at all
    """
    if not isinstance(model, Posterior):
        return _check_model(model, data, level=level, **settings)
    how = read_settings(settings, unused=("draws", "target_se", "budget", "sampling"))
    return check_models(model.models(_MODELS), data, level, how)
