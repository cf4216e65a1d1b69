"""Logarithms, exponentials and powers from basic arithmetic alone, with the same bits on every CPU.

NumPy and the C library have several versions of these functions, for CPUs with and without AVX-512, AVX2 or FMA, which
differ in the last bit: a row might be in an answer on one machine and not on another. IEEE 754 defines +, -, * and / of
two numbers exactly, so functions that consist of those alone, in a fixed order, give the same results everywhere.

    log x  =  e log 2 - log c + log(1 + z)      x = m 2**e; c near 1 / m, nine bits, from a table; z = m c - 1 < 0.008
    exp x  =  2**q 2**(j/64) exp r              x = (64 q + j) log 2 / 64 + r, with |r| below 0.0055
    x ** y =  exp(y log |x|)

Numbers that need more than 53 bits are pairs (Dekker): their value is the sum, and the first is the rounded sum. The
error of results is at most 0.501 units in the last place unless they are subnormal (tests/kernels/test_elementary.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from skypane.kernels.column_layout import frozen
from skypane.kernels.compiled import inlined, kernel
from skypane.kernels.exact import product
from skypane.types import FloatArray

_BITS: Final = 256
"""Fraction bits of the fixed-point integers in which the tables are computed."""
_PARTS: Final = 64
"""Parts of an octave; a table has the power of two of each."""
_CELLS: Final = 128
"""Cells per unit; a table has the reciprocal and the logarithm of each."""
_LEAST: Final = 90
"""The first cell, that of sqrt(1/2)."""
_HALF_ROOT: Final = 0.7071067811865476
_LARGEST, _SMALLEST = 709.8, -745.2
"""Beyond these, exponentials are infinite or 0."""
_HUGE: Final = 2.0**65
"""A size of exponents from which on all powers of bases other than 1 are infinite or 0."""


def _logarithm(numerator: int, denominator: int) -> int:
    """Return the logarithm of a ratio as a fixed-point integer: 2 atanh((n - d) / (n + d))."""
    term = ((numerator - denominator) << _BITS) // (numerator + denominator)
    square, total, odd = term * term >> _BITS, 0, 1
    while term not in {0, -1}:  # right shifts of a negative integer end at -1
        total += term // odd
        term, odd = term * square >> _BITS, odd + 2
    return 2 * total


def _root(number: int, times: int) -> int:
    """Return the square root of a fixed-point integer, taken `times` times."""
    for _ in range(times):
        number = math.isqrt(number << _BITS)
    return number


def _pair(number: int, bits: int = 53) -> tuple[float, float]:
    """Return the value of a fixed-point integer as two numbers, the first with `bits` bits."""
    first = number / (1 << _BITS)
    if first and bits < 53:
        unit = math.ldexp(1.0, math.frexp(first)[1] - bits)
        first = math.floor(first / unit) * unit
    over, under = first.as_integer_ratio()
    return first, (number * under - (over << _BITS)) / (under << _BITS)


def _reciprocal(cell: int) -> int:
    """Return the reciprocal c of a cell, in units of 1/512."""
    return round(512 * _CELLS / cell)


_LOG_2: Final = _logarithm(2, 1)
_LOG_2_HIGH, _LOG_2_LOW = _pair(_LOG_2, 40)
#: log 2 / 64 as three numbers; products of the first two with integers below 2**17 are exact
_STEP_HIGH = _pair(_LOG_2 // _PARTS, 35)[0]
_STEP_MIDDLE, _STEP_LOW = _pair(
    _LOG_2 // _PARTS - (int(_STEP_HIGH * 2**60) << (_BITS - 60)), 35
)  # the first is a multiple of 2**-60
_POWERS: FloatArray = np.array([_pair(_root(1 << (_BITS + j), 6)) for j in range(_PARTS)])
_CELL_TABLE: FloatArray = np.array(
    [(_reciprocal(cell) / 512, *_pair(-_logarithm(_reciprocal(cell), 512))) for cell in range(_LEAST, 2 * _LEAST + 3)]
)


@inlined
def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return the rounded sum a + b, and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@inlined
def log_pair(x: float) -> tuple[float, float]:
    """Return the logarithm of a finite number above 0 as a pair."""
    m, e = math.frexp(x)
    if m < _HALF_ROOT:
        m *= 2.0
        e -= 1
    cell = int(m * _CELLS + 0.5) - _LEAST
    high, low = product(m, _CELL_TABLE[cell, 0])
    z, z_low = two_sum(high - 1.0, low)
    square, square_low = product(z, z)
    tail = z * square * (
        1 / 3 - z * (1 / 4 - z * (1 / 5 - z * (1 / 6 - z * (1 / 7 - z * (1 / 8 - z * (1 / 9 - z * (1 / 10)))))))
    )  # fmt: skip
    near, near_low = two_sum(z, -0.5 * square)
    near_low += z_low - z * z_low - 0.5 * square_low + tail
    far, far_low = two_sum(e * _LOG_2_HIGH, _CELL_TABLE[cell, 1])
    far_low += e * _LOG_2_LOW + _CELL_TABLE[cell, 2]
    total, rest = two_sum(far, near)
    return two_sum(total, rest + (far_low + near_low))


@inlined
def exp_pair(x: float, low: float) -> float:
    """Return the exponential of a pair for which it neither overflows nor underflows."""
    k = math.floor(x / _STEP_HIGH + 0.5)
    first, first_low = two_sum(x, -k * _STEP_HIGH)
    second, second_low = two_sum(first, -k * _STEP_MIDDLE)
    r, r_low = two_sum(second, first_low + second_low + low - k * _STEP_LOW)
    square, square_low = product(r, r)
    tail = r * square * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720 + r * (1 / 5040)))))
    near, near_low = two_sum(r, 0.5 * square)
    near_low += r_low + r * r_low + 0.5 * square_low + tail
    part = int(k) % _PARTS
    high, rest = product(_POWERS[part, 0], near)
    total, total_low = two_sum(_POWERS[part, 0], high)
    rest += _POWERS[part, 0] * near_low + _POWERS[part, 1] * near + _POWERS[part, 1]
    return math.ldexp(total + (total_low + rest), int(k) // _PARTS)


@inlined
def exp_of(x: float, low: float) -> float:
    """Return the exponential of any pair."""
    if not x < _LARGEST:
        return x + math.inf  # NaN stays NaN
    return exp_pair(x, low) if x > _SMALLEST else 0.0


@inlined
def is_odd(y: float) -> bool:
    """Return whether a number is an odd integer; all integers from 2**53 on are even."""
    return abs(y) < 2.0**53 and y == math.floor(y) and int(y) % 2 == 1


@inlined
def power_of_size(size: float, y: float) -> float:
    """Return size ** y for finite numbers, size > 0."""
    if abs(y) >= _HUGE and size != 1.0:
        return math.inf if (size > 1.0) == (y > 0.0) else 0.0
    high, low = log_pair(size)
    exponent, rest = product(y, high)
    return exp_of(exponent, rest + y * low)


@inlined
def power_of(x: float, y: float) -> float:
    """Return x ** y; where the result is defined exactly (0, infinity, NaN), it is that of C's pow."""
    if y == 2.0:
        return x * x
    if x == 0.0 or not (abs(x) < math.inf and abs(y) < math.inf):
        return math.pow(x, y)
    value = power_of_size(abs(x), y)
    if x > 0.0:
        return value
    if y != np.floor(y):  # Numba's math.floor returns int64, which overflows from 2**63 on
        return math.nan
    return -value if is_odd(y) else value


