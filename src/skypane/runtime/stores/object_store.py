"""A folder of an object store: keys that begin with the folder's name, whole objects, conditional writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from skypane.locations import Location
from skypane.runtime.stores.object_client import client_of, in_words
from skypane.runtime.stores.object_files import ObjectReader, ObjectWriter
from skypane.runtime.stores.store import ConflictError, Kind, Store

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import ObjectStore as Client

_TRIES: Final = 3

Stamp = dict[str, str]
"""A version of an object, as the store names it: of two contents no two have the same."""


@dataclass(frozen=True)
class ObjectStore(Store):
    """The folder `place`."""

    place: Location

    @cached_property
    def _client(self) -> Client:
        return client_of(self.place)

    def key(self, name: str) -> str:
        """Return the key of an object in its bucket."""
        return f"{self.place.path}/{name}".strip("/")

    def path(self, name: str) -> str:
        return str(self.place.child(name) if name else self.place)

    def make(self) -> None:
        """Do nothing: an object store has no folders."""

    def listed(self, kind: Kind) -> list[str]:
        with self._in_words(""):
            found = self._client.list_with_delimiter(f"{self.key('')}/")
            paths = found["common_prefixes"] if kind == "folder" else [one["path"] for one in found["objects"]]
        return sorted(path.rstrip("/").rpartition("/")[2] for path in paths)

    def has(self, name: str) -> bool:
        if not name:
            return bool(self.listed("file") or self.listed("folder"))
        return self.stamp(name) is not None

    def stamp(self, name: str) -> Stamp | None:
        """Return the version of an object; None if it is missing."""
        try:
            with self._in_words(name):
                return _stamp(self._client.head(self.key(name)))
        except FileNotFoundError:
            return None

    def read(self, name: str) -> bytes:
        return self.read_stamped(name)[0]

    def read_stamped(self, name: str) -> tuple[bytes, Stamp]:
        """Return the contents of an object, and their version; raise FileNotFoundError if it is missing."""
        with self._in_words(name):
            found = self._client.get(self.key(name))
            return bytes(found.bytes()), _stamp(found.meta)

    def open_input(self, name: str) -> pa.NativeFile:
        return pa.PythonFile(ObjectReader(self._client, self.key(name), lambda: self._in_words(name)), mode="r")

    def open_output(self, name: str) -> pa.NativeFile:
        """Open an object that appears when it is closed; a long one is sent in parts before that."""
        return pa.PythonFile(ObjectWriter(self._client, self.key(name), lambda: self._in_words(name)), mode="w")

    def put(self, name: str, content: bytes) -> Stamp:
        """Write an object, replacing what is there."""
        return self._put(name, content, "overwrite")

    def create(self, name: str, content: bytes) -> Stamp:
        """Write an object with one conditional write; raise ConflictError if there is one with other contents."""
        return self._conditional(name, content, None)

    def replace(self, name: str, content: bytes, known: Stamp) -> Stamp:
        """Write an object with one conditional write; raise ConflictError unless the version `known` is there.

        If these very contents are there already, this returns: a write whose answer is lost is repeated.
        """
        return self._conditional(name, content, known)

    def copy(self, name: str, target: ObjectStore, target_name: str) -> None:
        """Copy an object inside the store; raise ConflictError if there is a target already."""
        with self._in_words(name):
            self._client.copy(self.key(name), target.key(target_name), overwrite=False)

    def remove(self, names: Iterable[str]) -> None:
        self._delete([self.key(name) for name in names])

    def remove_folder(self, name: str) -> None:
        prefix = self.key(name)
        with self._in_words(name):
            keys = [one["path"] for page in self._client.list(f"{prefix}/") for one in page]
        self._delete(keys)

    def clear(self) -> None:
        self.remove_folder("")

    def _delete(self, keys: list[str]) -> None:
        """Delete objects; the client does not repeat this request if it gets no answer."""
        for left in reversed(range(_TRIES if keys else 0)):
            try:
                with self._in_words(""):
                    self._client.delete(keys)
            except FileNotFoundError:  # some stores report an object that is missing, and may leave those after it
                self._delete_each(keys)
            except OSError:
                if left:
                    continue
                raise
            return

    def _delete_each(self, keys: list[str]) -> None:
        for key in keys:
            with suppress(FileNotFoundError), self._in_words(""):
                self._client.delete(key)

    def _conditional(self, name: str, content: bytes, known: Stamp | None) -> Stamp:
        """Write, and find out from the object itself whether a write without a clear answer has happened.

        A connection that breaks, an answer 503, or a time-out say nothing about it; and the client, which repeats the
        request, finds its own write there and reports a conflict. A store may also report one that is not over yet
        (S3's 409), and leave the object as it was: then the write is repeated.
        """
        failed: Exception = OSError(name)
        for _ in range(_TRIES):
            try:
                return self._put(name, content, dict(known) if known else "create")
            except ConflictError as error:
                failed, there = error, self._there(name)
                if there is not None and there[0] == content:
                    return there[1]
                if not _is_unchanged(known, there):
                    raise
            except OSError as error:
                failed = error
        raise failed

    def _there(self, name: str) -> tuple[bytes, Stamp] | None:
        try:
            return self.read_stamped(name)
        except FileNotFoundError:
            return None

    def _put(self, name: str, content: bytes, mode: Any) -> Stamp:
        wanted: PutMode = mode
        try:
            with self._in_words(name):
                return _stamp(self._client.put(self.key(name), content, mode=wanted, use_multipart=False))
        except FileNotFoundError as error:  # a version was to be replaced that is no longer there
            raise ConflictError(f"{self.path(name)} was removed by another writer") from error

    @contextmanager
    def _in_words(self, name: str) -> Iterator[None]:
        with in_words(self.path(name), self.place.authority):
            yield


def _is_unchanged(known: Stamp | None, there: tuple[bytes, Stamp] | None) -> bool:
    """Return whether what is there is still the known version, or nothing if none is known."""
    if known is None or there is None:
        return known is None and there is None
    return same_version(known, there[1])


def _stamp(found: Any) -> Stamp:
    """Return the version in an answer; parts that a store does not have are left out."""
    return {part: found[part] for part in ("e_tag", "version") if found.get(part) is not None}


def same_version(one: Stamp, other: Stamp) -> bool:
    """Return whether two answers speak of one version; an answer to a write may have fewer parts than one to a look."""
    shared = one.keys() & other.keys()
    return bool(shared) and all(one[part] == other[part] for part in shared)
