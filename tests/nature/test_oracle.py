"""The oracle sees what a stream could do wrong: each fault is made by hand in answers that are right."""

from __future__ import annotations

from collections import Counter

from tests.chaos.naive import EVERY, LENGTH, SECOND, Row, early_versions, final, skyline, taken, updates, versions
from tests.nature import oracle
from tests.nature.rows import CALM, Habits, Steps


def made(steps: int = 30, habits: Habits = Habits()) -> Steps:  # noqa: B008 - frozen
    made = Steps(4, habits)
    for _ in range(steps):
        made.step()
    return made


def answered(entering: list[Row]) -> oracle.Found:
    """The answers of skylines, as they should be."""
    expected = oracle.expected_windows(entering)
    rows = {row["id"]: row for row in entering}
    return [(start, [rows[id_] for id_ in skyline(expected[start])]) for start in sorted(expected)]


def faults(found: oracle.Found, entering: list[Row], *, whole: bool = True) -> list[str]:
    return oracle.not_the_windows(found, oracle.expected_windows(entering), oracle.is_skyline, whole=whole)


def test_right_answers_are_right():
    entering = made().entering
    assert faults(answered(entering), entering) == []


def test_a_window_that_is_missing_twice_or_out_of_order_is_seen():
    entering = made().entering
    right = answered(entering)
    assert "1 windows are missing" in faults(right[:5] + right[6:], entering)[0]
    assert "come twice or out of order" in faults([*right[:6], *right[5:]], entering)[0]
    assert "come twice or out of order" in faults([right[1], right[0], *right[2:]], entering)[0]
    assert "1 windows are missing" in faults(right[:-1], entering)[0]
    assert faults(right[:-3], entering, whole=False) == []


def test_a_row_that_is_missing_or_too_many_is_seen():
    entering = made().entering
    right = answered(entering)
    start, rows = right[3]
    assert "other than defined" in faults([*right[:3], (start, rows[1:]), *right[4:]], entering)[0]
    assert "other than defined" in faults([*right[:3], (start, [*rows, rows[0]]), *right[4:]], entering)[0]


def test_rejected_rows_have_their_fate():
    steps = made(4 * CALM)
    assert {reason for _, reason in steps.rejected} >= {"late", "null ts", "null price", "NaN price"}
    received = [{"id": id_, "reason": reason} for id_, reason in steps.rejected.elements()]
    assert oracle.not_the_rejected(received, steps.rejected) == []
    assert "rejected rows are missing" in oracle.not_the_rejected(received[1:], steps.rejected)[0]
    assert "too many" in oracle.not_the_rejected([*received, received[0]], steps.rejected)[0]


def test_updates_are_those_of_brute_force_over_all_pairs():
    entering = made(6).entering
    clock = max(row["ts"] for row in entering) + LENGTH
    received = sorted(oracle.all_updates(entering, clock), key=lambda update: (update[0], update[1] == "ADD"))
    rows = [dict(zip(("action_time", "action", "id"), update, strict=True)) for update in received]
    assert Counter(received) == Counter(updates(entering, clock))
    assert oracle.not_the_updates(rows, entering, whole=False) == []
    assert "1 updates are missing" in oracle.not_the_updates([*rows[:7], *rows[8:]], entering, whole=False)[0]
    assert "out of order" in oracle.not_the_updates([rows[-1], *rows], entering, whole=False)[0]


def test_a_batch_delivered_again_to_a_function_or_a_topic_must_be_the_same():
    received = [(b"0/0", b'{"start": 1, "id": 1}'), (b"0/1", b'{"start": 1, "id": 2}')]
    assert oracle.in_topic([*received, *received]) == oracle.in_topic(received)
    assert "was sent as" in oracle.in_topic([*received, (b"0/1", b'{"start": 1, "id": 3}')])[1][0]


def cut(steps: Steps) -> list[tuple[list[Row], int | None]]:
    """Return the rows in batches of two steps, with a punctuation that many rows are too late for, and the end of a drain."""
    size, newest = 2 * len(steps.sent) // steps.made, 0
    found: list[tuple[list[Row], int | None]] = []
    for at in range(0, len(steps.sent), size):
        rows = steps.sent[at : at + size]
        newest = max(newest, *(row["ts"] for row in rows))
        found.append((rows, newest - SECOND))
    return [*found, ([], newest + LENGTH)]


CALM_STEPS = made(20, Habits(strange=()))


def test_a_version_that_is_missing_twice_or_of_other_rows_is_seen():
    batches = cut(CALM_STEPS)
    meant = versions(taken(batches, final).by_batch)
    right: list[Row] = [
        {"window_start": start, "version": number, "id": id_}
        for start, each in meant.items()
        for number, rows in enumerate(each)
        for id_ in skyline(rows)
    ]
    assert oracle.not_the_versions(right, batches) == []
    assert "windows have other versions" in oracle.not_the_versions(right[1:], batches)[0]
    assert "windows have other versions" in oracle.not_the_versions([*right, right[0]], batches)[0]
    later = [row | {"version": row["version"] + 1} for row in right[:1]]
    assert "windows have other versions" in oracle.not_the_versions([*later, *right[1:]], batches)[0]
    assert oracle.not_the_versions([], [([], None)]) == ["no window was amended"]
    assert {reason for _, reason in oracle.rejected_of(batches)} == {"late"}


def test_a_change_that_is_missing_or_comes_twice_is_seen():
    batches = cut(CALM_STEPS)
    right: list[Row] = []
    for start, each in early_versions(taken(batches, final).by_batch, EVERY).items():
        before: set[object] = set()
        for number, (_, rows) in enumerate(each):
            now = set(skyline(rows))
            for action, ids in (("DEL", before - now), ("ADD", now - before)):
                right += [{"window_start": start, "version": number, "action": action, "id": id_} for id_ in ids]
            before = now
    assert oracle.not_the_changes(right, batches) == []
    assert "windows have another last version" in oracle.not_the_changes(right[1:], batches)[-1]
    assert "1 rows come twice" in oracle.not_the_changes([*right, right[-1]], batches)[0]
