"""No answer about any real file is over the limit, and none is a bug."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from stepscope.app.mcp.answering.sent_page import Page
from stepscope.app.mcp.answering.token_budget import MOST_TOKENS
from stepscope.ingest.writers import writer_of
from tests.app.mcp.answering.test_sent_page import tokens_of
from tests.app.mcp.asked import Asked
from tests.recorded import RUNS, RecordedRun
from tests.tiers import sampled, slow
from tests.traces import trace_of

MOST = 500
FEW = ("mix-admission-before.trace", "vllm_crowd.trace", "torch_profiler_cpu.json.gz")
"""The longest answers, a serving engine, and a profile."""


def questions(trace: str, *, is_small: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every tool, as widely as it can be asked; what is large is not compared with itself, and what
    was held in it is asked in its middle alone.
    """
    yield "open", {"trace": trace}
    yield "open", {"trace": trace, "part": "config"}
    yield "summary", {"trace": trace, "slo": "ttft=500ms,tpot=50ms"}
    yield "check", {"trace": trace}
    yield "blame", {"trace": trace}
    for at in ("start", "50%", "end") if is_small else ("50%",):
        yield "state", {"trace": trace, "at": at}
        for side in ("waiting", "batch", "blocks", "requests", "cores"):
            yield "state", {"trace": trace, "at": at, "side": side}
    yield "find", {"trace": trace, "name": "e"}
    yield "why", {"trace": trace, "who": "rank 0"}
    for table in ("steps", "spans", "lifecycle", "core_spans", "findings", "counters"):
        yield "sql", {"trace": trace, "query": "select * from " + table}  # noqa: S608 - names of ours
    if is_small:
        yield "diff", {"a": trace, "b": trace}


def largest(asked: Asked, trace: str, *, is_small: bool) -> tuple[int, str]:
    """The largest answer of any tool about a trace, in tokens; fails where one is a bug."""
    found = (0, "")
    for tool, arguments in questions(trace, is_small=is_small):
        page, is_error = ask(asked, tool, {**arguments, "limit": MOST})
        if is_error:
            assert "bug in stepscope" not in page.text, (tool, arguments, page.text)
        found = max(found, (tokens_of(page), f"{trace}: {tool} {arguments.get('query', '')}"))
    return found


def ask(asked: Asked, tool: str, arguments: dict[str, Any]) -> tuple[Page, bool]:
    return asyncio.run(asked.calls.answer(tool, arguments))


def names(asked: Asked) -> list[str]:
    rows = [
        row for page in asked.pages("traces", limit=MOST) for row in page.values["data"]["rows"]
    ]
    return [row["trace"] for row in rows]


def hold(
    asked: Asked,
    at_least: int,
    capsys: pytest.CaptureFixture[str],
    *,
    is_small: bool = False,
    only: Collection[str] = (),
) -> None:
    """Ask everything about all traces of some folders, or only some, and print the largest
    answer.
    """
    listed = [name for name in names(asked) if not only or Path(name).name in only]
    assert len(listed) >= at_least
    most, where = max(largest(asked, name, is_small=is_small) for name in listed)
    with capsys.disabled():
        print(f"\nlargest answer: {most:,} tokens of {MOST_TOKENS:,}, {where}")  # noqa: T201 - asked for
    assert most <= MOST_TOKENS


@slow
def test_no_answer_about_a_few_samples_is_over_the_limit(
    samples: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    hold(samples, len(FEW), capsys, is_small=True, only=FEW)


@slow
def test_no_answer_about_a_sample_is_over_the_limit(
    samples: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    hold(samples, 10, capsys, is_small=True)


@slow
def test_no_answer_about_a_real_file_is_over_the_limit(
    shared_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hold(Asked(shared_data), 20, capsys)


@slow
@pytest.mark.parametrize("name", RUNS)
def test_no_answer_about_a_recorded_run_is_over_the_limit(
    name: str, recorded: Callable[[str], RecordedRun], capsys: pytest.CaptureFixture[str]
) -> None:
    hold(Asked(recorded(name).folder), 1, capsys)


@slow
@pytest.mark.parametrize("number", sampled([4_000, 100_000], [4_000]))
def test_very_many_requests_are_pages_like_any_other(tmp_path: Path, number: int) -> None:
    asked = Asked(many_requests(tmp_path, number))

    for tool, arguments in (
        ("open", {}), ("blame", {}), ("find", {"name": "req-"}), ("summary", {}), ("check", {}),
        ("sql", {"query": "select * from lifecycle"}),
    ):  # fmt: skip
        page = asked.page(tool, trace="many.trace", limit=MOST, **arguments)
        assert tokens_of(page) <= MOST_TOKENS
    found = asked.page("find", trace="many.trace", name="req-")
    assert found.values["rows"]["of"] == 1_000
    assert "more than 1,000 things have such a name: ask for more of it" in found.values["left_out"]


def test_a_long_queue_is_told_page_by_page(tmp_path: Path) -> None:
    asked = Asked(many_requests(tmp_path, 2_000))

    waiting = [
        row["request"]
        for page in asked.pages("state", trace="many.trace", at="end", side="waiting", limit=MOST)
        for row in page.values["data"]["rows"]
    ]

    assert waiting == [f"req-{number:06}" for number in range(2_000)]


def many_requests(folder: Path, number: int) -> Path:
    """The folder of a trace of so many requests that wait for ever."""
    came = [{"request": f"req-{n:06}", "event": "arrive", "ts_ns": n, "step": 0, "seq": n,
             "prompt_len": 8, "max_tokens": 8} for n in range(number)]  # fmt: skip
    trace = trace_of(lifecycle=came, steps=[{"step": 1, "kind": "idle", "ts_ns": 2 * number}])
    writer_of(folder / "many.trace").write(trace, folder / "many.trace")
    return folder
