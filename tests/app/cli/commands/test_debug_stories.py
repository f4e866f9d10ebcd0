"""Four stories, as a script tells them to `stepscope debug` and a program reads the answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.app.both_fronts import stories
from tests.app.cli.conftest import Command
from tests.tiers import slow

Tell = Callable[..., str]


@pytest.fixture
def tell(
    stepscope: Command, sample_traces: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Tell:
    """Run lines as a script in a batch, and return what was printed."""
    monkeypatch.setenv("COLUMNS", "80")

    def told(*lines: str, trace: Path | str = stories.BEFORE, options: tuple[str, ...] = ()) -> str:
        script = tmp_path / "story.txt"
        script.write_text("".join(f"{line}\n" for line in lines))
        run = stepscope("debug", sample_traces / trace, "-x", script, "--batch", *options)
        assert (run.code, run.err) == (0, "")
        return run.out

    return told


@pytest.fixture
def read(tell: Tell) -> Tell:
    """The same, without where a line ends in 80 columns."""
    return lambda *lines, **more: " ".join(tell(*lines, **more).split())


@pytest.fixture
def answers(tell: Tell) -> Callable[..., list[dict[str, Any]]]:
    """The same for a program: an answer for each line."""

    def told(*lines: str, **more: Any) -> list[dict[str, Any]]:
        printed = tell(*lines, options=("--json",), **more).splitlines()
        return [json.loads(line)["answer"] for line in printed]

    return told


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stories") / "fixed.trace"


CONFLICT = (f"break {stories.TAKEN_AWAY}", "continue", "print waiting req-01")
FINDING = (f"break finding {stories.FOUND}", "continue")
WHY = (f"goto {stories.WAITS_AT}", f"why {stories.WHO}")
BLOCK = (f"goto {stories.LAST_STEP}", stories.WATCHED, "rc", "rc")


@slow
def test_find_a_conflict(read: Tell, answers: Callable[..., list[dict[str, Any]]]) -> None:
    log = read(*CONFLICT)
    assert f"{stories.NUM_TAKEN_AWAY} hits" in log
    assert stories.FIRST_AT in log
    assert stories.FIRST_ROW in log
    assert f"req-01 {stories.VERDICT} " in log

    stop, hit, waiting = answers(*CONFLICT)
    assert stop["num_hits"] == stories.NUM_TAKEN_AWAY
    assert hit["position"]["step"] == stories.FIRST_STEP
    assert (hit["hit"]["row"]["event"], hit["hit"]["row"]["cause"]) == ("preempt", stories.REASON)
    (row,) = waiting["waiting"]
    assert (row["verdict"], row["reason"]) == (stories.VERDICT, stories.REASON)

    _, found = answers(*FINDING)
    assert (found["position"]["step"], found["hit"]["row"]["code"]) == (67, stories.FOUND)
    assert found["hit"]["row"]["count"] == stories.NUM_FOUND_FIRST


@slow
def test_ask_why_one_waits(read: Tell, answers: Callable[..., list[dict[str, Any]]]) -> None:
    log = read(*WHY)
    assert stories.CAUSE in log
    assert stories.WHY in log

    _, told = answers(*WHY)
    why = told["why"]
    (link,) = why["links"]
    assert why["root"]["ends"] == stories.ENDS
    assert why["first_line"].startswith(stories.CAUSE)
    assert (link["holder"], link["proof"]["table"]) == (stories.HOLDER, "decisions")

    (proof,) = answers(f"goto #{link['proof']['seq']}", "stepi", "backi")[2]["change"]["decisions"]
    assert (proof["subject"], proof["reason"]) == (stories.WHO, stories.REASON)


def test_go_back_to_who_took_the_block(
    read: Tell, answers: Callable[..., list[dict[str, Any]]]
) -> None:
    log = read(*BLOCK)
    told = answers(*BLOCK)

    for (_, at, row), answer in zip((stories.TAKEN, stories.LOST), told[2:], strict=True):
        assert at in log
        assert row in log
        found = answer["hit"]["row"]
        assert f"op={found['op']} resource={found['resource']} id=2 owner={found['owner']}" == row
        assert at.startswith(f"step {answer['position']['step']} ")


@slow
def test_see_what_the_fix_would_have_changed(
    stepscope: Command,
    sample_traces: Path,
    fixed: Path,
    read: Tell,
    answers: Callable[..., list[dict[str, Any]]],
) -> None:
    before = sample_traces / stories.BEFORE

    replayed = stepscope("replay", before, "--variant", stories.VARIANT, "-o", fixed)
    compared = stepscope("diff", before, fixed, "--format", "json")

    diverged = f"they diverge in step {stories.DIVERGED_AT}: {stories.DIVERGED_IN}"
    assert replayed.code == 4
    assert f"replayed  with variant {stories.VARIANT}" in replayed.out
    assert f"{diverged}, row {stories.DIVERGED_ROW}" in replayed.out

    told = json.loads(compared.out)
    first = told["divergence"]
    assert (first["step"], first["stage"]) == (stories.DIVERGED_AT, stories.DIVERGED_IN)
    assert first["row_a"]["request"] == stories.DIVERGED_FROM
    assert first["row_b"]["request"] == stories.DIVERGED_TO
    assert {code: num for code, num in told["findings"]["a"].items() if num} == stories.FOUND_BEFORE
    assert not any(told["findings"]["b"].values())
    assert set(stories.FOUND_BEFORE) <= set(told["findings"]["b"]), "it was looked for"

    asked = (f"break {stories.TAKEN_AWAY}", "break finding", "continue")
    assert stories.NOWHERE in read(*asked, trace=fixed)
    taken, found, end = answers(*asked, trace=fixed)
    assert (taken["num_hits"], found["num_hits"], end["hit"]) == (0, 0, None)
    assert end["position"]["step"] == stories.FIXED_STEPS
