"""A folder of an object store in the list of inputs: `{"objects": "s3://bucket/folder/"}`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final

from skypane.control.admission import MetaData
from skypane.locations import Location, check_no_secret
from skypane.runtime.compressed.formats import Compression, check_compression, compression_of
from skypane.runtime.row_parser import FORMATS
from skypane.runtime.spark.sources.many.input_kind import plain_meta
from skypane.runtime.stores.object_client import check_installed
from skypane.types import ConfigError, Duration, Length, micros

KEY: Final = "objects"
"""The key of a mapping that chooses this kind."""

_SIGNS: Final = frozenset("*?[")
_ENDINGS: Final = {"csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}
_ENDING: Final = re.compile(rf"\.({'|'.join(_ENDINGS)})(?![a-z0-9])", re.IGNORECASE)
"""The ending of a name that says its format; that of a compressed object may follow."""


@dataclass(frozen=True, slots=True)
class ObjectsInput:
    """A folder of an object store whose objects arrive over time, with the folders in it: one input.

    objects  its URI: s3://bucket/folder/, gs://..., abfss://...; the last part may be a pattern of names: .../*.json.gz
    name     the name in the input column; default: the URI
    format   "csv" or "json" (one object per line); None: by the ending of the pattern
    header   csv: whether the first line of each object names its columns; if not, they are those of the schema, in order
    match    a pattern (*, ?, [..]) of the objects' names in the folder; * also stands for slashes
    compression  "gzip", "zstd", "bz2" or "xz"; "none" for plain objects; None: by the ending of each object's name
    rescan   after how long the whole folder is listed again, to find objects whose names come before those that were read
    meta     what is known of its rate beforehand
    """

    objects: str
    name: str = ""
    format: str | None = None
    header: bool = False
    match: str = "*"
    compression: str | None = None
    rescan: Duration = "10 minutes"
    meta: MetaData = field(default_factory=MetaData)

    kind: ClassVar[str] = KEY
    is_pattern: ClassVar[bool] = False
    unit: ClassVar[str] = "byte"

    def __post_init__(self) -> None:
        check_no_secret(str(self.objects), "objects of an input")
        self._settle_place()
        if self.format is None:
            ending = _ENDING.search(self.match)
            object.__setattr__(self, "format", _ENDINGS[ending[1].lower()] if ending else None)
        if self.format not in FORMATS:
            raise ConfigError(f"format of {self.objects} is unknown; set format to csv or json")
        if (form := self.compression or getattr(self.packed(self.match), "name", None)) is not None:
            check_compression(form, self.objects)
        object.__setattr__(self, "rescan", Length(micros(self.rescan, "rescan")))
        if micros(self.rescan) < 0:
            raise ConfigError(f"rescan of {self.objects} must not be below 0, got {self.rescan!r}")
        check_installed(self.folder, "objects")

    def _settle_place(self) -> None:
        """Separate the folder from the pattern, and use the URI as the name if none is given."""
        text = str(self.objects)
        folder, _, last = text.rpartition("/")
        if _SIGNS & {*last}:
            if self.match != "*":
                raise ConfigError(
                    f"objects {text} has a pattern, and there is match={self.match!r}; leave out one of them"
                )
            object.__setattr__(self, "match", last)
            text = folder
        place = Location.of(text, "objects of an input")
        if not place.is_object:
            raise ConfigError(
                f"objects must be a folder of an object store, such as s3://bucket/folder/, got {place}; path reads files "
                "of this machine"
            )
        if _SIGNS & {*place.path}:
            raise ConfigError(f"objects {text}: only the last part may be a pattern; list each folder as an input")
        if last == place.path.rpartition("/")[2] and _ENDING.search(last):
            raise ConfigError(f"objects {text} names one object; give its folder, {folder}/, and match={last!r}")
        object.__setattr__(self, "objects", f"{place.resolved().spark.rstrip('/')}/")
        if not self.name:
            object.__setattr__(self, "name", self.identity)

    @property
    def folder(self) -> Location:
        return Location.of(self.objects)

    @property
    def identity(self) -> str:
        return self.objects + ("" if self.match == "*" else self.match)

    @property
    def claims(self) -> frozenset[str]:
        return frozenset({self.name, self.identity})

    def packed(self, name: str) -> Compression | None:
        """Return the format of a compressed object."""
        return compression_of(name, self.compression)

    def plain(self) -> dict[str, Any]:
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return values | {"meta": plain_meta(self.meta), "rescan": f"{micros(self.rescan):d} us"}
