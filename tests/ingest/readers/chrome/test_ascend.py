"""Profiles of Ascend NPUs in Chrome JSON: msprof's timeline, torch_npu's, and the simulator's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.analyzers.latency.gpu_time import on_gpu
from stepscope.analyzers.summary.gpu_use import gpu_use, kernel_sums, with_cores
from stepscope.ingest.trace import Trace
from tests.tiers import slow

Event = dict[str, Any]
HOST, CANN, NPU, HCCL, OVERLAP = 40960, 40991, 41408, 41504, 41600
T0 = 1_780_747_943_460_000


def named(pid: int, name: str, label: str = "", **threads: str) -> list[Event]:
    """The names of a process and of its threads `t2="Stream 2"`."""
    events = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}]
    if label:
        labels = {"labels": label}
        events += [{"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": labels}]
    return events + [
        {"ph": "M", "name": "thread_name", "pid": pid, "tid": int(tid[1:]), "args": {"name": text}}
        for tid, text in threads.items()
    ]


def piece(name: str, pid: int, tid: int, ts: float, dur: float, **more: Any) -> Event:
    """A complete event, its time in text as msprof writes it."""
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": f"{T0 + ts:.3f}", "dur": dur,
            "args": {}} | more  # fmt: skip


def task(name: str, task_type: str, ts: float, dur: float, stream: int = 2) -> Event:
    """A task of a device, as msprof's "Ascend Hardware" has it."""
    args = {"Model Id": 4294967295, "Task Type": task_type, "Physic Stream Id": stream,
            "Task Id": 7, "Batch Id": 0, "Subtask Id": 4294967295, "connection_id": 1}  # fmt: skip
    return piece(name, NPU, stream, ts, dur, args=args)


def arrow(
    category: str, number: Any, start: tuple[int, int, float], end: tuple[int, int, float]
) -> list[Event]:
    """An arrow from a thread's time to that of another."""
    return [
        {"ph": ph, "bp": "e", "name": category, "cat": category, "id": number, "pid": pid,
         "tid": tid, "ts": f"{T0 + ts:.3f}"}
        for ph, (pid, tid, ts) in (("s", start), ("f", end))
    ]  # fmt: skip


def a_profile() -> list[Event]:
    """Two steps of torch_npu; the second kernel of each begins after its step on the host."""
    events = [
        *named(HOST, "Python", "CPU", t77="Thread 77"),
        *named(CANN, "CANN", "CPU", t78="Thread 78"),
        *named(NPU, "Ascend Hardware", "NPU 0", t2="Stream 2", t46="Stream 46"),
        *named(HCCL, "Communication", "NPU 0", t0="Group g0 Communication", t1="Plane 0"),
        *named(OVERLAP, "Overlap Analysis", "NPU 0", t0="Computing", t1="Communication"),
    ]
    kinds = (("MatMulV2", "AI_CORE"), ("FusedInfer", "MIX_AIC"), ("Add", "AI_VECTOR_CORE"),
             ("SwiGlu", "MIX_AIV"))  # fmt: skip
    for step in range(2):
        at = step * 1000.0
        events.append(piece(f"ProfilerStep#{step}", HOST, 77, at, 900.0, cat="cpu_op"))
        for number, (name, task_type) in enumerate(kinds):
            op, ran = at + 10 + 100 * number, at + 500 + 150 * number
            events += [
                piece(f"aten::op{number}", HOST, 77, op, 20.0, cat="cpu_op"),
                piece("Node@launch", CANN, 78, op + 30, 5.0),
                task(name, task_type, ran, 100.0),
                piece("Computing", OVERLAP, 0, ran, 100.0),
                *arrow("HostToDevice", f"{step}{number}", (CANN, 78, op + 30), (NPU, 2, ran)),
                *arrow("async_npu", T0 * 1000 + int(ran), (HOST, 77, op), (NPU, 2, ran)),
            ]
        events += [
            task("EVENT_WAIT", "EVENT_WAIT_SQE", at + 120, 300.0, stream=46),
            task("MEMCPY_ASYNC", "SDMA_SQE", at + 430, 40.0, stream=46),
            piece("hcom_allReduce__352_0_1", HCCL, 0, at + 610, 40.0,
                  args={"rank_size": 8, "count": 4096, "data_type": "BFP16"}),
            piece("Notify_Wait", HCCL, 1, at + 610, 10.0, args={"task type": "Notify_Wait"}),
            piece("Communication", OVERLAP, 1, at + 610, 40.0),
        ]  # fmt: skip
    return events


