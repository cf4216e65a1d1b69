"""Connections to object stores by obstore, which the extra `cloud` installs; and its errors, in one sentence.

Credentials, region and endpoint come from the environment of the process, driver and workers alike (AWS_ACCESS_KEY_ID,
AWS_ENDPOINT_URL, GOOGLE_SERVICE_ACCOUNT, AZURE_STORAGE_ACCOUNT_NAME, ...), or from the machine that it runs on.
"""

from __future__ import annotations

import errno
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Final

from skypane.addresses import has_secret, without_secrets
from skypane.locations import Location
from skypane.naming import printable
from skypane.runtime.stores.store import ConflictError
from skypane.types import CheckpointError, ConfigError

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client
    from obstore.store import RetryConfig

_ARCHIVED: Final = ("InvalidObjectState", "BlobArchived")
"""Codes of S3 and Azure for an object that has to be restored before it can be read."""

HINT: Final = "pip install 'skypane[cloud]', in the driver and in the workers"

RETRIES: RetryConfig = {"max_retries": 8, "retry_timeout": timedelta(minutes=1)}
"""How long the client repeats a request, with pauses from 0.1 s that double each time."""


def check_installed(place: Location, field: str) -> None:
    """Raise ConfigError, naming `field`, unless the client of object stores is installed."""
    if importlib.util.find_spec("obstore") is None:
        raise ConfigError(f"{field}: {place} is in an object store, whose client is not installed: {HINT}")


def client_of(place: Location) -> Client:
    """Return the connection to the bucket of a location; each process has one of each bucket."""
    check_installed(place, "path")
    return _connected(place.resolved().scheme, place.authority)


@cache
def _connected(scheme: str, authority: str) -> Client:
    from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra
    from obstore.store import S3Store, from_url  # noqa: PLC0415

    try:
        if scheme == "s3":  # without the multipart copy S3 can copy only over what is there
            return S3Store(authority, config={"copy_if_not_exists": "multipart"}, retry_config=RETRIES)
        return from_url(f"{scheme}://{authority}", retry_config=RETRIES)
    except (BaseError, ValueError) as error:
        raise ConfigError(f"cannot reach {scheme}://{authority}: {first_line(error)}") from error


@contextmanager
def in_words(place: str, bucket: str) -> Iterator[None]:
    """Raise the errors of a request at `place` as Python's own, and as ConflictError and CheckpointError, in one line."""
    from obstore import exceptions  # noqa: PLC0415 - an extra

    place = printable(place)
    try:
        yield
    except (exceptions.BaseError, FileNotFoundError) as error:
        cause = None if has_secret(str(error)) else error  # a traceback shows the text of a cause
        if any(code in str(error) for code in _ARCHIVED):
            raise CheckpointError(
                f"cannot read {place}: it is in an archive of the object store; restore it there, or keep what was not read "
                "yet out of archives"
            ) from cause
        if isinstance(error, (exceptions.AlreadyExistsError, exceptions.PreconditionError)):
            raise ConflictError(f"{place} was created or changed by another writer") from cause
        if "RequestTimeTooSkewed" in str(error):
            raise CheckpointError(
                f"cannot use {place}: the clock of this machine and that of the object store differ by more than it "
                f"accepts (RequestTimeTooSkewed); set the clock of this machine"
            ) from cause
        if _is_refused(error):
            raise CheckpointError(
                f"cannot use {place}: the object store refuses these credentials ({_reason(error)}); they need to "
                f"list and read there, and for checkpoints and outputs to write and delete"
            ) from cause
        if "NoSuchBucket" in str(error):
            raise CheckpointError(f"cannot use {place}: there is no bucket {bucket!r}") from cause
        if isinstance(error, exceptions.InvalidPathError):
            raise CheckpointError(
                f"cannot use {place}: the client of object stores does not take the name of an object there "
                f"({first_line(error)}); copy the object to another name, and remove it"
            ) from cause
        if isinstance(error, FileNotFoundError):
            raise FileNotFoundError(errno.ENOENT, "there is no such object", place) from cause
        raise OSError(errno.EIO, first_line(error), place) from cause


def _is_refused(error: Exception) -> bool:
    """Return whether the store refuses the credentials; for a list of objects obstore says so in the text only."""
    from obstore import exceptions  # noqa: PLC0415 - an extra

    refused = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)
    return isinstance(error, refused) or any(code in str(error) for code in ("403 Forbidden", "401 Unauthorized"))


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, without secrets in addresses; obstore adds a page to it.

    >>> first_line(OSError("no answer of https://a/b?sv=1&sig=s3cr3t (timeout):"))
    'no answer of https://a/b?sv=1&sig=(not shown) (timeout)'
    """
    return without_secrets(printable(str(error).strip().partition("\n")[0].removesuffix(":")))


def _reason(error: Exception) -> str:
    """Return the code that S3 answers with, or else the first line of the error."""
    _, found, after = str(error).partition("<Code>")
    return after.partition("</Code>")[0] if found else first_line(error)
