from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.replay.fidelity import Kind
from stepscope.app.replay.what_if.asked import Asked, taken
from stepscope.app.replay.what_if.choices import choices_of
from stepscope.engine.runs.scenario import Options
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.engine.recorded_once import RecordedOnce


@pytest.fixture(scope="module")
def faulty(recorded_once: RecordedOnce) -> Trace:
    options = Options(faults=frozenset({"one-slot-used"}), settings={"requests": "6"})
    return recorded_once.trace("slot-recycling", "after", options)


def test_a_line_is_read_as_the_command_reads_its_options(faulty: Trace) -> None:
    words = "--variant before --no-fault one-slot-used --set requests=4"

    found = choices_of(faulty).asked(words)

    assert found == Asked("before", ("one-slot-used",), {"requests": "4"})
    assert found.words == words


def test_what_is_short_for_an_option_says_the_same(faulty: Trace) -> None:
    whole = {
        "before": "--variant before",
        "requests=4": "--set requests=4",
        "requests=4 before": "--variant before --set requests=4",
        "--variant=before": "--variant before",
        "--no-fault=one-slot-used": "--no-fault one-slot-used",
    }

    assert {short: choices_of(faulty).asked(short).words for short in whole} == whole


WRONG = [
    ("", "nothing is to be different; give --variant NAME, --no-fault NAME, --set K=V"),
    ("--variant", "--variant says nothing; give"),
    ("nobody", "no variant is called 'nobody'; try before, after"),
    ("before after", "two variants are given, before and after; a run has one"),
    (
        "--no-fault other",
        "fault 'other' was not switched on: those that were are one-slot-used",
    ),
    ("requets=4", "no setting is called 'requets'; try requests"),
    ("requests=many", "requests=many: a whole number is needed"),
    ("--set requests", "--set requests: not of the form K=V"),
    ("requests=4 requests=5", "--set requests=... is given more than once"),
    ("-o there", "-o cannot be asked for here; give"),
    ("'requests=4", "the line cannot be read: no closing quotation"),
    ("x" * 2001, "a line of 2,001 characters is not read; write one of 2,000 at most"),
]


def test_what_is_wrong_with_a_line_is_said_in_a_line(faulty: Trace) -> None:
    for words, message in WRONG:
        with pytest.raises(ConfigError) as wrong:
            choices_of(faulty).asked(words)

        assert str(wrong.value).startswith(message)
        assert "\n" not in str(wrong.value)


def test_the_command_line_that_does_the_same_can_be_pasted() -> None:
    found = Asked("after", (), {"order": "as variant"})

    again = found.command(Path("my runs/a.trace"), "b.trace", Kind.EXACT)
    anew = found.command(Path("a.log"), "b.trace", Kind.RESIMULATED)

    changes = "--variant after --set 'order=as variant' -o b.trace"
    assert again == f"stepscope replay 'my runs/a.trace' {changes}"
    assert anew == f"stepscope replay a.log --engine stepscope {changes}"


def test_a_choice_is_put_into_the_line_instead_of_one_like_it() -> None:
    lines = {
        ("", "--variant after"): "--variant after",
        ("--variant before --set a=1", "--variant after"): "--set a=1 --variant after",
        ("--set a=1 --set b=2", "--set a=3"): "--set b=2 --set a=3",
        ("--no-fault x", "--no-fault y"): "--no-fault x --no-fault y",
        ("--no-fault x", "--no-fault x"): "--no-fault x",
        ("'broken", "--set a=3"): "--set a=3",
    }

    assert {(line, words): taken(line, words) for line, words in lines} == lines
