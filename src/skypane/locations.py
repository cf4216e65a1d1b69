"""Paths and URIs of files, parsed in one place, so that Spark, pyarrow and this process agree on what a text means.

URIs follow Hadoop's rules: nothing is percent-encoded, "//" and ".." are resolved in the text, and a colon before the
first slash ends a scheme. A path without a scheme follows Python's rules: it is local, relative to the working folder,
and "~" is the user's home.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from skypane.addresses import has_secret, without_secrets
from skypane.types import ConfigError

LOCAL = "file"

_SCHEME = re.compile(r"([^/:]*):(.*)", re.DOTALL)
_AUTHORITY = re.compile(r"//([^/]*)(.*)", re.DOTALL)

_COLON = re.compile(r"[^/]*//[^/]*:")
"""A login or a port before the path. A key of S3 may have a slash, so all that has a colon before the first one counts."""

_SIGN = re.compile(r"[\\*?{}\[\]]")
"""A character that means something else in a pattern of Hadoop, unless it comes after a backslash."""

_ARROW = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "hdfs": "hdfs",
    "viewfs": "viewfs",
    "abfs": "abfs",
    "abfss": "abfss",
}
"""Hadoop's schemes -> pyarrow's."""

_OBJECTS = frozenset({"s3", "s3a", "s3n", "gs", "abfs", "abfss"})
"""The schemes of object stores, which have conditional writes and no renames."""

_REMEDIES = {
    "dbfs": "write it as the folder that it is mounted at: /dbfs/... for dbfs:/...",
    "wasb": "write it as abfss://container@account.dfs.core.windows.net/...",
    "wasbs": "write it as abfss://container@account.dfs.core.windows.net/...",
}
_OTHERWISE = (
    f"use a path, or a URI with one of {', '.join(['file', *_ARROW])}; write ./ before a folder name that has a colon"
)


@dataclass(frozen=True)
class Location:
    """A file or folder: local if the scheme is "file", else in the bucket or on the host that `authority` names."""

    scheme: str
    authority: str
    path: str
    """Absolute, without a trailing slash."""

    @classmethod
    def of(cls, where: object, field: str = "path") -> Location:
        """Return the location of a path or URI; raise ConfigError, naming `field`, if it is not valid.

        >>> str(Location.of("file:/data/../out/")), str(Location.of("s3a://bucket/a b"))
        ('/out', 's3a://bucket/a b')
        """
        text = os.fspath(where) if isinstance(where, (str, os.PathLike)) else ""
        if not text or "\0" in text:
            raise ConfigError(f"{field} must be a path or a URI, got {without_secrets(repr(where))}")
        match = _SCHEME.fullmatch(text)
        if match is None:
            return cls(LOCAL, "", _normal(os.path.abspath(os.path.expanduser(text))))  # noqa: PTH100, PTH111 - texts
        scheme, rest = match[1].lower(), match[2]
        if scheme in _OBJECTS or (scheme in _ARROW and has_secret(text)):
            check_no_secret(text, field)
        authority, path = split.groups() if (split := _AUTHORITY.fullmatch(rest)) else ("", rest)
        shown = without_secrets(text)
        if path and not path.startswith("/"):
            raise ConfigError(f"{field}: {shown!r} has the scheme {scheme!r} and no absolute path; {_OTHERWISE}")
        if scheme == LOCAL and authority:
            raise ConfigError(f"{field}: {shown!r} names a host; write local files as file:///...")
        if scheme in _ARROW and scheme not in {"hdfs", "viewfs"} and not authority:
            raise ConfigError(f"{field}: {shown!r} names no bucket; write {scheme}://bucket/... (a text, not a Path)")
        return cls(scheme, authority, _normal(path))

    def __str__(self) -> str:
        """Return the path if it is local, else a URI; of() returns an equal location for it."""
        return self.path or "/" if self.is_local else self.spark

    @property
    def shown(self) -> str:
        """The text for errors and logs: without a login or a signature, which other file systems take in an address."""
        return without_secrets(str(self))

    @property
    def is_local(self) -> bool:
        return self.scheme == LOCAL

    @property
    def is_object(self) -> bool:
        """Whether it is in an object store."""
        return self.scheme in _OBJECTS

    @property
    def spark(self) -> str:
        """The URI of this location for Spark, independent of Spark's default file system."""
        return f"{self.scheme}://{self.authority}{self.path or '/'}"

    @property
    def spark_pattern(self) -> str:
        """The URI for Spark's readers of files, which take it for a pattern of Hadoop: one that names this place alone."""
        path = _SIGN.sub(r"\\\g<0>", self.path or "/")
        return f"{self.scheme}://{self.authority}{path}"

    def child(self, name: str) -> Location:
        return replace(self, path=f"{self.path}/{name}")

    def resolved(self) -> Location:
        """Return the canonical form of this location: symbolic links are followed; s3a, s3n and s3 become s3."""
        if self.is_local:
            return replace(self, path=os.path.realpath(self.path or "/"))
        return replace(self, scheme=_ARROW.get(self.scheme, self.scheme))

    def is_same(self, other: Location) -> bool:
        """Return whether both are one place: by their names, and for local ones by whether the disk ignores case."""
        one, two = self.resolved(), other.resolved()
        if one.is_local and two.is_local and one.path != two.path:
            return one.path.casefold() == two.path.casefold() and _ignores_case(Path(one.path))
        return _key(one) == _key(two)

    def of_this_machine(self, what: str) -> str:
        """Return the path; raise ConfigError, whose text begins with `what`, if it is not local."""
        if not self.is_local:
            raise ConfigError(f"{what} files of this machine, got {self.shown}")
        return str(self)

    def check_writable(self, field: str = "path") -> None:
        """Raise ConfigError, naming `field`, if pyarrow does not support the file system."""
        if not self.is_local and self.scheme not in _ARROW:
            remedy = _REMEDIES.get(self.scheme, _OTHERWISE)
            raise ConfigError(
                f"{field}: {self.shown} is on the file system {self.scheme!r}, which pyarrow does not support; {remedy}"
            )

    @cached_property
    def files(self) -> tuple[fs.FileSystem, str]:
        """The pyarrow file system and the path in it; ConfigError if the file system cannot be reached."""
        if self.is_local:
            return fs.LocalFileSystem(), self.path or "/"
        self.check_writable()
        try:
            filesystem, path = fs.FileSystem.from_uri(
                f"{_ARROW[self.scheme]}://{self.authority}{quote(self.path, safe='/')}"
            )
        except (OSError, pa.ArrowException) as error:
            raise ConfigError(f"cannot reach {self.shown}: {without_secrets(str(error))}") from error
        return filesystem, path.rstrip("/") or "/"


