"""The text of a first job file, with comments, from the answers to a few questions."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import yaml

from skypane.jobs.reading import parse
from skypane.types import micros

_LENGTHS: Final = ("7 days", "1 day", "1 hour", "10 minutes", "1 minute", "10 seconds", "1 second")
_TENTH: Final = 10


def length_for(seconds: float | None) -> str:
    """Return the longest usual window of which ten fit into this time; an hour if it is not known.

    >>> length_for(3_000), length_for(None)
    ('1 minute', '1 hour')
    """
    if seconds is None:
        return "1 hour"
    return next((length for length in _LENGTHS if micros(length) * _TENTH <= seconds * 1_000_000), _LENGTHS[-1])


@dataclass(frozen=True, kw_only=True)
class FirstJob:
    """The parts of a first job.

    schema      DDL; None for files that state it themselves
    instant     SQL expression of a timestamp, if the column `time` is to be derived from another one
    preference  which values are better; "" counts the rows instead
    by          columns; one answer for each of their values
    """

    name: str
    format: str
    path: str
    schema: str | None
    options: Mapping[str, str | bool] = field(default_factory=dict)
    time: str
    instant: str | None = None
    preference: str
    by: tuple[str, ...] = ()
    length: str

    def text(self, file: str) -> str:
        """Return the text of the job file, which is to be stored as `file`; raise ConfigError if it is not one."""
        text = "\n".join(self._lines(file)) + "\n"
        parse(text, self.name)
        return text

    def _lines(self, file: str) -> Iterator[str]:
        command = f"skypane run {shlex.quote(file)}"
        yield f"# Check it with  {command} --dry-run"
        yield f"# Run it with    {command} --drain   which also answers the last windows; leave --drain out if more files will come:"
        yield "# the same command continues with the new ones. `skypane run --schema` prints the schema with which editors check this file."
        yield ""
        yield f"name: {_plain(self.name)}"
        yield "mode: stream                  # batch: answer from the rows that exist now, and end"
        yield ""
        yield from self._source()
        yield ""
        yield from self._query()
        yield ""
        yield "window:"
        yield f"  time: {_plain(self.time)}"
        yield f"  length: {self.length}"
        yield "  # slide: ...                # time from one window to the next, if windows overlap"
        yield ""
        yield "progress:                     # how long a window waits for rows that come late"
        yield "  policy: aqkslack"
        yield "  max_drop: 0.01              # as long as it takes to drop at most 1 % of the rows"
        yield ""
        yield "output:"
        yield f"  path: {_plain(f'{self.name}/answers')}"
        yield ""
        yield "late:                         # rows that come too late or cannot be used, each with its reason"
        yield f"  path: {_plain(f'{self.name}/late')}"
        yield ""
        yield f"checkpoint: {_plain(f'{self.name}/checkpoint')}"
        yield "trigger: available now        # end when all files have been read; without this line the job runs until Ctrl-C"

    def _source(self) -> Iterator[str]:
        yield "source:"
        yield f"  format: {self.format}"
        yield f"  path: {_plain(self.path)}"
        if self.schema is not None:
            yield "  # Types that fit the first rows; a value of another type is null, and its row may be rejected."
            yield f"  schema: {_plain(self.schema)}"
        if self.options:
            yield f"  options: {yaml.safe_dump(dict(self.options), default_flow_style=True).strip()}"
        yield "  # max_files_per_trigger: 1  # to read many files in smaller batches"
        if self.instant is not None:
            yield ""
            yield "derive:"
            yield f"  {_plain(self.time)}: {_plain(self.instant)}"

    def _query(self) -> Iterator[str]:
        yield "query:"
        if self.preference:
            yield "  kind: skyline               # the rows that no other row beats in all criteria; see also top_k, aggregate"
            yield f"  preference: {_plain(self.preference)}"
        else:
            yield "  kind: aggregate             # see also skyline, top_k"
            yield "  functions:"
            yield "    row_count: count()        # others: sum(column), avg(column), max(column), count_distinct(column), ..."
        if self.by:
            yield f"  by: [{', '.join(map(_plain, self.by))}]"
        else:
            yield "  # by: ...                   # one answer for each value of this column"


def _plain(text: str) -> str:
    """Return a text as a YAML value of one line, in quotes only if it needs them."""
    return yaml.safe_dump([text], default_flow_style=True, width=1 << 30, allow_unicode=True).strip()[1:-1]
