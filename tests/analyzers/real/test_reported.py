"""Small inputs after public bug reports: what is true of each, by its README, is found in it."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from stepscope.analyzers.check.run import check
from stepscope.app.cli.main import cli
from stepscope.ingest.errors import TraceError
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.looped import looped

REPORTED = ROOT.parent / "shared" / "reported"
pytestmark = pytest.mark.skipif(
    not REPORTED.is_dir(), reason="the folder of reported inputs, ../shared/reported, is absent"
)
SECOND = 1_000_000_000

Facts = dict[str, Any]

FOUND: dict[str, tuple[str, Facts]] = {
    "vllm_running_no_tokens_queue.log": (
        "STV021", {"lasted_ns": 350 * SECOND, "running at most": 8, "waiting at most": 35},
    ),
    "vllm_silent_after_zero.log": ("STV022", {"running": 4, "lines after it": 100}),
    "sglang_then_silence.log": (
        "STV022", {"silent_ns": 782 * SECOND, "running": 24, "waiting": 29},
    ),
    "vllm_engine_dead.log": (
        "STV023",
        {"error": "AssertionError: assert request.num_output_placeholders >= 0", "running": 4,
         "waiting": 2, "used_share": 0.93},
    ),
    "trt_fill_phase.log.gz": ("STV021", {"longest run_reports": 600, "running at most": 256}),
    "sglang_pool_leak.log": (
        "STV023",
        {"error": "ValueError: pool memory leak detected! [full] total=469952, available=96, "
         "evictable=470016, protected=0, session_held=0, uncached=0"},
    ),
    "sglang_mamba_full.log": ("STV016", {"used_share": 0.34, "waiting at most": 5}),
    "vllm_seq_limit.log": (
        "STV016", {"lasted_ns": 350 * SECOND, "waiting at most": 65, "running at most": 64},
    ),
    "sglang_dp_imbalance.log": (
        "COL010", {"prompt tokens of rank 0": 8192, "prompt tokens of rank 3": 256},
    ),
    "vllm_spec_rejected.log": ("BAT014", {"drafted": 28260, "accepted": 336}),
    "hol3.trace": (
        "STV021",
        {"longest run_reports": 6000, "owner of most blocks": "L", "its blocks": 250},
    ),
    "preempt_cascade4.trace": ("STV021", {"preemptions": 41923, "blocks given back": 0}),
    "llama_slot_never_dispatched.log": (
        "STV026", {"lasted_ns": 447 * SECOND, "later ones that finished": 10},
    ),
    "otlp_queue30.json": (
        "STV025", {"requests that waited": 16, "requests": 20, "longest wait_ns": 30 * SECOND},
    ),
    "simpler_s1.log": (
        "COR010",
        {"class": "a block never ended", "tasks over": 307, "tasks": 311, "tasks left": 4},
    ),
    "prio3.trace": (
        "STV024",
        {"priority": -5, "priority of those that ran": 10, "requests of lower priority": 16},
    ),
    "ghost.trace": ("TRC007", {}),
    "tokhole.trace": ("TRC007", {}),
}  # fmt: skip
"""By file the rule that must find its fault, and facts of the finding."""


@pytest.fixture(scope="module")
def path_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The path of an input; recordings are unpacked."""
    folder = tmp_path_factory.mktemp("reported")

    def unpacked(name: str) -> Path:
        if not name.endswith(".trace"):
            return REPORTED / name
        if not (folder / name).exists():
            with tarfile.open(REPORTED / name.replace(".trace", ".tar.xz")) as packed:
                packed.extractall(folder, filter="data")
        return folder / name

    return unpacked


