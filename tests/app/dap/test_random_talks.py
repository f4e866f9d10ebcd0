"""Whatever an editor asks of whatever trace is answered: in pages, in text, or in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from stepscope.app.dap.adapter import Adapter
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

SAMPLES = sorted(
    path.name
    for path in (ROOT / "sample_traces").iterdir()
    if path.suffix in {".trace", ".gz", ".pftrace"}
)
NUM_REQUESTS = 60
LINES = (
    "", "#", "where", "state", "why", "why req-01", "print blocks", "print cores", "who block 5",
    "value dur_ns / 1000", "list", "diff start", "info stops", "help", "goto 50%", "goto end",
    "goto start", "goto 5", "goto #40", "step 3", "backi 2", "continue", "rc", "break preempt",
    "rwatch block 2", "trace preempt => request", "all steps: dur_ns > 0 => dur_ns", "select 1",
    "rank 1", "delete", "quit",
)  # fmt: skip
NAMES = ("preempt", "steps", "step 5", "block 2", "deferred", "core 1", "collectives", "")
CONDITIONS = (None, "", "dur_ns > 0", "num_waiting >", "kind = 'decode'")
MOVES = ("next", "stepIn", "stepOut", "stepBack", "continue", "reverseContinue")


class Talk:
    """Sends what is drawn; remembers the numbers that it was told, as an editor does."""

    def __init__(self, trace: Trace, draw: Random) -> None:
        self.adapter = Adapter(lambda _path: trace, Path("trace"))
        self.draw = draw
        self.frames, self.variables = [0], [0]
        for command in ("initialize", "launch", "configurationDone"):
            self.ask(command)

    def ask(self, command: str, **arguments: Any) -> Mapping[str, Any]:
        message = {"seq": 1, "type": "request", "command": command, "arguments": arguments}
        answer = self.adapter.answer(message)[0]
        told = str(answer.get("message", ""))
        assert "a bug in" not in told, (command, arguments, told)
        assert "\n" not in told
        body: Mapping[str, Any] = answer["body"]
        return body

    def look(self, thread: int) -> None:
        for frame in self.ask("stackTrace", threadId=thread).get("stackFrames", [])[:1]:
            self.frames.append(frame["id"])
            scopes = self.ask("scopes", frameId=frame["id"])["scopes"]
            self.variables = [0, *(scope["variablesReference"] for scope in scopes)]

    def read(self, _thread: int) -> None:
        number, count = self.draw.choice(self.variables), self.draw.choice((0, 2))
        kind = self.draw.choice(("", "indexed", "named"))
        page = {"variablesReference": number, "start": self.draw.choice((0, 3)), "filter": kind}
        told = self.ask("variables", **page, count=count).get("variables", [])
        assert len(told) <= (count or len(told))
        for each in told:
            assert isinstance(each["value"], str)
            self.variables += [each["variablesReference"]] * (each["variablesReference"] > 0)
            self.ask("dataBreakpointInfo", variablesReference=number, name=each["name"])

    def move(self, thread: int) -> None:
        grain = self.draw.choice(("statement", "instruction"))
        self.ask(self.draw.choice(MOVES), threadId=thread, granularity=grain)

    def stop(self, thread: int) -> None:
        condition = self.draw.choice(CONDITIONS)
        line = {"line": self.draw.randrange(-1, 60), "condition": condition}
        self.ask("setBreakpoints", source={"sourceReference": thread}, breakpoints=[line])
        named = {"name": self.draw.choice(NAMES), "condition": condition}
        self.ask("setFunctionBreakpoints", breakpoints=[named])
        self.ask("exceptionInfo", threadId=thread)

    def say(self, _thread: int) -> None:
        line = self.draw.choice(LINES)
        self.ask("completions", text=line, column=self.draw.randrange(len(line) + 2))
        context = self.draw.choice(("repl", "hover"))
        where = {"frameId": self.draw.choice(self.frames)} if self.draw.random() < 0.5 else {}
        self.ask("evaluate", expression=line, context=context, **where)

    def go_on(self) -> None:
        threads = self.ask("threads")["threads"] or [{"id": 1}]
        does = self.draw.choice((self.look, self.read, self.move, self.stop, self.say))
        does(self.draw.choice(threads)["id"])


@slow
@looped("name", SAMPLES)
def test_whatever_is_asked_of_a_sample_is_answered(name: str, sample_traces: Path) -> None:
    talk = Talk(Trace.open(sample_traces / name), Random(name))
    for _ in range(NUM_REQUESTS):
        talk.go_on()


def test_whatever_is_asked_of_an_empty_trace_is_answered() -> None:
    talk = Talk(trace_of(), Random(1))
    for _ in range(NUM_REQUESTS):
        talk.go_on()

    assert talk.ask("threads") == {"threads": []}
