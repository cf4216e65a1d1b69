"""Addresses as they may be shown in errors, logs and reports: without passwords, keys and signatures.

A part of an address that is secret is hidden anywhere in a text, as in the errors of clients.
"""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "(not shown)"

_LOGIN: Final = re.compile(
    r"(?:(?<=\bs3://)|(?<=\bs3[an]://))[^/@\s]*:[^@\s]*(?=@)"  # a key of S3 may have a slash
    r"|(?<=//)[^/@\s]*:[^/@\s]*(?=@)",
    re.IGNORECASE,
)
"""User and password, before the host or the bucket."""

_PARAMETER: Final = re.compile(
    r"([?&;](?:sig|signature|token|password|awsaccesskeyid|googleaccessid|x-(?:amz|goog)-[a-z-]+)=)"
    rf"(?!{re.escape(HIDDEN)})[^&;\s\"']+",
    re.IGNORECASE,
)
"""A parameter of a signed address, such as that of a shared access of Azure, or of a login."""


def without_secrets(text: str) -> str:
    """Return a text without the logins and the signatures of the addresses in it.

    >>> without_secrets("s3://key:secret@bucket/in"), without_secrets("https://a/b?sv=1&sig=s3cr3t&comp=list")
    ('s3://(not shown)@bucket/in', 'https://a/b?sv=1&sig=(not shown)&comp=list')
    """
    return _PARAMETER.sub(rf"\1{HIDDEN}", _LOGIN.sub(HIDDEN, text))


def has_secret(text: str) -> bool:
    """Return whether a text has an address with a login or a signature."""
    return bool(_LOGIN.search(text) or _PARAMETER.search(text))
