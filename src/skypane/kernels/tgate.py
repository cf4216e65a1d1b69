"""T-Gate's kernels (paper 2, algorithm 4): a skip list in the order of time, that many threads insert into without a lock.

A node is an index into arrays; its links are next[node * LEVELS + level], and lead to later nodes only. Each input has a
ring of segments in an arena; a segment's nodes are an input's tuples in order, and are freed together. Were segments
shared, fast inputs could take all, and the slow one that everybody waits for would find none.

    entry -> ... consumed ... -> head of a consumer -> ready ... -> not ready

    insert   finds its place from the input's last one on, links the node level by level from the lowest, and only then
             says so in written[input]: what is not said has not come
    take     looks at the node after its head, and at whether a tuple that belongs before it can still come
    free     entry moves to a node of full height that every consumer has passed; segments before it wait until no thread
             is left that began before it moved, for such a thread may stand on one of their nodes

An input is silent until its first tuple; a silent input holds back all. One whose last tuple has been taken is exhausted.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from skypane.kernels.atomics import add, load, publish, store, swap_if
from skypane.kernels.compiled import inlined, kernel
from skypane.types import IntArray

LEVELS: Final = 4
PAD: Final = 8
"""Words of a cache line: what one thread writes and others read lies a line apart."""
END: Final = -1
GONE: Final = 1 << 62

IN_ORDER: Final = 0
DEFINITION_1: Final = 1
LAST_HELD: Final = 2

SILENT, CLOCK, ENTRY, RECLAIMING = 0, PAD, 2 * PAD, 3 * PAD


class Gate(NamedTuple):
    """A T-Gate: one array of words, and where each of its columns begins in it (one array, for each is counted in every call)."""

    words: IntArray
    rule: int
    #: nodes of a segment
    segment: int
    inputs: int
    consumers: int
    segments: int
    #: of nodes
    time: int
    source: int
    serial: int
    payload: int
    next: int
    #: of inputs, PAD apart: tuples that have come, and the clock at which a call began, 0 between calls
    written: int
    active: int
    #: of inputs, for the input's own thread, PAD apart: next free node and end of its segment; the last node passed on each
    #: level, its time and its input
    room: int
    hints: int
    hint_times: int
    hint_sources: int
    #: of segments: whether it is in use, and full; the clock since which it waits to be freed
    used: int
    full: int
    limbo: int
    #: of consumers, PAD apart: the last node taken, the last of full height, odd while it reads
    heads: int
    passed: int
    reading: int
    #: of consumers and inputs, (consumers * inputs): inputs whose last tuple the consumer has taken, and its serial
    exhausted: int
    exhausted_serials: int
    exhausted_counts: int
    #: inputs that are silent, the clock, the entry, whether somebody frees segments; PAD apart
    shared: int


@inlined
def belongs_before(gate: Any, node: int, time: int, source: int) -> bool:
    """Whether a node stays before a new tuple: by time, and then by input; or, of equal times, by arrival."""
    return gate.words[gate.time + node] < time or (
        gate.words[gate.time + node] == time and (gate.rule != IN_ORDER or gate.words[gate.source + node] <= source)
    )


@inlined
def height_of(gate: Any, node: int) -> int:
    """Return how many levels a node has: one more with a chance of a quarter, the same in every run.

    The last of a segment has all: a place for the entry to move to, so that a segment that is full can be freed one day.
    """
    word = (
        (gate.words[gate.serial + node] & 0xFFFFFF) * 2_654_435_761 + gate.words[gate.source + node] * 40_503
    ) & 0x7FFFFFFF
    word = ((word ^ word >> 15) * 739_982_445) & 0x7FFFFFFF
    word = word >> 8
    height = 1
    while height < LEVELS and word & 3 == 0:
        word >>= 2
        height += 1
    return LEVELS if (node + 1) % gate.segment == 0 else height


@inlined
def new_node(gate: Any, source: int) -> int:
    """Return the next node of the input's ring; END if it is in use yet: the arena is full."""
    room = source * PAD
    if gate.words[gate.room + room] == gate.words[gate.room + room + 1]:
        ring = gate.segments // gate.inputs
        following = (gate.words[gate.room + room + 1] // gate.segment - source * ring) % ring + source * ring
        if load(gate.words, gate.used + following) == 1:
            return END
        store(gate.words, gate.used + following, 1)
        gate.words[gate.room + room] = following * gate.segment
        gate.words[gate.room + room + 1] = gate.words[gate.room + room] + gate.segment
    node = gate.words[gate.room + room]
    gate.words[gate.room + room] += 1
    return node


@inlined
def begin(gate: Any, source: int) -> None:
    """Say that the input's thread is at work, and forget places that may be freed."""
    store(gate.words, gate.active + source * PAD, load(gate.words, gate.shared + CLOCK))
    entry = load(gate.words, gate.shared + ENTRY)
    for level in range(LEVELS):
        at = source * PAD + level
        time, owner = gate.words[gate.hint_times + at], gate.words[gate.hint_sources + at]
        later = time > gate.words[gate.time + entry] or (
            time == gate.words[gate.time + entry] and gate.rule == IN_ORDER and owner > gate.words[gate.source + entry]
        )
        if not later:
            gate.words[gate.hints + at], gate.words[gate.hint_times + at], gate.words[gate.hint_sources + at] = (
                entry,
                gate.words[gate.time + entry],
                gate.words[gate.source + entry],
            )


@inlined
def remember(gate: Any, source: int, level: int, node: int) -> None:
    """Begin the next search on this level here."""
    at = source * PAD + level
    gate.words[gate.hints + at], gate.words[gate.hint_times + at], gate.words[gate.hint_sources + at] = (
        node,
        gate.words[gate.time + node],
        gate.words[gate.source + node],
    )


@inlined
def find_places(gate: Any, source: int, time: int) -> None:
    """Find the last node on each level that a new tuple comes after, from the highest level down."""
    place = gate.words[gate.hints + source * PAD + LEVELS - 1]
    for level in range(LEVELS - 1, -1, -1):
        hint = source * PAD + level
        if gate.words[gate.hint_times + hint] > gate.words[gate.time + place]:
            place = gate.words[gate.hints + hint]
        following = load(gate.words, gate.next + place * LEVELS + level)
        while following != END and belongs_before(gate, following, time, source):
            place = following
            following = load(gate.words, gate.next + place * LEVELS + level)
        remember(gate, source, level, place)


@inlined
def link(gate: Any, node: int, source: int, level: int) -> None:
    """Put a node into the list of a level: again, from where the place is by then, if another was put there first."""
    place = gate.words[gate.hints + source * PAD + level]
    while True:
        following = load(gate.words, gate.next + place * LEVELS + level)
        if following != END and belongs_before(gate, following, gate.words[gate.time + node], source):
            place = following
            continue
        publish(gate.words, gate.next + node * LEVELS + level, following)
        if swap_if(gate.words, gate.next + place * LEVELS + level, following, node):
            break
    remember(gate, source, level, node)


@inlined
def insert_tuple(gate: Any, source: int, time: int, payload: int) -> bool:
    """Insert a tuple not older than the input's last (insertTuple); whether there was room."""
    node = new_node(gate, source)
    if node == END:
        return False
    serial = load(gate.words, gate.written + source * PAD)
    (
        gate.words[gate.time + node],
        gate.words[gate.source + node],
        gate.words[gate.serial + node],
        gate.words[gate.payload + node],
    ) = time, source, serial, payload
    find_places(gate, source, time)
    for level in range(height_of(gate, node)):
        link(gate, node, source, level)
    publish(gate.words, gate.written + source * PAD, serial + 1)
    if serial == 0:
        add(gate.words, gate.shared + SILENT, -1)
    if (node + 1) % gate.segment == 0:
        publish(gate.words, gate.full + node // gate.segment, 1)
    return True


@kernel
def insert_tuples(gate: Any, source: int, times: IntArray, payloads: IntArray) -> int:
    """Insert an input's tuples, oldest first; return how many there was room for."""
    begin(gate, source)
    done = 0
    while done < times.size and insert_tuple(gate, source, times[done], payloads[done]):
        done += 1
    publish(gate.words, gate.active + source * PAD, 0)
    return done


@inlined
def held_back(gate: Any, consumer: int, node: int) -> bool:
    """Whether a tuple that belongs before this one may still come, as far as inputs have spoken."""
    if gate.rule == LAST_HELD:
        source = gate.words[gate.source + node]
        return load(gate.words, gate.written + source * PAD) == gate.words[gate.serial + node] + 1
    inputs = gate.inputs
    kept, held = 0, False
    for number in range(gate.words[gate.exhausted_counts + consumer * PAD]):
        at = consumer * inputs + number
        source, serial = gate.words[gate.exhausted + at], gate.words[gate.exhausted_serials + at]
        if load(gate.words, gate.written + source * PAD) <= serial + 1:  # not a word since
            gate.words[gate.exhausted + consumer * inputs + kept] = source
            gate.words[gate.exhausted_serials + consumer * inputs + kept] = serial
            kept += 1
            # Exhausted inputs spoke last at or before the head's time; of the node's own time, definition 1 lets it pass,
            # even if it is one of theirs that is linked and not yet said to have come: it may hide others that have.
            head = load(gate.words, gate.heads + consumer * PAD)
            held |= gate.rule == IN_ORDER or gate.words[gate.time + head] < gate.words[gate.time + node]
    gate.words[gate.exhausted_counts + consumer * PAD] = kept
    return held


@inlined
def ready_node(gate: Any, consumer: int) -> int:
    """Return the node after a consumer's head if it is ready, else END."""
    head = load(gate.words, gate.heads + consumer * PAD)
    while True:
        node = load(gate.words, gate.next + head * LEVELS)
        if node == END or load(gate.words, gate.shared + SILENT) > 0 or held_back(gate, consumer, node):
            return END
        # One that belongs before it may have come since: before its input was seen to have spoken.
        if load(gate.words, gate.next + head * LEVELS) == node:
            return node


@inlined
def take(gate: Any, consumer: int, node: int) -> None:
    """Move a consumer's head to a ready node."""
    source, serial = gate.words[gate.source + node], gate.words[gate.serial + node]
    said = load(gate.words, gate.written + source * PAD)
    if gate.rule != LAST_HELD and said <= serial + 1:
        note_exhausted(gate, consumer, source, serial)
    publish(gate.words, gate.heads + consumer * PAD, node)
    if said > serial and height_of(gate, node) == LEVELS:  # what has not been said may not be linked on every level
        publish(gate.words, gate.passed + consumer * PAD, node)


@inlined
def note_exhausted(gate: Any, consumer: int, source: int, serial: int) -> None:
    """Note that a consumer has taken an input's last tuple; an input is in the list once."""
    first = consumer * (gate.inputs)
    place, count = first, gate.words[gate.exhausted_counts + consumer * PAD]
    while place < first + count and gate.words[gate.exhausted + place] != source:
        place += 1
    gate.words[gate.exhausted + place], gate.words[gate.exhausted_serials + place] = source, serial
    gate.words[gate.exhausted_counts + consumer * PAD] = max(count, place - first + 1)


@kernel
def get_ready_tuples(gate: Any, consumer: int, times: IntArray, sources: IntArray, payloads: IntArray) -> int:
    """Fill the arrays with a consumer's next ready tuples, in order (getNextReadyTuple); return how many there were."""
    count, passed = 0, load(gate.words, gate.passed + consumer * PAD)
    add(gate.words, gate.reading + consumer * PAD, 1)
    while count < times.size:
        node = ready_node(gate, consumer)
        if node == END:
            break
        take(gate, consumer, node)
        times[count], sources[count], payloads[count] = (
            gate.words[gate.time + node],
            gate.words[gate.source + node],
            gate.words[gate.payload + node],
        )
        count += 1
    add(gate.words, gate.reading + consumer * PAD, 1)
    if count == 0 or load(gate.words, gate.passed + consumer * PAD) != passed:
        free_segments(gate)
    return count


@kernel
def leave_gate(gate: Any, source: int) -> None:
    """Wait for an input no longer; called by its own thread."""
    silent = load(gate.words, gate.written + source * PAD) == 0
    store(gate.words, gate.written + source * PAD, GONE)  # no tuple is its last any more
    if silent:
        add(gate.words, gate.shared + SILENT, -1)


@kernel
def join_gate(gate: Any) -> int:
    """Wait for one input more; return the time of the last tuple taken, before which it may send none.

    No consumer takes anything until it has spoken; a call that was under way when it came is waited for.
    """
    add(gate.words, gate.shared + SILENT, 1)
    last = gate.words[gate.time + load(gate.words, gate.heads + 0)]
    for consumer in range(gate.consumers):
        call = load(gate.words, gate.reading + consumer * PAD)
        while call % 2 == 1 and load(gate.words, gate.reading + consumer * PAD) == call:
            pass
        last = max(last, gate.words[gate.time + load(gate.words, gate.heads + consumer * PAD)])
    return last


@inlined
def comes_before(gate: Any, node: int, other: int) -> bool:
    """Whether a node stands before another on every level; those of one time may stand otherwise on each, but in order."""
    if gate.words[gate.time + node] != gate.words[gate.time + other] or gate.rule != IN_ORDER:
        return gate.words[gate.time + node] < gate.words[gate.time + other]
    if gate.words[gate.source + node] != gate.words[gate.source + other]:
        return gate.words[gate.source + node] < gate.words[gate.source + other]
    return gate.words[gate.serial + node] < gate.words[gate.serial + other]


@inlined
def next_entry(gate: Any) -> int:
    """Return the last node of full height that all consumers have passed; the entry as it is, where that is a tie."""
    least = load(gate.words, gate.passed + 0)
    for consumer in range(1, gate.consumers):
        node = load(gate.words, gate.passed + consumer * PAD)
        if node != least and not comes_before(gate, least, node):
            if not comes_before(gate, node, least):
                return load(gate.words, gate.shared + ENTRY)
            least = node
    return (
        least
        if comes_before(gate, load(gate.words, gate.shared + ENTRY), least)
        else load(gate.words, gate.shared + ENTRY)
    )


@inlined
def oldest_call(gate: Any) -> int:
    """Return the clock at which the oldest of the calls under way began."""
    oldest = load(gate.words, gate.shared + CLOCK)
    for source in range(gate.inputs):
        began = load(gate.words, gate.active + source * PAD)
        if began > 0:
            oldest = min(oldest, began)
    return oldest


@kernel
def free_segments(gate: Any) -> None:
    """Free what nobody can reach any more; if another thread is at it, leave it to that."""
    if not swap_if(gate.words, gate.shared + RECLAIMING, 0, 1):
        return
    entry = next_entry(gate)
    if entry != load(gate.words, gate.shared + ENTRY):
        store(gate.words, gate.shared + ENTRY, entry)
        now = add(gate.words, gate.shared + CLOCK, 1) + 1
        for segment in range(gate.segments):
            last = (segment + 1) * gate.segment - 1
            if (
                gate.words[gate.limbo + segment] == 0
                and load(gate.words, gate.full + segment) == 1
                and comes_before(gate, last, entry)
            ):
                gate.words[gate.limbo + segment] = now
    oldest = oldest_call(gate)
    for segment in range(gate.segments):
        if 0 < gate.words[gate.limbo + segment] <= oldest:
            gate.words[gate.limbo + segment] = 0
            store(gate.words, gate.full + segment, 0)
            store(gate.words, gate.used + segment, 0)
    store(gate.words, gate.shared + RECLAIMING, 0)


def new_gate(inputs: int, consumers: int, ring: int, segment: int, rule: int, later: int = 0) -> Gate:
    """Return an empty T-Gate of so many inputs, all silent, with `ring` segments of `segment` nodes each.

    The last `later` of them are not waited for until they join. Three segments are needed: one that the entry lies in, one
    that holds the input's last tuple, one to go on in.
    """
    segments, never = inputs * ring, np.iinfo(np.int64).min
    sentinel = segments * segment
    nodes, lines, readers = sentinel + 1, inputs * PAD, consumers * PAD
    sizes = [*[nodes] * 4, nodes * LEVELS, *[lines] * 6, *[segments] * 3, *[readers] * 3]
    sizes += [consumers * inputs, consumers * inputs, readers, 4 * PAD]
    begins = np.concatenate([[0], np.cumsum([-(-size // PAD) * PAD for size in sizes])]).tolist()
    gate = Gate(np.zeros(begins[-1], np.int64), rule, segment, inputs, consumers, segments, *begins[:-1])

    def column(begin: int, size: int) -> IntArray:
        return gate.words[begin : begin + size]

    column(gate.next, nodes * LEVELS)[:] = END
    for place in (0, 1):
        column(gate.room, lines)[place::PAD] = np.arange(inputs) * ring * segment
    for begin, value in ((gate.hints, sentinel), (gate.hint_times, never), (gate.hint_sources, -1)):
        column(begin, lines)[:] = value
    column(gate.heads, readers)[::PAD] = column(gate.passed, readers)[::PAD] = sentinel
    for begin, value in ((gate.time, never), (gate.source, -1), (gate.serial, -1)):
        gate.words[begin + sentinel] = value
    shared = column(gate.shared, 4 * PAD)
    shared[SILENT], shared[CLOCK], shared[ENTRY] = inputs - later, 1, sentinel
    return gate
