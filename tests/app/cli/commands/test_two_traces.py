"""`stepscope tui A B` and `stepscope web A B` as a user meets them, where they cannot be opened."""

from __future__ import annotations

from pathlib import Path

from tests.app.cli.conftest import Command
from tests.conftest import ROOT
from tests.looped import looped

SAMPLE = ROOT / "sample_traces" / "mix-admission-before.trace"


@looped("front", ["tui", "web"])
def test_a_third_trace_is_refused_in_a_line(stepscope: Command, front: str) -> None:
    run = stepscope(front, SAMPLE, SAMPLE, SAMPLE)

    assert run.code == 2
    assert "one trace is looked at, or two side by side" in run.err


def test_an_slo_of_two_that_cannot_be_read_is_told_before_they_are_opened(
    stepscope: Command,
) -> None:
    run = stepscope("web", SAMPLE, SAMPLE, "--slo", "ttft=soon")

    assert run.code == 2
    assert "'soon' is no time above 0 with its unit" in run.err


def test_a_pane_that_two_do_not_have_is_refused(stepscope: Command) -> None:
    run = stepscope("web", SAMPLE, SAMPLE, "--tab", "sql")

    assert run.code == 2
    assert "two traces have no sql pane" in run.err


def test_one_that_cannot_be_read_is_named_and_the_other_is_not(
    stepscope: Command, tmp_path: Path
) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(b"\x00\x01\x02")

    run = stepscope("web", SAMPLE, noise)

    assert run.code == 3
    assert str(noise) in run.err
    assert str(SAMPLE) not in run.err


def test_two_need_a_terminal_as_one_does(stepscope: Command) -> None:
    run = stepscope("tui", SAMPLE, SAMPLE)

    assert run.code == 2
    assert "tui needs a terminal" in run.err
