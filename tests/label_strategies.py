"""Hypothesis strategies for labels that tables, data sets and models accept."""

from hypothesis import strategies as st

from sequela.support.labels import _look, compose, find_unfit


def usable(label):
    return bool(label.strip()) and find_unfit([label]) is None


def labels(max_size=8, **options):
    return st.text(max_size=max_size, **options).map(compose).filter(usable)


def distinct(strategy, **sizes):
    """Return a strategy for lists in which no two labels look the same."""
    return st.lists(strategy, unique_by=_look, **sizes)
