"""What is wrong with a run, as the rules say, and which of them could not judge."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated

from stepscope.app.mcp.answering.uncut import Answer, NotRecorded
from stepscope.app.mcp.tools.tool import Arguments, Tool, TraceName, text

if TYPE_CHECKING:
    from stepscope.analyzers.check.run import CheckResult
    from stepscope.app.mcp.desk.held_traces import HeldTraces


class Checked(Arguments, frozen=True):
    """Which trace, and what of the findings."""

    trace: TraceName
    rules: Annotated[
        str,
        text(
            "Only findings of these rules or families, by commas, as in STV001,KVB; empty for all."
        ),
    ] = ""
    request: Annotated[str, text("Only findings that name this request; empty for all.", 4_096)] = (
        ""
    )


def _answer(held: HeldTraces, asked: Checked) -> Answer:
    from stepscope.analyzers.check.registry import usable_rules
    from stepscope.app.mcp.answering.marked_text import named_as
    from stepscope.ingest.errors import ConfigError
    from stepscope.ingest.query import near

    opened = held.trace(asked.trace)
    result = opened.checked
    wanted = tuple(code.strip().upper() for code in asked.rules.split(",") if code.strip())
    codes = {rule.code for rule in usable_rules()}
    for code in wanted:
        if not any(known.startswith(code) for known in codes):
            todo = near(code, sorted(codes | {known[:3] for known in codes}))
            raise ConfigError(f"there is no rule {code}", todo=todo)
    found = [each for each in result.findings if not wanted or each.code.startswith(wanted)]
    if asked.request:
        names = {each.request for each in found if each.request is not None}
        name = named_as(asked.request, names)
        found = [each for each in found if each.request == name]
    judged = {code: num for code, num in result.counts.items() if _is_of(code, wanted)}
    return Answer(
        {
            "trace": opened.name,
            "coverage": result.coverage.share,
            "found": {code: num for code, num in judged.items() if num},
            "clean": [code for code, num in judged.items() if not num],
        },
        [{name: value for name, value in each.as_dict().items() if value is not None}
         for each in found],
        "findings, the most severe first",
        tuple(_not_judged(result, wanted)),
        notes=(
            "clean is a rule that could judge and found nothing; one that is not applicable says "
            "nothing, and is not clean",
            "explain has the page of a rule: why it hurts, and how to fix it",
        ),
    )  # fmt: skip


def _is_of(code: str, wanted: tuple[str, ...]) -> bool:
    return not wanted or code.startswith(wanted)


def _not_judged(result: CheckResult, wanted: tuple[str, ...]) -> list[NotRecorded]:
    """Rules that could not judge, by what they lack."""
    by_need: defaultdict[str, list[str]] = defaultdict(list)
    for code, needs in result.lacking.items():
        if _is_of(code, wanted):
            by_need[", ".join(needs)].append(code)
    return [
        NotRecorded(f"what {', '.join(codes)} would judge by", f"it takes {needs}")
        for needs, codes in sorted(by_need.items(), key=lambda pair: -len(pair[1]))
    ]


CHECK = Tool(
    "check",
    "Check a trace",
    "Run the rules over a trace and list what they find: requests that starve, batches that exceed "
    "a budget, KV blocks with two owners, cores that idle, and more, each with its step, evidence "
    "and fix. Says which rules were clean, and which could not judge for want of a recording.",
    Checked,
    _answer,
)
