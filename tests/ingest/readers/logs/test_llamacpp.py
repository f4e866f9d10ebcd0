"""Logs of llama.cpp: slots and their batches; and of mistral.rs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyzers.latency.blame import blame
from stepscope.analyzers.latency.causes import CAUSES
from stepscope.ingest.summary import lengths
from stepscope.ingest.times import POSITION_NS
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import (
    COUNTS,
    LLAMACPP,
    MISTRALRS,
    at,
    open_log,
    report_of,
)
from tests.looped import looped
from tests.tiers import slow

MS = 1_000_000


def test_slots_of_one_batch_of_llamacpp_are_one_step_and_the_rest_of_it_decodes(
    tmp_path: Path,
) -> None:
    trace = open_log(tmp_path, LLAMACPP)

    assert rows(trace, "steps", *COUNTS) == [
        (1, "prefill", 1, 512, 0, 0),
        (2, "mixed", 2, 92, None, 1),
    ]
    assert rows(trace, "steps", "ts_ns") == [100_300_000, 200_200_000]
    assert trace.manifest.clock.kind == "profiler"


def test_prompts_of_llamacpp_are_rows_that_go_on_where_they_were(tmp_path: Path) -> None:
    trace = open_log(tmp_path, LLAMACPP)

    columns = ("step", "request", "slot", "num_tokens", "num_computed", "prompt_len")
    assert rows(trace, "batch_rows", *columns, "is_final_chunk") == [
        (1, "task 0", 3, 512, 0, 600, False),
        (2, "task 5", 2, 4, 16, None, True),
        (2, "task 0", 3, 88, 512, 600, True),
    ]


def test_slots_of_llamacpp_change_hands(tmp_path: Path) -> None:
    trace = open_log(tmp_path, LLAMACPP)

    assert rows(trace, "allocations", "id", "op", "owner") == [
        (3, "claim", "task 0"), (2, "claim", "task 5"), (3, "release", "task 0"),
    ]  # fmt: skip
    assert rows(trace, "lifecycle", "request", "event", "num_generated") == [
        ("task 0", "admit", None), ("task 5", "admit", None), ("task 0", "finish", 509),
    ]  # fmt: skip


def test_timings_of_llamacpp_are_counters_of_their_slot(tmp_path: Path) -> None:
    counters = rows(open_log(tmp_path, LLAMACPP), "counters", "track", "name", "value", "unit")

    assert ("slot 3", "tokens per second", 1133.55, None) in counters
    assert ("slot 3", "n_decoded", 508.0, None) in counters
    assert ("slot 3", "tg", 2.53, "t/s") in counters


def test_older_lines_of_llamacpp_call_their_numbers_otherwise(tmp_path: Path) -> None:
    head = "slot update_slots: id  0 | task 9 | "
    text = (
        f"{head}kv cache rm [7, end)\n"
        f"{head}prompt processing progress, n_past = 39, n_tokens = 32, progress = 0.500000\n"
        f"{head}prompt done, n_past = 39, n_tokens = 32\n"
    )

    trace = open_log(tmp_path, text)

    assert rows(trace, "batch_rows", "num_tokens", "num_computed", "is_final_chunk") == [
        (32, 7, True)
    ]
    assert trace.manifest.clock.kind == "none"


UNTIMED = """\
slot launch_slot_: id  {slot} | task {task} | processing task
slot update_slots: id  {slot} | task {task} | new prompt, n_ctx_slot = 8192, n_keep = 0, \
n_prompt_tokens = 100
slot update_slots: id  {slot} | task {task} | prompt done, n_past = 100, n_tokens = 100
"""
STATED = """\
slot print_timing: id  {slot} | task {task} |
prompt eval time =  {prompt} ms /   100 tokens (    2.63 ms per token,   380.29 tokens per second)
       eval time =  {eval} ms /   700 tokens (   57.14 ms per token,    17.50 tokens per second)
      total time =  {total} ms /   800 tokens
