"""A summary fits what is there: it is never empty, and says what was not recorded."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.analyzers.latency.blame import blame
from stepscope.analyzers.latency.gpu_time import on_gpu
from stepscope.analyzers.summary.core_use import core_use
from stepscope.analyzers.summary.gpu_use import gpu_use, kernel_sums
from stepscope.analyzers.summary.slo import slo_of
from stepscope.app.present.blocks import AtRequest, Fact, Table
from stepscope.app.present.plain_text import lines
from stepscope.app.present.summary.parts import Summary
from stepscope.app.present.summary.summing import summary
from stepscope.app.timeline.profile.top_names import shown, top_names
from stepscope.app.units import duration
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import event, part
from tests.analyzers.summary.every_trace import each_file, opened
from tests.analyzers.summary.test_gpu_use import kernel
from tests.tiers import slow
from tests.traces import trace_of

SLO = slo_of("ttft=500ms,tpot=50ms")


def summed_up(trace: Trace) -> Summary:
    return summary(trace, blame(trace), SLO)


def text_of(trace: Trace) -> str:
    return "\n".join(lines(summed_up(trace).blocks))


def tables(told: Summary) -> list[Table]:
    return [block for block in told.blocks if isinstance(block, Table)]


def column(table: Table, name: str) -> list[Any]:
    return [row[table.columns.index(name)] for row in table.rows]


@slow
@each_file
def test_of_every_file_something_is_said(name: str) -> None:
    told = summed_up(opened(name))

    assert told.parts
    assert all(part.blocks for part in told.parts)


def test_where_clients_got_all_tokens_at_once_the_engines_first_token_and_tpot_are_shown() -> None:
    told = summed_up(opened("sample_traces/vllm_crowd.trace"))

    latencies = next(
        each for each in tables(told) if each.columns[0] == "" and each.columns[1] == "of"
    )
    p50 = dict(zip(column(latencies, ""), column(latencies, "p50"), strict=True))
    assert (p50["TTFT, client"], p50["TTFT, engine"]) == ("268 ms", "131 ms")
    assert (p50["TPOT, client"], p50["TPOT, engine"]) == (None, "2.56 ms")
    said = "\n".join(lines(told.blocks))
    assert "TPOT, client not known of any; the clients got all tokens at once" in said
    assert "clients got all tokens at once; --slo engine_tpot=... judges" in said


@slow
def test_where_no_client_is_recorded_a_latency_has_one_name() -> None:
    told = summed_up(opened("sample_traces/fcfs-preemption-after.trace"))

    latencies = next(
        each for each in tables(told) if each.columns[0] == "" and each.columns[1] == "of"
    )
    assert column(latencies, "") == ["TTFT", "token gap", "TPOT", "latency"]


def test_of_a_trace_without_rows_it_is_said_what_a_summary_is_made_of() -> None:
    assert "This trace has no rows." in text_of(trace_of())


def test_a_profile_without_kernels_says_what_would_record_them() -> None:
    op = {"track": "CPU / t", "name": "op", "category": "cpu_op", "ts_ns": 0, "dur_ns": 40}

    said = text_of(trace_of(spans=[op]))

    assert "ProfilerActivity.CUDA" in said
    assert "No step is told" in said


def test_requests_without_first_tokens_or_steps_say_what_would_record_them() -> None:
    said = text_of(trace_of(lifecycle=[event("r", "arrive", 0), event("r", "finish", 9)]))

    assert "TTFT       not known of any; it takes the events `arrive` and `first-token`" in said
    assert "token gap  not known of any" in said
    assert "KV in use  not recorded" in said
    assert "not known of any" in said


def test_an_order_of_blocks_has_no_shares() -> None:
    told = summed_up(trace_of(core_spans=[part(1, 0, 0, 5)], tables={"core_spans": "ordered"}))

    assert not any("running" in table.columns for table in tables(told))
    assert "is not known" in "\n".join(lines(told.blocks))


def test_names_of_kernels_and_requests_steer_no_terminal() -> None:
    evil = "\x1b[31mevil\n"
    said = text_of(
        trace_of(
            spans=[kernel(evil, 0, 5)],
            lifecycle=[event(evil, "arrive", 0), event(evil, "first-token", 10**9)],
            core_spans=[part(1, 0, 0, 5)],
            tasks=[{"task": 1, "name": evil, "shape": "AIV", "num_blocks": 1, "step": 1}],
        )
    )

    assert "evil" in said
    assert "\x1b" not in said


def test_who_missed_an_slo_leads_to_the_request() -> None:
    late = [event("r", "arrive", 0), event("r", "first-token", 10**9), event("r", "finish", 10**9)]

    *_, missed = (t for t in tables(summed_up(trace_of(lifecycle=late))) if t.leads)

    assert missed.leads == (AtRequest(0, "r"),)


@each_file
def test_what_is_shown_of_gpus_and_cores_is_what_was_computed(name: str) -> None:
    trace = opened(name)
    told = summed_up(trace)
    facts = [block.label for block in told.blocks if isinstance(block, Fact)]

    use = gpu_use(trace)
    if len(use) == 1:
        row = use.row(0, named=True)
        (table,) = (t for t in tables(told) if t.columns == ("", "time", "share"))
        by_use = {row[0]: row[1:] for row in table.rows}
        for what in ("busy", "idle"):
            ns = row[f"{what}_ns"]
            assert by_use[what] == (duration(ns), f"{ns / row['window_ns']:.1%}")
        assert ("collectives" in facts) == (row["in_collectives_ns"] > 0)
    if len(use):
        sums = kernel_sums(on_gpu(trace))
        most = shown(sums.row(0, named=True)["name"])
        legend = {each.name: each.share for each in top_names(_executed(trace))}
        assert "top kernels and copies" in [table.title for table in tables(told)]
        by_short = sum(row["share"] for row in sums.to_dicts() if shown(row["name"]) == most)
        assert by_short == pytest.approx(legend[most])
    cores = core_use(trace)
    if len(cores) and trace.manifest.is_measured("core_spans"):
        (kinds,) = (t for t in tables(told) if "cores of kind" in t.columns)
        for kind, running in zip(
            column(kinds, "cores of kind"), column(kinds, "running"), strict=True
        ):
            own = [row for row in cores.to_dicts() if (row["core_kind"] or "unknown") == kind]
            share = sum(row["run_ns"] for row in own) / max(sum(row["window_ns"] for row in own), 1)
            assert running == f"{share:.1%}"


def _executed(trace: Trace) -> pl.DataFrame:
    return on_gpu(trace).select("name", "dur_ns").collect()


def test_kernels_of_which_no_block_ended_have_no_table() -> None:
    told = text_of(trace_of(core_spans=[part(1, 0, 10, None)]))

    assert "No block of a task is known to have ended" in told
    assert "worst skew" not in told


def test_kernels_of_an_npu_say_on_which_cores_they_ran() -> None:
    trace = trace_of(
        config={"npu_kernels": {"MIX": 1}},
        spans=[
            kernel("FusedInfer", 0, 9, args='{"Task Type": "MIX_AIC"}'),
            kernel("hcom_allReduce_", 10, 9, args="{}"),
        ],
    )
    (table,) = [each for each in tables(summed_up(trace)) if "cores" in each.columns]
    at = table.columns.index("cores")
    assert {row[0]: row[at] for row in table.rows} == {"FusedInfer": "MIX", "hcom_allReduce_": ""}