def opened(folder: Path, events: list[Event] | dict[str, Any], name: str = "t.json") -> Trace:
    file = folder / name
    file.write_text(json.dumps(events))
    return Trace.open(file)


def of(trace: Trace, category: str) -> pl.DataFrame:
    return trace.spans.filter(pl.col("category") == category).sort("ts_ns").collect()


def test_tasks_of_a_stream_are_kernels_and_copies_by_their_type_and_waits_are_neither(
    tmp_path: Path,
) -> None:
    trace = opened(tmp_path, a_profile())
    assert trace.manifest.producer == "torch_npu (msprof trace_view)"
    assert len(of(trace, "kernel")) == 8
    assert of(trace, "gpu_memcpy")["name"].to_list() == ["MEMCPY_ASYNC"] * 2
    assert of(trace, "npu_task")["name"].to_list() == ["EVENT_WAIT"] * 2
    assert set(of(trace, "kernel")["track"]) == {"Ascend Hardware NPU 0 / Stream 2"}


def test_mix_aic_and_mix_aiv_are_mix_and_the_task_type_stays_in_the_arguments(
    tmp_path: Path,
) -> None:
    trace = opened(tmp_path, a_profile())
    assert trace.manifest.config["npu_kernels"] == {"AIC": 2, "AIV": 2, "MIX": 4}
    sums = with_cores(kernel_sums(on_gpu(trace)), trace)
    cores = dict(sums.select("name", "cores").iter_rows())
    assert cores["FusedInfer"] == cores["SwiGlu"] == "MIX"
    assert (cores["MatMulV2"], cores["Add"]) == ("AIC", "AIV")
    is_mix = pl.col("args").str.contains('"Task Type": "MIX_AI', literal=True)
    assert len(trace.spans.filter(is_mix).collect()) == 4


def test_overlap_analysis_and_planes_are_not_counted_a_second_time(tmp_path: Path) -> None:
    trace = opened(tmp_path, a_profile())
    (use,) = gpu_use(trace).to_dicts()
    assert use["device"] == "Ascend Hardware NPU 0"
    assert use["num_executed"] == 8 + 2 + 2
    assert use["busy_ns"] == 2 * (4 * 100 + 40 + 40) * 1000


def test_operations_of_hccl_are_collectives_of_their_group(tmp_path: Path) -> None:
    rows = opened(tmp_path, a_profile()).collectives.collect().to_dicts()
    assert [(row["op"], row["group"], row["num_elements"], row["num_bytes"]) for row in rows] == [
        ("allreduce", "g0", 4096, 8192)
    ] * 2
    assert {row["inferred"] for row in rows} == {"operations of HCCL"}


def test_a_kernel_belongs_to_the_step_that_its_arrow_comes_from(tmp_path: Path) -> None:
    trace = opened(tmp_path, a_profile())
    kernels = of(trace, "kernel")
    assert kernels["step"].to_list() == [0] * 4 + [1] * 4
    assert trace.steps.collect()["gpu_busy_ns"].to_list() == [400_000, 400_000]
    calls = trace.spans.filter(pl.col("name").str.starts_with("aten::")).collect()
    launched = kernels.join(calls, on="correlation", suffix="_call")
    assert len(launched) == 8
    assert launched["name_call"].unique().sort().to_list() == [f"aten::op{n}" for n in range(4)]


def test_without_pytorch_the_calls_of_cann_launch_and_the_file_is_msprofs(tmp_path: Path) -> None:
    events = [
        event for event in a_profile() if event["pid"] != HOST and event.get("cat") != "async_npu"
    ]
    trace = opened(tmp_path, events)
    assert trace.manifest.producer == "msprof (trace_view)"
    calls = trace.spans.filter(pl.col("name") == "Node@launch").collect()
    assert calls["category"].unique().to_list() == ["runtime"]
    assert set(calls["correlation"]) == set(of(trace, "kernel")["correlation"])


