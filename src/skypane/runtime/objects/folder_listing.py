"""The objects of a folder, as the store lists them, in the order of their names.

A listing may begin after a name, so that it does not grow with the history: S3 and Google get the name with the
request; for a store whose interface has no such argument the client leaves out what comes before.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from skypane.locations import Location
from skypane.runtime.stores.object_client import client_of, in_words

if TYPE_CHECKING:
    from obstore import ObjectMeta

_PAGE: Final = 1_000
"""Objects of one request, at most, in all stores."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HIDDEN: Final = ("_", ".")
"""First letters of names that others keep for themselves (_SUCCESS, _temporary/, .part), as in Spark's own source."""


class StoredObject(NamedTuple):
    """A version of an object.

    name      its name in the folder, with the slashes of folders in it
    modified  when it was last written, by the store's clock, in microseconds since the epoch
    size      in bytes
    stamp     the store's name of the version (ETag): equal stamps mean equal contents
    """

    name: str
    modified: int
    size: int
    stamp: str

    @property
    def key(self) -> int:
        """A number of 64 bits that stands for the name."""
        return key_of(self.name)

    @property
    def version(self) -> int:
        """A number of 32 bits that stands for the contents."""
        return _number(f"{self.stamp} {self.size}", 4)


def key_of(name: str) -> int:
    """Return a number of 64 bits that stands for a name."""
    return _number(name, 8)


def _number(text: str, length: int) -> int:
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=length).digest(), "little")


def objects_of(folder: Location, match: str = "*", after: str = "") -> Iterator[StoredObject]:
    """Yield the objects of a folder, and of folders in it, whose names come after `after`.

    match  a pattern of the name in the folder, in which * also stands for slashes

    Empty objects are left out, and names of which a part begins with _ or a dot, unless it is a partition as `_day=1/`.
    Raises CheckpointError if the store refuses the request or has no such bucket, OSError if it does not answer.
    """
    prefix = f"{folder.path}/".lstrip("/")
    with in_words(str(folder), folder.authority):
        for page in client_of(folder).list(prefix or None, offset=prefix + after if after else None, chunk_size=_PAGE):
            for meta in page:
                name = meta["path"].removeprefix(prefix)
                if meta["size"] and not is_hidden(name) and fnmatchcase(name, match):
                    yield _object(name, meta)


def is_hidden(name: str) -> bool:
    """Return whether a part of a name says that the object is not data."""
    return any(part.startswith(_HIDDEN) and not (part.startswith("_") and "=" in part) for part in name.split("/"))


def stamp_of(meta: ObjectMeta) -> str:
    """Return the version in an answer; a listing may show an ETag without quotes that another answer has."""
    stamp = meta["e_tag"] or meta["version"] or str(_micros(meta["last_modified"]))
    return stamp.removeprefix("W/").strip('"')


def _object(name: str, meta: ObjectMeta) -> StoredObject:
    return StoredObject(name, _micros(meta["last_modified"]), int(meta["size"]), stamp_of(meta))


def _micros(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1)
