"""`stepscope mcp` as a client starts it: stdout has the protocol alone."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import PaginatedRequestParams, TextResourceContents

from stepscope.app.mcp.answering.sent_page import SCHEMA
from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow

COMMAND = [sys.executable, "-m", "stepscope.app", "mcp"]
TRACE = "fcfs-preemption-before.trace"
PATIENCE_S = 180
"""A machine may be busy with other things; nothing here waits this long."""
HELLO = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Raw:
    """A client that writes lines and reads what comes, whatever it is."""

    def __init__(self, *folders: Path) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, folders)], cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.say(HELLO)
        self.hear()
        self.say(READY)

    def say(self, *messages: dict[str, Any] | str) -> None:
        assert self.process.stdin is not None
        for each in messages:
            self.process.stdin.write(f"{each if isinstance(each, str) else json.dumps(each)}\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        heard = json.loads(self.process.stdout.readline())
        assert isinstance(heard, dict)
        assert heard["jsonrpc"] == "2.0"
        return heard

    def end(self) -> tuple[str, str]:
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return out, err


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


@pytest.fixture
def raw(sample_traces: Path) -> Iterator[Raw]:
    yield from _talking(sample_traces)


@pytest.fixture(scope="module")
def patient(sample_traces: Path) -> Iterator[Raw]:
    """One that is told much and stays."""
    yield from _talking(sample_traces)


def _talking(folder: Path) -> Iterator[Raw]:
    client = Raw(folder)
    yield client
    if client.process.poll() is None:
        client.process.kill()
    client.process.communicate()


@slow
def test_a_client_of_the_sdk_lists_and_calls_every_tool(sample_traces: Path) -> None:
    async def talk() -> None:
        server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], str(sample_traces)])
        async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
            hello = await client.initialize()
            assert "Unknown is not zero" in (hello.instructions or "")
            listed = (await client.list_tools()).tools
            for tool in listed:
                assert tool.annotations is not None
                assert tool.annotations.read_only_hint
                assert tool.output_schema == SCHEMA
            # The client holds what comes against the output schema.
            answer = await client.call_tool("state", {"trace": TRACE, "at": 40, "side": "waiting"})
            assert not answer.is_error
            assert answer.structured_content["rows"]["of"] == 10
            refused = await client.call_tool("open", {"trace": "/etc/passwd"})
            assert refused.is_error

    asyncio.run(talk())


@slow
def test_resources_are_the_pages_of_rules_and_of_the_schema(sample_traces: Path) -> None:
    async def talk() -> None:
        server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], str(sample_traces)])
        async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            listed, cursor = [], None
            while True:
                page = await client.list_resources(params=PaginatedRequestParams(cursor=cursor))
                listed += [str(each.uri) for each in page.resources]
                if (cursor := page.next_cursor) is None:
                    break
            assert len(listed) == len(set(listed)) > 90
            for uri in listed:
                (content,) = (await client.read_resource(uri)).contents
                assert isinstance(content, TextResourceContents)
                assert 50 < len(content.text.encode()) < 50_000
            templates = (await client.list_resource_templates()).resource_templates
            assert len(templates) == 2
            for uri in (
                "stepscope://rules/NOSUCH",
                "stepscope://tables/../x",
                "file:///etc/passwd",
            ):
                with pytest.raises(Exception, match="there is no"):
                    await client.read_resource(uri)

    asyncio.run(talk())


def test_calls_at_once_are_all_answered(patient: Raw) -> None:
    query = "select N n from steps limit 1"
    for number in range(1, 30):
        patient.say(call(number, "sql", trace=TRACE, query=query.replace("N", str(number))))

    heard = [patient.hear() for _ in range(1, 30)]

    told = {each["id"]: each["result"]["structuredContent"]["data"]["rows"] for each in heard}
    assert told == {number: [[number]] for number in range(1, 30)}


@slow
def test_a_call_that_is_cancelled_leaves_the_next_its_answer(raw: Raw) -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    raw.say(call(1, "check", trace="mix-admission-before.trace"), cancel,
            call(2, "sql", trace=TRACE, query="select count(*) from steps"))  # fmt: skip

    heard = raw.hear()
    while heard["id"] != 2:
        heard = raw.hear()

    assert heard["result"]["structuredContent"]["data"]["rows"] == [[88]]


@looped(
    "line",
    ["{", "[]", "null", '{"jsonrpc": "2.0"}', "x" * 2_000_000, "\x00\x01", '{"id": 5}'],
    ids=["cut", "list", "null", "empty", "long", "control", "no method"],
)
def test_a_line_that_is_no_message_is_answered_with_an_error_and_ends_nothing(
    patient: Raw, line: str
) -> None:
    patient.say(line, {"jsonrpc": "2.0", "id": 9, "method": "ping"})

    heard = [patient.hear()]
    while heard[-1]["id"] != 9:
        heard.append(patient.hear())
    assert len(heard) == 2
    error, answer = heard

    assert error["id"] is None
    assert error["error"]["code"] == (-32700 if line[0] in "{x\0" and line[-1] != "}" else -32600)
    assert len(error["error"]["message"]) < 200
    assert (answer["id"], answer["result"]) == (9, {})


def test_an_empty_line_is_not_answered(patient: Raw) -> None:
    patient.say("", "  ", {"jsonrpc": "2.0", "id": 9, "method": "ping"})

    assert patient.hear()["id"] == 9


def test_it_ends_when_its_client_goes_and_says_nothing_else(raw: Raw) -> None:
    out, err = raw.end()

    assert (raw.process.returncode, out, err) == (0, "", "")


def test_it_ends_when_its_client_goes_in_the_midst_of_a_call(raw: Raw) -> None:
    raw.say(call(1, "check", trace="mix-admission-before.trace"))
    assert raw.process.stdin is not None
    assert raw.process.stdout is not None
    raw.process.stdin.close()
    raw.process.stdout.close()

    raw.process.wait(timeout=PATIENCE_S)

    raw.process.stdin = raw.process.stdout = None


@slow
def test_it_ends_at_once_on_a_signal(raw: Raw) -> None:
    os.kill(raw.process.pid, signal.SIGTERM)

    assert raw.process.wait(timeout=PATIENCE_S) != 0


def test_what_it_opens_it_does_not_write_to(patient: Raw, sample_traces: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in sample_traces.rglob("*")}

    patient.say(call(1, "summary", trace=TRACE), call(2, "why", trace=TRACE, who="req-07"))
    assert {patient.hear()["id"], patient.hear()["id"]} == {1, 2}

    assert {file: file.stat().st_mtime_ns for file in sample_traces.rglob("*")} == before


def test_no_other_command_waits_for_the_sdk() -> None:
    script = (
        "import sys; from stepscope.app.cli.main import main; main(['explain', 'STV001']); "
        "main(['mcp', '--help']); main(['skill']); print(sorted({'mcp', 'mcp_types', 'pydantic', "
        "'starlette', 'uvicorn'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert run.stdout.splitlines()[-1] == "[]"


@slow
def test_the_list_of_tools_is_short_enough_to_be_read(patient: Raw) -> None:
    patient.say({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})

    told = json.dumps(patient.hear()["result"])

    assert len(told.encode()) // 2 < 20_000
