"""Kernels of the T-Gate (paper 2, algorithm 4): a skip list in time order, with lock-free inserts by many threads.

A node is one cache line of an array, because a search reads a node's time, owner and links together, and most nodes
only once. Links lead to later nodes only:

    level 5   entry --------------------------------> f
    level 1   entry --------------> c --------------> f --------> h
    level 0   entry --> a --> b --> c --> d --> e --> f --> g --> h --> END
                                          |           |
              taken by all consumers -->  heads[0]    heads[1]    g, h: waiting, ready unless held back

    node      [ time | owner: input and serial | links of levels 0 to 5 ]   8 words

Each input has a ring of segments in an arena; the nodes of a segment are tuples of one input in order and are freed
together. Segments are not shared, because fast inputs could take all of them, and the slow input for which all others
wait would have none. The last node of a segment has all levels, so that it can become the entry:

    ring of input 1   [ a e h . | . . . . | . . . . ]
    ring of input 0   [ b c d f | g . . . | . . . . ]   by segment: used, full, limbo (clock since which it
                                    ^ room: the next free node        waits to be freed)

Steps, with the paper's names in brackets:

    insert_tuples      [insertTuple] by the input's thread
      begin            mark the call as under way, in `active`; drop remembered places that may be freed
      new_node         take the next node of the input's ring
      find_places      search from the input's last place on each level on, in `hints` [update]
      link             [levelinsert] link the node by compare-and-swap, level by level from the lowest
      ...              publish the tuple in written[input] [written]: it counts as arrived only then
    get_ready_tuples   [getNextReadyTuple] by the consumer's thread
      ready_node       check the node after the head [head], and held_back: whether a tuple that belongs before it can
                       still arrive
      take             move the head to it; note_exhausted, if it is its input's last
    free_segments      by a consumer's thread, one at a time
      next_entry       move the entry to a node of full height that every consumer has passed
      retire_segments  note the clock for the full segments before the entry
      oldest_call      free them when all calls that began before the move have ended, because such a call may still
                       use their nodes (free_retired)

An input is silent until its first tuple, and a silent input holds back all tuples. An input whose last tuple has been
taken is exhausted. Work on all inputs or segments (free) is done once per that many tuples, or when an input has no
room.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from skypane.kernels.compiled import inlined, kernel
from skypane.types import IntArray
from skypane_papers.multiway.kernels.atomics import add, load, publish, store, swap_if

LEVELS: Final = 6
PAD: Final = 8
"""Words of a cache line; words that one thread writes and others read are a line apart."""
END: Final = 0
"""Index that stands for no node: that of the first node, to which no link leads."""
GONE: Final = 1 << 62

IN_ORDER: Final = 0
DEFINITION_1: Final = 1
LAST_HELD: Final = 2
ASKED: Final = 3
"""Rule of a list without ready tuples (section 7.2): check every input for every tuple."""

SILENT, CLOCK, ENTRY, RECLAIMING, WANTED = 0, PAD, 2 * PAD, 3 * PAD, 4 * PAD
NEWEST = 2
"""Offset of the time of an input's last tuple, after its next free node and the end of that node's segment."""
OWNER, NEXT = 1, 2
"""Words of a node, which is a line: the time, the owner, and links in the other words."""
SERIAL: Final = 43
"""Bits of an owner for the serial number of a tuple; the bits above are the input."""
LAST: Final = (1 << SERIAL) - 1

OF_SERIAL: Final = 2_654_435_761
"""2**32 divided by the golden ratio: Knuth's multiplicative hash, as in skypane.kernels.hashing."""
OF_INPUT: Final = 40_503
"""2**16 divided by the golden ratio: the same for 16 bits."""
MIX: Final = 0x2C1B3C6D
"""First multiplier, after a shift of 15, of the integer hash "15 2c1b3c6d 12 297a2d39 15" of Wellons's hash-prospector;
that one such round, of 31 bits, is enough was decided here: the tests check the heights."""


