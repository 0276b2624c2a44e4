"""The verdicts on an order, in the words of tables and files.

This module imports no numerical library. So commands that need only these words start fast.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Verdict"]


class Verdict(StrEnum):
    """Whether the data can tell an order; the value is the text in tables and files."""

    CAN_TELL = "the data can tell"
    CANNOT_TELL = "the data cannot tell"
    NOT_CHECKED = "not checked"
    # The range would decide the order, but the models in the range do not describe the data.
    NOT_TRUSTED = "not trusted: the model does not fit"
    # The range would decide the order, but a model with effects of items on the observation, which
    # predicts new samples about as well, has the opposite order.
    DEPENDS = "not sure: opposite if items influence the observation"
