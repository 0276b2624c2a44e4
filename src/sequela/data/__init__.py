"""What comes in: tables of who has what, validated once."""

from sequela.data.dataset import DataLike, Dataset, DistinctSets

__all__ = ["DataLike", "Dataset", "DistinctSets"]