def test_iterations_of_step_trace_are_steps_where_pytorch_names_none(tmp_path: Path) -> None:
    events = [event for event in a_profile() if event["pid"] != HOST]
    events += named(NPU, "Ascend Hardware", "NPU 0", t100000="Step Trace(Model ID:1)")
    events += [
        piece(f"Iteration {n}", NPU, 100000, 400 + 1000 * (n - 1), 700.0, cat="Iteration Time")
        for n in (1, 2)
    ]
    trace = opened(tmp_path, events)
    assert trace.steps.collect()["step"].to_list() == [1, 2]
    assert of(trace, "kernel")["step"].to_list() == [1] * 4 + [2] * 4


def kineto(kernels: int = 6) -> dict[str, Any]:
    """What torch_npu writes through kineto; the last kernel of a step begins after it."""
    events: list[Event] = [
        *named(0, "NPU", "Ascend NPU", t47="NPU stream 47"),
        *named(777, "python", "CPU"),
    ]
    types = ("KERNEL_AICORE", "KERNEL_AIVEC", "KERNEL_MIX_AIC")
    for number in range(kernels):
        step, place = divmod(number, 3)
        at = 100.0 * step + 20 * place
        ran = at + (20 if place < 2 else 90)
        if place == 0:
            events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}",
                           "pid": 777, "tid": 777, "ts": at, "dur": 95.0})  # fmt: skip
        events += [
            {"ph": "X", "cat": "cpu_op", "name": "aclnnMm", "pid": 777, "tid": 777, "ts": at + 1,
             "dur": 5.0, "args": {"External id": number + 1}},
            {"ph": "X", "cat": "privateuse1_runtime", "name": "MatMulV2", "pid": 777, "tid": 777,
             "ts": at + 2, "dur": 0.0},
            {"ph": "s", "id": 100 + number, "pid": 777, "tid": 777, "ts": at + 2, "cat": "ac2g",
             "name": "ac2g"},
            {"ph": "X", "cat": "kernel", "name": "MatMulV2", "pid": 0, "tid": 47, "ts": ran,
             "dur": 9.0, "args": {"streamId": 47, "type": types[place]}},
            {"ph": "f", "id": 100 + number, "pid": 0, "tid": 47, "ts": ran, "cat": "ac2g",
             "name": "ac2g", "bp": "e"},
        ]  # fmt: skip
    return {"schemaVersion": 1, "traceEvents": events}


def test_through_kineto_ac2g_arrows_link_launches_and_their_steps(tmp_path: Path) -> None:
    trace = opened(tmp_path, kineto())
    assert trace.manifest.producer == "torch_npu (kineto)"
    kernels = of(trace, "kernel")
    assert kernels["step"].to_list() == [0, 0, 1, 0, 1, 1]  # the third begins within step 1
    assert trace.manifest.config["npu_kernels"] == {"AIC": 2, "AIV": 2, "MIX": 2}
    calls = of(trace, "privateuse1_runtime")
    assert calls["step"].to_list() == [0, 0, 0, 1, 1, 1]
    assert len(calls.join(kernels, on=["correlation", "step"])) == 6
    assert trace.manifest.report
    assert trace.manifest.report.inferred["launches of kernels from arrows"] == 6


def test_through_kineto_operations_of_hccl_are_communication(tmp_path: Path) -> None:
    profile = kineto()
    profile["traceEvents"] += [
        {"ph": "X", "cat": "collective_comm", "name": "hcom_broadcast__1_0", "pid": 0, "tid": 48,
         "ts": 150.0, "dur": 30.0, "args": {"commName": "g7", "streamId": 48}}
    ]  # fmt: skip
    trace = opened(tmp_path, profile)
    (row,) = trace.collectives.collect().to_dicts()
    assert (row["op"], row["group"], row["inferred"]) == ("broadcast", "g7", "operations of HCCL")
    (use,) = gpu_use(trace).to_dicts()
    assert use["in_collectives_ns"] == 30_000


def test_another_device_that_pytorch_does_not_know_is_no_npu(tmp_path: Path) -> None:
    profile = kineto()
    for event in profile["traceEvents"]:
        event.get("args", {}).pop("type", None)
        if event["ph"] == "M":
            event["args"] = dict.fromkeys(event["args"], "MLU")
    trace = opened(tmp_path, profile)
    assert trace.manifest.producer == "torch.profiler"
    assert of(trace, "kernel")["step"].to_list() == [0, 0, 1, 0, 1, 1]


def test_an_arrow_that_ends_before_it_begins_still_links_its_launch(tmp_path: Path) -> None:
    profile = kineto()
    for event in profile["traceEvents"]:
        if event["ph"] == "f" or event.get("cat") == "kernel":
            event["ts"] -= 19.0  # the device's clock is behind
    kernels = of(opened(tmp_path, profile), "kernel")
    assert kernels["step"].null_count() == 0


