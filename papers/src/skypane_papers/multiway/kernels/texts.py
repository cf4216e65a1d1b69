"""Search texts for mail and IP addresses, the costly functions of paper 2, table 2.

Texts are stored one after the other in an array of bytes: text i is data[offsets[i]:offsets[i + 1]].
"""

from __future__ import annotations

from typing import Any, Final

from skypane.kernels.compiled import inlined, kernel

ANY: Final = 0
MAIL: Final = 1
MAIL_OR_IP: Final = 2

_DOT, _AT = 46, 64


@inlined
def is_digit(byte: int) -> bool:
    """Return whether a byte is 0 to 9."""
    return 48 <= byte <= 57


@inlined
def is_letter(byte: int) -> bool:
    """Return whether a byte is a to z or A to Z."""
    return 97 <= byte | 32 <= 122


@inlined
def is_name(byte: int) -> bool:
    """Return whether a byte may be in a label of a domain: a letter, digit or hyphen."""
    return is_letter(byte) or is_digit(byte) or byte == 45


@kernel
def has_mail(data: Any, begin: int, end: int) -> bool:
    """Return whether a text contains name@label.label, with at least two letters in the last label."""
    for at in range(begin + 1, end):
        if data[at] != _AT:
            continue
        before = data[at - 1]
        if not (is_name(before) or before in (_DOT, 43, 95)):
            continue
        label, letters, dots, place = 0, 0, 0, at + 1
        while place < end and (is_name(data[place]) or (data[place] == _DOT and label > 0)):
            if data[place] == _DOT:
                dots, label, letters = dots + 1, 0, 0
            else:
                label += 1
                letters = letters + 1 if is_letter(data[place]) else 0
                if dots > 0 and letters >= 2 and letters == label:
                    return True
            place += 1
    return False


@kernel
def has_ip(data: Any, begin: int, end: int) -> bool:
    """Return whether a text contains four numbers of 0 to 255, separated by dots, without digits around them."""
    for at in range(begin, end):
        if not is_digit(data[at]) or (at > begin and (is_digit(data[at - 1]) or data[at - 1] == _DOT)):
            continue
        parts, place = 0, at
        while place < end and is_digit(data[place]):
            number, digits = 0, 0
            while place < end and is_digit(data[place]) and digits < 4:
                number, digits, place = number * 10 + data[place] - 48, digits + 1, place + 1
            if digits > 3 or number > 255:
                break
            parts += 1
            if parts == 4:
                return True
            if place == end or data[place] != _DOT:
                break
            place += 1
    return False


@kernel
def contributes(where: int, offsets: Any, data: Any, row: int) -> bool:
    """Return whether a tuple counts: all do, or those whose text, by its row, matches the condition `where`."""
    if where == ANY:
        return True
    begin, end = offsets[row], offsets[row + 1]
    return has_mail(data, begin, end) or (where == MAIL_OR_IP and has_ip(data, begin, end))