def _key(place: Location) -> tuple[str, str, str]:
    """Return what is equal for two URIs of one place: abfs and abfss differ by encryption, and hosts have no case."""
    scheme = "abfs" if place.scheme == "abfss" else place.scheme
    return scheme, place.authority.lower().removesuffix(":8020" if scheme == "hdfs" else ""), place.path


def _ignores_case(path: Path) -> bool:
    """Return whether the disk of a path, of which the last names need not exist, takes names in any case for one."""
    for one in (path, *path.parents):
        other = one.with_name(one.name.swapcase()) if one.name else one
        if one.exists() and other != one:
            return other.exists() and other.samefile(one)
    return False


def check_no_secret(text: str, field: str) -> None:
    """Raise ConfigError, which names `field` and not the text, if the address of an object store has a secret, or a port.

    No client takes them from there, and logs, checkpoints and Spark's plans would show them.
    """
    if _COLON.match(text) or has_secret(text):
        raise ConfigError(
            f"{field} has a login, a port or a signature, which Spark's plans and logs would show; give them in the "
            f"environment of the driver and the workers (docs/places.md)"
        )


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a temporary name that replaces `path` on success, so that readers see the whole file or none."""
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        yield draft
        draft.replace(path)
    finally:
        with suppress(OSError):  # keep the original error
            draft.unlink(missing_ok=True)


def _normal(path: str) -> str:
    """Return an absolute path without "//", "." and ".."; the root itself is ""."""
    kept: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del kept[-1:]
        elif name not in {"", "."}:
            kept.append(name)
    return "".join(f"/{name}" for name in kept)
