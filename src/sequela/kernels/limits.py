"""How far logarithms may go before numbers leave the range of a double, in one place.

A double ends at exp(709.8) and at exp(-745). Sums of many terms and products of a few need some
distance from there.
"""

__all__ = ["LARGEST_LOG_RATE", "PRODUCT_LOG_RANGE"]

# The log of a single rate: thousands of rates as large as this can still be added up.
LARGEST_LOG_RATE = 690.0

# The log of a product of rates, and of a ratio between two rates that are multiplied.
PRODUCT_LOG_RANGE = 600.0
