"""Kernels of the W-Hive (paper 2, algorithm 5): winsets in the order of their start, updated lock-free by many threads.

A winset is a slot: its start, a link to the next, and a table of keys with open addressing and one state per key. At
most ten or twenty windows of an aggregate overlap, so the list is short and needs no skip levels.

    head (delivered) -> winset 4 -> winset 6 -> winset 8 ...

    update    publish in written[thread] which windows the thread has finished; find or create each winset and key; add
    deliver   if every thread has finished the winset after the head, move the head there and read the table
    free      free the slot before the head when all calls that began before the head moved have ended

A state is one word, changed by compare-and-swap: a count, sum, maximum or first value; for first values, a single
thread must process all tuples of a key. An average is a sum and, in a second word, a count; both are complete when they
are read.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from skypane.kernels.compiled import inlined, kernel
from skypane.types import BytesArray, IntArray
from skypane_papers.multiway.kernels.atomics import add, load, publish, store, swap_if
from skypane_papers.multiway.kernels.texts import ANY, contributes

PAD: Final = 8
END: Final = -1
FREE, MAKING, LISTED = 0, 1, 2
NOTHING: Final = np.iinfo(np.int64).min
"""Value that stands for a missing key, state or time."""
DONE: Final = np.iinfo(np.int64).max

COUNT: Final = 0
SUM: Final = 1
MAX: Final = 2
FIRST: Final = 3
AVG: Final = 4

HEAD, CLOCK = 0, PAD
KEPT: Final = 3
"""Slots reserved for the slowest thread beyond those of its windows: the head, and slots about to be freed."""


class Hive(NamedTuple):
    """A W-Hive: one array of words, and the offset of each column in it. A further array would slow down every call."""

    words: IntArray
    function: int
    size: int
    advance: int
    threads: int
    slots: int
    #: number of slots reserved for windows of the slowest thread
    kept: int
    #: capacity of a winset in keys, a power of two
    room: int
    #: condition on texts by which tuples count; a value is then the row of its text
    where: int
    offsets: IntArray
    data: BytesArray
    #: by slot
    start: int
    next: int
    mode: int
    retired: int
    #: by slot and key, at slot * room + place
    keys: int
    states: int
    #: for averages as above, else one word
    counts: int
    #: by thread, PAD apart: the start before which it updates no window, and the clock at which its call began, or 0
    written: int
    active: int
    #: the last delivered slot and the clock, PAD apart
    shared: int


@inlined
def place_in(room: int, key: int) -> int:
    """Return the first probe for a key in a table of `room` places, a power of two (Knuth's multiplicative hash)."""
    return ((key & 0x7FFFFFFF) * 2_654_435_761 >> 16) & (room - 1)


@inlined
def first_window(hive: Any, time: int) -> int:
    """Return the start of the earliest window that contains a time; windows start at multiples of the advance."""
    return ((time - hive.size) // hive.advance + 1) * hive.advance


@inlined
def claimed(hive: Any, begin: int, end: int) -> int:
    """Claim a free slot from `begin` to `end`; return END if there is none."""
    for slot in range(begin, end):
        if load(hive.words, hive.mode + slot) == FREE and swap_if(hive.words, hive.mode + slot, FREE, MAKING):
            return slot
    return END


@inlined
def free_slot(hive: Any, start: int) -> int:
    """Claim a slot for a new winset; return END if there is none.

    Some slots are reserved for the windows of the slowest thread. If threads ahead of it took them, no winset could
    complete.
    """
    slot = claimed(hive, hive.kept, hive.slots)
    if slot == END:
        least = load(hive.words, hive.written + 0)
        for thread in range(1, hive.threads):
            least = min(least, load(hive.words, hive.written + thread * PAD))
        if least != NOTHING and start < least + hive.size:
            slot = claimed(hive, 0, hive.kept)
    return slot


@inlined
def winset_from(hive: Any, place: int, start: int) -> int:
    """Return the slot of a window's winset, searched from slot `place` on and created if missing; END without room."""
    made = END
    found = END
    while found == END:
        following = load(hive.words, hive.next + place)
        if following != END and hive.words[hive.start + following] < start:
            place = following
        elif following != END and hive.words[hive.start + following] == start:
            found = following
        else:
            if made == END:
                made = free_slot(hive, start)
                if made == END:
                    return END
                hive.words[hive.start + made] = start
            publish(hive.words, hive.next + made, following)
            if swap_if(hive.words, hive.next + place, following, made):
                publish(hive.words, hive.mode + made, LISTED)
                return made
    if made != END:  # another thread was first, so its winset is used
        store(hive.words, hive.mode + made, FREE)
    return found


@inlined
def place_of(hive: Any, slot: int, key: int) -> int:
    """Return the place of a key's state in a winset, and add the key if it is missing; END if the table is full."""
    first = slot * hive.room
    at = place_in(hive.room, key)
    for _ in range(hive.room):
        known = load(hive.words, hive.keys + first + at)
        if known == NOTHING and swap_if(hive.words, hive.keys + first + at, NOTHING, key):
            return first + at
        if load(hive.words, hive.keys + first + at) == key:
            return first + at
        at = (at + 1) & (hive.room - 1)
    return END


@inlined
def process_tuple(hive: Any, place: int, value: int) -> None:
    """Update a state with a tuple (processTuple)."""
    if hive.function == AVG:
        add(hive.words, hive.counts + place, 1)
    while True:
        before = load(hive.words, hive.states + place)
        if hive.function == FIRST and before != NOTHING:
            return
        after = value
        if hive.function == COUNT:
            after = 1 if before == NOTHING else before + 1
        elif before != NOTHING:
            after = max(before, value) if hive.function == MAX else before + value
        if swap_if(hive.words, hive.states + place, before, after):
            return


@inlined
def update_windows(hive: Any, thread: int, time: int, key: int, value: int) -> bool:
    """Update the windows of a tuple (updateWindows); return False and change no state if there is no room."""
    first = first_window(hive, time)
    store(hive.words, hive.written + thread * PAD, first)
    if hive.where != ANY and not contributes(hive.where, hive.offsets, hive.data, value):
        return True
    place = load(hive.words, hive.shared + HEAD)
    start = first
    while start <= time:  # all winsets and keys first, so that a tuple counts in all of its windows or in none
        slot = winset_from(hive, place, start)
        if slot == END or place_of(hive, slot, key) == END:
            return False
        start += hive.advance
    place = load(hive.words, hive.shared + HEAD)
    start = first
    while start <= time:
        place = winset_from(hive, place, start)
        process_tuple(hive, place_of(hive, place, key), value)
        start += hive.advance
    return True


@kernel
def update_all(hive: Any, thread: int, times: IntArray, keys: IntArray, values: IntArray) -> int:
    """Update windows with a thread's tuples, oldest first; return how many were accepted."""
    store(hive.words, hive.active + thread * PAD, load(hive.words, hive.shared + CLOCK))
    done = 0
    while done < times.size and update_windows(hive, thread, times[done], keys[done], values[done]):
        done += 1
    publish(hive.words, hive.active + thread * PAD, 0)
    return done


@kernel
def pass_time(hive: Any, thread: int, time: int) -> None:
    """Report that a thread has no more tuples before a time."""
    store(hive.words, hive.written + thread * PAD, first_window(hive, time))


@kernel
def finish(hive: Any, thread: int) -> None:
    """Report that a thread updates no more windows."""
    store(hive.words, hive.written + thread * PAD, DONE)


@inlined
def next_winset(hive: Any) -> int:
    """Return the slot after the head if every thread has finished it, else END."""
    slot = load(hive.words, hive.next + load(hive.words, hive.shared + HEAD))
    if slot == END:
        return END
    for thread in range(hive.threads):
        if load(hive.words, hive.written + thread * PAD) <= hive.words[hive.start + slot]:
            return END
    # An earlier winset may have been created meanwhile, by a thread that has finished both.
    return slot if load(hive.words, hive.next + load(hive.words, hive.shared + HEAD)) == slot else END


@kernel
def get_next_winset(hive: Any, keys: IntArray, states: IntArray, counts: IntArray) -> tuple[int, int]:
    """Return the start and the number of keys of the earliest complete winset; (NOTHING, 0) if there is none.

    Write it to `keys`, `states` and, for averages, `counts`, arrays of hive.room words (getNextWinSet). One thread only
    may call this.
    """
    slot = next_winset(hive)
    if slot == END:
        free_slots(hive)
        return NOTHING, 0
    count = 0
    for at in range(slot * hive.room, (slot + 1) * hive.room):
        if hive.words[hive.keys + at] != NOTHING and hive.words[hive.states + at] != NOTHING:
            keys[count], states[count] = hive.words[hive.keys + at], hive.words[hive.states + at]
            if hive.function == AVG:
                counts[count] = hive.words[hive.counts + at]
            count += 1
    before = load(hive.words, hive.shared + HEAD)
    store(hive.words, hive.shared + HEAD, slot)
    now = load(hive.words, hive.shared + CLOCK) + 1
    store(hive.words, hive.shared + CLOCK, now)
    hive.words[hive.retired + before] = now
    free_slots(hive)
    return hive.words[hive.start + slot], count


@inlined
def free_slots(hive: Any) -> None:
    """Free delivered slots before the head that no call under way can use."""
    oldest = load(hive.words, hive.shared + CLOCK)
    for thread in range(hive.threads):
        began = load(hive.words, hive.active + thread * PAD)
        if began > 0:
            oldest = min(oldest, began)
    for slot in range(hive.slots):
        if 0 < hive.words[hive.retired + slot] <= oldest:
            hive.words[hive.retired + slot] = 0
            hive.words[hive.keys + slot * hive.room : hive.keys + (slot + 1) * hive.room] = NOTHING
            hive.words[hive.states + slot * hive.room : hive.states + (slot + 1) * hive.room] = NOTHING
            if hive.function == AVG:
                hive.words[hive.counts + slot * hive.room : hive.counts + (slot + 1) * hive.room] = 0
            store(hive.words, hive.mode + slot, FREE)


NO_TEXTS: Final = (np.zeros(1, np.int64), np.zeros(0, np.uint8))


def new_hive(
    threads: int,
    size: int,
    advance: int,
    function: int,
    room: int,
    slots: int,
    where: int = ANY,
    texts: tuple[IntArray, BytesArray] = NO_TEXTS,
) -> Hive:
    """Return an empty W-Hive of `slots` slots: those for one time, KEPT, and more for threads ahead."""
    cells = slots * room
    sizes = [*[slots] * 4, cells, cells, cells if function == AVG else 1, threads * PAD, threads * PAD, 2 * PAD]
    begins = np.concatenate([[0], np.cumsum([-(-size // PAD) * PAD for size in sizes])]).tolist()
    kept = -(-size // advance) + KEPT
    words = np.zeros(begins[-1], np.int64)
    hive = Hive(words, function, size, advance, threads, slots, kept, room, where, *texts, *begins[:-1])
    for begin, length in ((hive.start, slots), (hive.keys, cells), (hive.states, cells), (hive.written, threads * PAD)):
        words[begin : begin + length] = NOTHING
    words[hive.next : hive.next + slots] = END
    words[hive.mode] = LISTED
    words[hive.shared + CLOCK] = 1
    return hive
