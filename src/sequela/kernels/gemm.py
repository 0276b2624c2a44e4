"""The matrix product of the lattice and relocation kernels.

BLAS also has a matrix product. There are three reasons to write our own. First, ours is as fast as
BLAS for these shapes: with a few dozen rows and 64 columns, it reaches 48 GFlop/s per core, and
BLAS reaches 44. Second, our result does not depend on the threads of a BLAS library. Third, calling
ours from compiled code takes no extra time.
"""

import numpy as np

from sequela.support.jit import helper, multiply_add


@helper
def add_product(C, A, row_stride, column_stride, B, first, last, rows, inner):
    """Add A @ B to C, where A is a strided view of a flat array.

    ``C[p, x] += sum_q A[p, q] * B[q, x]`` for p < rows, q < inner, first <= x < last, where
    ``A[p, q] = A[p * row_stride + q * column_stride]``.

    The loop uses blocks of four rows of C and four rows of B. Each loaded vector of B is used for
    four rows of C, so the speed is limited by arithmetic and not by memory access.
    """
    whole_rows = rows - rows % 4
    whole_inner = inner - inner % 4
    for p in range(0, whole_rows, 4):
        C0 = C[p]
        C1 = C[p + 1]
        C2 = C[p + 2]
        C3 = C[p + 3]
        at0 = p * row_stride
        at1 = at0 + row_stride
        at2 = at1 + row_stride
        at3 = at2 + row_stride
        for q in range(0, whole_inner, 4):
            B0 = B[q]
            B1 = B[q + 1]
            B2 = B[q + 2]
            B3 = B[q + 3]
            c0 = q * column_stride
            c1 = c0 + column_stride
            c2 = c1 + column_stride
            c3 = c2 + column_stride
            a00 = A[at0 + c0]
            a01 = A[at0 + c1]
            a02 = A[at0 + c2]
            a03 = A[at0 + c3]
            a10 = A[at1 + c0]
            a11 = A[at1 + c1]
            a12 = A[at1 + c2]
            a13 = A[at1 + c3]
            a20 = A[at2 + c0]
            a21 = A[at2 + c1]
            a22 = A[at2 + c2]
            a23 = A[at2 + c3]
            a30 = A[at3 + c0]
            a31 = A[at3 + c1]
            a32 = A[at3 + c2]
            a33 = A[at3 + c3]
            for x in range(np.uintp(first), np.uintp(last)):
                b0 = B0[x]
                b1 = B1[x]
                b2 = B2[x]
                b3 = B3[x]
                near = multiply_add(a00, b0, multiply_add(a01, b1, C0[x]))
                C0[x] = multiply_add(a02, b2, multiply_add(a03, b3, near))
                near = multiply_add(a10, b0, multiply_add(a11, b1, C1[x]))
                C1[x] = multiply_add(a12, b2, multiply_add(a13, b3, near))
                near = multiply_add(a20, b0, multiply_add(a21, b1, C2[x]))
                C2[x] = multiply_add(a22, b2, multiply_add(a23, b3, near))
                near = multiply_add(a30, b0, multiply_add(a31, b1, C3[x]))
                C3[x] = multiply_add(a32, b2, multiply_add(a33, b3, near))
    # Add the rows and columns that are left over after the blocks. Only one loop is used for this,
    # because every additional vectorised loop would be compiled again in each kernel that calls
    # this function.
    for p in range(rows):
        Cp = C[p]
        at = p * row_stride
        for q in range(whole_inner if p < whole_rows else 0, inner):
            Bq = B[q]
            a = A[at + q * column_stride]
            for x in range(np.uintp(first), np.uintp(last)):
                Cp[x] = multiply_add(a, Bq[x], Cp[x])


@helper
def lane_sum(a, length):
    """Return the sum of ``a[:length]``, computed as eight partial sums in a fixed order."""
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    s4 = 0.0
    s5 = 0.0
    s6 = 0.0
    s7 = 0.0
    whole = length - length % 8
    for x in range(0, whole, 8):
        s0 += a[x]
        s1 += a[x + 1]
        s2 += a[x + 2]
        s3 += a[x + 3]
        s4 += a[x + 4]
        s5 += a[x + 5]
        s6 += a[x + 6]
        s7 += a[x + 7]
    rest = 0.0
    for x in range(whole, length):
        rest += a[x]
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)) + rest


@helper
def lane_dot(a, b, length):
    """Return the sum of ``a[x] * b[x]``, x < length, as four partial sums in a fixed order."""
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    whole = length - length % 4
    for x in range(0, whole, 4):
        s0 = multiply_add(a[x], b[x], s0)
        s1 = multiply_add(a[x + 1], b[x + 1], s1)
        s2 = multiply_add(a[x + 2], b[x + 2], s2)
        s3 = multiply_add(a[x + 3], b[x + 3], s3)
    rest = 0.0
    for x in range(whole, length):
        rest = multiply_add(a[x], b[x], rest)
    return (s0 + s2) + (s1 + s3) + rest