@kernel
def each_log(values: FloatArray, out: FloatArray) -> None:
    """Write the logarithms of `values` to `out`; NaN below 0."""
    for row in range(values.size):
        x = values[row]
        if 0.0 < x < math.inf:
            high, low = log_pair(x)
            out[row] = high + low
        else:
            out[row] = -math.inf if x == 0.0 else x if x > 0.0 else math.nan


@kernel
def each_exp(values: FloatArray, out: FloatArray) -> None:
    """Write the exponentials of `values` to `out`."""
    for row in range(values.size):
        out[row] = exp_of(values[row], 0.0)


@kernel
def each_power(bases: FloatArray, exponents: FloatArray, out: FloatArray) -> None:
    """Write bases ** exponents to `out`."""
    for row in range(bases.size):
        out[row] = power_of(bases[row], exponents[row])


def log(values: Any) -> Any:
    """Return the logarithms of an array of any shape, or of a number; NaN below 0, without a warning."""
    return _applied(each_log, values)


def exp(values: Any) -> Any:
    """Return the exponentials of an array of any shape, or of a number."""
    return _applied(each_exp, values)


def power(bases: Any, exponents: Any) -> Any:
    """Return bases ** exponents of broadcast arrays or numbers; NaN for a base below 0 and a fractional exponent."""
    return _applied(each_power, bases, exponents)


def _applied(each: Callable[..., None], *values: Any) -> Any:
    arrays = np.broadcast_arrays(*(np.asarray(value, np.float64) for value in values))
    out = np.empty(arrays[0].shape)
    each(*(frozen(np.ascontiguousarray(array).reshape(-1)) for array in arrays), out.reshape(-1))
    return out[()]
