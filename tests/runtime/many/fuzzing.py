"""Hostile bytes against all that reads them, in processes that may die: python -m tests.runtime.many.fuzzing MINUTES [SEED].

A case is a pure function of its seed and number. What it checks is a definition: each line is a row, malformed, or empty,
as it is when it stands alone. A case that fails, ends its process or takes too long is reported, to be seen again with
`python -m tests.runtime.many.fuzzing --case SEED NUMBER`.
"""

from __future__ import annotations

import json
import queue
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.checkout import ROOT
from tests.runtime.compressed.packing import PACK
from tests.runtime.many.hostile import flipped, mutated

from skypane.runtime.line_rows import parse
from skypane.runtime.receiving.log import SegmentLog
from skypane.runtime.receiving.message_lines import line_of, lines_of, values_of
from skypane.runtime.row_parser import Malformed, RowFormat
from skypane.runtime.spark.sources.many import growing_inputs, parquet, receiver_logs
from skypane.runtime.spark.sources.many.growing_inputs import FileInput
from skypane.runtime.spark.sources.many.input_kind import OffsetRange
from skypane.runtime.spark.sources.many.message_rows import tables
from skypane.runtime.spark.sources.many.parquet import ParquetInput
from skypane.runtime.spark.sources.many.receiver_logs import SegmentsInput
from skypane.types import SkypaneError

PATIENCE = 180.0
"""Seconds that a case may take: thousands of lines, each parsed alone, take ten on a machine that does much else."""

_PLAIN = [("n", pa.int64()), ("p", pa.float64()), ("t", pa.timestamp("us", "UTC")), ("s", pa.string())]
_MORE = [("o", pa.struct([("a", pa.int64())])), ("l", pa.list_(pa.int64())), ("b", pa.bool_()), ("d", pa.date32()),
         ("i", pa.int8()), ("f", pa.float32()), ("y", pa.binary()), ("u", pa.timestamp("us"))]  # fmt: skip
_TEXTS = pa.schema([("n", pa.int64()), ("s", pa.string())])
_SCHEMAS = {
    "json": (pa.schema(_PLAIN), pa.schema(_PLAIN + _MORE), pa.schema([pa.field("n", pa.int64(), nullable=False)])),
    "csv": (pa.schema(_PLAIN), pa.schema([("n", pa.string())]), pa.schema([*_PLAIN, ("d", pa.date32())])),
}


def _layout(chance: random.Random) -> RowFormat:
    form = chance.choice(("json", "json", "csv"))
    columns = chance.choice(_SCHEMAS[form])
    return RowFormat(form, columns, tuple(columns.names) if form == "csv" else ())


def _contents(found: Iterator[pa.Table | Malformed]) -> tuple[list[str], list[int]]:
    """Return rows as text, in order, and the places of what is none."""
    rows, bad = [], []
    for one in found:
        if isinstance(one, Malformed):
            bad.append(one.offset)
        else:
            one.validate(full=True)
            rows += [repr([column[at] for column in one.itercolumns()]) for at in range(len(one))]
    return rows, sorted(bad)


def lines_alone(chance: random.Random) -> None:
    """A block of lines is what its lines are."""
    layout = _layout(chance)
    block = b"\n".join(mutated(layout.format, chance) for _ in range(chance.choice((1, 1, 2, 4))))
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    at, rows, bad = 5, list[str](), list[int]()
    for line in lines:
        found = _contents(parse(layout, line + b"\n", at))
        rows, bad, at = rows + found[0], bad + found[1], at + len(line) + 1
        assert len(found[0]) + len(found[1]) == (not _is_empty(layout, line)), f"{line!r} is {found}"
        if found[0] and layout.format == "json":
            _check_object(line, layout)
    assert _contents(parse(layout, block, 5)) == (rows, bad)


def _is_empty(layout: RowFormat, line: bytes) -> bool:
    if layout.format == "json":
        return not line.strip(b" \t\r")
    return not line.removesuffix(b"\r").replace(b"\xef\xbb\xbf", b"")


