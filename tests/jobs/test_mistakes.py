"""Drawn mistakes in job files and in receivers' lists: each is one sentence that names the field, the value and what to do."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
import yaml

from skypane.addresses import HIDDEN
from skypane.jobs import examples, parse
from skypane.runtime.receiving.input_list import ReceivedInputs
from skypane.types import ConfigError

Tree = Any
Path_ = tuple[str | int, ...]

RICH: Final = """
name: offers
source:
  format: skypane-many
  schema: ts timestamp, city string, price double, rating double
  inputs: {given: [{path: offers/*.csv, format: csv, header: true}], sizing: {max_readers: 4, latency: 5 seconds}, align: true}
queries:
  best: {query: {kind: skyline, preference: "price MIN, rating MAX", by: city}}
  three: {query: {kind: top_k, k: 3, score: "rating - price / 100", largest: false}, window: {length: 2 hours, slide: 1 hour}}
  sums: {query: {kind: aggregate, by: city, functions: {n: count(), mean: avg(price)}, having: n > 1, top: 5, rank_by: mean}}
window: {time: ts, length: 1 hour, slide: 10 minutes, offset: 1 minute}
progress: {policy: aqkslack, max_drop: 0.01, max_slack: 1 hour}
workers: {plq_workers: 2, wlq_workers: 2, elastic: {policy: fuzzy, max_workers: 8, dry_run: true}}
amend: {within: 1 day, changes: true, max_bytes: 1000000}
output: {format: json, path: out, roll: 5 minutes}
late: {path: late}
checkpoint: cp
trigger: 10 seconds
"""
RECEIVED: Final = """
folder: received
segment_bytes: 1048576
inputs:
  - {name: shop, listen: "localhost:7001"}
  - {name: prices, http: "https://prices.example/now", format: lines, every: 10 seconds, header: false}
  - {name: broker, mqtt: "mqtt://broker.example", topic: "sensors/+/temperature"}
"""
_WRONG: Final[dict[type, tuple[Any, ...]]] = {
    bool: ("maybe", 2, [True], {"a": 1}), int: (-1, "many", 1.5, [1], {"a": 1}, None), float: ("much", -1.0, [0.1], float("nan")),
    str: (5, 1.5, True, [1], {"a": 1}, "", "no such thing"), list: (7, "x", {"a": 1}), dict: (7, "x", [1], []),
}  # fmt: skip
_FREE: Final = ("functions", "derive", "options", "conf", "shade", "queries", "given", "spark")
"""Mappings whose keys users choose, or whose values other programs read."""


def places(tree: Tree, at: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of each value."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*at, key)
        if key not in _FREE:
            yield from places(value, (*at, key))


def mistaken(random: Random, sound: Tree) -> tuple[Tree, Path_, str]:
    """Return a tree with a mistake, where it is, and how the value there shows itself, "" if it is the name that is wrong."""
    tree = copy.deepcopy(sound)
    at = random.choice([*places(tree)])
    inner = tree
    for key in at[:-1]:
        inner = inner[key]
    name: Any = at[-1]
    value = inner[name]
    kind = random.choice(("value", "value", "name")) if isinstance(name, str) and at[-2:-1] != ("queries",) else "value"
    if kind == "name":
        cut = random.randrange(len(name))
        inner[name[:cut] + random.choice("xq_") + name[cut + 1 :]] = inner.pop(name)
        return tree, at[:-1], ""
    inner[name] = random.choice(_WRONG[type(value)])
    return tree, at, repr(inner[name])


def complaints(read: Callable[[], object]) -> list[str]:
    """Return the lines of the error; none if what is read is sound."""
    try:
        read()
    except ConfigError as error:
        return str(error).splitlines()
    return []


def lacking(line: str, at: Path_, value: str) -> str | None:
    """Return what a complaint lacks; None if nothing."""
    named = [str(part) for part in at if isinstance(part, str)]
    if named and not any(part in line for part in named[-2:]):
        return f"the field {'.'.join(named)}"
    if value and value.strip("'") not in line and HIDDEN not in line and "missing" not in line:
        return f"the value {value}"
    if len(line) > 600:
        return "an end"
    jargon = re.search(r"Traceback|pydantic|Field required|valid dictionary|NoneType|__|object at 0x|\btype=", line)
    return None if jargon is None else f"plain words for {jargon[0]}"


def sound_job(name: str) -> Tree:
    return yaml.safe_load(RICH if name == "rich" else examples.text(name))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("name", ["rich", *examples.names()])
def test_a_mistake_in_a_job_file_is_named_with_its_place_and_value(name: str, seed: int):
    tree, at, value = mistaken(Random(f"{name} {seed}"), sound_job(name))
    for line in complaints(lambda: parse(yaml.safe_dump(tree), "job.yaml")):
        assert line.startswith("job.yaml: ")
        assert (problem := lacking(line, at, value)) is None, f"{line!r} lacks {problem}"


@pytest.mark.parametrize("seed", range(60))
def test_a_mistake_in_a_list_of_receivers_is_named_with_its_place_and_value(seed: int, tmp_path: Path):
    sound = yaml.safe_load(RECEIVED) | {"folder": str(tmp_path)}
    tree, at, value = mistaken(Random(seed), sound)
    lines = complaints(lambda: ReceivedInputs.of(tree))
    assert len(lines) <= 1
    for line in lines:
        assert (problem := lacking(line, at, value)) is None, f"{line!r} lacks {problem}"


def test_what_is_drawn_from_is_sound(tmp_path: Path):
    for name in ("rich", *examples.names()):
        parse(yaml.safe_dump(sound_job(name)))
    ReceivedInputs.of(yaml.safe_load(RECEIVED) | {"folder": str(tmp_path)})
