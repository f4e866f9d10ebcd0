"""Blocks as components of Dash: text is only ever a text node, and a link an address of ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, assert_never

from dash import html
from dash.development.base_component import Component

from stepscope.app.present.blocks import (
    AtChange,
    AtFinding,
    AtRequest,
    AtSpan,
    AtStep,
    Block,
    Fact,
    Heading,
    Items,
    Link,
    Links,
    Paragraph,
    RulePage,
    Runs,
    Swatch,
    Table,
    Target,
    Title,
    Tone,
)  # fmt: skip
from stepscope.app.printable import plain
from stepscope.app.web.shades import shade
from stepscope.app.web.view import View

Children = list[Component]


def components(blocks: Iterable[Block], more: Sequence[Component] = ()) -> Children:
    """The blocks from top to bottom; `more` stands beside the last links, or in a line below."""
    found: Children = []
    for _, group in groupby(blocks, key=lambda block: isinstance(block, Fact)):
        alike = list(group)
        facts = [block for block in alike if isinstance(block, Fact)]
        found += [_facts(facts)] if facts else map(_component, alike)
    if more:
        last = found.pop() if found and _is_links(found[-1]) else html.Div([], className="links")
        last.children = [*last.children, *more]
        found.append(last)
    return found


def _component(block: Block) -> Component:
    match block:
        case Title():
            made = _title(block)
        case Heading():
            made = _heading(block)
        case Paragraph():
            made = _paragraph(block)
        case Fact():
            made = _facts([block])
        case Items():
            made = _items(block)
        case Runs():
            made = _runs(block)
        case Links():
            made = _links(block)
        case Table():
            made = _table(block)
        case _:
            assert_never(block)
    return made


def _title(block: Title) -> Component:
    return html.H2(plain(block.text), className=_class(block.tone))


def _heading(block: Heading) -> Component:
    if not block.note:
        return html.H3(plain(block.text))
    return html.H3([f"{plain(block.text)} ", html.Span(plain(block.note), className="note")])


def _paragraph(block: Paragraph) -> Component:
    return html.P(plain(block.text), className=_class(block.tone))


def _items(block: Items) -> Component:
    return html.Ul([html.Li(plain(line)) for line in block.lines], className="reasons")


def _runs(block: Runs) -> Component:
    told = [html.Span(plain(text), className=_class(tone)) for text, tone in block.parts]
    href = href_of(block.to) if block.to else ""
    return html.P(html.A(told, href=href, className="line") if href else told)


def _links(block: Links) -> Component:
    return html.Div([_link(each) for each in block.choices if href_of(each.to)], className="links")


def _table(table: Table) -> Component:
    """A table under its title; a cell that is cut, and what is noted of a row, show on pointing."""
    kinds = ["number" if each else "" for each in table.stands_right()]
    notes = table.notes or [""] * len(table.rows)
    leads = table.leads or [None] * len(table.rows)
    body = [
        html.Tr(_row(row, kinds, to), title=plain(note))
        for row, note, to in zip(table.rows, notes, leads, strict=True)
    ]
    names = zip(table.columns, kinds, strict=True)
    head = [html.Thead(html.Tr([html.Th(plain(name), className=kind) for name, kind in names]))]
    shown: Children = [html.Table([*(head if any(table.columns) else []), html.Tbody(body)])]
    if table.title:
        shown.insert(0, html.H3(plain(table.title)))
    if table.num_more:
        shown.append(html.P(f"and {table.num_more:,} more", className="muted"))
    return shown[0] if len(shown) == 1 else html.Section(shown)


def _facts(facts: Sequence[Fact]) -> Component:
    """Labels beside one value or two; a second that differs from the first stands out."""
    three = any(len(fact.values) > 1 for fact in facts)
    cells = [cell for fact in facts for cell in _fact(fact)]
    return html.Dl(cells, className="facts three" if three else "facts")


def _fact(fact: Fact) -> Iterator[Component]:
    first, *_ = values = [plain(value) for value in fact.values]
    href, label = href_of(fact.to) if fact.to else "", plain(fact.label)
    yield html.Dt(html.A(label, href=href, className="link") if href else label)
    for at, value in enumerate(values):
        changed = len(values) == 2 and at and value != first
        yield html.Dd(value, className="changed" if changed else "")


def _row(row: Sequence[object], kinds: Sequence[str], to: Target | None) -> Children:
    """The cells of a row; the first text of one that leads somewhere is a link."""
    cells = [_cell(*each) for each in zip(row, kinds, strict=True)]
    href = href_of(to) if to else ""
    first = next((at for at, value in enumerate(row) if isinstance(value, str) and value), None)
    if href and first is not None:
        text = plain(str(row[first]))
        link = html.A(text, href=href, className="link")
        cells[first] = html.Td(link, className=kinds[first], title=text)
    return cells


def _cell(value: object, kind: str) -> Component:
    if isinstance(value, Swatch):
        return html.Td(swatch(value), className=kind)
    if value is None:
        return html.Td("—", className=kind)
    text = f"{value:,}" if isinstance(value, int) else plain(str(value))
    return html.Td(text, className=kind, title=text)


def swatch(shown: Swatch) -> Component:
    """What stands for a state, in its colour."""
    style = {"--colour": shade(shown.colour)}
    return html.Span(plain(shown.glyph), className=f"swatch {shown.cue}", style=style)


def _link(link: Link) -> Component:
    return html.A(plain(link.text), href=href_of(link.to))


def href_of(to: Target, findings: Sequence[str] = ()) -> str:  # noqa: PLR0911 - one for each
    """The address of a target; empty where the page has no place for it.

    `findings` are their keys, in order.
    """
    match to:
        case RulePage(code):
            return View().link(explain=plain(code))
        case AtStep(step):
            return View().link(tab="step", step=step, rank=None)
        case AtRequest(rank, request):
            return View().link(tab="request", rank=rank, request=request)
        case AtChange(seq, rank=rank):
            elsewhere = {} if rank is None else {"rank": rank}
            return View().link(tab="step", seq=seq, **elsewhere)
        case AtSpan(lane, since_ns):
            return View().link(sel=(lane, since_ns))
        case AtFinding(index) if index < len(findings):
            return View().link(finding=findings[index])
    return ""


def _class(tone: Tone) -> str:
    return "" if tone is Tone.TEXT else str(tone)


def _is_links(component: Any) -> bool:
    return getattr(component, "className", "") == "links"
