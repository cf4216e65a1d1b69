"""The columnar merge and T-Gate on a tie, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.multiway.test_ready_merge import run

from skypane.multiway import Ready, ReadyMerge
from skypane_papers.multiway import TGate


@pytest.mark.parametrize("ready", Ready)
def test_a_tuple_that_ties_with_an_input_s_last_worked_by_hand(ready: Ready):
    """Input 0's last and input 1's first but one are of time 4: the list's first is held, and what is behind it waits."""
    gate = TGate(2, ready=ready)
    released = run(ReadyMerge(2, ready), [[(4, 0, 0), (4, 1, 1), (5, 1, 2)], [(6, 0, 3)]])
    gate.insert_tuples(0, np.array([4]), np.array([0]))
    gate.insert_tuples(1, np.array([4, 5]), np.array([1, 2]))
    first = gate.get_ready_tuples(9).payloads.tolist()
    gate.insert_tuples(0, np.array([6]), np.array([3]))
    second = gate.get_ready_tuples(9).payloads.tolist()
    assert [[number for _, _, number in batch] for batch in released] == [first, second]
    expected = {
        Ready.IN_ORDER: [[0], [1, 2]],  # (4, 1) may come after another of (4, 0)
        Ready.DEFINITION_1: [[0, 1], [2]],
        Ready.LAST_HELD: [[], [0, 1]],
    }
    assert [first, second] == expected[ready]
