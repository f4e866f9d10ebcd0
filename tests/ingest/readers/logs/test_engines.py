"""What lines of the logs of vLLM and SGLang become, and what holds of the logs of all engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.ingest.readers.text.collect import YEAR_ASSUMED, YEAR_BEFORE
from stepscope.ingest.readers.text.fields import Number, number
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import (
    COUNTS,
    LOGS,
    MISTRALRS,
    SGLANG,
    STATISTICS,
    TRTLLM,
    VLLM,
    at,
    open_log,
    report_of,
)

INTERVAL = "Avg prompt throughput: 36.4 tokens/s, Running: 3 reqs"
NO_TIME = INTERVAL + "\n"


# -- vLLM ------------------------------------------------------------------------------------


def test_an_iteration_of_vllm_is_a_step_with_its_own_number_and_counts(tmp_path: Path) -> None:
    trace = open_log(tmp_path, VLLM)

    assert rows(trace, "steps", *COUNTS) == [
        (1, "prefill", 2, 300, 0, 0),
        (2, "mixed", 1, 64, 2, 2),
        (3, "decode", 0, 0, 3, 3),
    ]
    assert set(rows(trace, "steps", "inferred")) == {"vLLM Iteration lines"}
    assert rows(trace, "steps", "tag")[0].startswith("(EngineCore_DP0 pid=7) INFO 12-31 23:59:58")
    assert trace.manifest.producer == "vLLM"
    assert trace.manifest.tables["steps"] == "inferred"


def test_iterations_within_one_second_follow_each_other_and_the_year_may_end(
    tmp_path: Path,
) -> None:
    trace = open_log(tmp_path, VLLM)

    eve = at(2000, 12, 31, 23, 59, 58)
    assert rows(trace, "steps", "ts_ns", "dur_ns") == [
        (eve - 250_500_000, 250_500_000),
        (eve, 20_000_000),
        (at(2001, 1, 1, 0, 0, 1) - 10_000_000, 10_000_000),
    ]
    assert any("no line says the year" in note for note in report_of(trace).notes)
    assert report_of(trace).inferred[YEAR_ASSUMED] == 4


@pytest.mark.parametrize("before", ["", NO_TIME, "docker | " + NO_TIME])
def test_a_log_that_says_no_year_is_shown_in_the_year_that_its_note_says(
    tmp_path: Path, before: str
) -> None:
    for stamp in ("01-01", "02-29", "06-30", "07-01", "08-01", "12-31"):
        month, day = map(int, stamp.split("-"))

        trace = open_log(tmp_path, f"{before}INFO {stamp} 21:24:09 [l.py:1] {INTERVAL}\n")

        assert rows(trace, "counters", "ts_ns")[-1] == at(2000, month, day, 21, 24, 9)
        assert [note for note in report_of(trace).notes if "the year" in note] == [
            "no line says the year: the first time is shown in 2000, or on its first day where it "
            "says no day either"
        ], stamp
        assert report_of(trace).inferred[YEAR_ASSUMED] == 1, stamp


def test_engines_of_one_log_are_in_one_year_also_past_its_end(tmp_path: Path) -> None:
    line = "{} | INFO {} [l.py:1] " + INTERVAL + "\n"
    stamps = [("a", "12-31 23:59:50"), ("b", "01-01 00:00:01"), ("a", "01-01 00:00:02")]

    trace = open_log(tmp_path, "".join(line.format(*stamp) for stamp in stamps))

    assert rows(trace, "counters", "rank", "ts_ns")[::2] == [
        (0, at(2000, 12, 31, 23, 59, 50)),
        (1, at(2001, 1, 1, 0, 0, 1)),
        (0, at(2001, 1, 1, 0, 0, 2)),
    ]


def test_a_year_that_a_line_before_says_is_no_assumption(tmp_path: Path) -> None:
    line = "INFO 01-01 00:00:01 [l.py:1] " + INTERVAL + "\n"

    trace = open_log(tmp_path, f"2025-12-31 23:59:59 {INTERVAL}\n{line}")

    assert rows(trace, "counters", "ts_ns")[-1] == at(2026, 1, 1, 0, 0, 1)
    assert report_of(trace).inferred == {YEAR_BEFORE: 1}
    assert not [note for note in report_of(trace).notes if "the year" in note]


def test_interval_lines_of_vllm_are_counters_with_units(tmp_path: Path) -> None:
    counters = rows(open_log(tmp_path, VLLM), "counters", "name", "value", "unit")

    assert counters == [
        ("GPU KV cache usage", 37.1, "%"),
        ("Avg prompt throughput", 36.4, "tokens/s"),
        ("Running", 3.0, "reqs"),
        ("Waiting", 1.0, "reqs"),
        ("GPU KV cache usage", 38.0, "%"),
        ("Prefix cache hit rate", 0.0, "%"),
    ]


def test_a_line_that_says_nothing_of_requests_is_no_interval_line_of_vllm(tmp_path: Path) -> None:
    """LLMServingSim says as much of throughput in one line, and of requests in the next."""
    simulated = "[9.0s] Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0\n"

    read = report_of(open_log(tmp_path, simulated + VLLM)).read

    assert (
        read["vLLM interval lines"]
        == report_of(open_log(tmp_path, VLLM)).read["vLLM interval lines"]
    )
    assert read["LLMServingSim interval lines"] == 1


def test_speculation_of_vllm_is_a_track_of_counters(tmp_path: Path) -> None:
    line = "INFO 07-08 00:00:02 [m.py:1] SpecDecoding metrics: Mean acceptance length: 2.10, "

    trace = open_log(
        tmp_path, line + "Accepted throughput: 1.50 tokens/s, Per-position: 0.7, 0.5\n"
    )

    assert rows(trace, "counters", "track", "name", "value") == [
        ("SpecDecoding", "Mean acceptance length", 2.1),
        ("SpecDecoding", "Accepted throughput", 1.5),
        ("SpecDecoding", "Per-position", 0.7),
        ("SpecDecoding", "Per-position 2", 0.5),
    ]


# -- SGLang ----------------------------------------------------------------------------------


def test_batches_of_sglang_are_steps_of_their_rank(tmp_path: Path) -> None:
    trace = open_log(tmp_path, SGLANG)

    columns = ("num_running", "num_waiting", "executed_path")
    assert rows(trace, "steps", "rank", *COUNTS, *columns) == [
        (0, 1, "prefill", 1, 2192, 0, 0, 0, 4, None),
        (0, 2, "decode", 0, 0, 1, 1, 1, 3, "graph"),
        (1, 12, "prefill", 2, 64, 0, 0, 0, 0, "eager"),
    ]
    assert trace.manifest.ranks == (0, 1)
    assert trace.manifest.config["sources"] == {"0": "SGLang DP0 TP0", "1": "SGLang DP1 TP1"}
    assert any("only for some decode batches" in note for note in report_of(trace).notes)


def test_the_finer_of_two_times_in_a_line_of_sglang_counts(tmp_path: Path) -> None:
    trace = open_log(tmp_path, SGLANG)

    first = at(2025, 7, 18, 15, 32, 52) + 498_932_000
    assert rows(trace, "steps", "ts_ns")[0] == first
    assert rows(trace, "steps", "dur_ns") == [
        at(2025, 7, 18, 15, 32, 54) - first, None, None,
    ]  # fmt: skip
    assert (
        report_of(trace).inferred["lengths of steps, each until the line of the next, 10 s at most"]
        == 1
    )


def test_a_retraction_preempts_requests_that_are_not_named(tmp_path: Path) -> None:
    trace = open_log(tmp_path, SGLANG)

    assert (
        rows(trace, "lifecycle", "event", "request", "cause")
        == [("preempt", None, "KV cache pool is full")] * 2
    )
    assert report_of(trace).inferred["preempted requests that the log does not name"] == 2
    assert ("#new_token_ratio", 0.3487) in rows(trace, "counters", "name", "value")


def test_under_speculation_the_tokens_of_a_decode_batch_are_not_known(tmp_path: Path) -> None:
    line = "[2026-05-09 12:00:00] Decode batch, #running-req: 4, accept len: 3.00, #queue-req: 0\n"

    assert rows(open_log(tmp_path, line), "steps", *COUNTS) == [(1, "decode", 0, 0, 4, None)]


def test_a_number_of_a_log_has_its_exponent() -> None:
    numbers = {
        "1.2e-05": Number(1.2e-05, None),
        "5E+3 tokens/s": Number(5000.0, "tokens/s"),
        "1.5e3ms": Number(1500.0, "ms"),
        "3e": Number(3.0, "e"),
        "-0.0%": Number(0.0, "%"),
        "0.12345678901234567": Number(0.12345678901234567, None),
        "1e999": None,
        "nan": None,
        "1.5e3e": Number(1500.0, "e"),
    }

    assert {text: number(text) for text in numbers} == numbers


def test_a_share_of_the_kv_cache_near_nothing_is_a_sample(tmp_path: Path) -> None:
    """Python writes so what is below a ten thousandth."""
    trace = open_log(tmp_path, TRTLLM.replace("kv_cache_util = 0.125", "kv_cache_util = 1.25e-05"))

    assert ("kv_cache_util", 1.25e-05) in rows(trace, "counters", "name", "value")


def test_counts_in_statistics_may_be_written_with_a_fraction(tmp_path: Path) -> None:
    written = STATISTICS.replace('"numCtxTokens": 77', '"numCtxTokens": 77.0')

    assert rows(open_log(tmp_path, written), "steps", *COUNTS) == rows(
        open_log(tmp_path, STATISTICS), "steps", *COUNTS
    )


# -- all -------------------------------------------------------------------------------------


def test_every_line_is_read_or_counted(tmp_path: Path) -> None:
    noise = "Traceback (most recent call last):\n\n  File 'x', line 1\n"
    for engine, log in LOGS.items():
        trace = open_log(tmp_path, noise + log + noise)

        report = report_of(trace)
        others = report.skipped["lines of no engine's steps"]
        assert sum(report.read.values()) + others == len(log.splitlines()) + 4, engine
        assert trace.manifest.closed, engine


def test_logs_of_several_engines_in_one_file_are_ranks(tmp_path: Path) -> None:
    trace = open_log(tmp_path, VLLM + SGLANG + MISTRALRS)

    assert trace.manifest.producer == "vLLM and SGLang and mistral.rs"
    assert list(trace.manifest.config["sources"].values()) == [
        "vLLM 0", "SGLang DP0 TP0", "SGLang DP1 TP1", "mistral.rs",
    ]  # fmt: skip
    assert "sources    0 is vLLM 0, 1 is SGLang DP0 TP0, " in repr(trace)


def test_real_lines_of_every_engine_are_read(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "logs" / "formats.log")

    assert sum(report_of(trace).read.values()) == 11
    assert trace.num_rows("steps") == 9
    assert trace.manifest.ranks == (0, 1, 2, 3, 4, 5)


def test_real_retractions_are_read(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "logs" / "sglang_retract.log")

    assert report_of(trace).skipped == {}
    assert rows(trace, "steps", "num_running") == [67, 66, 66, 66, 62, 60]
    assert rows(trace, "lifecycle", "event") == ["preempt"] * 5
