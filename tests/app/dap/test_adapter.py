"""The adapter, asked as an editor asks it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from stepscope.app.dap.adapter import REQUESTS, Adapter
from stepscope.app.dap.framing import read_message, write_message
from stepscope.app.dap.talking import talk
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from tests.app.debug.small_traces import waiting_on_rank_one
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path))


class Editor:
    """Sends requests; `body` is the last answer, `events` all that was told."""

    def __init__(self, path: Path | None, *, launched: bool = True) -> None:
        self.adapter = Adapter(Trace.open, path)
        self.events: list[tuple[str, dict[str, Any]]] = []
        if launched:
            self.ask("initialize", adapterID="stepscope")
            self.ask("launch")
            self.ask("configurationDone")

    def send(self, command: str, arguments: Any) -> dict[str, Any]:
        message = {"seq": 7, "type": "request", "command": command, "arguments": arguments}
        answer, *events = self.adapter.answer(message)
        self.events += [(each["event"], each["body"]) for each in events]
        assert answer["request_seq"] == 7
        return answer

    def ask(self, command: str, **arguments: Any) -> Any:
        answer = self.send(command, arguments)
        assert answer["success"], answer
        return answer["body"]

    def refused(self, command: str, arguments: Any) -> str:
        answer = self.send(command, arguments)
        assert not answer["success"]
        return str(answer["message"])

    def frame(self, name: str) -> dict[str, Any]:
        frames = self.ask("stackTrace", threadId=1)["stackFrames"]
        return next(frame for frame in frames if frame["name"].startswith(name))

    def scope(self, name: str) -> dict[str, Any]:
        scopes = self.ask("scopes", frameId=self.frame("step")["id"])["scopes"]
        return next(scope for scope in scopes if scope["name"] == name)


@pytest.fixture
def editor(sample_traces: Path) -> Editor:
    return Editor(sample_traces / "fcfs-preemption-before.trace")


def test_find_a_conflict_ask_why_go_back_to_who_took_the_block_and_look_at_the_fix(
    editor: Editor, sample_traces: Path
) -> None:
    editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "finding KVB003"}])
    editor.ask("continue", threadId=1)
    event, stopped = editor.events[-1]
    assert (event, stopped["reason"]) == ("stopped", "function breakpoint")
    assert "KVB003" in stopped["text"]
    assert editor.frame("step")["name"] == "step 67"

    waiting = editor.scope("waiting")
    assert waiting["indexedVariables"] == 39
    why = editor.ask("evaluate", expression="req-01", context="hover")["result"]
    assert "another bucket" in why

    info = editor.ask("dataBreakpointInfo", name="block 2")
    editor.ask("setFunctionBreakpoints", breakpoints=[])
    editor.ask("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"]}])
    editor.ask("reverseContinue", threadId=1)
    assert editor.events[-1][1]["reason"] == "data breakpoint"
    assert "owner=req-01" in editor.events[-1][1]["text"]

    fixed = Editor(sample_traces / "fcfs-preemption-after.trace")
    condition = {"name": "lifecycle", "condition": "cause = 'another bucket runs'"}
    (stop,) = fixed.ask("setFunctionBreakpoints", breakpoints=[condition])["breakpoints"]
    assert stop["message"] == "0 hits"


def test_a_scope_is_told_in_pages_and_rows_have_cells_below_them(editor: Editor) -> None:
    editor.ask("evaluate", expression="goto 67", context="repl")
    number = editor.scope("waiting")["variablesReference"]

    everything = editor.ask("variables", variablesReference=number)["variables"]
    page = editor.ask("variables", variablesReference=number, start=28, count=2)["variables"]
    assert len(everything) == 39
    assert [each["name"] for each in page] == [each["name"] for each in everything[28:30]]
    assert page[0]["name"] == "req-01"
    cells = editor.ask("variables", variablesReference=page[0]["variablesReference"])["variables"]
    assert {"name": "holder", "value": "req-30", "variablesReference": 0} in cells


def test_steps_go_forth_and_back_and_changes_between_them(editor: Editor) -> None:
    for request, step in (("next", 2), ("next", 3), ("stepBack", 2), ("stepOut", 3)):
        editor.ask(request, threadId=1)
        assert editor.frame("step")["name"] == f"step {step}"
    editor.ask("stepIn", threadId=1)
    assert editor.events[-1][1]["text"]
    editor.ask("stepBack", threadId=1, granularity="instruction")
    assert editor.frame("step")["name"] == "step 3"


def test_a_decision_of_an_earlier_step_is_not_in_the_stack(editor: Editor) -> None:
    shown = {}
    for step in (2, 40, 67):
        editor.ask("evaluate", expression=f"goto {step}", context="repl")
        frames = editor.ask("stackTrace", threadId=1)["stackFrames"]
        shown[step] = [frame["name"].split()[0] for frame in frames[-2:]]

    assert shown == {
        2: ["verdict=deferred", "step"], 40: ["step"], 67: ["verdict=preempted", "step"],
    }  # fmt: skip


def test_lines_of_the_steps_can_be_read_stopped_at_and_gone_to(editor: Editor) -> None:
    (source,) = editor.ask("loadedSources")["sources"]
    text = editor.ask("source", **source)["content"].splitlines()
    assert text[66].startswith("step 67 ")
    lines = [{"line": 5}, {"line": 6, "condition": "num_waiting < 0"}, {"line": 999}]
    stops = editor.ask("setBreakpoints", source=source, breakpoints=lines)["breakpoints"]
    assert [stop["message"][:6] for stop in stops] == ["1 hit", "0 hits", "no ste"]
    editor.ask("continue", threadId=1)
    assert editor.frame("step")["line"] == 5
    (target,) = editor.ask("gotoTargets", source=source, line=9)["targets"]
    editor.ask("goto", threadId=1, targetId=target["id"])
    assert editor.frame("step")["line"] == 9


def test_a_breakpoint_in_a_file_is_not_verified_and_says_why(editor: Editor) -> None:
    told = editor.ask("setBreakpoints", source={"path": "a.py"}, breakpoints=[{"line": 3}])

    (stop,) = told["breakpoints"]
    assert not stop["verified"]
    assert "no decision was taken in this file, but in engine/" in stop["message"]


def test_findings_of_a_severity_stop_as_exceptions_do(editor: Editor) -> None:
    told = editor.ask("setExceptionBreakpoints", filters=["warning", "fatal"])["breakpoints"]

    assert [stop["verified"] for stop in told] == [True, False]


def test_a_hover_moves_nothing_and_sql_has_rows_below_it(editor: Editor) -> None:
    before = len(editor.events)
    told = editor.ask("evaluate", expression="select count(*) as n from steps", context="watch")
    refused = editor.refused("evaluate", {"expression": "goto 67", "context": "hover"})

    assert "a watch does not goto" in refused
    assert "88" in told["result"]
    (rows,) = editor.ask("variables", variablesReference=told["variablesReference"])["variables"]
    assert rows["name"] == "rows"
    assert editor.frame("step")["name"] == "step 1"
    assert len(editor.events) == before


@looped("expression", ["delete", "break step 3", "mark here", "rwatch block 2"])
def test_a_watch_that_would_change_something_is_refused_each_time(
    editor: Editor, expression: str
) -> None:
    editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "finding KVB003"}])

    refused = editor.refused("evaluate", {"expression": expression, "context": "watch"})

    assert "type it into the debug console" in refused
    assert "KVB003" in editor.ask("evaluate", expression="info stops", context="repl")["result"]


def test_launch_opens_the_trace_that_it_names(sample_traces: Path) -> None:
    editor = Editor(None, launched=False)
    editor.ask("initialize")

    editor.ask("launch", trace=str(sample_traces / "fcfs-preemption-before.trace"))

    assert editor.ask("threads")["threads"] == [{"id": 1, "name": "rank 0"}]


def test_what_was_typed_is_completed(editor: Editor) -> None:
    labels = [each["label"] for each in editor.ask("completions", text="go", column=3)["targets"]]

    assert labels == ["goto"]


def test_without_stops_continue_goes_to_the_end_and_says_so(editor: Editor) -> None:
    editor.ask("continue", threadId=1)

    assert "no stop is hit" in editor.events[-1][1]["text"]


@looped("command", sorted(set(REQUESTS) - {"initialize", "disconnect"}))
def test_no_request_comes_before_initialize(command: str) -> None:
    assert "before initialize" in Editor(None, launched=False).refused(command, {})


def test_wrong_arguments_are_answered_in_a_line_and_are_never_a_bug(editor: Editor) -> None:
    for command in sorted(set(REQUESTS) - {"launch", "attach"}):
        wrong: tuple[Any, ...] = ([], 5, {"threadId": "x", "trace": 5}, {"threadId": 999})
        for arguments in wrong:
            message = editor.send(command, arguments).get("message", "")
            assert "\n" not in message, command
            assert "a bug in" not in message, command


def test_what_is_no_request_and_a_trace_that_is_none_are_answered(tmp_path: Path) -> None:
    editor = Editor(None, launched=False)
    assert "no request" in editor.adapter.answer({"type": []})[0]["message"]
    editor.ask("initialize")
    assert "names no trace" in editor.refused("launch", {})
    assert "no trace is open" in editor.refused("threads", {})
    assert editor.refused("launch", {"trace": str(tmp_path / "none.trace")})
    assert "no request is called" in editor.refused("restart", {})


def test_a_client_that_takes_its_leave_ends_the_talk() -> None:
    source, out = io.BytesIO(), io.BytesIO()
    for command in ("initialize", "disconnect", "threads"):
        write_message(source, {"seq": 1, "type": "request", "command": command})
    source.seek(0)
    talk(Adapter(Trace.open), source, out)
    out.seek(0)

    answers = iter(lambda: read_message(out), None)
    assert [each["command"] for each in answers] == ["initialize", "disconnect"]


def test_a_slot_that_is_watched_is_that_of_the_rank_whose_frame_shows_it(
    recorded_once: RecordedOnce,
) -> None:
    path = recorded_once.run("ep-multiplexing", "before").path
    assert path is not None
    editor = Editor(path)
    editor.ask("next", threadId=2)
    frame = editor.ask("stackTrace", threadId=1)["stackFrames"][-1]["id"]
    scopes = editor.ask("scopes", frameId=frame)["scopes"]
    slots = next(each for each in scopes if each["name"] == "slots")["variablesReference"]
    slot = editor.ask("variables", variablesReference=slots)["variables"][0]["name"]

    info = editor.ask("dataBreakpointInfo", variablesReference=slots, name=slot)

    assert info["dataId"] == f"slot {slot} of rank 0"


def test_why_of_who_waits_on_another_rank_is_answered_from_there(tmp_path: Path) -> None:
    save_trace(waiting_on_rank_one(), tmp_path / "ranks.trace")
    editor = Editor(tmp_path / "ranks.trace")
    frame = editor.ask("stackTrace", threadId=1)["stackFrames"][0]["id"]

    told = editor.ask("evaluate", expression="why late", frameId=frame, context="repl")["result"]

    assert told.startswith("late of rank 1, as rank 0 has none such: ")
    assert told.splitlines()[-1] == "goto #1 of rank 1"