def _check_object(line: bytes, layout: RowFormat) -> None:
    """A row of JSON is an object to another parser too, unless that refuses more than ours: then it is too deep."""
    try:
        text = line.decode(errors="replace").lstrip("\ufeff")
        value = json.loads(_NUMBERS.sub(_as_python_spells, text), strict=False)  # with control characters in texts
    except RecursionError:
        return
    assert isinstance(value, dict), line
    ((row,),) = [one.to_pylist() for one in parse(layout, line + b"\n", 0)]  # type: ignore[union-attr]
    assert row["n"] == value.get("n"), line


_NUMBERS = re.compile("-NaN|Inf(?!inity)")
"""Not JSON, but a number to Arrow's parser beside those that Python's takes too: NaN, Infinity and -Infinity."""


def _as_python_spells(number: re.Match[str]) -> str:
    return "NaN" if number[0] == "-NaN" else "Infinity"


def messages_alone(chance: random.Random) -> None:
    """Messages are what each of them is."""
    layout = _layout(chance)
    values = [mutated(layout.format, chance).strip(b"\n") for _ in range(chance.choice((1, 2, 5)))]
    values += [line for value in values for line in value.split(b"\n")]
    places = [3 * at for at in range(len(values))]
    alone = [_contents(tables(layout, [value], [at])) for value, at in zip(values, places, strict=True)]
    assert all(len(rows) + len(bad) == 1 for rows, bad in alone)
    expected = [row for rows, _ in alone for row in rows], [at for _, bad in alone for at in bad]
    assert _contents(tables(layout, values, places)) == expected


def grown_file(chance: random.Random) -> None:
    """A file with a header is rows and malformed lines, as many as it has lines that are not empty."""
    layout = _layout(chance)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a")
        content = mutated(layout.format, chance) + b"\n"
        path.write_bytes(content)
        one = FileInput(path=str(path), format=layout.format, header=layout.format == "csv" and chance.random() < 0.7)
        (found,) = growing_inputs.look([one], {})
        end = one.complete(0, found.last)
        rows, bad = _contents(one for _, one in growing_inputs.read([OffsetRange(one, 0, end)], layout.columns))
    lines = content.split(b"\n")[one.header :]
    assert len(rows) + len(bad) == sum(not _is_empty(layout, line) for line in lines), content


def damaged_members(chance: random.Random) -> None:
    """A damaged compressed file ends no process, and the undamaged members before the damage are rows."""
    columns = pa.schema([("n", pa.int64())])
    form = chance.choice(tuple(PACK))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.json")
        lines = [b'{"n":%d}\n' % n for n in range(chance.randrange(1, 400))]
        good = PACK[form](b"".join(lines))
        more = PACK[form](mutated("json", chance) * chance.choice((1, 1, 20)))
        path.write_bytes(good + flipped(more, chance) + chance.choice((b"", good)))
        one = FileInput(path=str(path), compression=form)
        (found,) = growing_inputs.look([one], {})
        end = found.input.complete(0, found.last)
        rows, _ = _contents(one for _, one in growing_inputs.read([OffsetRange(found.input, 0, end)], columns))
    assert rows[: len(lines)] == [repr([pa.chunked_array([[n]])[0]]) for n in range(len(lines))]


def damaged_log(chance: random.Random) -> None:
    """A damaged log is read as it was, or refused."""
    with tempfile.TemporaryDirectory() as folder:
        with SegmentLog(Path(folder), chance.choice((300, 1 << 20))) as log:
            for n in range(chance.randrange(1, 9)):
                block = [b'{"n":%d,"s":"%s"}\n' % (n, b"x" * (n + k)) for k in range(chance.randrange(1, 5))]
                log.append(b"".join(block))
        one = SegmentsInput(segments=folder, name="x")
        (found,) = receiver_logs.look([one], {})
        whole = OffsetRange(one, found.first, found.last)
        good = _contents(rows for _, rows in receiver_logs.read([whole], _TEXTS))
        path = chance.choice(sorted(path for path in Path(folder).iterdir() if path.suffix in {".segment", ".sums"}))
        path.write_bytes(flipped(path.read_bytes(), chance))
        try:
            now = _contents(rows for _, rows in receiver_logs.read([whole], _TEXTS))
        except SkypaneError:
            return
        assert now == good


