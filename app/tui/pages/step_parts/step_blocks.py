"""The step page in blocks of text: batch, left out, queue, slots, KV blocks, core groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from stepscope.app.debug import (
    CoreSlots,
    State,
    changes_between,
    cores_line,
    left_out_heading,
)
from stepscope.app.debug.shown.scheduler_lines import scheduler_lines
from stepscope.app.debug.shown.why_blocks import why_blocks
from stepscope.app.palette import (
    AIC,
    AIV,
    COUNTER,
    HELD,
    IDLE,
    MIX,
    STATES,
    WAITING,
)
from stepscope.app.present.blocks import Fact, Follow, Heading, Paragraph, Tone
from stepscope.app.present.facts import decided
from stepscope.app.present.step_words import tokens
from stepscope.app.tui.ink import ACCENT, MUTED, PANEL, TEXT, ink
from stepscope.app.tui.pages.step_parts.batch_blocks import batch
from stepscope.app.tui.pages.step_parts.step_view import StepView
from stepscope.app.tui.widgets.prose import Flow, Painted, Shown
from stepscope.app.tui.widgets.text_bar import Piece
from stepscope.app.units import count, duration
from stepscope.app.widths import fit, width_of

MAX_NAMES = 200
MAX_MAP_LINES = 12
EIGHTHS = "·▁▂▃▄▅▆▇█"
STATE_OF_SHAPE = {"AIC": STATES[AIC], "AIV": STATES[AIV], "MIX": STATES[MIX]}


def left_blocks(view: StepView, width: int) -> list[Shown]:
    """Who is in the batch, who was left out, and what was decided about who is followed."""
    return [
        *batch(view, width, MAX_NAMES),
        *_and_more(len(view.detail.rows)),
        *_left_out(view),
        *_decided(view),
    ]


def right_blocks(view: StepView, width: int) -> list[Shown]:
    """Which change it is, why who is followed waits, the queues, the pools, the device,
    the segments, collectives and buffers of the step.
    """
    state = view.detail.after
    return [
        *view.changed,
        *_why(view),
        *_queue("waiting", state.waiting, view),
        *_queue("running", state.running, view),
        *_slots(state, view.request),
        *_kv_blocks(view, width),
        *_cores(view, width),
        *view.detail.gpu_tables(),
        *view.detail.part_tables(),
        *_changes(view),
    ]


def step_line(view: StepView) -> str:
    """The step in a line: kind, tokens, path, how long it took, and last what was inferred."""
    step = view.detail.step
    if not step:
        return ""
    told = tokens(step)
    parts = [step["kind"], told and f"tokens: {told}", step["executed_path"], took(step)]
    parts.append(step["inferred"] and f"inferred from {step['inferred']}")
    return " · ".join(part for part in parts if part)


def took(step: Mapping[str, Any]) -> str:
    """How long a step took, and what of that the CPU was in it and the GPU busy with it."""
    lasted, cpu, busy = (step.get(name) for name in ("dur_ns", "cpu_dur_ns", "gpu_busy_ns"))
    if lasted is None:
        return ""
    if cpu is None or busy is None:
        return f"took {duration(lasted)}"
    return f"took {duration(lasted)} (CPU {duration(cpu)}, GPU busy {duration(busy)})"


# ── left ─────────────────────────────────────────────────────────────────────────────────────


def _left_out(view: StepView) -> Iterator[Shown]:
    left_out = view.detail.left_out
    heading, unsaid = left_out_heading(view.detail)
    yield Heading(heading)
    if unsaid:
        yield Paragraph(unsaid, Tone.MUTED)
    requests = view.requests
    for left in left_out[:MAX_NAMES]:
        to, chosen = Follow(requests.index(left.request)), left.request == view.request
        yield Fact(left.request, (decided(left),), Tone.TEXT, to, chosen)
    yield from _and_more(len(left_out))


def _why(view: StepView) -> Iterator[Shown]:
    if view.chain:
        yield Heading("why", f"{view.request} · o to the proof, b back")
        yield from why_blocks(view.chain)


def _decided(view: StepView) -> Iterator[Shown]:
    if view.request is None:
        return
    yield Heading("what was decided about", view.request)
    for left in view.why:
        yield Fact("" if left.step is None else f"step {left.step}", (decided(left),), Tone.MUTED)
    if not view.why:
        yield Paragraph("Nothing was recorded about it up to here.", Tone.MUTED)


def _and_more(number: int) -> Iterator[Shown]:
    if number > MAX_NAMES:
        yield Paragraph(f"and {count(number - MAX_NAMES)} more", Tone.MUTED)


# ── right ────────────────────────────────────────────────────────────────────────────────────


def _queue(name: str, requests: Sequence[str] | None, view: StepView) -> Iterator[Shown]:
    followed, told = view.request, view.detail.step.get(f"num_{name}")
    if requests is None:
        return
    is_in = followed is not None and followed in requests
    place = f"· {followed} is number {requests.index(followed) + 1}" if followed and is_in else ""
    yield Heading(f"{name} {count(len(requests))}", place)
    if told is not None and told != len(requests) and view.is_at_its_batch:
        yield Paragraph(
            f"The step says {count(told)}; these are the ones that are named.", Tone.MUTED
        )
    shown = tuple(
        Piece(request, ink(_colour(request, followed), PANEL)) for request in requests[:MAX_NAMES]
    )
    if shown:
        yield Flow(shown)
    yield from _and_more(len(requests))


def _slots(state: State, followed: str | None) -> Iterator[Shown]:
    if state.slots is None:
        return
    yield Heading(f"slots held {count(len(state.slots))}")
    yield Flow(
        tuple(
            Piece(state.slot_text(slot), ink(_colour(state.slots[slot], followed), PANEL))
            for slot in sorted(state.slots)
        )
    )


def _colour(request: str, followed: str | None) -> str:
    return ACCENT if request == followed else TEXT


def _kv_blocks(view: StepView, width: int) -> Iterator[Shown]:
    """A cell a block, or a cell for several where they would not fit."""
    held = view.detail.after.kv_blocks
    if held is None:
        return
    told = view.detail.step.get("kv_blocks_total")
    yield Heading(f"KV blocks held {count(len(held))}{f' of {count(told)}' if told else ''}")
    last = max(held, default=-1)
    # Numbers may begin at 1: then that of the last is how many there are. Or reach beyond that.
    first = 1 if last == told and 0 not in held else 0
    total = max(told or 0, last + 1 - first)
    per_cell = max(-(-total // (width * MAX_MAP_LINES)), 1)
    owners: dict[int, list[str]] = defaultdict(list)
    for block, owner in held.items():
        owners[(block - first) // per_cell].append(owner)
    cells = [
        _cell(owners[at], min(per_cell, total - at * per_cell), view.request)
        for at in range(-(-total // per_cell))
    ]
    for start in range(0, len(cells), width):
        yield Painted(tuple(cells[start : start + width]))
    if per_cell > 1:
        yield Paragraph(f"a cell stands for {count(per_cell)} blocks", Tone.MUTED)


def _cell(owners: Sequence[str], num_blocks: int, followed: str | None) -> Piece:
    height = -(-8 * len(owners) // num_blocks)
    is_followed = followed is not None and followed in owners
    colour = ACCENT if is_followed else STATES[COUNTER if owners else WAITING].colour
    return Piece("▓" if is_followed else EIGHTHS[height], ink(colour, PANEL))


def _cores(view: StepView, width: int) -> Iterator[Shown]:
    """A line a group, a column a kind of core; then a line for each core of no known group."""
    cores = view.detail.after.cores
    if not cores:
        return
    yield Heading(cores_line(cores))
    for line in scheduler_lines(view.detail.after):
        yield Paragraph(line, Tone.MUTED)
    known = view.detail.names.cores
    places = {
        (group, kind or f"core {core}"): core
        for core, (group, kind) in known.items()
        if group is not None
    }
    kinds = sorted({kind for _, kind in places})
    # Where it is narrow, the columns need the room more than the word "group" does.
    indent = len("group 00 ") if width >= 48 else len("00 ")
    room = max((width - indent) // max(len(kinds), 1), 4)
    if kinds:
        yield _core_line(
            "", indent, [Piece(f"{kind:<{room}}", ink(MUTED, PANEL)) for kind in kinds]
        )
    for group in sorted({group for group, _ in places}):
        held = [cores.get(places.get((group, kind), -1), CoreSlots()) for kind in kinds]
        pieces = [piece for slots in held for piece in _slot_pieces(slots, view, room)]
        yield _core_line(f"group {group}"[-indent + 1 :], indent, pieces)
    for core in sorted(cores.keys() - places.values()):
        name = view.detail.names.core(core)
        yield _core_line(name, len(name) + 1, _slot_pieces(cores[core], view, width - len(name)))


def _core_line(label: str, indent: int, pieces: Iterable[Piece]) -> Shown:
    return Painted((Piece(f"{label:<{indent}}", ink(MUTED, PANEL)), *pieces))


def _slot_pieces(slots: CoreSlots, view: StepView, room: int) -> Iterator[Piece]:
    """What runs on a core or holds it and, after `+`, what is pending; `room` cells together."""
    if slots.running is None and slots.pending is None:
        yield Piece(f"{'·':<{room}}", ink(MUTED, PANEL))
        return
    names = view.detail.names
    first, *rest = slots.blocks
    is_held = slots.state == "held"
    state = STATES[HELD] if is_held else STATE_OF_SHAPE.get(names.shape(first), STATES[IDLE])
    then = f" + {names.block(rest[0])}" if rest else ""
    yield Piece(state.glyph * 2, ink(state.colour, PANEL))
    text = fit(f" {'held for ' if is_held else ''}{names.block(first)}{then}", room - 3)
    yield Piece(text + " " * (room - 2 - width_of(text)), ink(TEXT, PANEL))


def _changes(view: StepView) -> Iterator[Shown]:
    changes = changes_between(view.detail.before, view.detail.after, view.detail.names)
    if changes:
        yield Heading("changed since just before")
    for change in changes[:MAX_NAMES]:
        yield Fact(change.what, (change.before, change.after))
