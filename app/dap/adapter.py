"""Answers requests of the Debug Adapter Protocol: of each name what it takes and who does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from stepscope.app.dap import look_requests, move_requests, stop_requests
from stepscope.app.dap.arguments import (
    Client,
    Data,
    DataBreakpoints,
    Expression,
    Filters,
    FunctionBreakpoints,
    Launch,
    Line,
    Nothing,
    OfFrame,
    OfThread,
    Page,
    SourceBreakpoints,
    SourceOf,
    Stack,
    Target,
    Typed,
)
from stepscope.app.dap.desk import Desk, OpenTrace
from stepscope.app.printable import plain
from stepscope.ingest.errors import ConfigError, StepscopeError

CAPABILITIES: Final[Mapping[str, Any]] = {
    "supportsConfigurationDoneRequest": True,
    "supportsFunctionBreakpoints": True,
    "supportsConditionalBreakpoints": True,
    "supportsDataBreakpoints": True,
    "supportsStepBack": True,
    "supportsSteppingGranularity": True,
    "supportsGotoTargetsRequest": True,
    "supportsCompletionsRequest": True,
    "supportsEvaluateForHovers": True,
    "supportsLoadedSourcesRequest": True,
    "supportsExceptionInfoRequest": True,
    "supportsTerminateRequest": True,
    "exceptionBreakpointFilters": [
        {"filter": severity, "label": f"findings: {severity}", "default": False}
        for severity in stop_requests.SEVERITIES
    ],
}


def initialize(desk: Desk, given: Client) -> Mapping[str, Any]:
    """Tell what we can do, and learn how the client counts."""
    desk.first_line, desk.first_column = int(given.lines_start_at1), int(given.columns_start_at1)
    return CAPABILITIES


def launch(desk: Desk, given: Launch) -> Mapping[str, Any]:
    """Open a trace."""
    desk.launch(None if given.trace is None else Path(given.trace), given.rank)
    return {}


def configured(desk: Desk, _given: Nothing) -> Mapping[str, Any]:
    """Stand at the first step, now that all stops are set."""
    _ = desk.debugger
    desk.stopped("entry")
    return {}


def terminate(desk: Desk, _given: Nothing) -> Mapping[str, Any]:
    """Tell that the session is over."""
    desk.tell("terminated")
    return {}


def disconnect(desk: Desk, _given: Nothing) -> Mapping[str, Any]:
    """End with this answer."""
    desk.has_ended = True
    return {}


Request = tuple[type[Any], Callable[[Desk, Any], Mapping[str, Any]]]
REQUESTS: Final[Mapping[str, Request]] = {
    "initialize": (Client, initialize),
    "launch": (Launch, launch),
    "attach": (Launch, launch),
    "configurationDone": (Nothing, configured),
    "threads": (Nothing, look_requests.threads),
    "stackTrace": (Stack, look_requests.stack),
    "scopes": (OfFrame, look_requests.scopes),
    "variables": (Page, look_requests.variables),
    "source": (SourceOf, look_requests.source),
    "loadedSources": (Nothing, look_requests.sources),
    "exceptionInfo": (OfThread, look_requests.exception),
    "evaluate": (Expression, look_requests.evaluate),
    "completions": (Typed, look_requests.complete),
    "setBreakpoints": (SourceBreakpoints, stop_requests.at_lines),
    "setFunctionBreakpoints": (FunctionBreakpoints, stop_requests.at_names),
    "dataBreakpointInfo": (Data, stop_requests.about_data),
    "setDataBreakpoints": (DataBreakpoints, stop_requests.at_data),
    "setExceptionBreakpoints": (Filters, stop_requests.at_findings),
    "continue": (OfThread, move_requests.go_on),
    "reverseContinue": (OfThread, move_requests.go_back),
    "next": (OfThread, move_requests.next_step),
    "stepIn": (OfThread, move_requests.step_in),
    "stepOut": (OfThread, move_requests.next_step),
    "stepBack": (OfThread, move_requests.step_back),
    "gotoTargets": (Line, move_requests.targets),
    "goto": (Target, move_requests.goto),
    "terminate": (Nothing, terminate),
    "disconnect": (Nothing, disconnect),
}


class Adapter:
    """One client's session: a message in, its answer and what happened out."""

    def __init__(self, open_trace: OpenTrace, path: Path | None = None) -> None:
        self._desk = Desk(open_trace, path)
        self._is_initialized = False
        self._num_sent = 0

    @property
    def has_ended(self) -> bool:
        """Tell whether the client has taken its leave."""
        return self._desk.has_ended

    def answer(self, message: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Answer a request, then tell of events; what is wrong with it is an answer as well."""
        name, number = message.get("command"), message.get("seq")
        head: dict[str, Any] = {
            "type": "response",
            "request_seq": number if isinstance(number, int) else 0,
            "command": name if isinstance(name, str) else "",
        }
        try:
            told: dict[str, Any] = {"success": True, "body": self._done(message)}
        except Exception as error:
            self._desk.events.clear()
            told = _failure(error)
        events: list[dict[str, Any]] = [
            {"type": "event", "event": event, "body": body} for event, body in self._desk.events
        ]
        self._desk.events.clear()
        return [self._numbered(each) for each in ({**head, **told}, *events)]

    def _done(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        name = message.get("command")
        if message.get("type") != "request" or not isinstance(name, str):
            raise ConfigError("the message is no request")
        if name not in REQUESTS:
            raise ConfigError(f"no request is called {name!r}")
        if not self._is_initialized and name not in {"initialize", "disconnect"}:
            raise ConfigError(f"{name} came before initialize")
        takes, does = REQUESTS[name]
        body = does(self._desk, _given(message.get("arguments"), takes))
        self._is_initialized = True
        return body

    def _numbered(self, message: dict[str, Any]) -> dict[str, Any]:
        self._num_sent += 1
        return {"seq": self._num_sent, **message}


def _given(arguments: Any, takes: type[Any]) -> Any:
    try:
        return msgspec.convert({} if arguments is None else arguments, takes)
    except msgspec.ValidationError as error:
        raise ConfigError(f"arguments: {error}") from None


def _failure(error: Exception) -> dict[str, Any]:
    """One line for whatever went wrong; a bug says what to report."""
    is_known = isinstance(error, (StepscopeError, OSError))
    text = str(error) if is_known else f"a bug in stepscope: {type(error).__name__}: {error}"
    line = plain(text.partition("\n")[0])
    return {"success": False, "message": line, "body": {"error": {"id": 1, "format": line}}}
