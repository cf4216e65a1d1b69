"""Sums of float64 numbers that do not depend on the order or the grouping of additions.

A number is split, by its bits, into limbs on one grid for all numbers: limb j counts units of 2**(32 j - 1074). A sum
keeps LIMBS limbs, from the top limb of its largest number down, as integers. So addition is associative, and the limbs
that are cut off lie at least 96 bits below the largest number. A sum can hold up to 2**31 numbers. Infinities and NaN
are counted in a limb above all others.

    state   [top, limb top, limb top - 1, limb top - 2, limb top - 3]     top = -1: no number yet, or zeros only
            [SPECIAL, count of +inf, count of -inf, count of NaN, 0]
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from skypane.kernels.column_layout import frozen
from skypane.kernels.compiled import inlined, kernel
from skypane.types import BoolArray, FloatArray, IntArray

LIMBS: Final = 4
WIDTH: Final = LIMBS + 1
SPECIAL: Final = 1_000

_MASK: Final = (1 << 32) - 1
_FRACTION: Final = (1 << 52) - 1
_EXPONENT: Final = 0x7FF
_LOWEST: Final = 1_074
_SPLIT: Final = 134_217_729.0
"""2**27 + 1, which splits the digits of a float64 into halves (Dekker)."""


@inlined
def add_limb(state: Any, row: int, at: int, limb: int, amount: int) -> None:
    """Add `amount` to one limb, if the sum keeps it."""
    place = state[row, at] - limb
    if 0 <= place < LIMBS:
        state[row, at + 1 + place] += amount


@inlined
def raise_top(state: Any, row: int, at: int, top: int) -> None:
    """Raise the top limb for a larger number: move the limbs down and cut off the lowest."""
    shift = top - state[row, at]
    if shift > 0:
        for place in range(LIMBS, 0, -1):
            state[row, at + place] = state[row, at + place - shift] if place > shift else 0
        state[row, at] = top


@inlined
def deposit(state: Any, row: int, at: int, bits: int) -> None:
    """Add the float64 with the given bits to a sum."""
    exponent = (bits >> 52) & _EXPONENT
    digits = bits & _FRACTION
    if exponent == _EXPONENT:
        raise_top(state, row, at, SPECIAL)
        state[row, at + (3 if digits else 2 if bits < 0 else 1)] += 1
    elif (exponent or digits) and state[row, at] < SPECIAL:
        if exponent:
            digits |= 1 << 52
            exponent -= 1
        raise_top(state, row, at, (exponent + 52) >> 5)
        shift = exponent & 31
        limb = exponent >> 5
        sign = -1 if bits < 0 else 1
        add_limb(state, row, at, limb, sign * ((digits << shift) & _MASK))
        add_limb(state, row, at, limb + 1, sign * ((digits >> (32 - shift)) & _MASK))
        if shift:
            add_limb(state, row, at, limb + 2, sign * (digits >> (64 - shift)))


@inlined
def merge_exact(state: Any, row: int, at: int, other: Any, other_row: int, other_at: int) -> None:
    """Add another sum to a sum."""
    shift = state[row, at] - other[other_row, other_at]
    if shift < 0:
        raise_top(state, row, at, other[other_row, other_at])
        shift = 0
    if shift == 0:  # the usual case, numbers of similar size: four additions
        for place in range(1, WIDTH):
            state[row, at + place] += other[other_row, other_at + place]
    else:
        for place in range(1 + shift, WIDTH):
            state[row, at + place] += other[other_row, other_at + place - shift]


@kernel
def add_numbers(state: Any, at: int, ids: IntArray, bits: IntArray, keep: BoolArray) -> None:
    """Add float64 numbers, given by their bits, to the sums of their groups."""
    for row in range(ids.size):
        if keep[row]:
            deposit(state, ids[row], at, bits[row])


@kernel
def add_squares(state: Any, at: int, ids: IntArray, numbers: FloatArray, keep: BoolArray) -> None:
    """Add the exact squares of numbers: a square is two float64, its rounded value and the rounding error.

    For numbers below 2**-484 (2e-146), the rounding error is too small for a float64 and is lost.
    """
    pair = np.empty(2, np.float64)
    bits = pair.view(np.int64)
    for row in range(ids.size):
        if keep[row]:
            pair[0], pair[1] = product(numbers[row], numbers[row])
            deposit(state, ids[row], at, bits[0])
            if math.isfinite(pair[1]):
                deposit(state, ids[row], at, bits[1])


@inlined
def product(a: float, b: float) -> tuple[float, float]:
    """Return the rounded product a * b, and its rounding error (Dekker)."""
    high = a * b
    scaled = _SPLIT * a
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled = _SPLIT * b
    b_high = scaled - (scaled - b)
    b_low = b - b_high
    return high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low


@inlined
def digits_of(state: Any, row: int, at: int, digits: Any) -> float:
    """Write the magnitude of a sum into `digits` as six digits to base 2**32, the largest first; return the sign."""
    sign = 1.0
    for _ in range(2):
        carry = 0
        for place in range(LIMBS, 0, -1):
            limb = np.int64(sign) * state[row, at + place] + carry
            digits[place + 1] = float(limb & _MASK)
            carry = limb >> 32
        digits[1] = float(carry & _MASK)
        digits[0] = float(carry >> 32)
        if digits[0] >= 0.0:
            break
        sign = -1.0
    return sign


@inlined
def special_value(state: Any, row: int, at: int) -> float:
    """Return a sum that contains infinities or NaN."""
    plus, minus, unknown = state[row, at + 1], state[row, at + 2], state[row, at + 3]
    if unknown or (plus and minus):
        return math.nan
    return math.inf if plus else -math.inf


_TOPS: Final = 128
"""Size of the table of scales: a power of two above all tops but SPECIAL, so that masking makes any top an index."""
_SCALES: Final = frozen(
    np.array([math.ldexp(1.0, min(max(32 * (top - LIMBS + 1) - _LOWEST, -1022), 1023)) for top in range(_TOPS)])
)
"""The unit of a sum's lowest limb, by top limb; it is a normal float64 for tops >= _NORMAL."""
_NORMAL: Final = 5
_BASE: Final = 4_294_967_296.0


