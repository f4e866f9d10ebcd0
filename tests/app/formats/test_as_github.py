"""Findings as GitHub workflow commands, taken apart as GitHub's runner takes them apart."""

from __future__ import annotations

import html
import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.formats import Asked, Checked, as_github
from tests.app.formats.findings import ASKED, CONFLICT, HOSTILE, NOTE, WASTE, checked, many

COMMAND = re.compile(r"::(error|warning|notice) title=([^,:]*)::([^\r\n]*)")


def commands_of(*given: Checked) -> list[tuple[str, str, str]]:
    """Level, title and message of each line, unescaped in the runner's order: `%25` last."""
    commands = []
    for line in as_github.render(given, ASKED).text.split("\n"):
        level, title, message = whole(line)
        title = title.replace("%3A", ":").replace("%2C", ",")
        texts = [text.replace("%0D", "\r").replace("%0A", "\n") for text in (title, message)]
        commands.append((level, *(text.replace("%25", "%") for text in texts)))
    return [(level, title, message) for level, title, message in commands]


def whole(line: str) -> tuple[str, str, str]:
    match = COMMAND.fullmatch(line)
    assert match, line
    return match[1], match[2], match[3]


def test_nothing_found_is_nothing_said() -> None:
    assert as_github.render([checked()], ASKED).text == ""


def test_each_severity_has_its_command() -> None:
    levels = [level for level, _, _ in commands_of(checked(NOTE, WASTE, CONFLICT))]

    assert levels == ["error", "warning", "notice"]


def test_an_annotation_says_rule_count_trace_place_message_and_fix() -> None:
    ((_, title, message),) = commands_of(checked(CONFLICT))

    assert title == "COR001 mix-on-occupied-group ×1"
    assert message == (
        "mix.trace: group 2 · core 6 · step 3 · 8.000 ms: qk_pv 7/8 took the AIC of group 2. "
        "Fix: admit a MIX only when the whole group is free"
    )


def test_one_annotation_stands_for_all_findings_of_a_rule_in_a_trace() -> None:
    titles = [title for _, title, _ in commands_of(checked(*many(9)), checked(CONFLICT))]

    assert titles == [
        "COR001 mix-on-occupied-group ×3", "COR001 mix-on-occupied-group ×1",
        "KVB003 preempted-with-room ×12", "TRC003 inferred ×12",
    ]  # fmt: skip


def test_no_more_annotations_than_github_shows_and_the_rest_is_told() -> None:
    traces = [checked(CONFLICT, trace=f"{n}.trace") for n in range(13)]

    rendered = as_github.render(traces, ASKED)

    assert len(rendered.text.splitlines()) == 10
    assert rendered.notes == ("3 annotations left out: GitHub shows 10 of a severity",)


def test_hostile_text_ends_no_command_and_begins_none() -> None:
    found = replace(CONFLICT, message=HOSTILE, request=HOSTILE, fix=HOSTILE)

    ((_, _, message),) = commands_of(checked(found, trace=HOSTILE))

    assert "::error::owned %0A" in message


def test_an_escape_in_a_message_stays_what_it_was() -> None:
    ((_, _, message),) = commands_of(checked(replace(CONFLICT, message="100%0A, 5%25")))

    assert "100%0A, 5%25. Fix" in message


@given(st.text(), st.text(), st.text())
def test_any_text_is_one_command_a_finding(message: str, request: str, trace: str) -> None:
    found = replace(CONFLICT, message=message, request=request)

    assert len(commands_of(checked(found, trace=trace))) == 1


def rows_of(summary: str) -> list[list[str]]:
    """The cells of the table's rows, as a reader of the page sees them."""
    lines = [line for line in summary.splitlines() if line.startswith("| ")][1:]
    return [[html.unescape(cell.strip()) for cell in line.split("|")[1:-1]] for line in lines]


def test_the_summary_has_a_row_for_each_rule_that_found_something() -> None:
    summary = as_github.job_summary([checked(WASTE, CONFLICT, num_known=5)], Asked())

    assert [row[:3] for row in rows_of(summary)] == [
        ["error COR001 mix-on-occupied-group", "1", "mix.trace"],
        ["warning KVB003 preempted-with-room", "4", "mix.trace"],
    ]
    assert "in the baseline, and left out: 5" in html.unescape(summary)
    assert "not applicable (not recorded): STV001" in html.unescape(summary)


def test_the_summary_of_a_clean_trace_says_so() -> None:
    assert "nothing found" in as_github.job_summary([checked()], Asked())


def test_hostile_text_is_no_markdown_and_no_html() -> None:
    found = replace(CONFLICT, message=HOSTILE, request=HOSTILE)

    summary = as_github.job_summary([checked(found, trace=HOSTILE)], Asked())

    assert "<" not in summary
    assert "https:" not in summary
    assert "`" not in summary
    assert "www." not in summary
    assert all(len(row) == 6 for row in rows_of(summary))
    assert "<b>&amp;" in rows_of(summary)[0][4]


def test_a_summary_is_never_larger_than_github_takes() -> None:
    traces = [checked(replace(CONFLICT, message="<" * 900), trace=f"{n}") for n in range(500)]

    summary = as_github.job_summary(traces, Asked())

    assert len(summary.encode()) < 1 << 20
    assert "more rows" in summary