def damaged_parquet(chance: random.Random) -> None:
    """A damaged parquet file is not there yet, or read, or refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.parquet")
        rows = chance.randrange(1, 40)
        table = pa.table({"n": range(rows), "s": [chance.choice(("a", "bcd", None)) for _ in range(rows)]})
        group, compression = chance.choice((3, 100)), chance.choice(("snappy", "none"))
        pq.write_table(table, path, row_group_size=group, compression=compression)
        path.write_bytes(flipped(path.read_bytes(), chance))
        try:
            for found in parquet.look([ParquetInput(parquet=str(path))], {}):
                for _, part in parquet.read([OffsetRange(found.input, 0, found.last)], _TEXTS):
                    assert isinstance(part, Malformed) or len(part) <= found.last
        except SkypaneError:
            return


def received(chance: random.Random) -> None:
    """What receivers make of an answer or a message are whole lines, and nothing of a list is lost."""
    text = mutated("http", chance)
    assert line_of(text).count(b"\n") == bool(text.translate(None, b"\r\n").strip())
    found = values_of(text)
    assert found == b"" or found.endswith(b"\n")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    wanted = value if isinstance(value, list) else [value]
    if b"\x0b" not in text and found != lines_of(text):
        assert [json.loads(line) for line in found.splitlines()] == wanted or "NaN" in repr(wanted).replace(
            "nan", "NaN"
        )


CASES: tuple[Callable[[random.Random], None], ...] = (
    lines_alone, lines_alone, messages_alone, grown_file, damaged_members, damaged_log, damaged_parquet, received,
)  # fmt: skip


def case(seed: int, number: int) -> None:
    """Try one case; what it raises is what is wrong."""
    CASES[number % len(CASES)](random.Random(f"{seed} {number}"))


def child(seed: int, first: int) -> None:
    """Try cases from `first` on until killed, telling each before it is tried."""
    number = first
    while True:
        print(number, flush=True)
        case(seed, number)
        number += 1


def fuzz(seed: int, enough: Callable[[int], bool], patience: float = PATIENCE) -> tuple[int, list[str]]:
    """Try cases until a number is enough; return how many, and what was wrong with some."""
    number, wrong = 0, []
    while not enough(number):
        number, error = _tried(seed, number, enough, patience)
        if error:
            wrong.append(f"case {seed} {number}: {error}")
        number += 1
    return number, wrong


def _tried(seed: int, first: int, enough: Callable[[int], bool], patience: float) -> tuple[int, str]:
    """Run a child until something is wrong or it is enough; return the last case, and what was wrong with it."""
    command = [sys.executable, "-m", "tests.runtime.many.fuzzing", "--child", str(seed), str(first)]
    shown_lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        reader = threading.Thread(target=_forward_lines, args=(process, shown_lines))
        reader.start()
        try:
            return _watched(process, shown_lines, first, enough, patience)
        finally:
            process.kill()
            reader.join()


def _watched(
    process: subprocess.Popen[str],
    shown_lines: queue.SimpleQueue[str],
    number: int,
    enough: Callable[[int], bool],
    patience: float,
) -> tuple[int, str]:
    while True:
        try:
            line = shown_lines.get(timeout=patience)
        except queue.Empty:
            return number, f"takes longer than {patience:g} s"
        if not line:
            assert process.stderr is not None
            output = process.stderr.read().strip().splitlines()[-1:]
            return number, f"ends its process: {process.wait()} {output}"
        number = int(line)
        if enough(number):
            return number, ""


def _forward_lines(process: subprocess.Popen[str], shown_lines: queue.SimpleQueue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        shown_lines.put(line)
    shown_lines.put("")


def main(arguments: list[str]) -> int:
    if arguments[:1] in (["--child"], ["--case"]):
        (child if arguments[0] == "--child" else case)(int(arguments[1]), int(arguments[2]))
        return 0
    seed = int(arguments[1]) if len(arguments) > 1 else time.time_ns()
    end = time.monotonic() + 60 * float(arguments[0])
    count, wrong = fuzz(seed, lambda _: time.monotonic() > end)
    print(f"{count:,} cases of seed {seed}, {len(wrong)} wrong", *wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