def test_numbers_of_arrows_are_none_that_another_launch_has(tmp_path: Path) -> None:
    trace = opened(tmp_path, kineto())
    operators = set(of(trace, "cpu_op")["correlation"])
    assert operators == {1, 2, 3, 4, 5, 6}
    assert operators.isdisjoint(of(trace, "kernel")["correlation"])


def test_an_arrow_that_leads_nowhere_launches_nothing(tmp_path: Path) -> None:
    profile = kineto(3)
    profile["traceEvents"] = [e for e in profile["traceEvents"] if e["ph"] != "s"]
    trace = opened(tmp_path, profile)
    assert of(trace, "kernel")["correlation"].null_count() == 3
    assert trace.manifest.report
    assert any("nothing says what launched them" in note for note in trace.manifest.report.notes)


def simulated() -> dict[str, Any]:
    """Instructions as `msprof op simulator` writes them."""
    events = [
        {"args": {"code": "/a.cpp:23", "detail": "XD:X29=0x1", "pc_addr": f"0x{pc:x}"}, "ph": "X",
         "cname": "startup", "dur": 0.001, "name": name, "pid": core, "tid": pipe, "ts": pc / 1000}
        for core in ("core0.cubecore0", "core0.veccore0")
        for pc, (name, pipe) in enumerate((("MOVK", "SCALAR"), ("MOV_OUT_TO_L1", "MTE2")))
    ]  # fmt: skip
    return {"displayTimeUnit": "ns", "profilingType": "op", "schemaVersion": 1,
            "traceEvents": events}  # fmt: skip


def test_the_simulators_trace_is_named_for_what_it_is(tmp_path: Path) -> None:
    trace = opened(tmp_path, simulated())
    assert trace.manifest.producer == "MindStudio simulator (msprof op simulator)"
    assert trace.num_rows("spans") == 4


def test_pipes_that_were_measured_are_not_called_simulated(tmp_path: Path) -> None:
    measured = simulated()
    for event in measured["traceEvents"]:
        del event["args"]
    assert "simulator" not in opened(tmp_path, measured).manifest.producer


@slow
@pytest.mark.parametrize("make", [a_profile, kineto, simulated])
def test_a_profile_that_was_cut_off_gives_what_is_whole(tmp_path: Path, make: Any) -> None:
    text = json.dumps(make())
    file = tmp_path / "cut.json"
    for end in range(len(text) // 3, len(text), len(text) // 7):
        file.write_text(text[:end])
        trace = Trace.open(file)
        assert trace.manifest.report
        assert not trace.manifest.closed or "bracket" in str(trace.manifest.report.notes)
        assert trace.manifest.report.read["X"] == trace.num_rows("spans")


def test_task_types_that_are_no_text_are_no_types(tmp_path: Path) -> None:
    events = a_profile()
    odds: tuple[Any, ...] = (None, 7, [], {"a": 1}, "", "x" * 99, "KERNEL_\u00e9", 'a"b')
    typed = [event for event in events if "Task Type" in event.get("args", {})]
    for event, odd in zip(typed, odds, strict=False):
        event["args"]["Task Type"] = odd
    trace = opened(tmp_path, events)
    assert trace.num_rows("spans") == sum(event["ph"] == "X" for event in events)


def test_the_reported_trace_view_has_nine_kernels_of_three_kinds(shared_data: Path) -> None:
    trace = Trace.open(shared_data.parent / "reported" / "ascend_trace_view.json")
    kernels = of(trace, "kernel")
    assert (len(kernels), kernels["dur_ns"].sum()) == (9, 10_800_000)
    assert kernels["step"].to_list() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert trace.manifest.config["npu_kernels"] == {"AIC": 3, "AIV": 3, "MIX": 3}


def test_the_reported_kineto_profile_has_thirty_kernels_in_three_steps(shared_data: Path) -> None:
    trace = Trace.open(shared_data.parent / "reported" / "npu_kineto.pt.trace.json")
    kernels = of(trace, "kernel")
    assert (len(kernels), kernels["dur_ns"].sum()) == (30, 360_000)
    assert kernels["step"].value_counts().sort("step")["count"].to_list() == [10, 10, 10]
