"""What is said of a recording that is followed: a line that always stands there, and its facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from stepscope.app.live.follower import Status
from stepscope.app.live.found_so_far import Came, Standing
from stepscope.app.present.blocks import AtFinding, Block, Fact, Heading, Paragraph, Table, Tone
from stepscope.app.present.where import where
from stepscope.app.units import count
from stepscope.ingest.live.growing_trace import RecordingState

Piece = tuple[str, Tone]
MOST_LISTED = 20
STATES: Mapping[RecordingState, Piece] = {
    RecordingState.RECORDING: ("● live", Tone.INFO),
    RecordingState.STOPPED: ("■ recording stopped", Tone.ERROR),
    RecordingState.KILLED: ("■ killed: it was not closed", Tone.ERROR),
    RecordingState.CLOSED: ("■ the recording is closed", Tone.INFO),
    RecordingState.GONE: ("■ gone from the disk", Tone.ERROR),
}
CHANGED = "the file on disk has changed: L reads it again"
VANISHED = "the file is gone from the disk: what is shown is what was read"
STEPS_ARE_NOT_WALKED = "not told while a recording is followed: L reads all that is on disk by now"
"""In place of what needs every row since the beginning, and those that end what has begun."""


class Following(StrEnum):
    """What a front does with what comes."""

    NEWEST = "newest step in view"
    HERE = "F follows the newest step"
    PAUSED = "paused: H goes on"


def line(status: Status, following: Following) -> list[Piece]:
    """How it goes on, in pieces, what matters most first; text of a trace is as recorded."""
    said = [STATES[status.state]]
    if status.state is RecordingState.RECORDING:
        said += [(f"{following}", Tone.WARNING if following is Following.PAUSED else Tone.MUTED)]
    elif status.state is not RecordingState.GONE:
        said += [("L reads all of it", Tone.TEXT)]
    said += _lost(status)
    if status.state is RecordingState.RECORDING:
        said += [(_rate(status), Tone.TEXT)]
    said += [(f"{_number(status.num_rows, 'row')}", Tone.TEXT)]
    if status.is_cut:
        said += [(f"{_number(status.num_left_out)} older left out", Tone.WARNING)]
    return said


def begun(path: Path, front: str) -> str:
    """Another recording was begun beside the one that ended."""
    return f"another recording has begun: stepscope {front} {path}"


def short(came: Sequence[Came]) -> str:
    """The newest finding and the step at which it came; empty where there is none."""
    newest = next((each for each in reversed(came) if each.standing is Standing.FOUND), None)
    if newest is None:
        return ""
    at = "" if newest.at_step is None else f" came at step {newest.at_step:,}"
    return f"{newest.finding.code}{at}"


def blocks(status: Status, came: Sequence[Came], start_ns: int) -> Iterator[Block]:
    """All that is known of how it goes on, and the findings as they came, the newest first."""
    yield Heading("live")
    yield Fact("state", (STATES[status.state][0][2:],))
    yield Fact("rows per second", (_rate(status).removesuffix(" rows/s"),))
    yield Fact("last step", ("unknown" if status.last_step is None else f"{status.last_step:,}",))
    yield Fact("rows", (_number(status.num_rows),))
    yield Fact("here, whole", (_number(status.num_kept),))
    yield Fact("older, left out", (_number(status.num_left_out),))
    if status.num_older_steps:
        yield Fact("of these drawn", (f"{_count(status.num_older_steps, 'step')}",))
    yield Fact("dropped", (_number(status.dropped or {}),))
    yield from _faults(status)
    if status.age_s is not None:
        yield Fact("newest row", (f"{max(status.age_s, 0):,.1f} s old",))
    if status.is_cut:
        yield Paragraph(
            "Every other figure is of the rows that are here; rules that need all cannot judge.",
            Tone.MUTED,
        )
    yield from _came(came, start_ns)


def _faults(status: Status) -> Iterator[Block]:
    """What is not as it should be, each in a line; nothing where all is."""
    if status.reason:
        yield Paragraph(f"why: {status.reason}", Tone.ERROR)
    if status.num_unchecked:
        yield Fact(
            "not checked", (f"at least {_count(status.num_unchecked, 'row')}",), Tone.WARNING
        )
    if status.num_given_up:
        yield Fact("not complete", (f"{_count(status.num_given_up, 'row')}",), Tone.WARNING)
    if status.num_withdrawn:
        yield Fact("no longer found", (f"{_count(status.num_withdrawn, 'finding')}",), Tone.WARNING)
    if status.num_untold:
        yield Fact("not listed", (f"{_count(status.num_untold, 'finding')}",), Tone.WARNING)
    for note in (*status.notes, *([status.check_failed] if status.check_failed else ())):
        yield Paragraph(note, Tone.WARNING)


def _came(came: Sequence[Came], start_ns: int) -> Iterator[Block]:
    kept = [each for each in came if each.standing is not Standing.WITHDRAWN]
    places = {id(each): at for at, each in enumerate(kept)}
    rows, leads = [], []
    for each in [*reversed(came)][:MOST_LISTED]:
        rows.append((
            each.finding.code, None if each.at_step is None else each.at_step,
            where(each.finding, start_ns), str(each.standing),
        ))  # fmt: skip
        place = places.get(id(each))
        leads.append(None if place is None else AtFinding(place))
    if rows:
        yield Table(
            ("code", "came at step", "where", "now"),
            tuple(rows),
            title="findings as they came",
            num_more=max(len(came) - len(rows), 0),
            leads=tuple(leads),
        )


def _lost(status: Status) -> list[Piece]:
    """What was dropped, and why recording stopped."""
    dropped = sum((status.dropped or {}).values())
    said = [(status.reason, Tone.ERROR)] if status.reason else []
    return [*said, (f"{count(dropped)} dropped", Tone.ERROR)] if dropped else said


def _rate(status: Status) -> str:
    return "… rows/s" if status.rows_per_s is None else f"{status.rows_per_s:,.0f} rows/s"


def _number(rows: Mapping[str, int], what: str = "") -> str:
    number = sum(rows.values())
    return _count(number, what) if what else f"{number:,}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
