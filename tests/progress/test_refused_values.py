"""Values of which no policy of progress is made, and snapshots of which no state is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skypane.progress import AqKSlack, FutureBound, KSlack, ProgressPolicy, Readiness, Watermark
from skypane.progress.far_future import HeldPanes
from skypane.progress.pauses import Pauses
from skypane.progress.recent_lateness import RecentDistances
from skypane.progress.recent_windows import RecentWindows
from skypane.snapshots import from_json
from skypane.types import CheckpointError, ConfigError


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Watermark("-5 us"), r"delay.*-5"),
    (lambda: Watermark("10 moons"), "unknown unit"),
    (lambda: KSlack(max_slack="-1 us"), r"max_slack.*-1"),
    (lambda: KSlack(support=0), r"support.*0"),
    (lambda: KSlack(clocks="repair"), r"clocks must be one of accept, align, quarantine, got 'repair'"),  # type: ignore[arg-type]
    (lambda: AqKSlack(0.1, reserve=0), r"reserve.*0"),
    (lambda: AqKSlack(0.1, max_slack="-1 hour"), "max_slack"),
    (
        lambda: AqKSlack(0.01, max_clock_offset="999 ms"),
        "max_clock_offset must be at least 1 second, got '999 milliseconds'",
    ),
    (AqKSlack, r"AqKSlack needs one budget: max_drop.*or max_amended"),
    (lambda: AqKSlack(max_drop=0.01, max_amended=0.05), r"AqKSlack needs one budget: max_drop.*or max_amended"),
    (lambda: Readiness("0 us"), r"idle_after.*0"),
    (lambda: Readiness(0), r"idle_after must be longer than 0, got 0"),
    (lambda: Readiness(1.5), r"idle_after must be a text such as '10 minutes' or a timedelta, got 1.5"),  # type: ignore[arg-type]
    (lambda: Readiness(1, max_behind="-1 s"), r"max_behind must not be negative"),
    (lambda: Readiness(1, clocks="repair"), r"clocks must be one of accept, align, quarantine, got 'repair'"),  # type: ignore[arg-type]
    (lambda: FutureBound(0, 4, 1), r"got (0|-5)"),
    (lambda: FutureBound(-5, 4, 1), r"got (0|-5)"),
    (lambda: FutureBound(100, 0, 1), r"got (0|-5)"),
    (lambda: FutureBound(100, 4, 0), r"got (0|-5)"),
])  # fmt: skip
def test_an_invalid_value_is_refused(make: Callable[[], object], message: str):
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan"), "5 %"])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ConfigError, match="max_drop"):
        AqKSlack(share)
    with pytest.raises(ConfigError, match=r"max_amended is a share of windows"):
        AqKSlack(max_amended=share)


@pytest.mark.parametrize(("policy", "change", "message"), [
    (AqKSlack(0.1), {"since": "yesterday"}, "since"),
    (AqKSlack(0.1), {"credit": None}, "credit"),
    (AqKSlack(0.1), {"long": {}}, "recent distances"),
    (AqKSlack(0.1), {"held": 7}, "held"),
    (AqKSlack(max_amended=0.1), {"windows": {"runs": 3}}, "recent windows"),
    (Readiness("50 us"), {"sources": None}, "SourceProgress in the checkpoint: sources"),
    (Readiness("50 us"), {"sources": []}, "SourceProgress in the checkpoint: sources"),
    (Readiness("50 us"), {"sources": {"a": "late"}}, "SourceProgress in the checkpoint: sources"),
])  # fmt: skip
def test_every_field_of_a_snapshot_is_checked(policy: ProgressPolicy, change: dict[str, Any], message: str):
    with pytest.raises(CheckpointError, match=message):
        policy.restore({**policy.snapshot(policy.init()), **change})


@pytest.mark.parametrize(("restored", "snapshot", "message"), [
    (RecentDistances.restored, {}, "recent distances"),
    (RecentDistances.restored, {"dropped": 3}, "recent distances"),
    (RecentDistances.restored, None, "recent distances"),
    (RecentDistances.restored, {"dropped": ["x"], "squares": [], "block": []}, "recent distances"),
    (RecentWindows.restored, {}, "recent windows"),
    (RecentWindows.restored, {"runs": [[1, 2]], "total": 0, "unavoidable": 0}, "recent windows"),
    (RecentWindows.restored, {"runs": 7}, "recent windows"),
    (RecentWindows.restored, None, "recent windows"),
    (Pauses.restored, [[1]], "pauses of the stream"),
    (
        lambda snapshot: from_json(HeldPanes, snapshot), {"panes": [[1, 2]], "ahead": 0, "others": 0, "against": 0},
        r"HeldPanes in the checkpoint: panes.0: need a list of 5",
    ),
])  # fmt: skip
def test_a_snapshot_that_is_none_is_refused(restored: Callable[[Any], object], snapshot: Any, message: str):
    with pytest.raises(CheckpointError, match=message):
        restored(snapshot)
