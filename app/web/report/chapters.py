"""The parts of a report: what a trace is, its findings with their evidence, blame, and a diff."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.findings.wording import times
from stepscope.app.palette import FLAG_GLYPH, SEVERITY_MARKS
from stepscope.app.present.about import identity, told_of_it
from stepscope.app.present.blame_bars import LOOKS, by_group, of_which
from stepscope.app.present.blame_tables import swatch_of, totals_table
from stepscope.app.present.blocks import Block, Fact, Paragraph, Table
from stepscope.app.present.details import finding_blocks
from stepscope.app.present.report_text import summed
from stepscope.app.present.silent_rules import silent_rules
from stepscope.app.present.spans.flag_words import rows_of
from stepscope.app.present.summary.serving import served_slo
from stepscope.app.present.where import num_steps, place, when
from stepscope.app.timeline.drawing import drawing_of
from stepscope.app.units import count
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.report import drawings
from stepscope.app.web.report.markup import markup, swatch, tag, text
from stepscope.app.web.shades import painted

MOST_FINDINGS, MOST_PICTURES, MOST_BARS = 200, 24, 30
LARGEST_PICTURE = 60_000
"""Letters of a finding's picture; one that is larger is left to the timeline."""


@dataclass(slots=True)
class Room:
    """How many letters of markup there is still room for."""

    left: int

    def takes(self, part: str) -> bool:
        """Take the room for a part, if it is there."""
        if len(part) > self.left:
            return False
        self.left -= len(part)
        return True


def overview(loaded: LoadedTrace) -> str:
    """What the trace is, what was found, and its batches over the run."""
    left = markup(_about(loaded))
    right = markup(_found(loaded)) + "".join(_silent(loaded.found))
    chart = painted(drawings.batches(loaded.composition)) if loaded.steps else ""
    return tag("div", tag("div", left) + tag("div", right), "columns") + chart


def _about(loaded: LoadedTrace) -> Iterator[Block]:
    yield from (Fact(name, (said,)) for name, said in identity(loaded.trace))
    yield Fact("steps", (num_steps(loaded.composition),))
    yield Fact("lanes", (count(len(loaded.timeline.lanes)),))
    yield from told_of_it(loaded.trace)


def _found(loaded: LoadedTrace) -> Iterator[Block]:
    """How much each rule found, and how many could judge at all."""
    result = loaded.found
    by_rule: dict[str, list[Finding]] = {}
    for found in result.findings:
        by_rule.setdefault(found.code, []).append(found)
    yield Paragraph(summed(result))
    if by_rule:
        rows = tuple(
            (SEVERITY_MARKS[of[0].severity].glyph, code, of[0].name, sum(each.count for each in of))
            for code, of in by_rule.items()
        )
        yield Table(("", "rule", "", "found"), rows)


def _silent(result: CheckResult) -> Iterator[str]:
    """Rules that found nothing, and rules that could not judge: their codes on a click."""
    for rules in silent_rules(result):
        yield tag("h4", text(rules.label))
        if rules.codes == tuple(result.not_applicable):
            yield tag("p", text(f"{result.coverage.share}."))
        summary = tag("summary", text(f"{times(len(rules.codes), 'rule')}: {rules.by_family}"))
        yield tag("details", summary + tag("p", text(" ".join(rules.codes)), "muted"), "codes")


def findings(loaded: LoadedTrace, letter: str, room: Room) -> str:
    """Each finding with its evidence, the worst first, and what there was no room for."""
    if not loaded.findings:
        return tag("p", text(loaded.without_findings), "muted")
    parts: list[str] = []
    pictured: set[str] = set()
    for key, found in loaded.findings.items():
        picture = ""
        if found.code not in pictured and len(pictured) < MOST_PICTURES:
            picture = _picture(loaded, found)
        part = _finding(loaded, letter, key, found, picture)
        if len(parts) >= MOST_FINDINGS or not room.takes(part):
            break
        parts.append(part)
        if picture:
            pictured.add(found.code)
    rest = list(loaded.findings.values())[len(parts) :]
    return "\n".join([*parts, *_left_out(rest)])


def _finding(loaded: LoadedTrace, letter: str, key: str, found: Finding, picture: str) -> str:
    severity = str(found.severity)
    times = f" ×{count(found.count)}" if found.count > 1 else ""
    cells = [
        f'<span class="{severity}" title="{severity}">{SEVERITY_MARKS[severity].glyph}</span>',
        tag("span", text(found.code)),
        tag("span", text(found.name)),
        tag("span", text(place(found, loaded.timeline)), "where"),
        tag("span", text(found.message), "said"),
        tag("span", text(f"{when(found.ts_ns, loaded.timeline)}{times}"), "when"),
    ]
    button = '<button type="button" class="show icon">show on the timeline</button>'
    blocks = list(finding_blocks(found, loaded.timeline, loaded.trace))[1:]
    shown = tag("div", markup(blocks), "body") + picture
    head = tag("summary", "".join(cells))
    has_time = button if found.ts_ns is not None else ""
    return (
        f'<details class="found" id="{letter}-{text(key)}" data-key="{text(key)}" '
        f'data-trace="{letter}">{head}{has_time}{shown}</details>'
    )


def _picture(loaded: LoadedTrace, found: Finding) -> str:
    if not loaded.timeline.lanes:
        return ""
    drawn = drawing_of(loaded.timeline, found).svg()
    return tag("div", drawn, "picture") if len(drawn) <= LARGEST_PICTURE else ""


def _left_out(rest: list[Finding]) -> list[str]:
    """That there are more findings, and of which rules."""
    if not rest:
        return []
    more = Table(
        ("rule", "", "found"),
        tuple(
            (code, next(each.name for each in rest if each.code == code),
             sum(each.count for each in rest if each.code == code))
            for code in dict.fromkeys(each.code for each in rest)
        ),
        title=f"{len(rest):,} more findings, for which this report has no room",
    )  # fmt: skip
    return [markup([more])]


def flags(loaded: LoadedTrace) -> str:
    """What a user noted, and where; empty where nothing was."""
    noted = loaded.flags.now
    if not noted:
        return ""
    rows = tuple((FLAG_GLYPH, *cells) for cells in rows_of(noted, loaded.timeline))
    return markup([Table(("", "flag", "note", "lane", "time"), rows)])


def slo(loaded: LoadedTrace) -> str:
    """What became of the SLO, or how one is given; empty where nobody was served."""
    part = served_slo(loaded.trace, loaded.blamed, loaded.slo)
    return markup(part.blocks) if part else ""


def blame(loaded: LoadedTrace) -> str:
    """Totals by cause, and a bar for each of the slowest requests."""
    blamed = loaded.blamed
    notes = [tag("p", text(note), "muted") for note in blamed.notes]
    if blamed.requests.is_empty():
        return "".join(notes) or tag("p", "This trace names no requests and no steps.", "muted")
    rows = blamed.requests.top_k(MOST_BARS, by="latency_ns").to_dicts()
    groups = {group for row in rows for group in by_group(row)}
    chips = "".join(
        tag("span", f"{swatch(swatch_of(group))} {group}", "chip")
        for group in LOOKS
        if group in groups
    )
    title = tag("h4", of_which(blamed, len(rows)))
    bars = title + tag("div", chips, "chips") + painted(drawings.waterfall(loaded.bars, rows))
    totals = totals_table(blamed, is_brief=len(blamed.requests) == 1)
    return "".join(notes) + markup([totals]) + bars
