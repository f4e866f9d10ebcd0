"""A log without a clock: no command and no screen prints a duration that the log does not state."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from stepscope.analyzers.check.run import check
from stepscope.analyzers.summary.load_over_time import load_over_time
from stepscope.app.cli.main import cli
from stepscope.app.web.server import create_app
from stepscope.ingest.trace import Trace
from tests.looped import looped

BATCHES = """\
[TP0] Prefill batch, #new-seq: 1, #new-token: 64, token usage: 0.50, #queue-req: 3
[TP0] Decode batch, #running-req: 3, #token: 500, token usage: 0.50, #queue-req: 2
[TP0] Decode batch, #running-req: 3, #token: 520, token usage: 0.51, #queue-req: 2
"""
SLOTS = """\
slot launch_slot_: id  0 | task 0 | processing task
slot update_slots: id  0 | task 0 | new prompt, n_ctx_slot = 8192, n_keep = 0, n_prompt_tokens = 9
slot update_slots: id  0 | task 0 | prompt done, n_past = 9, n_tokens = 9
slot launch_slot_: id  1 | task 1 | processing task
slot print_timing: id  0 | task 0 |
prompt eval time =    3500.00 ms /     9 tokens (    2.63 ms per token,   380.29 tokens per second)
       eval time =   40000.00 ms /   700 tokens (   57.14 ms per token,    17.50 tokens per second)
      total time =   43500.00 ms /   709 tokens
slot      release: id  0 | task 0 | stop processing: n_past = 708, truncated = 0
slot      release: id  1 | task 1 | stop processing: n_past = 12, truncated = 0
"""
DURATION = re.compile(r"(?<![\w.,])\d[\d.,]* ?(?:ns|µs|us|ms|s)\b")
STATED = {"3.50 s", "40.0 s", "43.5 s", "3,500 ms", "40,000 ms", "43,500 ms"}
AXIS_OF_STATED = {"0 ms", "10.88 s", "21.75 s", "32.62 s", "43.50 s"}
EXAMPLE = "ttft=500ms,tpot=50ms"
ZERO = {"0 ns"}
"""Of a stated time: nothing of it was before, or after, the first token."""


@pytest.fixture
def batches(tmp_path: Path) -> Path:
    (file := tmp_path / "batches.log").write_text(BATCHES * 8)
    return file


@pytest.fixture
def slots(tmp_path: Path) -> Path:
    (file := tmp_path / "slots.log").write_text(SLOTS)
    return file


def durations(text: str) -> set[str]:
    return set(DURATION.findall(text.replace(EXAMPLE, ""))) - STATED - ZERO


def printed(*words: str, given: str | None = None) -> str:
    done = CliRunner().invoke(cli, list(words), input=given)
    assert done.exit_code in {0, 1}, done.output
    return done.output


@looped("words", [("info",), ("check",), ("blame",), ("summary",)])
def test_a_command_prints_no_duration_from_the_order_of_lines(
    words: tuple[str, ...], batches: Path, slots: Path
) -> None:
    assert durations(printed(*words, str(batches))) == set()
    assert durations(printed(*words, str(slots))) == set()


def test_what_the_log_states_of_a_request_is_its_blame(slots: Path) -> None:
    said = printed("blame", str(slots))

    assert "task 0: 43.5 s, finish" in said
    assert "1 request for which the log states no total time: left out" in said


def test_why_and_the_debugger_go_by_positions(slots: Path) -> None:
    steps = printed("debug", str(slots), given="step\nwhere\nlife task 1\n")

    assert "position" in steps
    assert durations(steps) == set()
    assert durations(printed("why", str(slots), "task 1")) == set()


def test_a_request_without_stated_times_has_no_latency_anywhere(slots: Path) -> None:
    told = json.loads(printed("blame", str(slots), "--format", "json"))

    assert [row["request"] for row in told["requests"]] == ["task 0"]


def test_a_mean_over_time_is_not_known(batches: Path) -> None:
    (waiting,) = load_over_time(Trace.open(batches))["num_waiting"]

    assert (waiting.mean, waiting.most) == (None, 3.0)


def test_the_page_is_told_that_its_ruler_counts_positions(slots: Path) -> None:
    trace = Trace.open(slots)
    client = create_app(trace, check(trace)).server.test_client()

    page = client.get("/_dash-layout").get_data(as_text=True)
    assert '"has_clock":false' in page.replace(" ", "").replace('\\"', '"')
    assert durations(page) == set()


def test_a_report_shows_no_duration_from_the_order_of_lines(slots: Path, tmp_path: Path) -> None:
    printed("report", str(slots), "-o", str(tmp_path / "a.html"))

    page = (tmp_path / "a.html").read_text("utf-8")
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", " ", body)
    assert durations(text) <= AXIS_OF_STATED
    assert "43.5 s" in text
