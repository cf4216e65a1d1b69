from __future__ import annotations

from tests.table import Row, lines


def test_rows_add_up_and_the_worst_outcome_counts():
    quick, slow = Row(), Row()
    quick.add(0.25, "passed")
    for outcome in ("passed", "failed", "skipped"):
        slow.add(1.0, outcome)
    assert list(lines({"quick.py": quick, "slow.py": slow}))[1:] == [
        "      3.0  failed    slow.py",
        "      0.2  passed    quick.py",
        "      3.2  2 in all, 1 failed",
    ]
