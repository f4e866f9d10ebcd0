"""Over HTTP nobody is answered but who has the token, by our own name, from no other page."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from tests.app.mcp.test_over_stdio import COMMAND, HELLO, PATIENCE_S, TRACE
from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@dataclass(frozen=True)
class Served:
    """A server that listens, as it has told on stderr."""

    port: int
    token: str
    process: subprocess.Popen[str]

    def ask(
        self, headers: Mapping[str, str], body: bytes | None = None, *, path: str = "/mcp"
    ) -> tuple[int, bytes]:
        """Post a body and give status and answer; without a Host it is our own."""
        own = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        sent = json.dumps(HELLO).encode() if body is None else body
        own.request("POST", path, sent, {**JSON, **headers})
        answer = own.getresponse()
        told = answer.status, answer.read()
        own.close()
        return told

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@pytest.fixture(scope="module")
def served(sample_traces: Path) -> Iterator[Served]:
    process = subprocess.Popen(
        [*COMMAND, str(sample_traces), "--http"], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    address = process.stderr.readline()
    token = process.stderr.readline().removeprefix("token: ").strip()
    port = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", address)
    assert port, address
    yield Served(int(port[1]), token, process)
    process.terminate()
    out, err = process.communicate(timeout=PATIENCE_S)
    assert out == ""
    assert token not in err


def test_who_has_the_token_is_answered(served: Served) -> None:
    assert served.ask(served.bearer)[0] == 200


@looped("name", ["127.0.0.1", "localhost"])
def test_it_has_the_names_of_this_machine(served: Served, name: str) -> None:
    assert served.ask({**served.bearer, "Host": f"{name}:{served.port}"})[0] == 200


@looped(
    "headers",
    [{}, {"Authorization": "Bearer "}, {"Authorization": "Bearer wrong"},
     {"Authorization": "Basic x"},
     {"Authorization": "é"}, {"Cookie": "token=x"}],
)  # fmt: skip
def test_who_has_not_is_refused(served: Served, headers: dict[str, str]) -> None:
    status, said = served.ask(headers)

    assert status == 401
    assert b"send the token" in said


def test_the_token_in_the_address_is_no_token(served: Served) -> None:
    assert served.ask({}, path=f"/mcp?token={served.token}")[0] == 401


@looped(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "127.0.0.1", "[::1]:1"]
)
def test_a_name_that_is_not_ours_is_refused_with_the_token_as_well(
    served: Served, host: str
) -> None:
    assert served.ask({**served.bearer, "Host": host})[0] == 421


@looped("origin", ["http://evil.example", "null", "https://127.0.0.1", "file://"])
def test_another_page_is_refused_with_the_token_as_well(served: Served, origin: str) -> None:
    assert served.ask({**served.bearer, "Origin": origin})[0] == 403


def test_a_body_that_is_too_long_is_refused(served: Served) -> None:
    assert served.ask(served.bearer, b"x" * 1_100_000)[0] == 413


@looped("path", ["/", "/../etc/passwd", "/mcp/x", "/docs", "/openapi.json"])
def test_there_is_one_address(served: Served, path: str) -> None:
    assert served.ask(served.bearer, path=path)[0] in {404, 405}


def test_it_listens_on_loopback_alone(served: Served) -> None:
    table = Path("/proc/net/tcp")
    if not table.exists():
        pytest.skip("only Linux tells who listens where")
    local = [line.split()[1] for line in table.read_text().splitlines() if " 0A " in line]

    assert [each for each in local if each.endswith(f":{served.port:04X}")] == [
        f"0100007F:{served.port:04X}"
    ]


def test_a_client_of_the_sdk_asks_over_http(served: Served) -> None:
    async def talk() -> None:
        async with (
            httpx2.AsyncClient(headers=served.bearer) as own,
            streamable_http_client(
                f"http://127.0.0.1:{served.port}/mcp", http_client=own
            ) as streams,
            ClientSession(streams[0], streams[1]) as client,
        ):
            await client.initialize()
            asked = [client.call_tool("state", {"trace": TRACE, "at": at}) for at in range(1, 6)]
            answers = await asyncio.gather(*asked)
            steps = [each.structured_content["data"]["position"]["step"] for each in answers]
            assert steps == [1, 2, 3, 4, 5]

    asyncio.run(talk())


def test_a_port_that_is_taken_is_one_line(served: Served, sample_traces: Path) -> None:
    run = subprocess.run(
        [*COMMAND, str(sample_traces), "--http", "--port", str(served.port)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip

    assert run.returncode == 2
    assert run.stderr.startswith(f"stepscope: port {served.port} cannot be had")
    assert len(run.stderr.splitlines()) == 1


@slow
def test_it_is_a_new_token_at_each_start(served: Served, sample_traces: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "stepscope.app", "mcp", str(sample_traces), "--http"],
        cwd=ROOT, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        told = [process.stderr.readline() for _ in range(2)]
        process.terminate()

    assert re.fullmatch(r"token: [\w-]{43}\n", told[1])
    assert served.token not in told[1]
