"""Help, made of the commands themselves, with examples of what the trace at hand has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stepscope.app.debug.commands.answer import Answer, Command, Group, said
from stepscope.app.debug.commands.why_asked import FORMS as WHY_FORMS
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.facets import FACETS
from stepscope.app.debug.stops import KINDS
from stepscope.app.present.blocks import Block, Paragraph, Table
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.query import near

FORMS_OF_STOPS = ("break", "watch", "rwatch", "trace", "all")


def helping(others: Sequence[Group]) -> Group:
    """The group of `help` and `quit`, which knows all the others."""

    def groups() -> tuple[Group, ...]:
        return (*others, own)

    def helped(debugger: Debugger, words: str) -> Answer:
        return _one(debugger, words, groups()) if words else _overview(debugger, groups())

    def names(_debugger: Debugger) -> Iterable[str]:
        return (command.name for group in groups() for command in group.commands)

    asked = Command("help", "help [COMMAND]", "this list, or one command with examples", helped,
                    ("h", "?"), names, lambda _debugger: "help break")  # fmt: skip
    own = Group("the rest", (asked, Command("quit", "quit", "leave", _quit, ("q", "exit"))))
    return own


def _quit(_debugger: Debugger, _words: str) -> Answer:
    return Answer(ends=True)


def _overview(debugger: Debugger, groups: Iterable[Group]) -> Answer:
    blocks: list[Block] = []
    for group in groups:
        rows = tuple((f"  {each.usage}", each.meaning) for each in group.commands)
        blocks.append(Table(("", ""), rows, group.name, is_ruled=False))
    examples = [each.example(debugger) for group in groups for each in group.commands]
    known = [example for example in examples if example]
    blocks.append(Paragraph(f"for this trace: {' | '.join(known[4:12])}"))
    blocks.append(Paragraph("help COMMAND says more; an empty line repeats the last move"))
    return Answer(tuple(blocks), {"commands": [c.usage for g in groups for c in g.commands]})


def _one(debugger: Debugger, words: str, groups: Iterable[Group]) -> Answer:
    named = {
        name: each for g in groups for each in g.commands for name in (each.name, *each.aliases)
    }
    if words not in named:
        raise ConfigError(f"no command {words!r}", todo=near(words, named))
    command = named[words]
    also = f" (also {', '.join(command.aliases)})" if command.aliases else ""
    told = said(f"{command.usage}{also}: {command.meaning}", usage=command.usage)
    example = command.example(debugger)
    if example:
        told = told.then(said(f"for this trace: {example}", example=example))
    return told.then(Answer(_forms(command)))


def _forms(command: Command) -> tuple[Block, ...]:
    if command.name in FORMS_OF_STOPS:
        rows = tuple((f"  {form}", does) for kind in KINDS for form, does in kind.usage)
        return (Table(("", ""), rows, "it can be", is_ruled=False),)
    if command.name == "why":
        rows = tuple((f"  {form}", does) for form, does in WHY_FORMS)
        return (Table(("", ""), rows, "it can be", is_ruled=False),)
    if command.name == "print":
        rows = tuple((f"  {facet.name}", facet.meaning) for facet in FACETS)
        return (Table(("", ""), rows, "sides", is_ruled=False),)
    return ()
