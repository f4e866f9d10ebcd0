"""What may be asked is said in full, and whatever else is asked is refused in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepscope.app.mcp.protocol_server import input_schema
from stepscope.app.mcp.tools import TOOLS
from stepscope.app.mcp.tools.tool import Tool
from tests.app.mcp.asked import Asked
from tests.looped import looped
from tests.tiers import slow

TRACE = "fcfs-preemption-before.trace"


@looped("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_argument_has_a_type_and_a_description(tool: Tool) -> None:
    schema = input_schema(tool.takes)

    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    for argument in schema["properties"].values():
        assert argument["description"]
        assert "type" in argument or "anyOf" in argument or "enum" in argument
    assert {"cursor", "limit"} <= schema["properties"].keys()
    assert tool.description.endswith(".")


@looped(
    "arguments",
    [
        {"limit": -1},
        {"limit": 0},
        {"limit": 10**9},
        {"limit": "many"},
        {"limit": None},
        {"limit": 1.5},
        {"cursor": "-1"},
        {"cursor": 7},
        {"cursor": "x" * 10_000},
        {"trace": None},
        {"trace": ["a"]},
        {"trace": {"a": 1}},
        {"unknown": 1},
        {"rules": "STV" * 1_000},
        {"rules": "NOSUCH"},
    ],
)
def test_arguments_that_are_none_are_refused_in_a_line(
    samples: Asked, arguments: dict[str, Any]
) -> None:
    said = samples.refusal("check", **{"trace": TRACE, **arguments})

    assert said
    assert "bug" not in said


@looped(
    ("tool", "arguments"),
    [
        ("state", {"at": "nowhere"}),
        ("state", {"at": 10**40}),
        ("state", {"at": 9_999}),
        ("state", {"at": "#99999999999999999999"}),
        ("state", {"at": "@mark"}),
        ("state", {"at": "1 of rank 9"}),
        ("state", {"at": "3", "rank": 99}),
        ("state", {"at": "3", "side": "nothing"}),
        ("why", {"who": ""}),
        ("why", {"who": "nobody"}),
        ("why", {"who": "req-07", "at": 40, "not_in_step": 40}),
        ("why", {"who": "req-07", "not_in_step": 4_000}),
        ("why", {"who": "task 99999999999999999999"}),
        ("blame", {"request": "nobody"}),
        ("explain", {"name": "../../etc/passwd"}),
        ("find", {"name": ""}),
        ("summary", {"slo": "fast"}),
    ],
)
def test_a_question_that_has_no_answer_is_told_why(
    samples: Asked, tool: str, arguments: dict[str, Any]
) -> None:
    given = arguments if tool == "explain" else {"trace": TRACE, **arguments}
    said = samples.refusal(tool, **given)

    assert "bug" not in said


def test_a_cursor_of_a_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "arrivals.csv"
    rows = [f"2024-01-01 00:00:{n:02}.0000000,{n + 1},5" for n in range(60)]
    log.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows, ""]))
    asked = Asked(tmp_path)
    question = {"trace": "arrivals.csv", "query": "select * from lifecycle", "limit": 5}
    cursor = asked.page("sql", **question).values["next"]["cursor"]

    log.write_text(log.read_text() + "2024-01-01 00:01:00.0000000,9,5\n")

    assert "the file has changed" in asked.refusal("sql", **question, cursor=cursor)


@slow
def test_a_trace_is_the_same_by_whatever_name(samples: Asked, sample_traces: Path) -> None:
    names = (TRACE, f"sample_traces/{TRACE}", str(sample_traces / TRACE))

    pages = [samples.page("open", trace=name) for name in names]

    assert pages[0] == pages[1] == pages[2]
