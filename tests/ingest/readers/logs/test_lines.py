"""Logs as they are found: coloured, forwarded, packed, of other machines; and their times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope.analyzers.diff.outcomes import totals
from stepscope.analyzers.latency.blame import blame
from stepscope.ingest.errors import UnknownFormat
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.logs import reader
from stepscope.ingest.readers.text.collect import Line, LogRows
from stepscope.ingest.readers.text.split import Lines, origin_of
from stepscope.ingest.readers.text.times import stamp_of
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import LOGS, SGLANG, VLLM, open_log, report_of
from tests.looped import looped

ITERATION = (
    "Iteration({}): 1 context requests, 8 context tokens, 0 generation requests, "
    "0 generation tokens, iteration elapsed time: 1.00 ms"
)
NOON_NS = 1_780_056_000_000_000_000  # 2026-05-29T12:00:00Z

FORWARDED = {
    "docker": "2026-05-29T12:00:00.000000000Z {}",
    "cri": "2026-05-29T12:00:00.000000000Z stdout F {}",
    "journald": "2026-05-29T14:00:00.000000+0200 host vllm[59332]: {}",
    "compose": "vllm-1  | INFO 2026-05-29 12:00:00 [core.py:359] {}",
    "coloured": "\x1b[0;36m(EngineCore pid=1)\x1b[0;0m INFO 2026-05-29 12:00:00 [core.py:359] {}",
    "engine behind docker": "2026-05-29T12:00:07.5Z INFO 05-29 12:00:00 [core.py:359] {}",
    "tensorrt": "[05/29/2026-12:00:00] [TRT-LLM] [I] {}",
}


def test_the_time_of_a_line_is_the_engine_s_own_however_it_was_forwarded(tmp_path: Path) -> None:
    steps = {}
    for how, forwarder in FORWARDED.items():
        trace = open_log(tmp_path, forwarder.format(ITERATION.format(7)) + "\n")
        steps[how] = rows(trace, "steps", "step", "ts_ns")

    assert steps == {how: [(7, NOON_NS - 1_000_000)] for how in FORWARDED}


@pytest.mark.parametrize(
    "packed",
    [
        {"log": ITERATION.format(7) + "\n", "stream": "stderr", "time": "2026-05-29T12:00:00Z"},
        {"MESSAGE": ITERATION.format(7), "__REALTIME_TIMESTAMP": str(NOON_NS // 1000)},
    ],
)
def test_a_line_packed_in_json_is_unpacked(tmp_path: Path, packed: dict[str, str]) -> None:
    trace = open_log(tmp_path, json.dumps(packed) + "\n")

    assert rows(trace, "steps", "ts_ns") == [NOON_NS - 1_000_000]


def test_line_ends_make_no_difference(tmp_path: Path) -> None:
    other_tables = []
    for engine, log in LOGS.items():
        plain, other = open_log(tmp_path, log), open_log(tmp_path, log.replace("\n", "\r"))
        other_tables += [
            (engine, table)
            for table in plain.manifest.tables
            if not other.table(table).collect().equals(plain.table(table).collect())
        ]

    assert other_tables == []


def test_containers_that_write_into_one_log_are_ranks(tmp_path: Path) -> None:
    lines = [f"vllm-{number}  | {ITERATION.format(5)}" for number in (1, 2, 1)]

    trace = open_log(tmp_path, "\n".join(lines) + "\n")

    assert rows(trace, "steps", "rank", "step") == [(0, 5), (0, 6), (1, 5)]
    assert trace.manifest.config["sources"] == {"0": "vLLM 0 vllm-1", "1": "vLLM 0 vllm-2"}


def test_who_wrote_a_line_is_told_by_who_forwarded_it() -> None:
    origins = {
        "[pod/vllm-0/server] {}": "pod/vllm-0/server",
        "May 29 12:00:00 host vllm[59332]: {}": "host vllm[59332]",
        "decode-9666b4775-z8k46 vllm {}": "decode-9666b4775-z8k46 vllm",
        "[48563] slot x: {}": "48563",
        "INFO 05-29 12:00:00 [core.py:1] {}": "",
        "slot update_slots: id  3 | task 0 | {}": "",
        "2026-05-29 22:40:00.315 | slot | {}": "",
    }

    assert {line: origin_of(line.format(ITERATION)) for line in origins} == origins


def test_numbers_that_start_over_are_counted_on(tmp_path: Path) -> None:
    lines = [ITERATION.format(number) for number in (1, 2, 1, 2, 3)]

    trace = open_log(tmp_path, "\n".join(lines) + "\n")

    assert rows(trace, "steps", "step") == [1, 2, 3, 4, 5]
    assert sum(report_of(trace).repaired.values()) == 1


def test_lines_without_a_time_are_placed_by_their_position(tmp_path: Path) -> None:
    trace = open_log(tmp_path, "\n".join(ITERATION.format(number) for number in (1, 2)) + "\n")

    first, second = rows(trace, "steps", "ts_ns")
    assert second >= first + 1_000_000
    assert trace.manifest.clock.kind == "virtual"
    assert report_of(trace).inferred["times from the position of the line"] == 2
    assert "lines without a time have an order and no times: their distance is no duration" in (
        report_of(trace).notes
    )


PREFILL = "{}Prefill batch, #new-seq: 1, #new-token: 64, token usage: 0.50, #queue-req: {}\n"


def test_a_log_without_times_has_an_order_and_no_durations(tmp_path: Path) -> None:
    trace = open_log(tmp_path, "".join(PREFILL.format("[TP0] ", at) for at in range(4)))

    assert trace.manifest.clock.kind == "none"
    assert rows(trace, "steps", "num_waiting", "dur_ns") == [(at, None) for at in range(4)]
    blamed, summary = blame(trace), totals(trace)
    assert blamed.requests.is_empty()
    assert "no times" in blamed.notes[0]
    assert {name for name, value in summary.items() if value} == {"steps"}


@looped("head", ["[{} TP0] ", "[{}] ", "{} ", "[TP0 {}] "])
def test_a_time_of_day_is_a_clock_and_midnight_goes_on(tmp_path: Path, head: str) -> None:
    clocks = ("23:59:58", "23:59:59", "00:00:01")

    trace = open_log(tmp_path, "".join(PREFILL.format(head.format(clock), 1) for clock in clocks))

    assert trace.manifest.clock.kind == "wall"
    at = rows(trace, "steps", "ts_ns")
    assert [later - at[0] for later in at] == [0, 1_000_000_000, 3_000_000_000]


def test_a_clock_that_is_set_back_is_left_as_it_is(tmp_path: Path) -> None:
    stamps = ("2026-05-29 12:00:09", "2026-05-29 12:00:00")
    lines = [f"INFO {stamp} {ITERATION.format(at)}" for at, stamp in enumerate(stamps)]

    first, second = rows(open_log(tmp_path, "\n".join(lines) + "\n"), "steps", "ts_ns")

    assert first - second == 9_000_000_000


def test_a_log_is_known_by_a_line_far_behind_its_beginning(tmp_path: Path) -> None:
    trace = open_log(tmp_path, "loading weights\n" * 9_000 + VLLM)

    assert trace.num_rows("steps") == 3


def test_a_text_without_a_line_of_an_engine_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat, match="log of an engine"):
        open_log(tmp_path, "Prefill batch of cookies\nIteration(1) of the recipe\n")


def test_lines_that_do_not_read_as_they_should_are_counted(tmp_path: Path) -> None:
    odd = "Iteration(x): 1 context requests\nDecode batch, #running-req: many\n"

    assert report_of(open_log(tmp_path, odd + SGLANG)).skipped == {
        "vLLM lines that do not read as any known": 1,
        "SGLang lines that do not read as any known": 1,
        "lines of no engine's steps": 1,
    }


def test_a_line_that_is_too_long_is_left_out_and_counted() -> None:
    blocks = [VLLM.encode(), b"x" * 1_500, b"x" * 1_500, b"x" * 1_500, b"\n" + SGLANG.encode()]

    lines = Lines(blocks, most_bytes=2_000)

    assert len(list(lines)) == len(VLLM.splitlines()) + len(SGLANG.splitlines())
    assert lines.num_too_long == 1


def open_within(folder: Path, text: str, limits: Limits) -> Trace:
    file = folder / "server.txt"
    file.write_text(text)
    return Trace.open(file, limits=limits)


def test_more_engines_than_the_limit_are_taken_for_one(tmp_path: Path) -> None:
    lines = [f"vllm-{number} | {ITERATION.format(1)}" for number in range(5)]

    trace = open_within(tmp_path, "\n".join(lines) + "\n", Limits(tracks=2))

    assert trace.manifest.ranks == (0, 1, 2)
    assert trace.num_rows("steps") == 5


def test_what_is_before_more_rows_than_the_limit_is_kept(tmp_path: Path) -> None:
    trace = open_within(tmp_path, VLLM, Limits(rows=2))

    assert trace.num_rows("steps") == 2
    assert not trace.manifest.closed
    assert (
        "more than 2 rows (--max rows=N raises it); all lines before are kept"
        in report_of(trace).notes
    )


def test_more_counters_than_the_limit_are_counted(tmp_path: Path) -> None:
    trace = open_within(tmp_path, VLLM, Limits(tracks=3))

    assert len(set(rows(trace, "counters", "name"))) == 3
    what = "samples of more than 3 counters (--max tracks=N raises it)"
    assert report_of(trace).skipped[what] == 2


def test_many_engines_that_ask_for_one_rank_each_get_the_next() -> None:
    sources = LogRows()
    ranks = [sources.source("vLLM", Line(""), str(number)).rank for number in range(3_000)]

    assert ranks == list(range(3_000))
    assert sources.source("vLLM", Line(""), "asks", 7).rank == 3_000


def test_how_far_a_line_of_an_engine_is_looked_for_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "SNIFF_BYTES", 70_000)

    with pytest.raises(UnknownFormat):
        open_log(tmp_path, "loading weights\n" * 9_000 + VLLM)


def test_times_are_read_as_engines_write_them() -> None:
    times = {
        "2026-05-29T12:00:00Z": (NOON_NS, 10**9),
        "2026-05-29 12:00:00,123 x": (NOON_NS + 123_000_000, 10**6),
        "2026-05-29T05:30:00-06:30": (NOON_NS, 10**9),
        "at 05-29-2026 12:00:00.5": (NOON_NS + 500_000_000, 10**8),
        "May 29 12:00:00 host vllm[1]: ": (NOON_NS, 10**9),
        "INFO 05-29 12:00:00 [core.py:1]": (NOON_NS, 10**9),
        "[atom 12:00:00] Scheduled": (NOON_NS, 10**9),
        "2026-05-29 12:00:09 2026-05-29 12:00:00 x": (NOON_NS, 10**9),
        "May 29 12:00:09 host [11:00:07] 05-29 12:00:00.0": (NOON_NS, 10**8),
        str(NOON_NS // 1000): (NOON_NS, 1000),
        "2.25.767.681 I slot": (145_767_681_000, 1000),
    }
    stamps = {text: stamp_of(text, NOON_NS - 3 * 3600 * 10**9) for text in times}

    assert {
        text: stamp and (stamp.ns, stamp.resolution_ns) for text, stamp in stamps.items()
    } == times


def test_what_is_no_time_is_none() -> None:
    texts = ("", "2026-13-45 99:99:99", "May 32 12:00:00", "12:00", "9999-01-01 00:00:00")

    assert [text for text in texts if stamp_of(text) is not None] == []


def test_a_trace_of_a_log_can_be_saved_and_opened_again(tmp_path: Path) -> None:
    trace = open_log(tmp_path, VLLM + SGLANG)

    save_trace(trace, tmp_path / "out.trace")

    again = Trace.open(tmp_path / "out.trace")
    assert again.manifest.report == trace.manifest.report
    assert again.num_rows("steps") == trace.num_rows("steps")


def test_a_step_before_a_clock_that_was_set_back_has_no_length(tmp_path: Path) -> None:
    said = "TP0] Decode batch. #running-req: 1, #token: 9, token usage: 0.25, #queue-req: 3"
    lines = [f"[2025-07-18 15:32:{second:02} {said}\n" for second in (10, 14, 5, 9)]

    trace = open_log(tmp_path, "".join(lines))

    assert rows(trace, "steps", "dur_ns") == [4_000_000_000, None, 4_000_000_000, None]