class Gate(NamedTuple):
    """A T-Gate: one array of words, and the offset of each column in it. A further array would slow down every call."""

    words: IntArray
    rule: int
    #: nodes of a segment
    segment: int
    inputs: int
    consumers: int
    segments: int
    #: by node, PAD apart
    nodes: int
    #: by node
    payload: int
    #: by input, PAD apart: number of arrived tuples, and the clock at which a call began, 0 between calls
    written: int
    active: int
    #: by input, written by the input's thread, PAD apart: next free node, the end of its segment, the time of the last
    #: tuple; the last node passed on each level, its time and its input
    room: int
    hints: int
    hint_times: int
    hint_sources: int
    #: by segment: whether it is in use, whether it is full, and the clock since which it waits to be freed
    used: int
    full: int
    limbo: int
    #: by consumer, PAD apart: the last node taken, the last one of full height, and a counter that is odd during a read
    heads: int
    passed: int
    reading: int
    #: by consumer, PAD apart: number of exhausted inputs, and of tuples taken since it freed segments
    counts: int
    #: by consumer and input: the list of exhausted inputs; by input the serial of the last tuple plus 1, or 0
    exhausted: int
    exhausted_serials: int
    #: number of silent inputs, clock, entry, whether a thread frees segments, whether an input waits for room; PAD
    #: apart
    shared: int


@inlined
def time_of(gate: Any, node: int) -> int:
    """Return the time of a node's tuple."""
    return gate.words[gate.nodes + node * PAD]


@inlined
def owner_of(gate: Any, node: int) -> int:
    """Return the input and the serial of a node's tuple in one word, which sorts by both."""
    return gate.words[gate.nodes + node * PAD + OWNER]


@inlined
def link_of(gate: Any, node: int, level: int) -> int:
    """Return the index of a node's link on a level."""
    return gate.nodes + node * PAD + NEXT + level


@inlined
def belongs_before(gate: Any, node: int, time: int, source: int) -> bool:
    """Return whether a node precedes a new tuple: by time, then by input, or by arrival under the paper's rules."""
    return time_of(gate, node) < time or (
        time_of(gate, node) == time and (gate.rule != IN_ORDER or owner_of(gate, node) >> SERIAL <= source)
    )


@inlined
def hash_of_tuple(owner: int) -> int:
    """Return 23 bits that depend on an input and a serial; each pair of them from the lowest on is 0 in 1/4 of tuples."""
    word = ((owner & 0xFFFFFF) * OF_SERIAL + (owner >> SERIAL) * OF_INPUT) & 0x7FFFFFFF
    word = ((word ^ word >> 15) * MIX) & 0x7FFFFFFF
    return word >> 8


@inlined
def height_of(gate: Any, node: int) -> int:
    """Return the number of levels of a node: each further one with a probability of 1/4, the same in every run.

    The last node of a segment has all levels, so that the entry can move to it and full segments can be freed.
    """
    word = hash_of_tuple(owner_of(gate, node))
    height = 1
    while height < LEVELS and word & 3 == 0:
        word >>= 2
        height += 1
    return LEVELS if node % gate.segment == 0 else height


