"""Compressed files among the inputs: planned and read as a batch's driver and tasks do it, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.compressed.packing import PACK
from tests.runtime.many import read_batches
from tests.runtime.many.read_batches import NOTHING, N, batches, kept, numbers, parts_of, read_in_step, values_of
from tests.runtime.receiving.test_retention import checkpoint

from skypane.runtime.compressed import text_window
from skypane.runtime.compressed.formats import FORMATS
from skypane.runtime.compressed.unpacking import Unpacking
from skypane.runtime.spark.sources.many.discovery import listed, to_text
from skypane.runtime.spark.sources.many.event_times import EventTimes
from skypane.runtime.spark.sources.many.input_lag import lag_of_inputs
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.planning import Planner
from skypane.types import CheckpointError, ConfigError


def append(path: Path, *texts: bytes, form: str = "gzip") -> None:
    with path.open("ab") as file:
        file.write(b"".join(map(PACK[form], texts)))


def planner(*given: object, on_loss: str = "fail", times: EventTimes | None = None) -> Planner:
    """Return the planner of a driver that has just started."""
    text_window._windows.clear()
    return read_batches.planner(*given, on_loss=on_loss, times=times)


def rows(plan: Planner, start: Offsets, end: Offsets) -> list[tuple[str, int | str]]:
    """Return (name of the file, n) of all rows of a batch, as its tasks read them; of malformed ones the error."""
    parts = parts_of(plan, start, end, N)
    return [(Path(part.input.name).name, n) for part, found in parts for n in values_of(found, lambda one: one.error)]


def test_the_format_is_that_of_the_ending_before_and_patterns_find_both(tmp_path: Path):
    append(tmp_path / "a.json.gz", numbers(1, 2))
    append(tmp_path / "b.json.zst", numbers(3), form="zstd")
    append(tmp_path / "c.json.bz2", numbers(4), form="bz2")
    append(tmp_path / "d.json.xz", numbers(5), form="xz")
    (tmp_path / "e.json").write_bytes(numbers(6))
    append(tmp_path / "old.log", numbers(7))
    plan = planner({"path": f"{tmp_path}/*.json*", "format": "json"},
                   {"path": f"{tmp_path}/old.log", "format": "json", "compression": "gzip"})  # fmt: skip
    end = plan.latest(NOTHING, None)
    assert sorted(rows(plan, NOTHING, end)) == [
        ("a.json.gz", 1), ("a.json.gz", 2), ("b.json.zst", 3), ("c.json.bz2", 4), ("d.json.xz", 5), ("e.json", 6),
        ("old.log", 7),
    ]  # fmt: skip
    assert [one.format for one in listed([f"{tmp_path}/x.CSV.GZ", f"{tmp_path}/*.jsonl.zst"])] == ["csv", "json"]
    assert plan.latest(end, None) == end


def test_a_file_whose_ending_is_another_formats_may_be_plain(tmp_path: Path):
    (tmp_path / "a.gz").write_bytes(numbers(1))
    plan = planner({"path": f"{tmp_path}/a.gz", "format": "json", "compression": "none"})
    assert rows(plan, NOTHING, plan.latest(NOTHING, None)) == [("a.gz", 1)]


def test_zstd_without_its_package_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr("skypane.runtime.compressed.formats.find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match=r"a.csv.zst: compression zstd needs the package zstandard.*skypane\[zstd\]"):
        listed(["a.csv.zst"])
    assert listed(["a.csv.gz"])


@pytest.mark.parametrize("form", FORMATS)
@given(data=st.data())
def test_rows_are_read_once_in_order_over_growth_batches_and_restarts(tmp_path_factory, form: str, data):
    """In batches of some rows or of all; each batch is read again by a driver that knows only Spark's log."""
    path = Path(tmp_path_factory.getbasetemp()) / f"grows.json{FORMATS[form].ending}"
    path.unlink(missing_ok=True)
    written, seen, place, held = 0, list[int | str](), NOTHING, b""
    plan = planner(str(path))
    for _ in range(data.draw(st.integers(1, 6))):
        count = data.draw(st.integers(0, 300))
        member = PACK[form](numbers(*range(written, written + count)))
        cut = data.draw(st.integers(0, len(member)))
        written += count
        with path.open("ab") as file:
            file.write(held + member[:cut])
        held = member[cut:]
        for _ in range(data.draw(st.integers(0, 3))):
            if data.draw(st.booleans()):
                plan = planner(str(path))
            end = kept(plan.latest(place, data.draw(st.sampled_from([None, 1, 50, 1000]))))
            found = [n for _, n in rows(plan, place, end)]
            assert [n for _, n in rows(planner(str(path)), place, end)] == found
            seen, place = seen + found, end
    with path.open("ab") as file:
        file.write(held)
    end = plan.latest(place, None)
    assert seen + [n for _, n in rows(plan, place, end)] == list(range(written))
    assert plan.latest(end, 10) == end


