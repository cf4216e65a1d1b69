"""README's program and Spark's alone have the same parts, in the same order, and what a part takes adds up."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from measure.bench import first_minute
from measure.bench.first_minute import AGAIN, FIRST, SPARK, WARMED, WAYS, lines
from measure.first_minute.parts import FIRST_ANSWER, PARTS, ends, part_of, program_of, spans
from measure.results.record import Times

ROOT = Path(__file__).parents[3]
README = program_of((ROOT / "README.md").read_text(encoding="utf-8"))
PLAIN = (ROOT / "measure" / "first_minute" / "plain_spark.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("program", [README, PLAIN], ids=["README", "Spark alone"])
def test_a_program_has_all_parts_in_order(program: str):
    parts = [part_of(ast.get_source_segment(program, one) or "") for one in ast.parse(program).body]
    assert list(dict.fromkeys(parts)) == list(PARTS)
    assert parts == sorted(parts, key=list(PARTS).index)


def test_a_statement_of_no_part_is_named():
    with pytest.raises(ValueError, match=r"'other = 1'"):
        part_of("other = 1\nmore")


def test_parts_add_up_to_the_end():
    ended = ends(
        [("import a", 1.0, 0.5), ("from b import c", 2.0, 1.5), ("spark = c()", 5.0, 4.5), ("handle = 1", 6.0, 5.0)]
    )
    assert ended == {
        "Python and imports": Times(2.0, 1.5),
        "session, with Java's start": Times(5.0, 4.5),
        "start of the stream": Times(6.0, 5.0),
    }
    assert [(one.wall, one.cpu) for one in spans(ended).values()] == [(2.0, 1.5), (3.0, 3.0), (1.0, 0.5)]


def test_the_table_has_medians_of_the_rounds_and_the_goals():
    def one_round(factor: float) -> first_minute.Round:
        return {way: {part: Times(factor * at, factor) for at, part in enumerate(PARTS, 1)} for way in WAYS}

    found = {line[0]: line[1:] for line in lines([one_round(factor) for factor in (1.0, 2.0, 9.0)])}
    assert list(found)[: len(PARTS)] == list(PARTS)
    assert found["Python and imports"] == ["2.0 (2.0)"] * len(WAYS)
    assert found[FIRST_ANSWER] == ["2.0 (0.0)"] * len(WAYS)
    assert found["**until the answers of the stream**"] == ["12.0 (2.0)"] * len(WAYS)
    assert dict(zip(WAYS, found["goal"], strict=True)) == {SPARK: "-", FIRST: "40", AGAIN: "15", WARMED: "15"}


@pytest.mark.long
def test_a_program_runs_statement_by_statement(tmp_path: Path):
    """Its own error ends it, and the times never go back."""
    program, file = tmp_path / "program.py", tmp_path / "steps.json"
    program.write_text("import sys\nassert __name__ == '__main__'\nprint(\n    'done')\n")
    command = [sys.executable, "-P", str(ROOT / "measure" / "first_minute" / "stepwise.py"), str(program), str(file)]
    done = subprocess.run([*command, str(time.monotonic())], capture_output=True, text=True, check=True)
    steps = json.loads(file.read_text(encoding="utf-8"))
    assert done.stdout == "done\n"
    assert [text for text, _, _ in steps] == ["import sys", "assert __name__ == '__main__'", "print(\n    'done')"]
    assert all(before <= after for (_, *before), (_, *after) in pairwise(steps))
