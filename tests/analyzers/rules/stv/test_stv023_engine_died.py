"""STV023: the engine failed, with which error, and what was there before."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.rules.stv.stv023_engine_died import EngineDied
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.engine_reports import log_of, sglang, vllm
from tests.looped import looped

HEAD = "(EngineCore_DP0 pid=20) ERROR 03-11 06:01:05 [core.py:710] "
FATAL = (
    f"{HEAD}EngineCore encountered a fatal error.",
    f"{HEAD}Traceback (most recent call last):",
    f'{HEAD}  File "async_scheduler.py", line 63, in _update_request_with_output',
    f"{HEAD}    assert request.num_output_placeholders >= 0",
    f"{HEAD}           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    f"{HEAD}AssertionError",
    "(APIServer pid=1) ERROR 03-11 06:01:05 [async_llm.py:480] "
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
)
QUOTES = (
    "(APIServer pid=1) INFO 03-11 06:01:05 [logger.py:40] Received request chatcmpl-0: prompt: "
    "'what are CUDA out of memory and EngineDeadError?', params: SamplingParams(n=1).",
    "[2026-03-11 06:01:05] Receive: obj=GenerateReqInput(rid='a', text='OutOfMemoryError')",
    "[2026-03-11 06:01:05] Scheduler got text='Scheduler hit an exception'",
    '{"level": "info", "time": "2026-03-11T06:01:05Z", "msg": "EngineDeadError is a word"}',
    "DEBUG 03-11 06:01:05 [client.py:1] no EngineDeadError so far",
    '[2026-03-11 06:01:05] body: {"messages": [{"content": "Segmentation fault"}]}',
    "[TRT-LLM] [I] NCCL watchdog timeout is 600 s",
)
UNHEALTHY = (
    "[2026-09-13 16:02:10] Health check failed. Server couldn't get a response from detokenizer "
    "for last 20 seconds. tic start time: 16:01:50. last_heartbeat time: 16:01:10"
)
SERVED = [vllm(10 * n, 4, 2, 93.0) for n in range(7)]


def test_the_error_and_the_last_report_before_it_are_named(tmp_path: Path) -> None:
    (found,) = EngineDied().check(log_of(tmp_path, *SERVED, *FATAL))

    assert found.message == (
        "the engine died: AssertionError: assert request.num_output_placeholders >= 0; the last "
        "report, 5.0 s before, says that 4 requests run, 2 wait and the KV cache is 93.0% full"
    )
    assert found.evidence["fatal lines"] == 2


@looped(
    ("line", "error"),
    [
        ("[2026-09-13 16:01:10 TP0] Scheduler hit an exception: Traceback (most recent call "
         "last):\n"
         '  File "scheduler.py", line 1, in run\n'
         "ValueError: pool memory leak detected! total=469952, available=96",
         "ValueError: pool memory leak detected! total=469952, available=96"),
        ("[2026-09-13 16:01:10] Received sigquit from a child process. It usually means the child "
         "failed.", "Received sigquit from a child process"),
        ("ggml.c:99: GGML_ASSERT(n_past >= 0) failed", "GGML_ASSERT(n_past >= 0) failed"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
         "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"),
        ("[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)",
         "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)"),
        ("[09/04/2026-19:08:00] [TRT-LLM] [E] Error in event loop: bad state",
         "Error in event loop: bad state"),
        ("[11/20/2026-10:05:04] [TRT-LLM] [RANK 0] [E] Hang detected after 300 seconds.",
         "the engine hangs by its own account: "),
        ("MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD",
         "the engine died: MPI_ABORT was invoked on rank 0"),
        ("\n".join([UNHEALTHY] * 3),
         "the engine hangs by its own account: [2026-09-13 16:02:10] Health check failed"),
        ("slot update_slots: id  0 | task 0 | failed to decode the batch: KV cache is full",
         "the engine failed, and no report follows: slot update_slots: id  0 | task 0 | failed"),
        ("ERROR 03-11 06:01:10 [core_client.py:600] Engine core proc EngineCore_DP0 died "
         "unexpectedly, shutting down client.", "EngineCore_DP0 died unexpectedly"),
    ],
)  # fmt: skip
def test_fatal_lines_of_other_engines_are_known(tmp_path: Path, line: str, error: str) -> None:
    (found,) = EngineDied().check(log_of(tmp_path, *(sglang(n, 4, 0, 0.5) for n in range(9)), line))

    assert error in found.message


def test_of_several_engines_the_one_that_wrote_the_line_is_named(tmp_path: Path) -> None:
    reports = [
        [vllm(10 * n, 20, 0, 30.0), *([vllm(10 * n, 16, 0, 25.0, engine=1)] if n < 6 else [])]
        for n in range(9)
    ]
    served = [line for at in reports[:7] for line in at]
    fatal = HEAD.replace("DP0", "DP1").replace("06:01:05", "06:01:00")
    lines = [f"{fatal}EngineCore encountered a fatal error.", f"{fatal}RuntimeError: NCCL error"]

    (found,) = EngineDied().check(log_of(tmp_path, *served, *lines, *reports[7], *reports[8]))

    assert found.rank == 1
    assert found.message == (
        "the engine of rank 1 died: RuntimeError: NCCL error; the last report, 10.0 s before, says "
        "that 16 requests run and the KV cache is 25.0% full; of rank 0 reports go on"
    )


def test_reports_of_another_engine_say_nothing_of_the_one_that_ran_out_of_memory(
    tmp_path: Path,
) -> None:
    served = [sglang(n, 4, 0, 0.5, rank=f"DP{dp} TP0") for n in range(9) for dp in (0, 1)]
    error = "[2026-09-13 16:00:09 DP1 TP0] torch.OutOfMemoryError: CUDA out of memory"
    later = [sglang(n, 4, 0, 0.5, rank="DP0 TP0") for n in range(10, 15)]
    own = sglang(15, 4, 0, 0.5, rank="DP1 TP0")

    (found,) = EngineDied().check(log_of(tmp_path, *served, error, *later))

    assert found.rank == 1
    assert EngineDied().check(log_of(tmp_path, *served, error, *later, own)) == []


def test_a_request_that_quotes_a_shutdown_hides_no_failure(tmp_path: Path) -> None:
    quote = "INFO 03-11 06:01:02 [logger.py:40] Received request a: prompt: 'what is SIGTERM?'"

    (found,) = EngineDied().check(log_of(tmp_path, *SERVED, quote, *FATAL))

    assert "AssertionError" in found.message


def test_a_fatal_line_without_a_year_is_placed_beside_the_reports(tmp_path: Path) -> None:
    line = "[rank3]:[E913 16:01:10.5 ProcessGroupNCCL.cpp:632] Watchdog caught collective " \
        "operation timeout: WorkNCCL(SeqNum=9)"  # fmt: skip
    trace = log_of(tmp_path, *(sglang(n, 4, 0, 0.5) for n in range(9)), line)

    (found,) = EngineDied().check(trace)

    last_ns = found.evidence["last report_ns"]
    assert isinstance(last_ns, int)
    assert found.ts_ns is not None
    assert last_ns < found.ts_ns < last_ns + 86_400 * 10**9


@looped(
    "lines",
    [
        pytest.param(SERVED, id="nothing happened"),
        pytest.param([*SERVED, "INFO 03-11 06:01:00 [shutdown] API server: shutdown triggered",
                      *FATAL[-1:]], id="somebody stopped it"),
        pytest.param([*SERVED[:3], "INFO user: what does CUDA out of memory mean?", *SERVED[3:]],
                     id="an engine that goes on"),
        pytest.param([*SERVED, f"{HEAD}ValueError: the prompt is too long"], id="a refusal"),
        pytest.param([*SERVED, UNHEALTHY, UNHEALTHY], id="a long prefill"),
        pytest.param([*SERVED[:3], *[UNHEALTHY] * 9, *SERVED[3:]], id="reports come again"),
        *(pytest.param([*SERVED, line], id=line[:60]) for line in QUOTES),
        *(pytest.param([*SERVED[:4], line, *SERVED[4:]], id=f"then {line[:60]}")
          for line in QUOTES),
    ],
)  # fmt: skip
def test_other_errors_are_clean(tmp_path: Path, lines: list[str]) -> None:
    result = check(log_of(tmp_path, *lines), (EngineDied(),))

    assert (result.findings, result.not_applicable) == ((), ())


def test_a_failure_is_still_there_when_the_log_was_saved_as_a_trace(tmp_path: Path) -> None:
    save_trace(log_of(tmp_path, *SERVED, *FATAL), tmp_path / "saved.trace")

    (found,) = EngineDied().check(Trace.open(tmp_path / "saved.trace"))

    assert "AssertionError" in found.message


def test_a_recording_is_not_judged(record: Record) -> None:
    assert check(record("fcfs-preemption"), (EngineDied(),)).not_applicable == ("STV023",)