@kernel
def exact_values(state: Any, at: int) -> FloatArray:
    """Return each group's sum, off by less than ulp(s) + n |M| / 2**96 for the sum s of n numbers, of which M is the largest.

    The loop has no branches, so that it is vectorised; set_unusual() corrects the few values that are not normal.
    """
    values = np.empty(state.shape[0], np.float64)
    unusual = 0
    for row in range(values.size):
        top = state[row, at]
        a, b, c, d = state[row, at + 1], state[row, at + 2], state[row, at + 3], state[row, at + 4]
        # Negate each limb by itself: choosing between tuples of limbs would be a branch.
        negative = ((((d >> 32) + c >> 32) + b >> 32) + a) < 0
        a = -a if negative else a
        b = -b if negative else b
        c = -c if negative else c
        d = -d if negative else d
        value = horner(a, b, c, d) * _SCALES[np.uint64(top & (_TOPS - 1))]
        values[row] = -value if negative else value
        unusual |= (top >= 0) & (top < _NORMAL) | (top == SPECIAL)
    if unusual > 0:
        set_unusual(values, state, at)
    return values


@inlined
def horner(a: int, b: int, c: int, d: int) -> float:
    """Return the limbs of a nonnegative sum as a number, in units of the lowest limb."""
    # Carry from the lowest limb up; what is left of each limb is a digit to base 2**32.
    c += d >> 32
    b += c >> 32
    a += b >> 32
    value = float(a >> 32) * _BASE + float(a & _MASK)
    return ((value * _BASE + float(b & _MASK)) * _BASE + float(c & _MASK)) * _BASE + float(d & _MASK)


