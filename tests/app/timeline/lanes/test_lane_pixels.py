"""Every pixel of slots, queues, blocks, calls, segments and buffers is what its rows say.

What a lane holds is made of the rows one by one here, and by other means than the lanes do.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.app import palette
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.lanes.buffers import BUFFERS
from stepscope.app.timeline.lanes.collective_calls import CALLS
from stepscope.app.timeline.lanes.kv_blocks import KV_BLOCKS
from stepscope.app.timeline.lanes.segments import SECTION as SEGMENTS
from stepscope.app.timeline.lanes.slots import SLOTS
from stepscope.app.timeline.lanes.waiting_queue import SHADES, WAITING_QUEUE
from tests.app.timeline.drawn_lanes import drawn
from tests.app.timeline.lanes.brute_force import WINDOWS, Span, assert_pixels, joined
from tests.traces import trace_of

Rows = list[dict[str, Any]]
Window = tuple[int, int, int]
FEW = settings(max_examples=10)
STEP_NS, NUM_STEPS = 5, 8
STATES = {"prefill": palette.PREFILL, "decode": palette.DECODE}
SEATS = st.lists(
    st.none() | st.tuples(st.sampled_from("ab"), st.sampled_from([*STATES])),
    min_size=NUM_STEPS, max_size=NUM_STEPS,
)  # fmt: skip


def steps(num: int = NUM_STEPS) -> Rows:
    return [
        {"step": at, "ts_ns": STEP_NS * at, "dur_ns": STEP_NS, "kind": "mixed"} for at in range(num)
    ]


@FEW
@given(SEATS, WINDOWS)
def test_pixels_of_a_slot_are_what_its_batch_rows_say(seats: list[Any], window: Window) -> None:
    rows = [
        {"step": at, "ts_ns": STEP_NS * at, "request": seat[0], "phase": seat[1], "slot": 0,
         "num_tokens": 1}
        for at, seat in enumerate(seats) if seat
    ]  # fmt: skip
    moments: list[tuple[int, object, int]] = []
    for at in range(NUM_STEPS):
        seat = seats[at]
        before = next((each[0] for each in reversed(seats[:at]) if each), None)
        after = next((each[0] for each in seats[at:] if each), None)
        if seat is None and before != after:
            continue
        if seat is None and before is None:
            continue
        what = seat or (before, "idle")
        state = STATES.get(what[1], palette.IDLE)
        moments += [(ts_ns, what, state) for ts_ns in range(STEP_NS * at, STEP_NS * (at + 1))]

    timeline = Timeline.of(trace_of(steps=steps(), batch_rows=rows))

    assert_pixels(timeline, SLOTS, {"slot 0": joined(moments)}, window)


EVENTS = st.lists(
    st.tuples(
        st.sampled_from("abcd"), st.sampled_from(["arrive", "admit", "preempt", "abort"]),
        st.sampled_from([None, None, 0, 1]), st.integers(0, 3),
    ),
    min_size=1, max_size=20,
)  # fmt: skip


@FEW
@given(EVENTS, WINDOWS)
def test_pixels_of_a_queue_are_what_applying_its_events_gives(
    events: list[Any], window: Window
) -> None:
    now, rows, queue, turns = 0, [], list[str](), list[str]()
    at_moments: list[tuple[int, list[str]]] = []
    for request, event, index, later in [*events, ("z", "admit", None, 1)]:
        at_moments += [(ts_ns, list(queue)) for ts_ns in range(now, now + later)]
        now += later
        rows.append({"ts_ns": now, "request": request, "event": event, "queue_index": index})
        turns += [] if request in turns else [request]
        queue = [each for each in queue if each != request]
        if event in ("arrive", "preempt"):
            queue.insert(len(queue) if index is None else index, request)
    at_moments.append((now, queue))
    shade = {name: SHADES[turn % len(SHADES)] for turn, name in enumerate(turns)}
    lanes = {
        f"position {place}": joined(
            (ts_ns, line[place], shade[line[place]])
            for ts_ns, line in at_moments if place < len(line)
        )
        for place in range(4)
    }  # fmt: skip

    timeline = Timeline.of(trace_of(lifecycle=rows))

    assert_pixels(timeline, WAITING_QUEUE, lanes, window)


OPS = st.lists(
    st.tuples(
        st.integers(0, 2), st.sampled_from(["claim", "share", "release", "let-go", "cache"]),
        st.sampled_from("abc"), st.integers(0, 3),
    ),
    min_size=1, max_size=20,
)  # fmt: skip


@FEW
@given(OPS, WINDOWS)
def test_pixels_of_a_block_are_what_walking_over_its_allocations_gives(
    ops: list[Any], window: Window
) -> None:
    now, rows = 0, []
    holders: dict[int, list[tuple[str, int]]] = {block: [] for block in range(3)}
    cached: dict[int, int] = {}
    shown: dict[int, list[tuple[int, tuple[str, int]]]] = {block: [] for block in range(3)}

    def show(until: int) -> None:
        for ts_ns in range(now, until):
            for block in range(3):
                if holders[block]:
                    shown[block].append((ts_ns, holders[block][0]))
                elif block in cached:
                    shown[block].append((ts_ns, ("", cached[block])))

    for ref, (block, op, owner, later) in enumerate(ops):
        show(now + later)
        now += later
        rows.append({"resource": "kv-block", "id": block, "op": op, "owner": owner, "ts_ns": now})
        if op == "claim":
            holders[block] = [(owner, ref)]
        elif op == "share":
            holders[block].append((owner, ref))
        elif op == "cache":
            cached[block] = ref
        else:
            holders[block] = [each for each in holders[block] if each[0] != owner]
    show(now + 1)
    timeline = Timeline.of(trace_of(allocations=rows))
    spans = [span for each in drawn(timeline, KV_BLOCKS).values() for span in each]
    names = [state.name for state in palette.STATES]
    colour = {label: names.index(state) for _, _, state, label in spans}
    assert len({(label, state) for _, _, state, label in spans}) == len(colour)

    lanes = {
        f"block {block}": joined(
            (ts_ns, what, colour[what[0]] if what[0] else palette.CACHED) for ts_ns, what in moments
        )
        for block, moments in shown.items()
    }

    assert_pixels(timeline, KV_BLOCKS, lanes, window)


ALL_CALLS = st.lists(
    st.tuples(*2 * [st.tuples(st.integers(0, 3), st.none() | st.integers(0, 4), st.booleans())]),
    min_size=1, max_size=6,
)  # fmt: skip
"""Of each of two ranks: how late it enters, how long that takes, and with which operation."""


@FEW
@given(ALL_CALLS, WINDOWS)
def test_pixels_of_calls_are_what_the_calls_of_both_ranks_say(
    calls: list[Any], window: Window
) -> None:
    rows = [
        {"rank": rank, "ordinal": at, "ts_ns": 10 * at + late, "dur_ns": dur_ns, "group": "g",
         "op": "broadcast" if other else "all-reduce", "expected_ranks": "0,1"}
        for at, both in enumerate(calls) for rank, (late, dur_ns, other) in enumerate(both)
    ]  # fmt: skip
    timeline = Timeline.of(trace_of(collectives=rows, ranks=[0, 1]))
    lanes: dict[str, list[Span]] = {"rank 0 · g": [], "rank 1 · g": []}
    for at, both in enumerate(calls):
        state = palette.COMMUNICATION if both[0][2] == both[1][2] else palette.MISMATCHED
        for rank, (late, dur_ns, _) in enumerate(both):
            start = 10 * at + late
            end = start + (dur_ns or 0)
            if dur_ns is None and at + 1 == len(calls):
                end, own = timeline.bounds[1], palette.BLOCKED
            else:
                own = state
            lanes[f"rank {rank} · g"].append((start, end, own))

    assert_pixels(timeline, CALLS, lanes, window)


SPLIT = st.lists(
    st.tuples(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.booleans()),
    min_size=1, max_size=NUM_STEPS,
)  # fmt: skip
"""Of each step the tokens of its segments, and whether these have times of their own."""


@FEW
@given(SPLIT, WINDOWS)
def test_pixels_of_segments_are_their_times_or_their_share_of_the_step(
    split: list[tuple[list[int], bool]], window: Window
) -> None:
    rows, spans = [], list[Span]()
    for at, (tokens, is_timed) in enumerate(split):
        is_apart = is_timed or len(tokens) == 1
        since = STEP_NS * at
        starts = [
            since + (place if is_apart else round(STEP_NS * sum(tokens[:place]) / sum(tokens)))
            for place in range(len(tokens))
        ]
        for place, (start, end) in enumerate(
            zip(starts, [*starts[1:], since + STEP_NS], strict=True)
        ):
            phase = [*STATES][place % 2]
            rows.append(
                {"step": at, "ts_ns": since + place * is_timed, "segment": place, "phase": phase,
                 "num_rows": 1, "num_tokens": tokens[place]}
            )  # fmt: skip
            spans.append((start, end, STATES[phase]))

    timeline = Timeline.of(trace_of(steps=steps(len(split)), segments=rows))

    assert_pixels(timeline, SEGMENTS, {"segments": spans}, window)


ACCESSES = st.lists(
    st.tuples(st.sampled_from(["write", "read", "copy"]), st.sampled_from("xy"),
              st.integers(1, 4)), max_size=20,
)  # fmt: skip


@FEW
@given(ACCESSES, WINDOWS)
def test_pixels_of_buffers_are_what_was_written_read_and_overwritten(
    ops: list[Any], window: Window
) -> None:
    """The host writes and reads, another stream copies, and nothing orders the two."""
    now, rows = 0, list[dict[str, Any]]()
    for op, buffer, later in [("write", "x", 1), ("write", "y", 1), *ops]:
        now += later
        stream = "copy" if op == "copy" else "host"
        rows.append({"step": 1, "ts_ns": now, "op": op, "stream": stream, "buffer": buffer,
                     "first": 0, "last": 8})  # fmt: skip
    lanes: dict[str, list[Span]] = {
        "streams host": [], "streams copy": [], "buffers x": [], "buffers y": [],
    }  # fmt: skip
    marked = set[int]()
    for buffer in "xy":
        own = [row for row in rows if row["buffer"] == buffer]
        writes = [at for at, row in enumerate(own) if row["op"] == "write"]
        for at, following in zip(writes, [*writes[1:], None], strict=True):
            start, reads = own[at]["ts_ns"], own[at + 1 : following]
            copies = [row["ts_ns"] for row in reads if row["op"] == "copy"]
            if following is None or not copies:
                end = max((row["ts_ns"] for row in reads), default=start)
                lanes[f"buffers {buffer}"].append((start, end, palette.UNKNOWN))
                continue
            over = own[following]["ts_ns"]
            marked |= {over, *copies}
            lanes[f"buffers {buffer}"].append((start, copies[0], palette.UNKNOWN))
            lanes[f"buffers {buffer}"].append((copies[0], over, palette.OVERWRITTEN))
    for row in rows:
        state = palette.OVERWRITTEN if row["ts_ns"] in marked else palette.UNKNOWN
        lanes[f"streams {row['stream']}"].append((row["ts_ns"], row["ts_ns"], state))

    assert_pixels(Timeline.of(trace_of(accesses=rows)), BUFFERS, lanes, window)
