"""`skypane init`: write a first job file, from a sample of the rows or the answers to a few questions."""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skypane.cli.output import say
from skypane.naming import instead, printable
from skypane.types import ConfigError, SkypaneError, micros

if TYPE_CHECKING:
    from skypane.jobs.first_job import FirstJob
    from skypane.jobs.sample_file import SampleFile
    from skypane.preference import Preference

_FORMATS = ("csv", "json", "parquet")
_NAME = "event_time"
"""Column that is derived, if the event time is not a timestamp."""


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser(
        "init", help="write a first job file, with comments, from a sample file or a few questions"
    )
    parser.add_argument(
        "sample",
        nargs="?",
        type=Path,
        metavar="SAMPLE",
        help="a CSV, JSON lines or parquet file of rows, or a folder of such files",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="the job file; by default NAME.yaml")
    parser.add_argument("--name", help="name of the job; by default that of the sample, of a folder NAME-job")
    parser.add_argument("--time", metavar="COLUMN", help="column of the event time")
    parser.add_argument(
        "--prefer", metavar="TEXT", help='which values are better, "price MIN, rating MAX"; "" counts rows'
    )
    parser.add_argument("--by", metavar="COLUMNS", help='one answer for each value of these columns, "city, shop"')
    parser.add_argument("--window", metavar="LENGTH", help='length of a window, "1 hour"')
    parser.add_argument("--no-check", action="store_true", help="do not start Spark to read the rows by the job file")
    return parser


def run(arguments: Namespace) -> int:
    """Write the file; ask on a terminal for what the arguments leave open, and use what the sample suggests elsewhere."""
    from skypane.jobs.sample_file import read_sample  # noqa: PLC0415 - Arrow takes half a second to import

    sample = None if arguments.sample is None else read_sample(arguments.sample)
    job = _job(arguments, sample)
    out: Path = arguments.out or Path(f"{job.name}.yaml")
    text = job.text(str(out))
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{out} exists already; name another file with --out") from None
    except OSError as error:
        raise ConfigError(f"cannot write {out}: {error.strerror or error}") from error
    for remark in () if sample is None else sample.remarks:
        say(f"note: {remark}")
    command = f"skypane run {shlex.quote(str(out))}"
    say(f"wrote {out}; check it with: {command} --dry-run")
    if not arguments.no_check:
        say(_checked(out))
    say(f"then answer the windows of the files that are there: {command} --drain")
    return 0


def _checked(out: Path) -> str:
    """Return how the job of a file reads the rows that are there, in a sentence."""
    from skypane.cli.command_console import CommandConsole  # noqa: PLC0415 - as below
    from skypane.jobs.first_rows import first_rows  # noqa: PLC0415
    from skypane.jobs.reading import read  # noqa: PLC0415
    from skypane.reporting import live  # noqa: PLC0415

    try:
        with live.starting(CommandConsole()) as step:
            step("reading the rows with Spark")
            return str(first_rows(read(out)))
    except SkypaneError as error:
        return f"note: the rows were not read by it: {error}"


