"""The overview in words: what the trace is, its kinds of steps, what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.findings.wording import times
from stepscope.app.palette import (
    DECODE,
    IDLE,
    NOT_APPLICABLE,
    PREFILL,
    SEVERITY_MARKS,
    STATES,
    UNKNOWN,
)
from stepscope.app.present.about import identity, told_of_it
from stepscope.app.present.blocks import Fact, Heading, Paragraph, Title, Tone
from stepscope.app.present.silent_rules import silent_rules
from stepscope.app.present.where import of_rank
from stepscope.app.timeline import Composition
from stepscope.app.tui.ink import MUTED, PANEL, TEXT, ink
from stepscope.app.tui.plot.span_bars import fill_of
from stepscope.app.tui.widgets.prose import Painted, Shown
from stepscope.app.tui.widgets.text_bar import Piece
from stepscope.app.units import count, duration
from stepscope.ingest.schema import STEP_KINDS, TABLES
from stepscope.ingest.trace import Trace

BAR_WIDTH = 8
STATE_OF_KIND = {
    "prefill": PREFILL, "decode": DECODE, "idle": IDLE, "dummy": IDLE, "unknown": UNKNOWN,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class About:
    """What a trace is, in a few lines, and then what is in it."""

    head: Sequence[Shown]
    body: Sequence[Shown]


def about(trace: Trace, composition: Composition) -> About:
    """Say what a trace is; counts rows, so call it from a thread."""
    body = [*_kinds(composition), *_tables(trace), *told_of_it(trace)]
    return About(list(_what_it_is(trace)), body)


def _what_it_is(trace: Trace) -> Iterator[Shown]:
    yield Title(trace.name)
    yield from (Fact(name, (text,)) for name, text in identity(trace))


def _kinds(composition: Composition) -> Iterator[Shown]:
    num_steps = len(composition.step)
    if not num_steps:
        return
    yield Heading(f"{times(num_steps, 'step')}{of_rank(composition)}")
    for kind in (*STEP_KINDS, None):
        mine = np.array([each == kind for each in composition.kind])
        if mine.any():
            yield _kind(kind or "unknown", mine, composition)


def _kind(kind: str, mine: npt.NDArray[np.bool_], composition: Composition) -> Shown:
    number = int(mine.sum())
    filled = max(round(BAR_WIDTH * number / len(mine)), 1)
    known = composition.dur_ns[mine][np.isfinite(composition.dur_ns[mine])]
    mean = f"{duration(round(float(known.mean()))):>10}" if len(known) else ""
    return Painted(
        (
            Piece(f"{kind:<9}", ink(TEXT, PANEL)),
            *_bar(kind, filled, mine, composition),
            Piece("·" * (BAR_WIDTH - filled), ink(STATES[IDLE].colour, PANEL)),
            Piece(f"{count(number):>7}", ink(TEXT, PANEL)),
            Piece(mean, ink(MUTED, PANEL)),
        )
    )


def _bar(
    kind: str, filled: int, mine: npt.NDArray[np.bool_], composition: Composition
) -> Iterator[Piece]:
    """A bar of the kind's colour; mixed batches have none, theirs is split by share of tokens."""
    if kind != "mixed":
        state = STATES[STATE_OF_KIND[kind]]
        yield Piece(fill_of(state) * filled, ink(state.colour, PANEL))
        return
    prefill = float(np.nansum(composition.prefill_tokens[mine]))
    decode = float(np.nansum(composition.decode_tokens[mine]))
    share = prefill / (prefill + decode) if prefill + decode else 0.5
    cells = round(filled * share)
    if filled > 1 and 0 < share < 1:
        cells = min(max(cells, 1), filled - 1)
    for state, width in ((STATES[PREFILL], cells), (STATES[DECODE], filled - cells)):
        yield Piece(fill_of(state) * width, ink(state.colour, PANEL))


def _tables(trace: Trace) -> Iterator[Shown]:
    yield Heading("tables")
    if not any(trace.has(table.name) for table in TABLES):
        yield Paragraph("None has any row.", Tone.MUTED)
    for table in TABLES:
        number = trace.num_rows(table.name)
        if number:
            said = trace.manifest.tables.get(table.name, "")
            note = "" if said == "complete" else f"  {said}"
            yield Painted(
                (
                    Piece(f"{table.name:<14}", ink(MUTED, PANEL)),
                    Piece(f"{count(number):>12}", ink(TEXT, PANEL)),
                    Piece(note, ink(MUTED, PANEL)),
                )
            )


def verdict(result: CheckResult, *, with_codes: bool) -> list[Shown]:
    """Blocks that say what was found, rule by rule; of the other rules their codes, or how many."""
    return list(_found(result, with_codes=with_codes))


def _found(result: CheckResult, *, with_codes: bool) -> Iterator[Shown]:
    if blind := result.coverage.verdict:
        yield Paragraph(f"{NOT_APPLICABLE} {blind}.")
    firsts: dict[str, tuple[int, Finding]] = {}
    for index, found in enumerate(result.findings):
        firsts.setdefault(found.code, (index, found))
    for index, found in firsts.values():
        mark = SEVERITY_MARKS[found.severity]
        number, action = count(result.counts.get(found.code, 0)), f"app.jump({index})"
        code = Piece(f"{mark.glyph} {found.code}", ink(mark.colour, PANEL, bold=True), action)
        many = Piece(f"{number:>7}  ", ink(TEXT, PANEL), action)
        yield Painted((code, many, Piece(found.name, ink(TEXT, PANEL), action)))
    silent = silent_rules(result)
    for rules in silent:
        yield Fact(rules.label, (rules.text(with_codes=with_codes),), Tone.MUTED)
    yield Paragraph(f"{result.coverage.share}.", Tone.MUTED)
    if silent:
        says = "how many of each family" if with_codes else "their codes"
        yield Painted((Piece(f"S  {says}", ink(MUTED, PANEL), "app.rules"),))