slot      release: id  {slot} | task {task} | stop processing: n_past = 799, truncated = 0
"""


def stated(slot: int, task: int, prompt_ms: float, eval_ms: float) -> str:
    times = {"prompt": prompt_ms, "eval": eval_ms, "total": prompt_ms + eval_ms}
    shown = {name: f"{ms:.2f}" for name, ms in times.items()}
    return STATED.format(slot=slot, task=task, **shown)


def untimed(slot: int, task: int) -> str:
    return UNTIMED.format(slot=slot, task=task)


def blamed(trace: Trace) -> dict[str, dict[str, float]]:
    """Milliseconds of each request by cause."""
    rows = blame(trace).requests.to_dicts()
    return {
        row["request"]: {
            cause.name: row[cause.column] / 1e6 for cause in CAUSES if row[cause.column]
        }
        for row in rows
    }


@slow
@given(
    st.permutations([0, 1, 2]),
    st.permutations([0, 1, 2]),
    st.lists(st.tuples(st.integers(1, 90_000), st.integers(1, 90_000)), min_size=3, max_size=3),
)
def test_requests_of_a_log_without_times_last_as_long_as_the_log_states(
    begun: list[int], ended: list[int], times: list[tuple[int, int]]
) -> None:
    text = "".join(untimed(task, task) for task in begun)
    text += "".join(stated(task, task, *times[task]) for task in ended)

    with TemporaryDirectory() as folder:
        trace = open_log(Path(folder), text)
        spent = blamed(trace)
        assert trace.manifest.clock.kind == "none"

    assert spent == {
        f"task {task}": {"prefill": prompt, "decode": decode}
        for task, (prompt, decode) in enumerate(times)
    }


def test_without_a_clock_rows_are_as_far_apart_as_their_lines_whatever_is_stated(
    tmp_path: Path,
) -> None:
    trace = open_log(tmp_path, untimed(0, 3) + untimed(1, 4) + stated(1, 4, 1e6, 2e6))

    times = rows(trace, "lifecycle", "ts_ns")
    assert 0 < max(times) - min(times) < 100 * POSITION_NS


def test_a_request_of_which_nothing_is_stated_has_no_length_beside_one_that_is(
    tmp_path: Path,
) -> None:
    release = "slot      release: id  0 | task 3 | stop processing: n_past = 799, truncated = 0\n"
    trace = open_log(tmp_path, untimed(0, 3) + untimed(1, 4) + stated(1, 4, 10, 20) + release)

    assert blamed(trace) == {"task 4": {"prefill": 10.0, "decode": 20.0}}
    assert "1 request for which the log states no total time: left out" in blame(trace).notes


def test_the_same_slot_states_the_times_of_one_request_after_another(tmp_path: Path) -> None:
    text = "".join(untimed(0, task) + stated(0, task, 10 + task, 20) for task in (1, 2, 3))

    assert blamed(open_log(tmp_path, text)) == {
        f"task {task}": {"prefill": 10.0 + task, "decode": 20.0} for task in (1, 2, 3)
    }


def test_without_times_or_stated_times_no_request_has_a_first_token(tmp_path: Path) -> None:
    release = "slot      release: id  0 | task 0 | stop processing: n_past = 799, truncated = 0\n"

    trace = open_log(tmp_path, untimed(0, 0) + release)

    assert rows(trace, "lifecycle", "event") == ["admit", "finish"]
    assert trace.manifest.clock.kind == "none"


def test_a_request_that_never_left_its_slot_is_there_in_a_log_without_times(tmp_path: Path) -> None:
    trace = open_log(tmp_path, untimed(0, 3) + untimed(1, 4) + stated(1, 4, 10, 20))

    assert rows(trace, "lifecycle", "request", "event") == [
        ("task 3", "admit"), ("task 4", "admit"), ("task 4", "finish"),
    ]  # fmt: skip


def of_2026(uptime: str, text: str, task: int = 0) -> str:
    return f"{uptime} I slot print_timing: id  0 | task {task} | {text}\n"


START_OF_2026 = "".join([
    "0.00.056.555 I srv  llama_server: model loaded\n",
    "0.10.000.000 I slot launch_slot_: id  0 | task 0 | processing task, is_child = 0\n",
    "0.10.000.000 I slot   operator(): id  0 | task 0 | new prompt, n_ctx_slot = 8192, n_keep = 0, "
    "task.n_tokens = 2048\n",
    "0.10.000.000 I slot   operator(): id  0 | task 0 | cached n_tokens = 48, memory_seq_rm "
    "[48, end)\n",
    of_2026("0.13.000.000", "prompt processing, n_tokens =   1048, progress = 0.51, t =   3.00 s / "
            "333.33 tokens per second"),
    of_2026("0.15.000.000", "prompt processing, n_tokens =   2048, progress = 1.00, t =   5.00 s / "
            "400.00 tokens per second"),
    of_2026("0.50.000.000", "prompt eval time =    5000.00 ms /  2000 tokens (    2.50 ms per "
            "token,   400.00 tokens per second)"),
    of_2026("0.50.000.000", "       eval time =   35000.00 ms /   508 tokens (   68.90 ms per "
            "token,    14.51 tokens per second)"),
    of_2026("0.50.000.000", "      total time =   40000.00 ms /  2508 tokens"),
    "0.50.000.000 I slot      release: id  0 | task 0 | stop processing: n_tokens = 2555, "
    "truncated = 0\n",
])  # fmt: skip


def test_prompts_and_cached_tokens_of_2026_are_read_from_their_timing_lines(tmp_path: Path) -> None:
    trace = open_log(tmp_path, START_OF_2026)

    assert rows(trace, "steps", "num_prefill_tokens", "dur_ns") == [
        (1_000, 3_000_000_000), (1_000, 2_000_000_000),
    ]  # fmt: skip
    assert rows(trace, "batch_rows", "num_computed", "num_tokens", "prompt_len") == [
        (48, 1_000, 2_048), (1_048, 1_000, 2_048),
    ]  # fmt: skip
    assert blamed(trace) == {"task 0": {"prefill": 5_000, "decode": 35_000}}
    generated = rows(trace, "lifecycle", "event", "num_generated")
    assert generated == [("admit", None), ("first-token", None), ("finish", 508)]


@looped("again", [START_OF_2026, START_OF_2026.partition("\n")[2]])
def test_tasks_of_a_server_that_started_again_are_other_requests(
    tmp_path: Path, again: str
) -> None:
    trace = open_log(tmp_path, START_OF_2026 + again)

    whole = {"prefill": 5_000, "decode": 35_000}
    assert blamed(trace) == {"task 0": whole, "task 0 (start 2)": whole}
    begins = rows(trace, "lifecycle", "ts_ns", "event")
    admitted = [at for at, event in begins if event == "admit"]
    assert admitted == [10_000_000_000, 60_000_000_000]


def test_a_clock_and_stated_times_together_leave_no_decode_idle(tmp_path: Path) -> None:
    head = "2026-01-02T03:04:{:02}.000000+0000 host llama-server[7]: "
    lines = (untimed(0, 0) + stated(0, 0, 3_000, 4_000)).splitlines()
    at = [0, 0, 0, *[7] * 6]

    trace = open_log(tmp_path, "".join(
        f"{head.format(second)}{line}\n" for second, line in zip(at, lines, strict=False)
    ))  # fmt: skip

    assert trace.manifest.clock.kind == "wall"
    assert blamed(trace) == {"task 0": {"prefill": 3_000, "decode": 4_000}}


def test_a_slot_that_is_taken_again_was_left(tmp_path: Path) -> None:
    launch = "slot launch_slot_: id  0 | task {} | processing task\n"

    trace = open_log(tmp_path, launch.format(1) + launch.format(2))

    assert rows(trace, "allocations", "op", "owner") == [
        ("claim", "task 1"), ("release", "task 1"), ("claim", "task 2"),
    ]  # fmt: skip
    assert sum(report_of(trace).repaired.values()) == 1


def clocked(*lines: tuple[int, str]) -> str:
    """Lines of journald, each so many seconds after a minute began."""
    return "".join(
        f"2026-01-02T03:{second // 60:02}:{second % 60:02}.000000+0000 host llama-server[7]: "
        f"{line}\n"
        for second, text in lines
        for line in text.splitlines()
    )


PROMPTED = (
    "slot update_slots: id  0 | task 0 | prompt processing progress, n_past = {0}, n_tokens = {1}"
)
IDLE = "srv  update_slots: all slots are idle"


def lasted(trace: Trace) -> list[int]:
    """How many milliseconds each step took."""
    return [dur_ns // MS for dur_ns in rows(trace, "steps", "dur_ns")]


def test_the_step_of_a_prompt_lasts_as_long_as_the_log_states(tmp_path: Path) -> None:
    one, two = untimed(0, 0), untimed(0, 1)

    trace = open_log(tmp_path, clocked(
        (0, one), (2, stated(0, 0, 240, 1_280) + IDLE),
        (30, two), (32, stated(0, 1, 480, 1_280) + IDLE),
    ))  # fmt: skip

    assert lasted(trace) == [240, 480]
    assert rows(trace, "steps", "num_prefill_tokens") == [100, 100]


def test_a_step_of_which_no_time_is_stated_ends_when_all_slots_are_idle(tmp_path: Path) -> None:
    trace = open_log(tmp_path, clocked((0, untimed(0, 0)), (2, IDLE), (30, untimed(0, 1))))

    assert rows(trace, "steps", "dur_ns") == [2_000 * MS, None]


@looped("first, durations", [(0, [30_000, 30_000, 60_000]), (30, [30_000, 30_000, 60_000])])
def test_the_steps_of_a_long_prompt_are_no_longer_and_no_shorter_than_its_stated_time(
    tmp_path: Path, first: int, durations: list[int]
) -> None:
    begins = [first, first + 30, first + 60] if not first else [30, 60, 120]
    chunks = [(at, PROMPTED.format(100 * n, 100)) for n, at in enumerate(begins, start=1)]

    trace = open_log(tmp_path, clocked(
        (0, untimed(0, 0).rpartition("slot")[0]), *chunks, (122, stated(0, 0, 120_000, 2_000))
    ))  # fmt: skip

    assert lasted(trace) == durations
    assert rows(trace, "steps", "num_prefill_tokens") == [100, 100, 100]


def test_a_request_whose_prompt_is_done_is_not_in_prefill_until_the_log_ends(
    tmp_path: Path,
) -> None:
    trace = open_log(tmp_path, clocked(
        (0, untimed(0, 0)), (60, untimed(1, 1)), (62, stated(1, 1, 1_000, 1_000)),
    ))  # fmt: skip

    assert blamed(trace)["task 0"] == {"prefill": 10_000.0, "unknown": 52_000.0}


def test_a_request_that_is_never_in_a_batch_is_not_in_prefill(tmp_path: Path) -> None:
    never = "0.05.000.000 I slot launch_slot_: id  1 | task 9 | processing task, is_child = 0\n"

    trace = open_log(tmp_path, never + START_OF_2026.partition("\n")[2])

    assert blamed(trace) == {
        "task 9": {"unknown": 45_000}, "task 0": {"prefill": 5_000, "decode": 35_000},
    }  # fmt: skip
    assert sum(trace.steps.collect()["dur_ns"]) == 5_000 * MS


def test_prompts_and_outputs_are_those_that_the_log_states(tmp_path: Path) -> None:
    without_prompt = "".join(
        line for line in START_OF_2026.splitlines(keepends=True) if "new prompt" not in line
    )

    stated_all = lengths(open_log(tmp_path, START_OF_2026))
    stated_some = lengths(open_log(tmp_path, without_prompt))

    prompts, outputs = stated_all["prompts"], stated_all["outputs"]
    assert prompts is not None
    assert outputs is not None
    assert (prompts.requests, prompts.total, outputs.total) == (1, 2_048, 508)
    assert stated_some["outputs"] == outputs
    assert stated_some["prompts"] is None


def test_interval_lines_of_mistralrs_are_counters(tmp_path: Path) -> None:
    trace = open_log(tmp_path, MISTRALRS)

    second = at(2025, 7, 1, 10, 0, 5) + 250_000_000
    assert rows(trace, "counters", "ts_ns", "name", "value", "unit")[4:] == [
        (second, "Throughput", 20.0, "T/s"),
        (second, "Throughput prefill", 15.0, "T/s"),
        (second, "Throughput decode", 5.0, "T/s"),
        (second, "Prefix cache hitrate", 50.0, "%"),
        (second, "running", 3.0, None),
        (second, "waiting", 0.0, None),
    ]
    assert not trace.has("steps")