@inlined
def set_unusual(values: FloatArray, state: Any, at: int) -> None:
    """Set the sums that are not finite, or so small that they may be subnormal."""
    for row in range(values.size):
        top = state[row, at]
        if top == SPECIAL:
            values[row] = special_value(state, row, at)
        elif 0 <= top < _NORMAL:
            a, b, c, d = state[row, at + 1], state[row, at + 2], state[row, at + 3], state[row, at + 4]
            sign = 1
            if ((((d >> 32) + c >> 32) + b >> 32) + a) < 0:
                sign, a, b, c, d = -1, -a, -b, -c, -d
            values[row] = sign * math.ldexp(horner(a, b, c, d), 32 * (top - LIMBS + 1) - _LOWEST)


@inlined
def accumulate(total: Any, term: float) -> None:
    """Add a term to a sum that is held in two float64 (Knuth's two-sum)."""
    high = total[0] + term
    part = high - total[0]
    total[1] += (total[0] - (high - part)) + (term - part)
    total[0] = high


_NOISE: Final = 2.0**-96
"""Deviations up to this share of the sum of squares count as rounding errors."""


@kernel
def squared_deviations(state: Any, count: int, sums: int, squares: int) -> FloatArray:
    """Return each group's sum of squared deviations from its mean.

    `count`, `sums` and `squares` are the first columns of the number of rows, of their sum and of the sum of their
    squares. sum (x - m)**2, where m is the rounded mean, equals squares - 2 m sums + n m**2. Each term is exact in two
    float64, so that cancellation is exact, and the error is below 2**-94 of n times the largest square: nine digits are
    correct if the mean is a billion standard deviations from zero. Results that may be rounding errors are set to 0, so
    that equal numbers have deviation 0. Numbers are scaled so that no intermediate result overflows.
    """
    result = np.empty(state.shape[0], np.float64)
    total, off, digits = np.empty(2, np.float64), np.empty(2, np.float64), np.empty(LIMBS + 2, np.float64)
    for row in range(result.size):
        top, n = state[row, sums], float(state[row, count])
        if n <= 1.0 or top < 0:
            result[row] = 0.0 if top < SPECIAL else math.nan
            continue
        if top == SPECIAL or state[row, squares] == SPECIAL:
            result[row] = math.nan if top == SPECIAL else math.inf
            continue
        sign = digits_of(state, row, sums, digits)
        mean = 0.0
        for digit in digits:
            mean = mean * _BASE + digit
        mean = sign * mean / n
        total[:] = 0.0
        off[:] = 0.0  # n m - sum, the error of the rounded mean
        high, low = product(mean, mean)
        for factor in (high, low):
            high, low = product(n, factor)
            accumulate(total, high)
            accumulate(total, low)
        high, low = product(n, mean)
        accumulate(off, high)
        accumulate(off, low)
        for place in range(digits.size):
            part = sign * math.ldexp(digits[place], 32 * (LIMBS + 1 - place))
            accumulate(off, -part)
            high, low = product(2.0 * mean, part)
            accumulate(total, -high)
            accumulate(total, -low)
        digits_of(state, row, squares, digits)
        size = 0.0
        scale = 32 * (state[row, squares] - LIMBS + 1) - _LOWEST - 2 * (32 * (top - LIMBS + 1) - _LOWEST)
        for place in range(digits.size):
            part = math.ldexp(digits[place], 32 * (LIMBS + 1 - place) + scale)
            size += part
            accumulate(total, part)
        rest = off[0] + off[1]
        deviation = total[0] + (total[1] - rest * rest / n)
        if deviation <= _NOISE * size:
            deviation = 0.0
        result[row] = math.ldexp(deviation, 2 * (32 * (top - LIMBS + 1) - _LOWEST))
    return result
