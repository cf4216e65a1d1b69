"""Requests to S3 for objects with names that obstore does not take: `a//b.json`, `/a.json`, control characters.

A client whose endpoint is the whole address of a request sends this request: what it appends belongs to a parameter that
begins with x-, which S3 ignores. obstore would refuse the names in a list again, so it only signs the address of a list.
Parts `.` and `..` of a name remain out of reach, since obstore resolves them.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from http.client import HTTPException
from typing import TYPE_CHECKING, Final, cast
from urllib.error import HTTPError
from urllib.parse import quote, unquote_plus, urlencode
from urllib.request import urlopen
from xml.etree import ElementTree as ET

from skypane.locations import Location
from skypane.runtime.stores.object_client import RETRIES, client_of, in_words

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore as Client
    from obstore.store import S3Store

_ODD: Final = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|[\x00-\x1f\x7f]")
"""Parts of names that obstore does not take."""
_PATH: Final = "k"
"""A path that obstore appends."""
_PAUSES: Final = (0.1, 0.4, 1.6, 6.4)
"""Seconds before a list is requested again."""
_TRUE: Final = frozenset({"1", "true", "on", "yes", "y"})
_VALID: Final = timedelta(minutes=15)
_TIMEOUT: Final = 60.0
_NO_XML: Final = bytes({*range(32)} - {*b"\t\n\r"})
"""Characters that a parser refuses; keys have them in %XX, but some servers repeat what a list is after as it is."""


def clients_of(place: Location) -> Iterator[tuple[Client, str]]:
    """Yield a client and the key by which it requests an object, for each name that the object may have.

    obstore lists a name without a slash at its beginning and at its end: the last clients are for names with these.
    """
    client, key = client_of(place), place.path[1:]
    others = [f"{key}/", f"/{key}"] if takes(place) else []
    for one in (key, *others):
        yield (_requesting(place, f"/{quote(one)}?"), _PATH) if others and _ODD.search(one) else (client, one)


def takes(place: Location) -> bool:
    """Return whether a store gets such requests: S3, by a client that signs."""
    from obstore.store import S3Store  # noqa: PLC0415 - an extra

    is_signed = os.environ.get("AWS_SKIP_SIGNATURE", "").lower() not in _TRUE
    return is_signed and isinstance(client_of(place), S3Store)


def pages(place: Location, prefix: str, after: str) -> Iterator[list[ObjectMeta]]:
    """Yield the objects in a bucket whose keys begin with `prefix` and come after `after`, as obstore names them."""
    query = {"list-type": "2", "encoding-type": "url", "prefix": prefix, "start-after": after}
    while True:
        page = _requested(_requesting(place, f"?{urlencode(query, quote_via=quote)}&"))
        decoded = unquote_plus if page.findtext("{*}EncodingType") else str
        yield [_meta(one, decoded(one.findtext("{*}Key", ""))) for one in page.iterfind("{*}Contents")]
        if not (token := page.findtext("{*}NextContinuationToken")):
            return
        query["continuation-token"] = token


def _requesting(place: Location, address: str) -> S3Store:
    """Return a client that requests `address`, which follows that of the bucket, and ends with ? or &."""
    from obstore import sign  # noqa: PLC0415 - an extra

    with in_words(str(place), place.authority):
        signed = sign(cast("S3Store", client_of(place)), "GET", _PATH, _VALID)
    return _endpoint(place.authority, f"{signed.partition('?')[0].removesuffix(f'/{_PATH}')}{address}x-appended=")


@lru_cache(maxsize=64)
def _endpoint(bucket: str, endpoint: str) -> S3Store:
    from obstore.store import S3Store  # noqa: PLC0415 - an extra

    return S3Store(
        bucket, config={"aws_endpoint_url_s3": endpoint, "virtual_hosted_style_request": True}, retry_config=RETRIES
    )


def _requested(client: S3Store) -> ET.Element:
    """Return the answer, in XML; raise obstore's error after all tries."""
    from obstore import sign  # noqa: PLC0415 - an extra
    from obstore.exceptions import GenericError  # noqa: PLC0415

    for pause in (*_PAUSES, None):
        try:
            with urlopen(sign(client, "GET", _PATH, _VALID), timeout=_TIMEOUT) as answer:  # noqa: S310 - obstore's address
                return ET.fromstring(answer.read().translate(None, _NO_XML))  # noqa: S314 - of the store; expat bounds entities
        except (OSError, HTTPException, ET.ParseError) as error:
            code = error.code if isinstance(error, HTTPError) else 500
            if pause is None or code < 500:
                body = error.read().decode(errors="replace") if isinstance(error, HTTPError) else ""
                raise GenericError(f"no list of objects: {error} {body}") from None
            time.sleep(pause)
    raise AssertionError


def _meta(one: ET.Element, key: str) -> ObjectMeta:
    return {
        "path": key.removeprefix("/").removesuffix("/"),
        "last_modified": datetime.fromisoformat(one.findtext("{*}LastModified", "")),
        "size": int(one.findtext("{*}Size", "")),
        "e_tag": one.findtext("{*}ETag"),
        "version": None,
    }
