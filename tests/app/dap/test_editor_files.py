"""What editors are told of us in files agrees with what the adapter does."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from stepscope.app.cli.main import COMMANDS
from stepscope.app.dap.arguments import Launch
from stepscope.app.dap.look_requests import STEPS_TYPE
from tests.conftest import ROOT


@pytest.fixture
def contributed() -> dict[str, Any]:
    text = (ROOT / "editors" / "vscode" / "package.json").read_text("utf-8")
    told: dict[str, Any] = json.loads(text)["contributes"]
    return told


def test_vs_code_starts_our_command_and_may_say_what_launch_takes(
    contributed: dict[str, Any],
) -> None:
    (debugger,) = contributed["debuggers"]
    launch = debugger["configurationAttributes"]["launch"]

    assert [debugger["runtime"], debugger["runtimeArgs"]] == ["stepscope", ["dap"]]
    assert set(launch["properties"]) == set(Launch.__struct_fields__)
    for given in debugger["initialConfigurations"]:
        assert {*given} - {"type", "request", "name"} <= set(launch["properties"])


def test_vs_code_allows_breakpoints_in_lists_of_steps_and_in_policies(
    contributed: dict[str, Any],
) -> None:
    (steps,) = contributed["languages"]

    assert steps["mimetypes"] == [STEPS_TYPE]
    assert [each["language"] for each in contributed["breakpoints"]] == [steps["id"], "python"]


def test_the_page_starts_our_command_in_every_editor() -> None:
    page = (ROOT / "docs" / "dap.md").read_text("utf-8")
    snippets = re.findall(r"```(?:lua|json)\n(.*?)```", page, re.DOTALL)

    assert len(snippets) == 2
    assert "dap" in COMMANDS
    for snippet in snippets:
        assert "trace" in snippet
        assert "launch" in snippet