@inlined
def new_node(gate: Any, source: int) -> int:
    """Return the next node of the input's ring; END if it is still in use because the arena is full."""
    room = source * PAD
    if gate.words[gate.room + room] == gate.words[gate.room + room + 1]:
        ring = gate.segments // gate.inputs
        following = ((gate.words[gate.room + room + 1] - 1) // gate.segment - source * ring) % ring + source * ring
        if load(gate.words, gate.used + following) == 1:
            store(gate.words, gate.shared + WANTED, 1)
            return END
        store(gate.words, gate.used + following, 1)
        gate.words[gate.room + room] = following * gate.segment + 1
        gate.words[gate.room + room + 1] = gate.words[gate.room + room] + gate.segment
    node = gate.words[gate.room + room]
    gate.words[gate.room + room] += 1
    return node


@inlined
def remember(gate: Any, source: int, level: int, node: int) -> None:
    """Start the next search on this level at this node."""
    at = source * PAD + level
    gate.words[gate.hints + at], gate.words[gate.hint_times + at], gate.words[gate.hint_sources + at] = (
        node,
        time_of(gate, node),
        owner_of(gate, node) >> SERIAL,
    )


@inlined
def begin(gate: Any, source: int) -> None:
    """Mark the input's thread as active, and drop remembered places that may be freed."""
    store(gate.words, gate.active + source * PAD, load(gate.words, gate.shared + CLOCK))
    entry = load(gate.words, gate.shared + ENTRY)
    time, owner = time_of(gate, entry), owner_of(gate, entry) >> SERIAL
    for level in range(LEVELS):
        at = source * PAD + level
        hint = gate.words[gate.hint_times + at]
        if hint < time or (hint == time and (gate.rule != IN_ORDER or gate.words[gate.hint_sources + at] <= owner)):
            remember(gate, source, level, entry)


@inlined
def find_places(gate: Any, source: int, time: int) -> None:
    """Find the last node before a new tuple on each level, from the highest level down."""
    place = gate.words[gate.hints + source * PAD + LEVELS - 1]
    for level in range(LEVELS - 1, -1, -1):
        hint = source * PAD + level
        if gate.words[gate.hint_times + hint] > time_of(gate, place):
            place = gate.words[gate.hints + hint]
        following = load(gate.words, link_of(gate, place, level))
        while following != END and belongs_before(gate, following, time, source):
            place = following
            following = load(gate.words, link_of(gate, place, level))
        remember(gate, source, level, place)


@inlined
def link(gate: Any, node: int, source: int, level: int) -> None:
    """Link a node into the list of a level; retry from the new place if another node was linked there first."""
    place = gate.words[gate.hints + source * PAD + level]
    while True:
        following = load(gate.words, link_of(gate, place, level))
        if following != END and belongs_before(gate, following, time_of(gate, node), source):
            place = following
            continue
        publish(gate.words, link_of(gate, node, level), following)
        if swap_if(gate.words, link_of(gate, place, level), following, node):
            break
    remember(gate, source, level, node)


@inlined
def insert_tuple(gate: Any, source: int, time: int, payload: int) -> bool:
    """Insert a tuple not older than the input's last one (insertTuple); return False if there was no room."""
    node = new_node(gate, source)
    if node == END:
        return False
    serial = load(gate.words, gate.written + source * PAD)
    line = gate.nodes + node * PAD
    gate.words[line], gate.words[line + OWNER], gate.words[gate.payload + node] = (
        time,
        source << SERIAL | serial,
        payload,
    )
    find_places(gate, source, time)
    for level in range(height_of(gate, node)):
        link(gate, node, source, level)
    publish(gate.words, gate.room + source * PAD + NEWEST, time)
    publish(gate.words, gate.written + source * PAD, serial + 1)
    if serial == 0:
        add(gate.words, gate.shared + SILENT, -1)
    if node % gate.segment == 0:
        publish(gate.words, gate.full + node // gate.segment - 1, 1)
    return True


@kernel
def newest_time(gate: Any, source: int) -> int:
    """Return the time of an input's last tuple; called by the input's thread."""
    return gate.words[gate.room + source * PAD + NEWEST]


@kernel
def insert_tuples(gate: Any, source: int, times: IntArray, payloads: IntArray) -> int:
    """Insert an input's tuples, oldest first; return how many were inserted.

    If time goes backwards, insert none and return -1 - row of the first tuple that is older than the one before.
    """
    newest = newest_time(gate, source)
    for row in range(times.size):
        if times[row] < newest:
            return -1 - row
        newest = times[row]
    begin(gate, source)
    done = 0
    while done < times.size and insert_tuple(gate, source, times[done], payloads[done]):
        done += 1
    publish(gate.words, gate.active + source * PAD, 0)
    return done


@inlined
def somebody_is_behind(gate: Any, time: int) -> bool:
    """Return whether the last tuple of any input is older than `time`."""
    for source in range(gate.inputs):
        if load(gate.words, gate.room + source * PAD + NEWEST) < time:
            return True
    return False


@inlined
def somebody_is_exhausted(gate: Any, consumer: int) -> bool:
    """Return whether a consumer has taken all tuples of an input; drop inputs that have sent one since."""
    first, count = consumer * gate.inputs, gate.words[gate.counts + consumer * PAD]
    while count > 0:  # one input without a new tuple is enough; the others are checked after it has sent one
        source = gate.words[gate.exhausted + first + count - 1]
        if load(gate.words, gate.written + source * PAD) <= gate.words[gate.exhausted_serials + first + source]:
            break
        gate.words[gate.exhausted_serials + first + source] = 0
        count -= 1
    gate.words[gate.counts + consumer * PAD] = count
    return count > 0


@inlined
def held_back(gate: Any, consumer: int, node: int) -> bool:
    """Return whether a tuple that belongs before this one may still arrive, given the tuples of all inputs so far."""
    if gate.rule == ASKED:
        return somebody_is_behind(gate, time_of(gate, node))
    if gate.rule == LAST_HELD:
        owner = owner_of(gate, node)
        return load(gate.words, gate.written + (owner >> SERIAL) * PAD) == (owner & LAST) + 1
    # The last tuples of exhausted inputs are at or before the head's time. Definition 1 lets a node of that time pass,
    # even one of theirs that is linked but not yet published, because it may hide others that are.
    if gate.rule == DEFINITION_1 and time_of(gate, load(gate.words, gate.heads + consumer * PAD)) == time_of(
        gate, node
    ):
        return False
    return somebody_is_exhausted(gate, consumer)


@inlined
def ready_node(gate: Any, consumer: int) -> int:
    """Return the node after a consumer's head if it is ready, else END."""
    head = load(gate.words, gate.heads + consumer * PAD)
    while True:
        node = load(gate.words, link_of(gate, head, 0))
        if node == END or load(gate.words, gate.shared + SILENT) > 0 or held_back(gate, consumer, node):
            return END
        # A node that belongs before this one may have been linked before its input was seen to have sent a tuple.
        if load(gate.words, link_of(gate, head, 0)) == node:
            return node


@inlined
def take(gate: Any, consumer: int, node: int) -> None:
    """Move a consumer's head to a ready node."""
    owner = owner_of(gate, node)
    source, serial = owner >> SERIAL, owner & LAST
    arrived = load(gate.words, gate.written + source * PAD)
    if gate.rule < LAST_HELD and arrived <= serial + 1:
        note_exhausted(gate, consumer, source, serial)
    publish(gate.words, gate.heads + consumer * PAD, node)
    if arrived > serial and height_of(gate, node) == LEVELS:  # before it is published, it may lack links on some levels
        publish(gate.words, gate.passed + consumer * PAD, node)


@inlined
def note_exhausted(gate: Any, consumer: int, source: int, serial: int) -> None:
    """Record that a consumer has taken an input's last tuple; an input is in the list at most once."""
    first, count = consumer * gate.inputs, gate.words[gate.counts + consumer * PAD]
    if gate.words[gate.exhausted_serials + first + source] == 0:
        gate.words[gate.exhausted + first + count] = source
        gate.words[gate.counts + consumer * PAD] = count + 1
    gate.words[gate.exhausted_serials + first + source] = serial + 1


@kernel
def get_ready_tuples(gate: Any, consumer: int, times: IntArray, sources: IntArray, payloads: IntArray) -> int:
    """Fill the arrays with a consumer's next ready tuples, in order (getNextReadyTuple); return their number."""
    count = 0
    add(gate.words, gate.reading + consumer * PAD, 1)
    while count < times.size:
        node = ready_node(gate, consumer)
        if node == END:
            break
        take(gate, consumer, node)
        times[count], sources[count], payloads[count] = (
            time_of(gate, node),
            owner_of(gate, node) >> SERIAL,
            gate.words[gate.payload + node],
        )
        count += 1
    add(gate.words, gate.reading + consumer * PAD, 1)
    since = gate.words[gate.counts + consumer * PAD + 1] + count
    if since >= gate.segments + gate.inputs or load(gate.words, gate.shared + WANTED) == 1:
        since = 0
        store(gate.words, gate.shared + WANTED, 0)
        free_segments(gate)
    gate.words[gate.counts + consumer * PAD + 1] = since
    return count


@kernel
def leave_gate(gate: Any, source: int) -> None:
    """Stop waiting for an input; called by the input's thread."""
    silent = load(gate.words, gate.written + source * PAD) == 0
    store(gate.words, gate.written + source * PAD, GONE)  # none of its tuples counts as the last one any more
    publish(gate.words, gate.room + source * PAD + NEWEST, GONE)
    if silent:
        add(gate.words, gate.shared + SILENT, -1)


@kernel
def join_gate(gate: Any, source: int) -> int:
    """Wait for a new input from now on; return the time of the last tuple taken, before which it may send none.

    No consumer takes a tuple until the input has sent one; this function waits for calls that are under way.
    """
    add(gate.words, gate.shared + SILENT, 1)
    last = time_of(gate, load(gate.words, gate.heads + 0))
    for consumer in range(gate.consumers):
        call = load(gate.words, gate.reading + consumer * PAD)
        while call % 2 == 1 and load(gate.words, gate.reading + consumer * PAD) == call:
            pass
        last = max(last, time_of(gate, load(gate.words, gate.heads + consumer * PAD)))
    gate.words[gate.room + source * PAD + NEWEST] = last
    return last


@inlined
def comes_before(gate: Any, node: int, other: int) -> bool:
    """Return whether a node precedes another on every level; without IN_ORDER the order of one time may differ."""
    if time_of(gate, node) != time_of(gate, other) or gate.rule != IN_ORDER:
        return time_of(gate, node) < time_of(gate, other)
    return owner_of(gate, node) < owner_of(gate, other)


@inlined
def next_entry(gate: Any) -> int:
    """Return the last node of full height that all consumers have passed; the current entry in case of a tie."""
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
    """Return the clock at which the oldest call under way began."""
    oldest = load(gate.words, gate.shared + CLOCK)
    for source in range(gate.inputs):
        began = load(gate.words, gate.active + source * PAD)
        if began > 0:
            oldest = min(oldest, began)
    return oldest


@inlined
def retire_segments(gate: Any, entry: int, now: int) -> None:
    """Let the full segments before the entry wait, from the clock `now` on, to be freed."""
    for segment in range(gate.segments):
        last = (segment + 1) * gate.segment
        if (
            gate.words[gate.limbo + segment] == 0
            and load(gate.words, gate.full + segment) == 1
            and comes_before(gate, last, entry)
        ):
            gate.words[gate.limbo + segment] = now


@inlined
def free_retired(gate: Any, oldest: int) -> None:
    """Free the segments that wait since the clock of the oldest call under way, or longer."""
    for segment in range(gate.segments):
        if 0 < gate.words[gate.limbo + segment] <= oldest:
            gate.words[gate.limbo + segment] = 0
            store(gate.words, gate.full + segment, 0)
            store(gate.words, gate.used + segment, 0)


@kernel
def free_segments(gate: Any) -> None:
    """Free segments that no thread can reach any more, unless another thread is doing so."""
    if not swap_if(gate.words, gate.shared + RECLAIMING, 0, 1):
        return
    entry = next_entry(gate)
    if entry != load(gate.words, gate.shared + ENTRY):
        store(gate.words, gate.shared + ENTRY, entry)
        retire_segments(gate, entry, add(gate.words, gate.shared + CLOCK, 1) + 1)
    free_retired(gate, oldest_call(gate))
    store(gate.words, gate.shared + RECLAIMING, 0)


def new_gate(inputs: int, consumers: int, ring: int, segment: int, rule: int, later: int = 0) -> Gate:
    """Return an empty T-Gate of `inputs` silent inputs, with `ring` segments of `segment` nodes per input.

    The last `later` inputs are not waited for until they join. An input needs at least three segments: for the entry,
    for its last tuple, and for new ones.
    """
    segments, never = inputs * ring, np.iinfo(np.int64).min
    nodes, lines, readers = segments * segment + 1, inputs * PAD, consumers * PAD
    sizes = [nodes * PAD, nodes, *[lines] * 6, *[segments] * 3, *[readers] * 4]
    sizes += [consumers * inputs, consumers * inputs, 5 * PAD]
    begins = np.concatenate([[0], np.cumsum([-(-size // PAD) * PAD for size in sizes])]).tolist()
    words = np.zeros(begins[-1] + PAD, np.int64)
    words = words[-(words.ctypes.data // words.itemsize) % PAD :][: begins[-1]]  # align to a cache line
    gate = Gate(words, rule, segment, inputs, consumers, segments, *begins[:-1])

    def column(begin: int, size: int) -> IntArray:
        return gate.words[begin : begin + size]

    for place in (0, 1):
        column(gate.room, lines)[place::PAD] = np.arange(inputs) * ring * segment + 1
    column(gate.room, lines)[NEWEST::PAD] = never
    column(gate.hint_times, lines)[:], column(gate.hint_sources, lines)[:] = never, -1
    words[gate.nodes], words[gate.nodes + OWNER] = never, -1
    words[gate.shared + SILENT], words[gate.shared + CLOCK] = inputs - later, 1
    return gate