def test_a_query_that_stops_when_all_is_read_reads_all_that_is_there(tmp_path: Path):
    append(tmp_path / "a.json.gz", numbers(*range(200_000)))
    for rows_of_batch in (None, 90_000):
        plan = planner(f"{tmp_path}/a.json.gz")
        plan.stop_here(NOTHING)
        assert sum(len(rows(plan, start, end)) for start, end in batches(plan, rows_of_batch)) == 200_000


def test_budgets_are_kept_and_shared(tmp_path: Path):
    append(tmp_path / "a.json.gz", numbers(*range(1000)))
    append(tmp_path / "b.json.gz", numbers(*range(10)))
    plan = planner(f"{tmp_path}/*.json.gz")
    found = rows(plan, NOTHING, plan.latest(NOTHING, 100))
    assert found.count(("b.json.gz", 9)) == 1
    assert 80 <= len(found) <= 100


def test_a_restart_after_all_was_read_unpacks_nothing(tmp_path: Path, monkeypatch):
    for name in "abc":
        append(tmp_path / f"{name}.json.gz", numbers(*range(100)))
    end = planner(f"{tmp_path}/*.json.gz").latest(NOTHING, None)
    monkeypatch.setattr(Unpacking, "piece", lambda *_: pytest.fail("unpacked again"))
    again = planner(f"{tmp_path}/*.json.gz")
    assert again.latest(kept(end), None) == Offsets.of(end.to_json())


def test_the_status_from_outside_begins_at_the_marks(tmp_path: Path, monkeypatch):
    """`skypane inputs` reads the checkpoint: a file that was read completely is left alone, and another is unpacked from its last member on."""
    append(tmp_path / "a.json.gz", numbers(*range(100)))
    append(tmp_path / "b.json.gz", numbers(*range(100)))
    end = planner(f"{tmp_path}/*.json.gz").latest(NOTHING, None)
    append(tmp_path / "b.json.gz", numbers(*range(100, 130)))
    state = checkpoint(tmp_path / "state", 0, end.to_json())
    text_window._windows.clear()
    begun: list[int] = []
    begin = Unpacking.__post_init__

    def recorded(self: Unpacking) -> None:
        begin(self)
        begun.append(self.packed)

    monkeypatch.setattr(Unpacking, "__post_init__", recorded)
    lags = lag_of_inputs(to_text(listed([f"{tmp_path}/*.json.gz"])), state)
    assert {Path(one.input).name: one.lag for one in lags} == {"a.json.gz": 0, "b.json.gz": 30}
    assert set(begun) == {len(PACK["gzip"](numbers(*range(100))))}


