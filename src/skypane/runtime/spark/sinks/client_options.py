"""Options of a client of tables, as a user gives them: texts and numbers, with secrets in environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from skypane.addresses import HIDDEN, without_secrets
from skypane.runtime.environment import check_named, held, is_named
from skypane.types import ConfigError

_LOGIN: Final = re.compile(r"[^:/]+://[^:/]*:([^@]*)@")
"""A URI with a password, which may have "/", "?" and "#" in it: SQLAlchemy reads them so."""


def option_texts(options: Any, where: str) -> dict[str, str]:
    """Return options as texts; raise ConfigError, which shows no value, if they are not names with plain values."""
    if not isinstance(options, Mapping):
        raise ConfigError(f"{where}: options must be a mapping of names to texts and numbers")
    for name, value in options.items():
        if not isinstance(value, str | int | float):
            raise ConfigError(f"{where}: option {name} must be a text, a number, True or False")
    return {str(name): _text(value) for name, value in sorted(options.items())}


def _text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_option(where: str, value: str, *, is_plain: bool, parameters: frozenset[str] | None = None) -> None:
    """Raise ConfigError, which begins with `where` and shows no value, if an option may show a secret.

    is_plain    whether the option holds no secret by its name
    parameters  those that an address may have, if others may be secrets
    """
    if is_named(value):
        return
    if not is_plain:
        check_named(value, where)
    scheme, is_address, rest = value.partition("://")
    given = parse_qs(rest.partition("?")[2], keep_blank_values=True).keys()
    if is_address and (_LOGIN.match(value) or (parameters is not None and given - parameters)):
        raise ConfigError(
            f"{where} is {scheme}://{HIDDEN} with a password, or with a parameter that may be one, which errors would "
            f'show: give it as "$NAME", an environment variable that holds the whole text'
        )


def without_named(text: str, options: Mapping[str, str]) -> str:
    """Return the text of a client's error without the secrets that `options` name, and without those of addresses."""
    for secret in _secrets(options):
        text = text.replace(secret, HIDDEN)
    return without_secrets(text)


def _secrets(options: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of environment variables, and the passwords in those that are URIs, encoded and plain."""
    for value in filter(is_named, options.values()):
        with suppress(ConfigError):  # it is not set
            secret = held(value, "option", os.environ)
            login = _LOGIN.match(secret)
            password = login[1] if login else ""
            yield from filter(None, (secret, password, unquote(password)))
