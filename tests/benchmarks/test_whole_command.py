"""The simulated cohort of the benchmark of a whole command is fixed and has large sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
from benchmarks.whole_command import ITEMS, panel_cohort, panel_theta


def test_theta_is_sparse_and_the_same_every_time():
    theta = panel_theta()
    assert theta.shape == (ITEMS, ITEMS)
    assert np.count_nonzero(theta) == ITEMS + 50
    np.testing.assert_array_equal(theta, panel_theta())


def test_a_cohort_has_small_and_large_sets():
    cohort = panel_cohort(1_580)
    pd.testing.assert_frame_equal(cohort, panel_cohort(1_580))
    assert cohort.shape == (1_580, ITEMS)
    assert cohort.index.is_unique
    sizes = cohort.to_numpy().sum(axis=1)
    assert 3.0 < sizes.mean() < 5.0
    assert (sizes >= 14).sum() > 30
    assert sizes.max() >= 22
