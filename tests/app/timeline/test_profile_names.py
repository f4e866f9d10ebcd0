"""Kernels go by names that can be read, and those that took most have colours of their own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from stepscope.app import palette
from stepscope.app.present.details import span_blocks
from stepscope.app.present.plain_text import lines
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.profile.short_names import short_name
from stepscope.ingest.trace import Trace
from tests.app.timeline.drawn_lanes import spans_of
from tests.app.timeline.profiles import call, kernel
from tests.tiers import slow
from tests.traces import trace_of

VECTORIZED = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda("
    "at::TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2ul> >(int, std::array<char*>)"
)


SHORT_NAMES = {
    VECTORIZED: "vectorized_elementwise_kernel<bfloat16_copy_kernel_cuda>",
    "void cutlass::Kernel<cutlass_80_gemm_nn>(cutlass_80_gemm_nn::Params)":
        "Kernel<cutlass_80_gemm_nn>",
    "void cudnn::bn_bw_1C11_kernel_new<float, float, 32, true, 1>(float)": "bn_bw_1C11_kernel_new",
    "void (anonymous namespace)::softmax<int>(int*)": "softmax",
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long)":
        "ncclKernel_AllReduce_RING_LL_Sum_float",
    "_ZN2at6native3addEPfS1_": "add",
    "Memcpy DtoH (Device -> Pinned)": "Memcpy DtoH (Device -> Pinned)",
    "triton_poi_fused_0": "triton_poi_fused_0",
    "<<<(((": "<<<(((",
    "_ZN99": "_ZN99",
    "": "",
}  # fmt: skip


def test_the_name_of_a_kernel_is_said_without_namespaces_and_types() -> None:
    assert {name: short_name(name) for name in SHORT_NAMES} == SHORT_NAMES


def test_the_names_that_took_most_have_colours_by_their_share() -> None:
    kernels = [kernel(f"k{n}", 100 * n, 10 * n) for n in range(1, 10)]
    trace = trace_of(spans=[*reversed(kernels), call("cudaLaunchKernel", 0, 5)])

    timeline = Timeline.of(trace)

    told = [(each.name, each.ns) for each in timeline.top_names]
    assert told == [(f"k{n}", 10 * n) for n in range(9, 2, -1)] + [("other names", 30)]
    assert sum(each.share for each in timeline.top_names) == pytest.approx(1)
    states = {span.label: span.state for span in spans_of(timeline, 0)}
    assert states["k9"] == palette.NAME
    assert states["k1"] == states["k2"] == palette.OTHER_NAME


def test_shares_of_absurd_times_are_shares() -> None:
    spans = [kernel(f"k{n}", n, 2**62) for n in range(3)] + [kernel("k0", 9, 2**62)]

    top = Timeline.of(trace_of(spans=spans)).top_names

    assert [(each.name, each.share) for each in top] == [("k0", 0.5), ("k1", 0.25), ("k2", 0.25)]


def test_names_of_equal_time_are_ordered_by_name() -> None:
    spans = [kernel("b", 0, 5), kernel("a", 10, 5)]

    for rows in (spans, spans[::-1]):
        top = Timeline.of(trace_of(spans=rows)).top_names
        assert [each.name for each in top] == ["a", "b"]


def test_the_details_of_a_kernel_say_what_it_is_and_its_whole_name() -> None:
    trace = trace_of(spans=[kernel(VECTORIZED, 0, 5)])
    timeline = Timeline.of(trace)

    text = "\n".join(lines(span_blocks(spans_of(timeline, 0)[0], timeline, trace)))

    assert "vectorized_elementwise_kernel<bfloat16_copy_kernel_cuda>" in text
    assert "kernel on python GPU 0 · stream 7" in text
    assert "at::native::bfloat16_copy_kernel_cuda" in "".join(text.split())
    assert "span 4" not in text


def test_a_kernel_that_is_called_as_a_terminal_is_steered_is_only_shown() -> None:
    hostile = "\x1b[2J<img src=x>::\u202e[red]<a<b(" * 20
    timeline = Timeline.of(trace_of(spans=[kernel(hostile, 0, 5)]))

    shown = [each.name for each in timeline.top_names]
    shown += [span.label for span in spans_of(timeline, 0)]

    assert all(text.isprintable() for text in shown)


def by_hand(trace: Trace) -> Counter[str]:
    """Time by name, added up row by row."""
    rows = trace.spans.select("name", "category", "dur_ns").collect().iter_rows()
    sums: Counter[str] = Counter()
    for name, category, dur_ns in rows:
        if category in ("kernel", "gpu_memcpy", "gpu_memset"):
            sums[short_name(name)] += dur_ns or 0
    return sums


@slow
@pytest.mark.parametrize("name", ["h100_qwen15_05b_chat", "hta_nccl_data"])
def test_shares_of_names_are_those_of_a_count_of_rows(shared_data: Path, name: str) -> None:
    trace = Trace.open(shared_data / "kineto" / f"{name}.json.gz")
    timeline, sums = Timeline.of(trace), by_hand(trace)

    *top, others = timeline.top_names

    assert {each.name: each.ns for each in top} == dict(
        sorted(sums.items(), key=lambda each: (-each[1], each[0]))[:7]
    )
    assert others.ns == sum(sums.values()) - sum(each.ns for each in top)
    drawn = sum(
        timeline.sums(lane.id, *timeline.bounds)[each.state].ns
        for lane in timeline.lanes
        for each in top[:1]
        if each.state in timeline.sums(lane.id, *timeline.bounds)
    )
    assert drawn == top[0].ns


def test_names_of_a_cpu_alone_are_ranked_by_the_time_that_is_their_own() -> None:
    outer = call("outer", 0, 100, span=1)
    inner = call("inner", 10, 70, span=2, parent=1)
    python = {**call("main", 0, 500, span=3), "category": "python_function"}

    timeline = Timeline.of(trace_of(spans=[outer, inner, python]))

    assert [(each.name, each.ns) for each in timeline.top_names] == [("inner", 70), ("outer", 30)]
    assert timeline.share_of == "the CPU threads' own time"


def test_the_own_times_of_a_real_profile_add_up_to_what_no_call_lies_over_twice() -> None:
    trace = Trace.open(Path("sample_traces/torch_profiler_cpu.json.gz"))
    timeline = Timeline.of(trace)

    rows = trace.spans.select("rank", "span", "parent", "dur_ns", "category").collect()
    children: dict[tuple[int, int | None], int] = {}
    for rank, parent, dur in rows.select("rank", "parent", "dur_ns").iter_rows():
        children[rank, parent] = children.get((rank, parent), 0) + (dur or 0)
    own = sum(
        (dur or 0) - children.get((rank, span), 0)
        for rank, span, dur, category in rows.select(
            "rank", "span", "dur_ns", "category"
        ).iter_rows()
        if category in ("cpu_op", "user_annotation")
    )
    assert sum(each.ns for each in timeline.top_names) == own
    assert timeline.load(10).what != "GPU busy"


def test_colours_by_state_tell_what_a_kernel_is_for() -> None:
    spans = [kernel("sgemm", 0, 5), kernel("ncclAllReduce", 10, 5), kernel("softmax", 20, 5),
             call("cudaLaunchKernel", 0, 5)]  # fmt: skip
    timeline = Timeline.of(trace_of(spans=spans))

    other = timeline.coloured("state")

    states = {span.label: span.state for lane in (0, 1) for span in spans_of(other, lane)}
    assert states["sgemm"] == palette.GEMM
    assert states["ncclAllReduce"] == palette.COMMUNICATION
    assert states["softmax"] == palette.KERNEL
    assert (timeline.colours, other.colours, other.top_names) == ("name", "state", ())
    assert other.coloured("name") is timeline


def test_tasks_on_cores_have_colours_by_name_when_asked_and_who_is_held_stays_so() -> None:
    block = {"task": 1, "block": 0, "shape": "AIC", "group": 0, "core": 0, "core_kind": "AIC"}
    rows = [{**block, "ts_ns": 10, "dispatch_ns": 4, "end_ns": 30}]
    tasks = [{"task": 1, "name": "qk", "shape": "AIC", "num_blocks": 1, "ts_ns": 0}]
    timeline = Timeline.of(trace_of(core_spans=rows, tasks=tasks))

    named = timeline.coloured("name")

    assert [span.state for span in spans_of(timeline, 0)] == [palette.HELD, palette.AIC]
    assert [span.state for span in spans_of(named, 0)] == [palette.HELD, palette.NAME]
    assert named.called(palette.NAME) == "qk"
    assert named.load(4).states == timeline.load(4).states


def test_a_trace_in_which_nothing_has_a_name_has_one_way_to_colour_it() -> None:
    timeline = Timeline.of(trace_of(steps=[{"step": 1, "ts_ns": 0, "dur_ns": 5, "kind": "decode"}]))

    assert timeline.coloured("name") is timeline.coloured("state") is timeline
