"""What if, in words: what can be asked, how far a run is, and what came of it, for both fronts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.app.present.blocks import (
    AtStep,
    Block,
    Fact,
    Heading,
    Items,
    Paragraph,
    RulePage,
    Runs,
    Table,
    Target,
    Title,
    Tone,
)
from stepscope.app.replay.fidelity import SAYS, Kind
from stepscope.app.replay.what_if.asked import FORMS
from stepscope.app.replay.what_if.came import Came, Figures
from stepscope.app.replay.what_if.runs import Run

if TYPE_CHECKING:
    from stepscope.app.replay.what_if.choices import Choices

EXAMPLE = "--variant after, or num_kv_blocks=80"
NOT_POSSIBLE = "this trace cannot be run otherwise"
HEADING = "what if"


def placeholder(choices: Choices) -> str:
    """What a line may look like, of this trace."""
    variant = next((each.words for each in choices.listed()), "")
    return f"for example {variant}" if variant else "for example --set K=V"


def choices_told(choices: Choices) -> Iterator[Block]:
    """As what it can be run, and what a line may hold."""
    yield Paragraph(SAYS[choices.kind], Tone.MUTED)
    if choices.kind is Kind.RESIMULATED:
        yield Paragraph(
            "to ask the scheduler that recorded it: stepscope replay TRACE --python ENV "
            "--set NAME=VALUE",
            Tone.MUTED,
        )
    yield Table(("", ""), FORMS, is_ruled=False)


def run_told(run: Run, now_s: float, step_at: Target | None = None) -> list[Block]:
    """A run as far as it is: at work, failed, or what came of it.

    `step_at` is where the step leads at which the runs diverge, if not to that of the usual rank.
    """
    blocks: list[Block] = [Title(f"{HEADING} {run.asked.words}")]
    if run.came:
        return [*blocks, *_came(run, run.came, step_at)]
    if run.failed:
        return [*blocks, Paragraph(run.failed, Tone.WARNING)]
    return [*blocks, Paragraph(at_work(run, now_s))]


def at_work(run: Run, now_s: float) -> str:
    """What a run is at, in a line."""
    share = f" {run.done:,} of {run.total:,}" if run.total else ""
    return f"{run.what}{share} · {max(now_s - run.began_s, 0):.0f} s"


def ended(run: Run) -> str:
    """What became of a run that is over, in a line."""
    if run.failed:
        return f"{HEADING} {run.asked.words}: {run.failed}"
    return f"{HEADING} {run.asked.words}: {run.came.verdict[0] if run.came else ''}"


def _came(run: Run, came: Came, step_at: Target | None) -> Iterator[Block]:
    if came.kind is not Kind.RESIMULATED:  # which says so where it tells how it was run
        yield Paragraph(SAYS[came.kind], Tone.MUTED)
    for name, line in zip("AB", came.ran, strict=False):
        yield Fact(name, (line.removeprefix("recorded  ").removeprefix("replayed  "),))
    yield from (Paragraph(line) for line in came.ran[2:])
    yield Heading("first divergence")
    to = None if came.step is None else step_at or AtStep(came.step, came.rank or None)
    yield Runs(((came.verdict[0], Tone.TEXT),), to)
    yield from (Paragraph(line) for line in came.rows)
    yield from (Paragraph(line, Tone.MUTED) for line in came.verdict[1:])
    yield from _findings(came)
    yield Heading("what came of it")
    yield _table(came.totals)
    if came.causes:
        yield Heading("where the time went")
        yield _table(came.causes)
    for change, those in came.who:
        yield Heading(change)
        yield Items(those)
    if came.given:
        yield Heading("what was given differently")
        yield _table(came.given)
    yield from _to_go_on(run)


def _findings(came: Came) -> Iterator[Block]:
    yield Heading("findings, gone and new")
    if came.findings:
        yield _table(came.findings, tuple(RulePage(row[0]) for row in came.findings.rows))
    yield from (Paragraph(line, Tone.MUTED) for line in came.judged)


def _to_go_on(run: Run) -> Iterator[Block]:
    yield Heading("to go on")
    yield Fact("look at B", (shlex.join(["stepscope", "tui", str(run.out)]),))
    yield Fact("the same", (run.command,))


def _table(figures: Figures, leads: tuple[Target | None, ...] = ()) -> Table:
    is_of_numbers = figures.columns[0] != "given differently"
    right = figures.columns[1:] if is_of_numbers else ()
    return Table(
        figures.columns, figures.rows, to_right=right, num_more=figures.num_more, is_ruled=False,
        leads=leads,
    )  # fmt: skip
