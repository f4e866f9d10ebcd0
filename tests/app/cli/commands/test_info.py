"""`stepscope info`: what is in a trace, and what could not be had from its source."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from stepscope.app.cli.commands.info import as_dict, as_text
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import event
from tests.analyzers.serving_rows import step, token
from tests.app.cli.conftest import Command
from tests.ingest.log_files import LOGS
from tests.ingest.readers.chrome.test_ascend import a_profile
from tests.ingest.readers.core_runtime.logs import DEADLOCK
from tests.ingest.readers.kv_events.test_reader import CAPTURE
from tests.ingest.readers.requests.lists import AZURE
from tests.ingest.readers.swimlane.test_files import SCOPES
from tests.ingest.readers.swimlane.test_reader import folder as swimlane
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of


def test_info_shows_tables_with_rows_and_steps_by_kind(stepscope: Command, starved: Path) -> None:
    run = stepscope("info", starved)

    assert "fcfs-preemption / before" in run.out
    assert "batch_rows" in run.out
    assert "decode" in run.out


def test_info_for_programs_counts_the_same_rows(stepscope: Command, starved: Path) -> None:
    facts = json.loads(stepscope("info", starved, "--format", "json").out)

    assert facts["closed"] is True
    assert facts["tables"]["steps"]["rows"] == sum(facts["steps"].values())


def test_kernels_of_an_npu_are_counted_by_the_cores_that_they_ran_on(
    stepscope: Command, tmp_path: Path
) -> None:
    file = tmp_path / "trace_view.json"
    file.write_text(json.dumps(a_profile()))

    run = stepscope("info", file)

    assert "producer   torch_npu (msprof trace_view)" in run.out
    assert "kernels    8 on cores of the NPU: 2 AIC, 2 AIV, 4 MIX" in run.out


def test_the_vllm_cpu_trace_has_its_133_steps(stepscope: Command, shared_data: Path) -> None:
    path = shared_data / "kineto" / "vllm_cpu_tiny_llama_preemptions.json.gz"

    facts = json.loads(stepscope("info", path, "--format", "json").out)

    assert facts["steps"] == {"prefill": 1, "decode": 103, "mixed": 29}


@slow
def test_the_gpu_traces_show_their_engine_step_with_rows_and_tokens(
    stepscope: Command, shared_data: Path
) -> None:
    sglang = stepscope("info", shared_data / "kineto" / "sglang_qwen3_8b_prefilldecode.json.gz")
    vllm = stepscope("info", shared_data / "kineto" / "vllm_prefilldecode_mi300.json.gz")

    assert step_row(sglang.out, "prefill") == ["1", "15", "15,360", "0", "0"]
    assert step_row(vllm.out, "mixed") == ["1", "9", "8,155", "37", "37"]


@slow
def test_steps_of_a_profile_are_told_with_their_time_on_the_gpu(
    stepscope: Command, shared_data: Path
) -> None:
    on_gpu = stepscope("info", shared_data / "kineto" / "vllm_prefilldecode_mi300.json.gz").out
    cpu = stepscope("info", shared_data / "kineto" / "vllm_cpu_tiny_llama_preemptions.json.gz").out

    (row,) = [line for line in on_gpu.splitlines() if line.startswith("mixed ")]
    assert row.split()[-3:] == ["307.70", "26.35", "156.09"]
    assert "GPU busy" not in cpu
    assert "no kernel is in the file: steps are as long as the CPU was in them" in cpu


def milliseconds(text: str, kind: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{kind} ")]
    return line.split()[6]


def step_row(text: str, kind: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{kind} ")]
    return line.split()[1:6]


# -- every format --------------------------------------------------------------------------------

WORDS = ("read", "skipped", "repaired", "inferred")


def swimlane_of(tmp_path: Path) -> Path:
    return swimlane(tmp_path, scopes=SCOPES)


def file_of(tmp_path: Path, content: str | bytes, name: str = "thing") -> Path:
    file = tmp_path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def ranks_of(tmp_path: Path) -> Path:
    """Two ranks whose clocks are 7 ms apart by the ends of their collectives."""
    for rank in (0, 1):
        ran = [
            {
                "ph": "X", "name": name, "cat": category, "pid": 1, "tid": tid,
                "ts": 1000 * each + 7000 * rank, "dur": 100,
                "args": {"Collective name": "allreduce", "Process Group Name": "0", "Seq": each,
                         "External id": each},
            }
            for each in range(5)
            for name, category, tid in (("record_param_comms", "cpu_op", 1),
                                        ("ncclDevKernel_Generic_1(x)", "kernel", 7))
        ]  # fmt: skip
        whole = {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": ran}
        file_of(tmp_path, json.dumps(whole), f"rank{rank}.json")
    return tmp_path


EVENTS = [
    {"ph": "X", "name": "decode[bs=2/4 tok=2]", "cat": "user_annotation", "ts": 1, "dur": 5.5,
     "pid": 1, "tid": 1},
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "engine"}},
    {"ph": "Z", "name": "odd", "ts": 2, "pid": 1, "tid": 1},
]  # fmt: skip
FORMATS: dict[str, Callable[[Path], Path]] = {
    "Chrome JSON": lambda folder: file_of(folder, json.dumps({"traceEvents": EVENTS})),
    "folder of ranks": ranks_of,
    "swimlane": swimlane_of,
    "KV events": lambda folder: file_of(folder, CAPTURE),
    "requests": lambda folder: file_of(folder, AZURE + "odd\n"),
    "runtime log": lambda folder: file_of(folder, DEADLOCK),
} | {
    f"log of {name}": (lambda folder, text=text: file_of(folder, text))
    for name, text in LOGS.items()
}


@slow
@looped("name", FORMATS)
def test_of_every_format_it_says_what_was_read_skipped_repaired_and_inferred(
    stepscope: Command, tmp_path: Path, name: str
) -> None:
    path = FORMATS[name](tmp_path)
    report = Trace.open(path).manifest.report
    assert report
    assert report.read

    text = stepscope("info", path).out
    facts = json.loads(stepscope("info", path, "--format", "json").out)

    shown = {line.split(maxsplit=1)[0] for line in text.splitlines() if line.startswith(WORDS)}
    for word in WORDS:
        counts = getattr(report, word)
        assert facts["report"][word] == counts
        assert (word in shown) == any(counts.values())
        for what, num in counts.items():
            assert any(f"  {num:,}  {what}" in line for line in text.splitlines()), what
    assert all(f"- {note}" in text.splitlines() for note in report.notes)
    assert all(len(line) <= 140 for line in text.splitlines())
    assert "None" not in text


def test_counts_stand_under_each_other(stepscope: Command, tmp_path: Path) -> None:
    lines = stepscope("info", FORMATS["runtime log"](tmp_path)).out.splitlines()

    begin = next(number for number, line in enumerate(lines) if line.startswith("read "))
    report = lines[begin : lines.index("", begin)]
    ends = {re.match(r"\w* +[\d,]+", line).end() for line in report}  # type: ignore[union-attr]  # every line matches
    assert len(ends) == 1
    assert len(report) > 4


def test_ranks_of_a_folder_are_shown_with_the_residual_of_their_clocks(
    stepscope: Command, tmp_path: Path
) -> None:
    run = stepscope("info", ranks_of(tmp_path))

    assert [line.split() for line in run.out.splitlines() if "rank1.json" in line] == [
        ["1", "rank1.json", "-7.00", "ms", "0", "ns", "6.90", "ms", "7.10", "ms", "5",
         "sequence", "numbers"]
    ]  # fmt: skip
    assert "within 0.000 ms" in run.out


def test_a_swimlane_is_shown_with_its_cores_kernels_tasks_edges_and_rings(
    stepscope: Command, tmp_path: Path
) -> None:
    out = stepscope("info", swimlane_of(tmp_path)).out

    assert "cores      6: 2 AIC, 4 AIV" in out
    assert "kernels    3: softmax, qk, pv" in out
    assert "tasks      1 AIV, 1 MIX" in out
    assert "edges      1 explicit" in out
    assert [line.split() for line in out.splitlines() if line.startswith("ring 1")] == [
        ["ring", "1", "task_window", "2", "1", "4", "tasks"]
    ]


def test_times_count_from_the_first_row_and_the_first_has_a_date(
    stepscope: Command, tmp_path: Path
) -> None:
    out = stepscope("info", file_of(tmp_path, AZURE)).out

    assert "time       4.31 s from 2023-11-16 18:15:46 UTC" in out
    assert "prompts    385 tokens on average, 396 at most, 770 in all" in out
    (line,) = [line for line in out.splitlines() if line.startswith("lifecycle")]
    assert line.split() == ["lifecycle", "2", "complete", "0", "ns", "4.31", "s"]


def test_what_is_not_known_of_steps_is_not_shown_as_nothing(
    stepscope: Command, tmp_path: Path
) -> None:
    out = stepscope("info", file_of(tmp_path, DEADLOCK)).out

    assert step_row(out, "unknown") == ["1", "-", "-", "-", "-"]


def test_hostile_names_are_harmless(stepscope: Command, tmp_path: Path) -> None:
    evil = {"callable_id_to_name": {"1": "\x1b[31mred\nline", "2": "\u202eleft"}}

    out = stepscope("info", file_of(tmp_path, json.dumps(evil))).out

    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "kernels    2: ·[31mred·line, ·left" in out


@looped("case", ["TestMixedExample_case1", "TestQwen2L_StressBatch16Seq3500"])
def test_real_swimlanes_show_their_tasks(stepscope: Command, shared_data: Path, case: str) -> None:
    out = stepscope("info", shared_data / "swimlane" / case).out

    tasks = {
        "TestMixedExample_case1": "12 MIX, 4 AIC, 4 AIV",
        "TestQwen2L_StressBatch16Seq3500": "470 AIC, 62 AIV, 25 DUMMY, 2 MIX",
    }
    assert f"tasks      {tasks[case]}" in out.splitlines()


def test_steps_that_overlap_count_for_the_time_in_which_any_ran() -> None:
    ms = 1_000_000
    steps = [step(n, ts_ns=10 * ms * n, dur_ns=25 * ms) for n in range(1, 4)]
    steps += [step(9, "prefill", ts_ns=40 * ms, dur_ns=20 * ms)]

    out = as_text(trace_of(steps=steps))

    assert milliseconds(out, "decode") == "45.00"
    assert milliseconds(out, "prefill") == "5.00"


def test_how_long_steps_took_is_not_nothing_where_no_step_says_so() -> None:
    out = as_text(trace_of(steps=[step(1, dur_ns=None)]))

    assert milliseconds(out, "decode") == "-"


def test_outputs_are_what_came_and_not_what_was_asked_for_at_most() -> None:
    asked = [event(name, "arrive", 1, prompt_len=9, max_tokens=100) for name in "ab"]
    came = [token(n, "a", n) for n in range(4)] + [token(9, "b", 0, is_placeholder=True)]
    told = [event("a", "finish", 9, num_generated=3), event("b", "abort", 9, num_generated=1)]

    recorded = as_text(trace_of(lifecycle=asked, outputs=came))
    of_lifecycle = as_text(trace_of(lifecycle=[*asked, *told]))
    unknown = as_text(trace_of(lifecycle=asked))

    assert "asked      100 tokens on average, 100 at most, 200 in all" in recorded
    assert "outputs    4 tokens on average, 4 at most, 4 in all" in recorded
    assert "outputs    2 tokens on average, 3 at most, 4 in all" in of_lifecycle
    assert "outputs  " not in unknown
    assert as_dict(trace_of(lifecycle=asked))["tokens"]["outputs"] is None
