"""The objects of a folder, as the store lists them, in the order of their names.

A listing may begin after a name, so that it does not grow with the history: S3 and Google get the name with the
request; for a store whose interface has no such argument the client leaves out what comes before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from skypane.locations import Location
from skypane.runtime.stores import s3_addresses
from skypane.runtime.stores.object_client import client_of, in_words

if TYPE_CHECKING:
    from obstore import ObjectMeta

_PAGE: Final = 1_000
"""Objects of one request, at most, in all stores."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HIDDEN: Final = ("_", ".")
"""First letters of names that others keep for themselves (_SUCCESS, _temporary/, .part), as in Spark's own source."""
DOTS: Final = frozenset({".", ".."})
"""Parts of names that obstore resolves, so that it would request another object."""


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
    def unread(self) -> str:
        """The reason why the object cannot be requested; an empty text if it can."""
        if DOTS & {*self.name.split("/")}:
            why = "the client of object stores cannot request a name with a part . or .."
        elif self.name.endswith("/"):
            why = "the client of object stores does not distinguish names that differ by slashes at the end"
        else:
            return ""
        return f"is not read: {why}; copy it to another name"

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

    Empty objects are left out, and names of which a part begins with _ or a dot, unless it is a partition as `_day=1/`,
    or a part that obstore cannot request, `.` or `..`.
    Raises CheckpointError if the store refuses the request, has no such bucket, or is not S3 and has a name that obstore
    does not take; OSError if it does not answer.
    """
    prefix = f"{folder.path}/".lstrip("/")
    with in_words(str(folder), folder.authority):
        for name, meta in _named(_pages(folder, prefix, prefix + after if after else ""), prefix, after):
            if not is_hidden(name) and fnmatchcase(name, match):
                yield _object(name, meta)


def _named(pages: Iterable[Sequence[ObjectMeta]], prefix: str, after: str) -> Iterator[tuple[str, ObjectMeta]]:
    """Yield the objects that have bytes, without the folder's own, each with a name that no other has.

    obstore leaves out a slash at the end of a name: the second object of a name is the one with the slash.
    """
    outer = [after.removesuffix("/")]  # names that the next one may begin with
    for meta in chain.from_iterable(pages):
        name = meta["path"].removeprefix(prefix)
        if not meta["size"] or meta["path"] == prefix[:-1]:
            continue
        while outer and not name.startswith(outer[-1]):
            outer.pop()
        name += "/" if name in outer[-1:] else ""
        outer.append(name)
        yield name, meta


def _pages(folder: Location, prefix: str, after: str) -> Iterator[Sequence[ObjectMeta]]:
    """Yield the objects by obstore, from the first page on that has a name which it does not take by requests to S3."""
    from obstore.exceptions import InvalidPathError  # noqa: PLC0415 - an extra

    try:
        for page in client_of(folder).list(prefix or None, offset=after or None, chunk_size=_PAGE):
            yield page
            after = page[-1]["path"]
    except (InvalidPathError, ValueError) as error:  # the latter for `prefix` and `after`
        if not s3_addresses.takes(folder):
            raise InvalidPathError(str(error)) from None
        yield from s3_addresses.pages(folder, prefix, after)


def is_hidden(name: str) -> bool:
    """Return whether a part of a name says that the object is not data."""
    parts = (part for part in name.split("/") if part not in DOTS)
    return any(part.startswith(_HIDDEN) and not (part.startswith("_") and "=" in part) for part in parts)


def stamp_of(meta: ObjectMeta) -> str:
    """Return the version in an answer; a listing may show an ETag without quotes that another answer has."""
    stamp = meta["e_tag"] or meta["version"] or str(_micros(meta["last_modified"]))
    return stamp.removeprefix("W/").strip('"')


def _object(name: str, meta: ObjectMeta) -> StoredObject:
    return StoredObject(name, _micros(meta["last_modified"]), int(meta["size"]), stamp_of(meta))


def _micros(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1)
