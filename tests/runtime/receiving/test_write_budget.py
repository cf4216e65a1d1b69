"""Who brings more than there is room for waits."""

from __future__ import annotations

import threading

from skypane.runtime.receiving.write_budget import WriteBudget


def test_more_than_there_is_room_for_waits_until_some_has_gone():
    room, came = WriteBudget(10), list[int]()

    def bring() -> None:
        for size in (6, 6, 50, 3):
            room.take(size)
            came.append(size)
            brought.release()

    brought = threading.Semaphore(0)
    thread = threading.Thread(target=bring, daemon=True)
    thread.start()
    for size in (6, 6, 50, 3):
        assert brought.acquire(timeout=30)
        assert came[-1] == size  # the next one has no room beside it
        room.give(size)
    thread.join(30)
    assert came == [6, 6, 50, 3]
