"""The policy's source where it took the last decision, as far as it is at hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import dedent
from typing import Any

from stepscope.app.debug.commands.answer import Answer, said
from stepscope.app.debug.commands.where_it_is import row_text
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.shown.site_source import Place, at_hand, stack_text
from stepscope.app.present.blocks import Paragraph, Table
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.query import near


def list_source(debugger: Debugger, words: str) -> Answer:
    """The source around the site of the last decision, in its innermost function or a named one."""
    decided = last_decision(debugger)
    if decided is None:
        return said("no decision up to here is recorded", site=None)
    told = said(f"decisions: {row_text(decided, 'decisions')}", decision=dict(decided))
    site = decided["site"]
    if site is None:
        return told.then(said("where it was taken is not recorded", site=None))
    places, why_not = at_hand(site)
    if not places:
        facts = {"site": site, "why_not": why_not}
        return told.then(Answer((Paragraph(site), Paragraph(f"not shown: {why_not}")), facts))
    return told.then(_shown(site, places, words))


def functions_here(debugger: Debugger) -> Iterable[str]:
    """The functions of the last decision's site, which `list` may be asked for."""
    site = (last_decision(debugger) or {}).get("site")
    return [place.function for place in at_hand(site).places] if site else []


def last_decision(debugger: Debugger) -> Mapping[str, Any] | None:
    """The row of the last decision up to here; None where there is none."""
    found = debugger.tables.then("decisions", debugger.rank, debugger.position).tail(1).collect()
    return found.row(0, named=True) if len(found) else None


def _shown(site: str, places: tuple[Place, ...], words: str) -> Answer:
    wanted = words or places[-1].function
    known = {place.function: place for place in places}
    if wanted not in known:
        raise ConfigError(f"the decision was not taken in {wanted}", todo=near(wanted, known))
    shown = known[wanted]
    numbers, texts = zip(*shown.around(), strict=True)
    lines = tuple(
        ("→" if number == shown.line else "", number, text)
        for number, text in zip(numbers, dedent("\n".join(texts)).split("\n"), strict=True)
    )
    facts = {
        "site": site, "file": shown.called, "line": shown.line,
        "source": {str(number): text for _, number, text in lines},
    }  # fmt: skip
    blocks = (Paragraph(stack_text(places)), Table(("", "", ""), lines, is_ruled=False))
    return Answer(blocks, facts)
