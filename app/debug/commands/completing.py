"""What may follow what was typed so far: commands, then what each of them takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from stepscope.app.debug.commands import COMMANDS, GROUPS
from stepscope.app.debug.commands.answer import Command
from stepscope.app.debug.commands.stopping import ARROW
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.stops.event_stops import WHERE
from stepscope.app.debug.stops.tables import MEANINGS
from stepscope.app.printable import plain
from stepscope.app.queries.query_words import Completion, names_of, query_completions

MOST = 200
WITH_CONDITION = ("break", "watch", "rwatch", "trace", "all", "value")
_BEGUN = re.compile(r"[\w@.#-]*$")
_TABLE = re.compile(r"\s*(\w+)\s*:")


def completions(debugger: Debugger, typed: str) -> list[Completion]:
    """What could be typed on; only words that a terminal shows as they are."""
    name, blank, words = typed.lstrip().partition(" ")
    if not blank:
        meanings = {each.name: each.meaning for group in GROUPS for each in group.commands}
        return list(_beginning(name, meanings.items()))
    command = COMMANDS.get(name)
    if command is None:
        return []
    if command.name == "sql":
        return query_completions(names_of(debugger.trace), words)
    begun = _last(words)
    return list(_beginning(begun, ((word, "") for word in _words(debugger, command, words))))


def _last(words: str) -> str:
    found = _BEGUN.search(words)
    return found[0] if found else ""


def _beginning(begun: str, words: Iterable[tuple[str, str]]) -> Iterator[Completion]:
    fitting = (each for each in words if each[0].startswith(begun) and plain(each[0]) == each[0])
    for _, (word, meaning) in zip(range(MOST), fitting, strict=False):
        yield Completion(word, len(begun), meaning)


def _words(debugger: Debugger, command: Command, words: str) -> Iterable[str]:
    """What a command takes here: columns behind a table's name, requests behind an event."""
    before = words[: len(words) - len(_last(words))].strip()
    if command.name in WITH_CONDITION and before:
        table = _TABLE.match(words)
        if ARROW in before and not table:
            return _columns_of_event(before)
        return MEANINGS.get(table[1], ()) if table else _subjects(debugger, before)
    if before and command.name != "diff":
        return ()
    return command.words(debugger)


def _columns_of_event(words: str) -> list[str]:
    event = words.split(maxsplit=1)[0]
    return [name for table, _, _, events in WHERE if event in events for name in MEANINGS[table]]


def _subjects(debugger: Debugger, before: str) -> Iterable[str]:
    events = {event for _, _, _, known in WHERE for event in known}
    if before == "finding":
        return sorted(debugger.tables.checked.counts)
    return debugger.tables.requests if before in {"request", *events} else ()
