"""Mutants of windows and of the policies of progress."""

from __future__ import annotations

from typing import Final

from tests.differential.mutants.mutant import Mutant

PROGRESS: Final = (
    Mutant(
        "head-boundary",
        "windows.py",
        "(since - slides * self.slide >= self.head)",
        "(since - slides * self.slide > self.head)",
        "a row just where a window ends is in the pane before",
    ),
    Mutant(
        "open-boundary",
        "windows.py",
        "(rest >= self.head) if self.head",
        "(rest > self.head) if self.head",
        "a punctuation just where a window ends does not close its last pane",
    ),
    Mutant(
        "one-window-more",
        "windows.py",
        "-((self.panes_per_window - 1 - pane) // self.panes_per_slide)",
        "-((self.panes_per_window - pane) // self.panes_per_slide)",
        "a pane is said to be of a window that ends where it begins",
    ),
    Mutant(
        "one-pane-less",
        "windows.py",
        "self.panes_per_slide + (1 if self.head else 0)",
        "self.panes_per_slide",
        "a window whose length is no multiple of the slide lacks its last pane",
    ),
    Mutant(
        "punctuation-back",
        "progress/slack_policy.py",
        "punctuation=max(given, default=None))",
        "punctuation=given[-1] if given else None)",
        "the punctuation goes back when rows are later than any before",
        ("policies", "progress"),
    ),
    Mutant(
        "newest-back",
        "progress/slack_policy.py",
        "newest = reached if before is None else max(before, reached)",
        "newest = reached",
        "the newest time is that of the last batch",
        ("policies", "progress"),
    ),
    Mutant(
        "first-clock-ahead-followed",
        "progress/frontier.py",
        "_pane_at(group, rows + 1 - _needed(rows, support))",
        "_pane_at(group, rows)",
        "the newest time follows the first row that is ahead",
        ("policies", "progress"),
    ),
    Mutant(
        "sources-not-asked",
        "progress/frontier.py",
        "if followed > reach and _have_come(arrivals.sources, int(group.oldest[pane])):",
        "if followed > reach:",
        "the newest time follows clocks of few sources that are ahead",
        ("policies", "progress"),
    ),
    Mutant(
        "gap-on-the-wrong-side",
        "progress/frontier.py",
        "return min(_longest(group, low, middle), _longest(group, middle, high))",
        "return max(_longest(group, low, middle), _longest(group, middle, high))",
        "clocks that are ahead make every gap short",
        ("policies", "progress"),
    ),
    Mutant(
        "slack-shrinks",
        "progress/kslack.py",
        "slack=max(before.slack, longest_delay(arrivals, self.max_slack)))",
        "slack=longest_delay(arrivals, self.max_slack))",
        "K is the longest delay of the last batch",
        ("policies", "progress"),
    ),
    Mutant(
        "first-is-waited-for",
        "progress/readiness.py",
        "slack=newest - min(active.values(), default=newest),",
        "slack=newest - max(active.values(), default=newest),",
        "no source is waited for but the first",
        ("policies", "progress"),
    ),
    Mutant(
        "silent-not-waited-for",
        "progress/readiness.py",
        "return None if self._unheard(measured) else super()",
        "return None if not measured.sources else super()",
        "a source that is named and has sent nothing is not waited for",
        ("policies", "progress"),
    ),
    Mutant(
        "silence-forgotten",
        "progress/readiness.py",
        "before.silent.get(name, 0) + passed",
        "passed",
        "a silence is as long as its last batch",
        ("policies", "progress"),
    ),
    Mutant(
        "delay-halved",
        "progress/watermark.py",
        "None if newest is None else newest - measured.slack",
        "None if newest is None else newest - measured.slack // 2",
        "rows later than half the delay are late",
        ("policies", "progress"),
    ),
    Mutant(
        "last-held-lost",
        "progress/far_future.py",
        "if counted.ahead - counted.others >= self.support:",
        "if counted.ahead - counted.others > self.support:",
        "the stream is followed a row too late",
        ("policies", "progress"),
    ),
    Mutant(
        "followed-not-counted",
        "progress/slack_policy.py",
        "            accepted = accepted.followed_by(future.followed.arrivals().upto(future.limit))\n",
        "            accepted = accepted.followed_by(future.followed.within(-(1 << 62)).arrivals())\n",
        "rows that were held and are accepted now do not move the newest time",
        ("policies", "progress"),
    ),
)
