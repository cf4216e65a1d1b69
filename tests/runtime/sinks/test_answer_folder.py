"""A folder of answers appears at once: whatever ends a run, and whichever runs begin beside it, readers see one run's files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.interleaving import Interleaving

from skypane.runtime.spark.answer_folder import AnswerFolder, IfExists, place_of
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.sinks.folder_owner import OWNER
from skypane.types import ConfigError, SkypaneError

SCHEMA = pa.schema([("run", pa.int64()), ("file", pa.int64())])


def begun(out: Path, if_exists: IfExists = "error") -> AnswerFolder:
    folder = AnswerFolder.at(place_of(out), if_exists)
    folder.begin()
    return folder


def wrote(folder: AnswerFolder, run: int, count: int = 2) -> list[str]:
    names = [f"{run}-{number}.parquet" for number in range(count)]
    for number, name in enumerate(names):
        folder.written.write_parquet(name, SCHEMA, [pa.table({"run": [run], "file": [number]}, SCHEMA)])
    return names


def answered(out: Path, run: int, if_exists: IfExists = "error", count: int = 2) -> None:
    """Run as a batch query does."""
    folder = begun(out, if_exists)
    try:
        folder.publish(wrote(folder, run, count))
    except BaseException:
        folder.abandon()
        raise


def seen(out: Path) -> list[tuple[int, int]] | None:
    """Return what a reader finds: the run and the number of each file, in the order of their names; None without a folder."""
    if not out.exists():
        return None
    tables = [pq.read_table(file) for file in sorted(out.iterdir()) if not file.name.startswith((".", "_"))]
    return [(row["run"], row["file"]) for table in tables for row in table.to_pylist()]


def files_of(run: int, count: int = 2) -> list[tuple[int, int]]:
    return [(run, number) for number in range(count)]


def test_a_folder_has_the_files_that_count_in_their_order_and_nothing_is_left_beside_it(tmp_path: Path):
    out = tmp_path / "to" / "answers"
    folder = begun(out)
    names = wrote(folder, 1, 3)
    wrote(folder, 2, 1)  # of an attempt that does not count
    assert seen(out) is None
    folder.publish([names[2], names[0]])
    assert seen(out) == [(1, 2), (1, 0)]
    assert [entry.name for entry in out.parent.iterdir()] == ["answers"]
    assert sorted(entry.name for entry in out.iterdir()) == ["part-00000.parquet", "part-00001.parquet"]


def test_an_empty_folder_and_one_behind_a_link_receive_answers(tmp_path: Path):
    (tmp_path / "disk" / "answers").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "answers")
    answered(tmp_path / "link", 1)
    assert (tmp_path / "link").is_symlink()
    assert seen(tmp_path / "disk" / "answers") == seen(tmp_path / "link") == files_of(1)


def a_file_instead(out: Path) -> None:
    rmtree(out)
    out.write_text("mine")


@pytest.mark.parametrize(
    ("changed", "if_exists", "problem"),
    [
        (lambda _: None, "error", "has files already: name another folder, or replace them with if_exists='overwrite'"),
        (a_file_instead, "error", "is a file"),
        (a_file_instead, "overwrite", "is a file"),
        (lambda out: (out / "notes.txt").touch(), "overwrite", "has 'notes.txt', which is not a file of answers"),
        (lambda out: (out / "day=1").mkdir(), "overwrite", "has 'day=1', which is not a file of answers"),
        (lambda out: (out / OWNER).write_text("{}"), "overwrite", "has the answers of a stream"),
    ],
    ids=["answers", "a file", "a file to replace", "another file", "a folder", "a stream"],
)
def test_what_is_no_answer_is_never_replaced(
    changed: Callable[[Path], object], if_exists: IfExists, problem: str, tmp_path: Path
):
    out = tmp_path / "answers"
    answered(out, 1)
    changed(out)
    known = sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match=f"output: {out} {problem}"):
        begun(out, if_exists)
    assert sorted(tmp_path.rglob("*")) == known


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("s3://bucket/answers", "is in an object store"),
        ("/", "is the root"),
        ("/proc", "is where a disk is mounted, which no rename replaces: name a folder in it"),
        ("dbfs:/x", "dbfs"),
        ("", "must be a path"),
    ],
)
def test_a_place_where_no_rename_shows_files_at_once_is_refused(output: str, problem: str):
    with pytest.raises(ConfigError, match=f"output.*{problem}"):
        place_of(output)


def test_answers_replace_answers(tmp_path: Path):
    out = tmp_path / "answers"
    answered(out, 1, count=3)
    (out / "_SUCCESS").touch()  # as Spark leaves it
    answered(out, 2, "overwrite")
    assert seen(out) == files_of(2)
    assert [entry.name for entry in tmp_path.iterdir()] == ["answers"]


def test_a_folder_that_got_files_meanwhile_keeps_them(tmp_path: Path):
    out = tmp_path / "answers"
    folder = begun(out)
    names = wrote(folder, 1)
    out.mkdir()
    pq.write_table(pa.table({"run": [7], "file": [0]}, SCHEMA), out / "theirs.parquet")
    with pytest.raises(ConfigError, match="has files already"):
        folder.publish(names)
    folder.abandon()
    assert seen(out) == [(7, 0)]
    assert [entry.name for entry in tmp_path.iterdir()] == ["answers"]


def test_a_later_run_ends_an_earlier_one(tmp_path: Path):
    out = tmp_path / "answers"
    first = begun(out)
    names = wrote(first, 1)
    second = begun(out)
    with pytest.raises(SkypaneError, match="without the answers of this run: a later run of the same output has begun"):
        first.publish(names)
    first.abandon()
    second.publish(wrote(second, 2))
    assert seen(out) == files_of(2)
    assert [entry.name for entry in tmp_path.iterdir()] == ["answers"]


def test_a_run_leaves_those_of_an_output_whose_name_begins_as_its_own_does(tmp_path: Path):
    """The folder of the other's run begins with the name of this one's, up to the number."""
    other = tmp_path / "answers.skypane-old"
    answered(other, 1)
    beside = begun(other, "overwrite")
    names = wrote(beside, 2)
    answered(tmp_path / "answers", 3)
    beside.publish(names)
    assert seen(other) == files_of(2)
    assert seen(tmp_path / "answers") == files_of(3)


def test_an_output_directly_below_the_root_has_the_root_for_its_parent():
    folder = AnswerFolder.at(place_of("/skypane-answers"), "error")
    assert folder.path == "/skypane-answers"
    assert folder.written.path("") == f"/{folder.run}/written"
    folder.check()


def test_a_place_that_cannot_have_a_folder_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigError, match=r"output: answers are written beside .*/file/answers first, and "):
        begun(tmp_path / "file" / "answers")


class DeadError(BaseException):
    """Stands for the end of a process: nothing that it would do afterwards happens."""


_OPERATIONS = ("make", "move", "remove", "remove_folder", "open_output", "sync")


class Mortal:
    """Lets a process die before its `at`-th change of files, and notes what readers saw after each one."""

    def __init__(self, at: int, look: Callable[[], Any]) -> None:
        self.left = at
        self.seen: list[Any] = []
        self._look = look

    def changes(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*args: Any) -> Any:
            if self.left <= 0:
                raise DeadError
            self.left -= 1
            done = operation(*args)
            self.seen.append(self._look())
            return done

        return changed


def lived(out: Path, at: int, run: int, if_exists: IfExists) -> tuple[bool, list[Any]]:
    """Run until death before the `at`-th change; return whether it lived, and what readers saw."""
    process = Mortal(at, lambda: seen(out))
    with pytest.MonkeyPatch.context() as patch:
        for name in _OPERATIONS:
            patch.setattr(DocumentStore, name, process.changes(getattr(DocumentStore, name)))
        try:
            answered(out, run, if_exists)
        except DeadError:
            return False, process.seen
    return True, process.seen


@pytest.mark.parametrize("before", [True, False], ids=["answers before", "none before"])
def test_a_kill_before_any_operation_leaves_the_answers_before_or_the_new_ones(before: bool, tmp_path: Path):
    """A reader never sees a part of them; between the two renames it sees no folder, and the next run has the old answers."""
    old = files_of(1) if before else None
    alive, at = False, 0
    while not alive:
        out = tmp_path / f"{at}" / "answers"
        if before:
            answered(out, 1)
        alive, shown = lived(out, at, 2, "overwrite")
        assert [found for found in shown if found not in (None, old, files_of(2))] == []
        if before:
            assert shown.count(None) <= 1
        left = seen(out)
        if before or left is not None:
            with pytest.raises(ConfigError, match="has files already"):  # also where they have to be moved back first
                begun(out, "error")
            assert seen(out) == (old if left is None else left)
        answered(out, 3, "overwrite")
        assert seen(out) == files_of(3)
        assert [entry.name for entry in out.parent.iterdir()] == ["answers"]
        at += 1
    assert at > 8


def test_answers_that_were_replaced_do_not_come_back(tmp_path: Path):
    """The run was killed when its answers were there, and they were removed by hand: the older ones are still beside them."""
    removed = 0
    for at in range(20):
        out = tmp_path / f"{at}" / "answers"
        answered(out, 1)
        alive, _ = lived(out, at, 2, "overwrite")
        if not alive and seen(out) == files_of(2):
            rmtree(out)
            answered(out, 3)
            assert seen(out) == files_of(3)
            assert [entry.name for entry in out.parent.iterdir()] == ["answers"]
            removed += 1
    assert removed


@pytest.mark.slow
@pytest.mark.long
def test_kills_one_after_the_other_lose_no_answers(tmp_path: Path):
    """The second is killed while it brings back what the first was replacing."""
    known = 0
    for first in range(20):
        for second in range(12):
            out = tmp_path / f"{first}-{second}" / "answers"
            answered(out, 1)
            lived(out, first, 2, "overwrite")
            replaced = seen(out) == files_of(2)
            lived(out, second, 3, "overwrite")
            with pytest.raises(ConfigError, match="has files already"):
                begun(out, "error")
            assert seen(out) in ([] if replaced else [files_of(1)]) + [files_of(2), files_of(3)]
            known += seen(out) == files_of(1)
    assert 0 < known < 20 * 12


@pytest.mark.long
@given(st.data())
def test_of_two_runs_at_once_one_is_left_and_readers_see_whole_answers(data: st.DataObject):
    with TemporaryDirectory() as folder:
        out = Path(folder) / "answers"
        answered(out, 1)
        outcomes: dict[int, str] = {}

        def run(number: int) -> None:
            try:
                answered(out, number, "overwrite")
                outcomes[number] = "done"
            except (SkypaneError, OSError) as error:
                outcomes[number] = str(error)

        Interleaving(lambda count: data.draw(st.integers(0, count - 1))).run(lambda: run(2), lambda: run(3))
        assert "done" in outcomes.values(), outcomes
        assert seen(out) in [files_of(number) for number, outcome in outcomes.items() if outcome == "done"]
        assert [entry.name for entry in Path(folder).iterdir()] == ["answers"]
