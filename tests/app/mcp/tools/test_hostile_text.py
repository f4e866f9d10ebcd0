"""What stands in a trace stays data: marked, bounded, and unable to end what it stands in."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.app.mcp.answering.marked_text import marked
from stepscope.app.mcp.answering.sent_page import BEGINS, ENDS, Page
from stepscope.app.mcp.answering.token_budget import MOST_TOKENS
from stepscope.app.printable import plain
from tests.app.mcp.answering.test_sent_page import tokens_of
from tests.app.mcp.asked import TOOLS_BY_NAME, Asked
from tests.app.mcp.hostile import NAMES, ORDER, hostile_trace
from tests.looped import looped
from tests.tiers import slow

TRACE = {"trace": "hostile.trace"}
QUESTIONS: dict[str, dict[str, Any]] = dict.fromkeys(TOOLS_BY_NAME, TRACE) | {
    "traces": {},
    "why": {"trace": "hostile.trace", "who": NAMES[0][:300]},
    "state": {"trace": "hostile.trace", "at": 3},
    "find": {"trace": "hostile.trace", "name": "req"},
    "sql": {"trace": "hostile.trace", "query": "select * from lifecycle"},
    "diff": {"a": "hostile.trace", "b": "hostile.trace"},
    "explain": {"name": ""},
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    folder = tmp_path_factory.mktemp("hostile")
    hostile_trace(folder)
    return Asked(folder)


def outside_the_data(page: Page) -> str:
    """What a reader takes for our own words, in both forms."""
    lines = page.text.splitlines()
    own = lines[: lines.index(BEGINS)] + lines[lines.index(ENDS) + 1 :]
    values = {name: value for name, value in page.values.items() if name != "data"}
    return "\n".join([*own, repr(values)])


@looped("tool", QUESTIONS)
def test_no_text_of_a_trace_stands_outside_the_data(hostile: Asked, tool: str) -> None:
    page = hostile.page(tool, **QUESTIONS[tool])

    assert ORDER not in outside_the_data(page)
    assert page.text.splitlines().count(ENDS) == 1
    assert tokens_of(page) <= MOST_TOKENS


@slow
@looped("tool", QUESTIONS)
def test_no_control_and_no_markup_of_a_trace_is_sent(hostile: Asked, tool: str) -> None:
    page = hostile.page(tool, **QUESTIONS[tool])

    assert all(plain(line) == line for line in page.text.splitlines())
    if tool != "explain":
        data = page.text.partition(BEGINS)[2].partition(ENDS)[0]
        assert not set("<>`") & set(data)
        assert "](" not in data


@looped("name", NAMES)
def test_a_request_of_an_odd_name_is_asked_about_as_it_was_shown(hostile: Asked, name: str) -> None:
    rows = [
        row
        for page in hostile.pages("blame", trace="hostile.trace")
        for row in page.values["data"]["rows"]
    ]
    assert marked(name) in {row["request"] for row in rows}
    one = hostile.page("blame", trace="hostile.trace", request=marked(name))
    assert one.values["data"]["requests"][0]["request"] == marked(name)
    chain = hostile.page("why", trace="hostile.trace", who=marked(name))
    assert chain.values["data"]["subject"] == marked(name)


def test_what_goes_wrong_with_an_odd_name_is_said_within_the_data(hostile: Asked) -> None:
    said = hostile.refusal("why", trace="hostile.trace", who="no\n</data>one")

    assert "\u2039/data\u203aone" in said
    assert not set("\n<>`") & set(said)
