"""The largest logarithms of rates and products for which numbers stay in the range of a double.

A double can represent numbers from exp(-745) to exp(709.8). Sums of many terms and products of a
few need some distance from these limits.
"""

__all__ = ["LARGEST_LOG_RATE", "PRODUCT_LOG_RANGE"]

# Largest logarithm of a single rate. The sum of thousands of such rates is still in range.
LARGEST_LOG_RATE = 690.0

# Largest absolute value of the logarithm of a product of rates, or of a ratio of two rates.
PRODUCT_LOG_RANGE = 600.0
