"""What comes in: tables of who has what, validated once."""

from sequela.data.dataset import Dataset, DistinctSets

__all__ = ["Dataset", "DistinctSets"]
