"""The bench of window tasks at its small size: each division answers all windows, and each line is complete."""

from __future__ import annotations

import pytest
from measure.bench.window_tasks import HEAD, QUERIES, QUICK, WINDOWS, Case, Stream, lines_of, panes_of

from skypane.control.window_division import Division, Piece
from skypane.windows import Windows


@pytest.mark.long
def test_each_query_has_a_line():
    lines = list(lines_of(QUICK, 1, 1, 200))
    assert [line[0] for line in lines] == list(QUERIES)
    assert all(len(line) == len(HEAD) for line in lines)
    assert all(float(line[5]) > 0 and float(line[6]) > 0 for line in lines)


def test_the_busiest_task_is_that_with_the_most_seconds_of_its_pieces():
    query = QUERIES["top-k by group"]
    stream = Stream(Case("top-k by group", 3, 2), panes_of(query, Windows(3, 1), 1, 200))
    tasks = stream.tasks(0)
    division = Division(((Piece(0, 5), Piece(9, WINDOWS)), (Piece(5, 9, 0, 2),), (Piece(5, 9, 1, 2),)))
    shown = stream.run(tasks, division)
    seconds = [piece.busy for piece in shown.pieces]
    assert shown.longest == pytest.approx(max(seconds[0] + seconds[1], *seconds[2:]))
    assert [(piece.begin, piece.end) for piece in shown.pieces] == [(0, 5), (9, WINDOWS), (5, 9), (5, 9)]