def test_a_damaged_member_is_one_malformed_row_with_its_reason_and_the_others_are_read(tmp_path: Path):
    path, first = tmp_path / "a.csv.gz", PACK["gzip"](b"n\n1\n2\n")
    path.write_bytes(first + PACK["gzip"](numbers(*range(5000)))[:-9] + b"\xff" * 9)
    append(path, b"7\n8\n")
    plan = planner({"path": str(path), "header": True})
    end = plan.latest(NOTHING, None)
    found = [n for _, n in rows(plan, NOTHING, end)]
    assert found[:2] == [1, 2]
    assert found[-2:] == [7, 8]
    (wrong,) = [n for n in found if isinstance(n, str) and "member at byte" in n]
    assert wrong.startswith(f"gzip member at byte {len(first)} of")
    assert plan.latest(end, None) == end


def test_lines_whose_header_is_damaged_are_malformed_unless_the_next_line_is_one(tmp_path: Path):
    """A line of values is not taken for the names of columns, by which all rows would be nulls."""
    path = tmp_path / "a.csv.gz"
    path.write_bytes(PACK["gzip"](b"n\n1\n2\n")[1:])
    append(path, b"5\n6\n", b"7\n")
    plan = planner({"path": str(path), "header": True})
    end = plan.latest(NOTHING, None)
    damaged, *others = [n for _, n in rows(plan, NOTHING, end)]
    assert "begin no member of gzip" in str(damaged)
    assert len(others) == 3
    assert all("the line that names the columns is damaged" in str(one) for one in others)
    append(path, b"8\n")
    assert len(rows(plan, end, plan.latest(end, None))) == 1


def test_a_file_of_another_format_is_reported_once_and_does_not_stop_the_others(tmp_path: Path):
    (tmp_path / "a.csv.gz").write_bytes(b"n\n1\n2\n")
    append(tmp_path / "b.csv.gz", b"n\n3\n")
    plan = planner({"path": f"{tmp_path}/*.csv.gz", "header": True})
    end = plan.latest(NOTHING, None)
    wrong, good = sorted(rows(plan, NOTHING, end))
    assert good == ("b.csv.gz", 3)
    assert "begin no member of gzip" in str(wrong[1])
    assert plan.latest(end, None) == end
    append(tmp_path / "a.csv.gz", b"n\n5\n")
    assert rows(plan, end, plan.latest(end, None)) == [("a.csv.gz", 5)]


def test_a_file_that_is_shorter_than_what_was_read_is_lost(tmp_path: Path):
    path = tmp_path / "a.json.gz"
    append(path, numbers(*range(100)))
    plan = planner(str(path))
    end = plan.latest(NOTHING, None)
    path.unlink()
    append(path, numbers(1, 2))
    for one in (plan, planner(str(path))):
        with pytest.raises(CheckpointError, match=r"a.json.gz has 18 bytes, but .* were read: it was cut or replaced"):
            one.latest(end, None)
    again = planner(str(path), on_loss="skip")
    skipped = again.latest(end, None)
    assert (skipped.lost, rows(again, end, skipped)) == (1, [("a.json.gz", 1), ("a.json.gz", 2)])


def test_files_of_unequal_size_stay_together_in_event_time(tmp_path: Path):
    """1:10 rows over the same time: rows of the large one would be late by most of it with equal shares."""
    append(tmp_path / "few.json.gz", numbers(*range(0, 100_000, 50)))
    append(tmp_path / "many.json.gz", numbers(*range(0, 100_000, 5)))
    plan = planner(f"{tmp_path}/*.json.gz", times=EventTimes(N, "n"))
    found, latest = read_in_step(plan, 1000, lambda start, end: [int(n) for _, n in rows(plan, start, end)])
    assert len(found) == 22_000
    assert latest < 5_000


def test_the_text_of_an_entry_without_compression_is_that_of_earlier_versions():
    """It is a part of a job's summary, which must not change when the job is resumed by a newer version."""
    (entry,) = json.loads(to_text(listed(["/in/a.csv"])))
    assert list(entry) == ["path", "name", "format", "header", "meta", "exact"]