def printed(*arguments: str | Path) -> str:
    done = CliRunner().invoke(cli, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def blamed(path: Path) -> Facts:
    return dict(json.loads(printed("blame", path, "--format", "json", "--limit", "0")))


@looped("name", FOUND, ids=str)
def test_the_fault_is_found_with_its_figures(path_of: Callable[[str], Path], name: str) -> None:
    code, facts = FOUND[name]

    evidence = [each.evidence for each in check(Trace.open(path_of(name))).findings
                if each.code == code]  # fmt: skip

    assert any(facts.items() <= each.items() for each in evidence), evidence


def test_no_advice_to_run_more_is_given_where_mamba_slots_are_full(
    path_of: Callable[[str], Path],
) -> None:
    (found,) = (
        each for each in check(Trace.open(path_of("sglang_mamba_full.log"))).findings
        if each.code == "STV016"
    )  # fmt: skip

    assert "98.0%" in found.message
    assert "raising the limit on running requests does not help" in found.fix


@looped("name, milliseconds", [("llama_notime.log", 43_500), ("v_sgl_shorttime.log", 39_000)])
def test_blame_adds_up_what_a_log_without_dates_states(
    path_of: Callable[[str], Path], name: str, milliseconds: int
) -> None:
    assert blamed(path_of(name))["total_ns"] == milliseconds * 1_000_000


def test_requests_of_two_starts_of_a_server_are_two(path_of: Callable[[str], Path]) -> None:
    rows = blamed(path_of("llama_2026_restart.log"))["requests"]

    assert [row["latency_ns"] for row in rows] == [40 * SECOND, 40 * SECOND]
    assert len({row["request"] for row in rows}) == 2


def test_a_request_that_holds_its_slot_for_minutes_is_answered_for_by_name(
    path_of: Callable[[str], Path],
) -> None:
    answer = printed("why", path_of("llama_slot_never_dispatched.log"), "task 1")

    assert "task 1 runs" in answer


def test_sixteen_of_twenty_requests_wait_thirty_seconds(path_of: Callable[[str], Path]) -> None:
    rows = blamed(path_of("otlp_queue30.json"))["requests"]

    waits = [row["blame_ns"].get("waiting", 0) for row in rows]
    assert (len(rows), waits.count(30 * SECOND)) == (20, 16)


def test_the_stages_of_sglang_last_as_its_spans_do(path_of: Callable[[str], Path]) -> None:
    (row,) = blamed(path_of("otlp_sglang_wrapped.json"))["requests"]

    stages = {
        name: round(row["blame_ns"][name] / 1e6, 1) for name in ("waiting", "prefill", "decode")
    }
    assert stages == {"waiting": 22.0, "prefill": 25.4, "decode": 136.6}


def test_spans_of_jaeger_are_those_of_opentelemetry(path_of: Callable[[str], Path]) -> None:
    (row,) = blamed(path_of("jaeger_vllm.json"))["requests"]

    stages = {name: row["blame_ns"][name] / SECOND for name in ("waiting", "prefill", "decode")}
    assert stages == {"waiting": 1.2, "prefill": 0.3, "decode": 1.0}


def test_what_clients_of_a_benchmark_saw_is_read(
    path_of: Callable[[str], Path], tmp_path: Path
) -> None:
    printed("summary", path_of("v_bench_serve.json"), "-o", tmp_path / "summary.json")

    row = json.loads((tmp_path / "summary.json").read_text())
    assert row["finished"] == 3
    assert (row["ttft_p50_ns"], row["tpot_p50_ns"]) == (SECOND // 5, SECOND // 100)
    assert row["preemptions"] is None


def test_one_scrape_of_metrics_is_refused_with_what_to_do(path_of: Callable[[str], Path]) -> None:
    with pytest.raises(TraceError, match="scrape it over time"):
        Trace.open(path_of("v_prom.txt"))


@looped(
    "name, kernels, cores",
    [
        ("ascend_trace_view.json", 9, {"AI_CORE", "AI_VECTOR_CORE", "MIX_AIC"}),
        (
            "npu_kineto.pt.trace.json", 30,
            {"KERNEL_AICORE", "KERNEL_AIVEC", "KERNEL_MIX_AIC", "KERNEL_MIX_AIV"},
        ),
    ],
)  # fmt: skip
def test_kernels_of_an_npu_are_kernels_of_their_steps_with_the_cores_that_they_ran_on(
    path_of: Callable[[str], Path], name: str, kernels: int, cores: set[str]
) -> None:
    spans = Trace.open(path_of(name)).spans.filter(pl.col("category") == "kernel").collect()

    args = [json.loads(each) for each in spans["args"]]
    assert {each.get("Task Type") or each["type"] for each in args} == cores
    assert spans["step"].value_counts()["count"].to_list() == [kernels // 3] * 3


@looped("name", ["win_a.json", "win_b.json"])
def test_an_instant_after_the_work_dilutes_no_figure(
    path_of: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    printed("summary", path_of(name), "-o", tmp_path / "summary.json")

    assert json.loads((tmp_path / "summary.json").read_text())["gpu_busy"] == 0.9
    assert blamed(path_of(name))["totals"]["gemm"]["share"] == 0.9


def test_collectives_are_the_device_s_and_spans_join_spans(path_of: Callable[[str], Path]) -> None:
    query = "select count(*) as pairs from spans p join spans c on c.parent = p.span"

    assert Trace.open(path_of("symm.json")).table("collectives").collect().height == 3
    assert json.loads(printed("sql", path_of("symm.json"), query, "--format", "json", "--no-cache"))


def test_what_was_not_recorded_is_unknown_and_the_rest_is_the_same(
    path_of: Callable[[str], Path],
) -> None:
    full, no_rows = blamed(path_of("tokhole.trace")), blamed(path_of("strip_norows.trace"))

    assert no_rows["total_ns"] == full["total_ns"]
    assert no_rows["totals"]["unknown"]["total_ns"] > 0
    assert {"prefill", "decode"}.isdisjoint(no_rows["totals"])
    gaps = [each.message for each in check(Trace.open(path_of("strip_nodur.trace"))).findings
            if each.code == "STV004"]  # fmt: skip
    assert all("took 0" not in message for message in gaps)
