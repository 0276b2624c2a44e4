"""What users ask of a model."""

from sequela.questions.theory import (
    TwoItemFamily,
    identical_items_posterior,
    time_constants,
    two_item_family,
    two_item_family_of,
)

__all__ = [
    "TwoItemFamily",
    "identical_items_posterior",
    "time_constants",
    "two_item_family",
    "two_item_family_of",
]
