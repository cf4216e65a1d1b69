"""Logarithms, exponentials and powers by additions and multiplications alone: the same bits on every CPU.

NumPy and the C library have several versions of these functions, for CPUs with and without AVX-512, AVX2 or FMA, which
differ in the last bit: a row might be in an answer on one machine and not on another. IEEE 754 says what +, -, * and / of two
numbers are, so what is made of those alone, in one order, is the same everywhere.

    log x  =  e log 2 - log c + log(1 + z)      x = m 2**e; c near 1 / m, of nine bits, from a table; z = m c - 1, below 0.008
    exp x  =  2**q 2**(j/64) exp r              x = (64 q + j) log 2 / 64 + r, with |r| below 0.0055
    x ** y =  exp(y log |x|)

Numbers that need more than 53 bits are pairs (Dekker): their sum, of which the first is the sum rounded. Results are off by
0.501 of a unit in the last place at most where they are no subnormal numbers (tests/kernels/test_elementary.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from skypane.kernels.compiled import inlined, kernel
from skypane.kernels.exact import product
from skypane.kernels.layout import frozen
from skypane.types import FloatArray

_BITS: Final = 256
"""Of the integers, fractions of 2**_BITS, that tables are computed in."""
_PARTS: Final = 64
"""Of an octave, whose powers of two stand in a table."""
_CELLS: Final = 128
"""Of a unit, whose reciprocals and logarithms stand in a table."""
_LEAST: Final = 90
"""The cell of sqrt(1/2), the first."""
_HALF_ROOT: Final = 0.7071067811865476
_LARGEST, _SMALLEST = 709.8, -745.2
"""Beyond these, exponentials are infinite or 0."""
_HUGE: Final = 2.0**65
"""An exponent that makes any power but that of 1 infinite or 0."""


def _logarithm(numerator: int, denominator: int) -> int:
    """Return the logarithm of a ratio, as an integer: 2 atanh((n - d) / (n + d))."""
    term = ((numerator - denominator) << _BITS) // (numerator + denominator)
    square, total, odd = term * term >> _BITS, 0, 1
    while term not in {0, -1}:  # shifted far enough a negative integer ends at -1
        total += term // odd
        term, odd = term * square >> _BITS, odd + 2
    return 2 * total


def _root(number: int, times: int) -> int:
    """Return the square root of the square root ... as an integer."""
    for _ in range(times):
        number = math.isqrt(number << _BITS)
    return number


def _pair(number: int, bits: int = 53) -> tuple[float, float]:
    """Return an integer's value as two numbers, of which the first has so many bits."""
    first = number / (1 << _BITS)
    if first and bits < 53:
        unit = math.ldexp(1.0, math.frexp(first)[1] - bits)
        first = math.floor(first / unit) * unit
    over, under = first.as_integer_ratio()
    return first, (number * under - (over << _BITS)) / (under << _BITS)


def _reciprocal(cell: int) -> int:
    """Return c of a cell, in units of 1/512."""
    return round(512 * _CELLS / cell)


_LOG_2: Final = _logarithm(2, 1)
_LOG_2_HIGH, _LOG_2_LOW = _pair(_LOG_2, 40)
#: log 2 / 64 as three numbers; whole numbers below 2**17 times the first, and the second, are exact
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
    """Return a + b rounded, and the rest (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@inlined
def log_pair(x: float) -> tuple[float, float]:
    """Return the logarithm of a finite number above 0, as a pair."""
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
    """Return the exponential of a pair that is neither too large nor too small."""
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
    """Return the exponential of a pair, whatever it is."""
    if not x < _LARGEST:
        return x + math.inf  # NaN stays NaN
    return exp_pair(x, low) if x > _SMALLEST else 0.0


@inlined
def is_odd(y: float) -> bool:
    """Whether a number is an odd whole one; those from 2**53 on are even."""
    return abs(y) < 2.0**53 and y == math.floor(y) and int(y) % 2 == 1


@inlined
def power_of_size(size: float, y: float) -> float:
    """Return size ** y, both finite, the size above 0."""
    if abs(y) >= _HUGE and size != 1.0:
        return math.inf if (size > 1.0) == (y > 0.0) else 0.0
    high, low = log_pair(size)
    exponent, rest = product(y, high)
    return exp_of(exponent, rest + y * low)


@inlined
def power_of(x: float, y: float) -> float:
    """Return x ** y; where C's pow is exact by its definition (0, infinity, NaN), as that."""
    if y == 2.0:
        return x * x
    if x == 0.0 or not (abs(x) < math.inf and abs(y) < math.inf):
        return math.pow(x, y)
    value = power_of_size(abs(x), y)
    if x > 0.0:
        return value
    if y != np.floor(y):  # math.floor is an int64 in Numba, which a number from 2**63 on is not
        return math.nan
    return -value if is_odd(y) else value


@kernel
def each_log(values: FloatArray, out: FloatArray) -> None:
    """Fill `out` with logarithms; NaN below 0."""
    for row in range(values.size):
        x = values[row]
        if 0.0 < x < math.inf:
            high, low = log_pair(x)
            out[row] = high + low
        else:
            out[row] = -math.inf if x == 0.0 else x if x > 0.0 else math.nan


@kernel
def each_exp(values: FloatArray, out: FloatArray) -> None:
    """Fill `out` with exponentials."""
    for row in range(values.size):
        out[row] = exp_of(values[row], 0.0)


@kernel
def each_power(bases: FloatArray, exponents: FloatArray, out: FloatArray) -> None:
    """Fill `out` with powers."""
    for row in range(bases.size):
        out[row] = power_of(bases[row], exponents[row])


def log(values: Any) -> Any:
    """Return logarithms, of any shape, or a float64; NaN below 0, without a warning."""
    return _applied(each_log, values)


def exp(values: Any) -> Any:
    """Return exponentials, of any shape, or a float64."""
    return _applied(each_exp, values)


def power(bases: Any, exponents: Any) -> Any:
    """Return powers of what is broadcast together, or a float64; NaN of numbers below 0 to no whole power."""
    return _applied(each_power, bases, exponents)


def _applied(each: Callable[..., None], *values: Any) -> Any:
    arrays = np.broadcast_arrays(*(np.asarray(value, np.float64) for value in values))
    out = np.empty(arrays[0].shape)
    each(*(frozen(np.ascontiguousarray(array).reshape(-1)) for array in arrays), out.reshape(-1))
    return out[()]