def _job(arguments: Namespace, sample: SampleFile | None) -> FirstJob:
    """Return the job that the arguments, the sample and the answers describe."""
    from skypane.jobs.first_job import FirstJob, length_for  # noqa: PLC0415
    from skypane.jobs.sample_file import sql_name  # noqa: PLC0415
    from skypane.preference import Preference  # noqa: PLC0415

    if sample is None:
        format_, path, schema = _source()
        times, columns, names = None, None, []
    else:
        format_, path, schema = sample.format, sample.pattern, sample.schema
        times, columns, names = sample.instants, sample.rows.column_names, sample.numbers[:1]
        if not times:
            raise ConfigError(
                f"{arguments.sample} has no column that can be the event time: a timestamp, a date, a text in ISO 8601, or "
                f"seconds, milliseconds or microseconds since 1970; for texts of another form, begin with `skypane init` "
                f"without a sample, and name the form in the source of the job file: options: {{timestampFormat: dd.MM.yyyy HH:mm}}"
            )

    time = _asked("--time", "column of the event time", arguments.time, _first(times), _among(times, "of a time"))
    preference = _asked(
        "--prefer",
        'which values are better, such as "price MIN, rating MAX" (- to count rows)',
        arguments.prefer,
        ", ".join(f"{sql_name(name)} MIN" for name in names) or "-",
        lambda text: None if text in {"", "-"} else _among(columns, "of the sample")(*_named(Preference.of(text))),
    )
    by = _asked("--by", "one answer for each value of (- for one answer)", arguments.by, "-",
                lambda text: _among(columns, "of the sample")(*_split(text)))  # fmt: skip
    span = None if sample is None else sample.seconds(time)
    length = _asked("--window", "length of a window", arguments.window, length_for(span), _positive)
    instant = None if times is None or times[time] == sql_name(time) else times[time]
    name = arguments.name or _name_of(arguments.sample)
    return FirstJob(
        name=name,
        format=format_,
        path=path,
        schema=schema,
        options=sample.options if sample is not None else {"header": True} if format_ == "csv" else {},
        time=time if instant is None else _NAME,
        instant=instant,
        preference="" if preference == "-" else preference,
        by=_split(by),
        length=length,
    )


def _name_of(sample: Path | None) -> str:
    """Return the name of a job over a sample; its answers are in a folder of that name, which is not the folder of the rows."""
    if sample is None:
        return "first-job"
    return f"{sample.resolve().name}-job" if sample.is_dir() else sample.stem


def _source() -> tuple[str, str, str | None]:
    """Ask for the format, the folder and the schema of the rows, for which there is no sample."""
    format_ = _asked("SAMPLE", "format of the files: csv, json or parquet", None, None, _format)
    path = _asked("SAMPLE", "folder or pattern of the files", None, None, _given)
    question = 'columns, such as "ts timestamp, city string, price double"'
    return format_, path, None if format_ == "parquet" else _asked("SAMPLE", question, None, None, _given)


def _asked(option: str, question: str, given: str | None, default: str | None, check: Callable[[str], object]) -> str:
    """Return the argument, or on a terminal the first answer that is right, or else the default."""
    if given is not None or not sys.stdin.isatty():
        answer = given if given is not None else default
        if answer is None:
            raise ConfigError(f"{option} is missing: {question}")
        try:
            check(answer)
        except ConfigError as error:
            raise ConfigError(f"{option}: {error}") from None
        return answer
    while True:
        try:
            answer = (
                input(printable(f"{question}{'' if default is None else f' [{default}]'}: ")).strip() or default or ""
            )
        except EOFError:
            raise ConfigError("the questions were not answered; nothing was written") from None
        try:
            check(answer)
        except ConfigError as error:
            say(error)
        else:
            return answer


def _first(names: Sequence[str] | dict[str, str] | None) -> str | None:
    return next(iter(names or ()), None)


def _among(known: Sequence[str] | dict[str, str] | None, what: str) -> Callable[..., None]:
    """Return a check that names are among those that are known, if any are."""

    def check(*names: str) -> None:
        for name in names:
            _given(name)
            if known is not None and name not in known:
                raise ConfigError(f"{name!r} is not a column {what}; {instead(name, list(known))}")

    return check


def _named(preference: Preference) -> list[str]:
    """Return the columns of a preference that are named; expressions are for Spark to read."""
    from skypane.preference.written import Written  # noqa: PLC0415

    return [column for column in preference.columns if not isinstance(column, Written)]


def _given(text: str) -> None:
    if not text:
        raise ConfigError("an answer is needed")


def _format(text: str) -> None:
    if text not in _FORMATS:
        raise ConfigError(f"the format cannot be {text!r}; {instead(text, _FORMATS)}")


def _positive(text: str) -> None:
    if micros(text) <= 0:
        raise ConfigError(f"a window must be longer than 0, got {text!r}")


def _split(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip() not in {"", "-"})
