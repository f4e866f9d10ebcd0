"""Requests that look: ranks, what a rank stands in, its state, and what is asked about it."""

from __future__ import annotations

import re
from typing import Any

from stepscope.app.dap.arguments import (
    Expression,
    Nothing,
    OfFrame,
    OfThread,
    Page,
    Source,
    SourceOf,
    Stack,
    Typed,
)
from stepscope.app.dap.desk import Desk
from stepscope.app.dap.policy_source import policy_frames
from stepscope.app.dap.shown_state import standing_at
from stepscope.app.dap.step_list import line_of, rank_of, source_of, text_of
from stepscope.app.debug.commands import name_of, run
from stepscope.app.debug.commands.answer import Answer
from stepscope.app.debug.commands.completing import completions
from stepscope.app.debug.commands.moving import MOVING
from stepscope.app.debug.commands.where_it_is import row_text
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.moments import Position
from stepscope.app.present.plain_text import lines
from stepscope.app.printable import plain
from stepscope.ingest.errors import ConfigError, StepscopeError

CONSOLE = "repl"
STEPS_TYPE = "text/x-stepscope-steps"
"""What a list of steps is, so that an editor can allow breakpoints in it."""
LOOKS = (
    "where", "state", "print", "why", "list", "diff", "value", "who", "sql", "all", "info", "help",
)  # fmt: skip
"""Commands that leave position, stops and flags as they are, so that a watch may ask them."""
MOVES = frozenset({"rwatch", *(command.name for command in MOVING.commands)})
_QUERY = re.compile(r"\s*(select|with)\b", re.IGNORECASE)


def threads(desk: Desk, _given: Nothing) -> dict[str, Any]:
    """The ranks; the number of a thread is one more than its rank."""
    known = desk.debugger.ranks
    return {"threads": [{"id": rank + 1, "name": f"rank {rank}"} for rank in known]}


def stack(desk: Desk, given: Stack) -> dict[str, Any]:
    """Where the policy took the last decision, if that is told, the decision, and the step."""
    debugger, rank = desk.debugger, given.thread_id - 1
    if rank not in debugger.ranks:
        raise ConfigError(f"no thread {given.thread_id}", todo="threads lists them")
    at = {debugger.rank: debugger.position, **dict(debugger.others())}[rank]
    frames = _frames(desk, rank, at)
    end = given.start_frame + given.levels if given.levels > 0 else None
    shown = [{"id": desk.shown.add_frame(at), **frame} for frame in frames[given.start_frame : end]]
    return {"stackFrames": shown, "totalFrames": len(frames)}


def scopes(desk: Desk, given: OfFrame) -> dict[str, Any]:
    """The sides of the state."""
    return {"scopes": desk.shown.scopes(desk.debugger, given.frame_id)}


def variables(desk: Desk, given: Page) -> dict[str, Any]:
    """A page of what is below a scope or a variable."""
    if given.start < 0 or given.count < 0:
        raise ConfigError("a page begins at 0 or later, and has no fewer than 0 variables")
    return {"variables": desk.shown.variables(given)}


def source(desk: Desk, given: SourceOf) -> dict[str, Any]:
    """The steps of a rank, a line for each."""
    number = given.source_reference or given.source.source_reference
    wanted = Source(given.source.name, given.source.path, number)
    content = text_of(desk.debugger, rank_of(desk.debugger, wanted))
    return {"content": content, "mimeType": STEPS_TYPE}


def sources(desk: Desk, _given: Nothing) -> dict[str, Any]:
    """The list of steps of each rank."""
    return {"sources": [source_of(rank) for rank in desk.debugger.ranks]}


def evaluate(desk: Desk, given: Expression) -> dict[str, Any]:
    """Answer a command of the prompt, a query, or why a request waits."""
    debugger, before = desk.debugger, desk.debugger.position
    at = before if given.frame_id is None else desk.shown.frame(given.frame_id)
    line = _line(debugger, given)
    name = name_of(line)
    if given.context != CONSOLE and name not in {None, *LOOKS}:
        raise ConfigError(f"a watch does not {name}", todo="type it into the debug console")
    if name in MOVES:
        answer = _moved_from(debugger, at, line)
    else:
        with standing_at(debugger, at):
            answer = run(debugger, line)
    if debugger.position != before:
        desk.stopped("goto")
    if answer.ends:
        desk.tell("terminated")
    return _told(desk, answer)


def complete(desk: Desk, given: Typed) -> dict[str, Any]:
    """What may follow what was typed."""
    typed = given.text[: max(given.column - desk.first_column, 0)]
    return {
        "targets": [
            {"label": each.word, "start": len(typed) - each.replaces, "length": each.replaces}
            for each in completions(desk.debugger, typed)
        ]
    }


def exception(desk: Desk, _given: OfThread) -> dict[str, Any]:
    """What the rules say of the finding that it stopped at."""
    found = desk.finding
    if found is None:
        raise ConfigError("it stopped at no finding")
    message = plain(found["message"])
    return {
        "exceptionId": plain(found["code"]), "description": message, "breakMode": "always",
        "details": {"typeName": plain(found["name"] or found["code"]), "message": message},
    }  # fmt: skip


def _moved_from(debugger: Debugger, at: Position, line: str) -> Answer:
    """Run a line that moves from where a frame is, in its rank; what fails moves nothing."""
    before = debugger.position
    debugger.go(at)
    try:
        return run(debugger, line)
    except StepscopeError:
        debugger.go(before)
        raise


def _line(debugger: Debugger, given: Expression) -> str:
    text = given.expression.strip()
    if _QUERY.match(text):
        return f"sql {text}"
    if name_of(text) is None and text in debugger.tables.requests:
        return f"why {text}"
    return text


def _told(desk: Desk, answer: Answer) -> dict[str, Any]:
    below = desk.shown.add(answer.facts)
    return {"result": "\n".join(lines(answer.blocks)), "variablesReference": below}


def _frames(desk: Desk, rank: int, at: Position) -> list[dict[str, Any]]:
    place: dict[str, Any] = {"line": 0, "column": 0}
    if line := line_of(desk.debugger, rank, at.step):
        place = {
            "line": line - 1 + desk.first_line, "column": desk.first_column,
            "source": source_of(rank),
        }  # fmt: skip
    name = f"step {at.step}" if at.step is not None else "before the first step"
    step = {"name": name, **place}
    if (row := _decided(desk.debugger, rank, at)) is None:
        return [step]
    site = row.get("site")
    inner = policy_frames(site, desk.first_line, desk.first_column) if site else []
    return [*inner, {"name": plain(row_text(row, "decisions")), **place}, step]


def _decided(debugger: Debugger, rank: int, at: Position) -> dict[str, Any] | None:
    """The last decision that is of the step or of the one that is being formed."""
    if not debugger.tables.is_recorded("decisions"):
        return None
    last = debugger.tables.then("decisions", rank, at).tail(1).collect().to_dicts()
    row = last[0] if last else {}
    is_old = at.step is not None and row.get("step") is not None and row["step"] < at.step
    return None if is_old or not row else row
