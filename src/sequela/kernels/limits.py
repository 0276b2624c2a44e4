"""The largest logarithms of rates and products with which a double can still represent all numbers.

A double can represent numbers from exp(-745) to exp(709.8). Sums of many terms, and products of a
few terms, need some distance from these limits.
"""

__all__ = ["LARGEST_LOG_RATE", "PRODUCT_LOG_RANGE"]

# Largest logarithm of a single rate. A sum of thousands of such rates is still small enough.
LARGEST_LOG_RATE = 690.0

# Largest absolute value of the logarithm of a product of rates, or of a ratio of two rates.
PRODUCT_LOG_RANGE = 600.0
