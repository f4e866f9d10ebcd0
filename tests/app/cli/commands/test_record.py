"""`stepscope record`: the reference engine, recorded."""

from __future__ import annotations

import json
from pathlib import Path

from stepscope.analyzers.check.run import check
from stepscope.engine.faults import FAULTS
from stepscope.engine.scenarios import SCENARIOS
from stepscope.engine.workloads.workload import Workload
from stepscope.ingest.trace import Trace
from tests.app.cli.conftest import Command
from tests.looped import looped
from tests.tiers import slow

SMALL = ("--set", "requests=6", "--set", "num_kv_blocks=24")


def test_list_names_scenarios_variants_and_settings(stepscope: Command) -> None:
    run = stepscope("record", "--list")

    assert run.code == 0
    assert "fcfs-preemption" in run.out
    assert "mix-admission" in run.out
    assert "num_kv_blocks" in run.out


@slow
def test_the_same_seed_gives_the_same_trace(stepscope: Command, tmp_path: Path) -> None:
    for name in ("a.trace", "b.trace"):
        run = stepscope("record", "fcfs-preemption", "--seed", 7, *SMALL, "-o", tmp_path / name)
        assert run.code == 0

    first, second = (files_of(tmp_path / name) for name in ("a.trace", "b.trace"))
    assert first == second


def files_of(trace: Path) -> dict[str, bytes]:
    return {
        file.relative_to(trace).as_posix(): file.read_bytes()
        for file in trace.rglob("*")
        if file.is_file()
    }


@slow
def test_all_records_each_variant_into_a_folder_and_prints_the_table(
    stepscope: Command, tmp_path: Path
) -> None:
    run = stepscope("record", "fcfs-preemption", "--variant", "all", *SMALL, "-o", tmp_path / "f")

    assert {path.name for path in (tmp_path / "f").iterdir()} >= {"before.trace", "after.trace"}
    assert "STV001" in run.out.splitlines()[0]


@slow
@looped("scenario", [each.name for each in SCENARIOS if each.name != "mixed-batches"])
def test_it_ends_with_what_went_wrong_the_finding_and_the_next_command(
    stepscope: Command, tmp_path: Path, scenario: str
) -> None:
    out = tmp_path / f"{scenario}.trace"

    run = stepscope("record", scenario, "-o", out)

    recorded, wrong, shown, following = run.err.splitlines()
    worst = check(Trace.open(out)).findings[0]
    assert recorded == f"recorded {out}"
    assert worst.message in wrong
    assert all(part in shown for part in (worst.code, worst.name, str(worst.severity)))
    assert str(out) in following
    assert worst.severity != "info"


@slow
def test_where_nothing_is_found_it_says_how_many_rules_could_judge(
    stepscope: Command, tmp_path: Path
) -> None:
    out = tmp_path / "fixed.trace"

    run = stepscope("record", "waiting-queue", "--variant", "after", "-o", out)

    judged = len(check(Trace.open(out)).counts)
    assert f"none of {judged} rules that could judge" in run.err


def test_a_trace_that_is_there_is_kept_unless_forced(stepscope: Command, tmp_path: Path) -> None:
    out = tmp_path / "mine.trace"
    stepscope("record", "fcfs-preemption", *SMALL, "-o", out)

    refused = stepscope("record", "fcfs-preemption", "--variant", "after", *SMALL, "-o", out)
    forced = stepscope(
        "record", "fcfs-preemption", "--variant", "after", *SMALL, "-o", out, "--force"
    )

    assert (refused.code, forced.code) == (2, 0)
    assert Trace.open(out).manifest.variant == "after"


def test_force_does_not_replace_what_is_not_a_trace(stepscope: Command, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")

    run = stepscope("record", "fcfs-preemption", *SMALL, "-o", tmp_path, "--force")

    assert run.code == 2
    assert (tmp_path / "thesis.txt").exists()


def test_an_unknown_scenario_names_those_that_are_near(stepscope: Command) -> None:
    run = stepscope("record", "fcfs-premption")

    assert run.code == 2
    assert "fcfs-preemption" in run.err


def test_an_unknown_variant_names_the_known_ones(stepscope: Command) -> None:
    run = stepscope("record", "fcfs-preemption", "--variant", "afterwards")

    assert run.code == 2
    assert "before, after" in run.err


def test_a_setting_is_key_equals_value(stepscope: Command, tmp_path: Path) -> None:
    run = stepscope("record", "fcfs-preemption", "--set", "requests", "-o", tmp_path / "x.trace")

    assert run.code == 2
    assert "key=value" in run.err


def test_a_setting_out_of_range_is_wrong_usage(stepscope: Command, tmp_path: Path) -> None:
    out = tmp_path / "x.trace"

    run = stepscope("record", "fcfs-preemption", "--set", "requests=none", "-o", out)

    assert run.code == 2
    assert "requests" in run.err
    assert not out.exists()


def test_a_workload_file_that_is_not_one_is_one_clear_line(
    stepscope: Command, tmp_path: Path
) -> None:
    workload = tmp_path / "workload.json"
    workload.write_text(json.dumps({"requests": "many"}))

    run = stepscope("record", "fcfs-preemption", "--workload", workload, "-o", tmp_path / "x.trace")

    assert run.code == 2
    assert "workload.json" in run.err
    assert len(run.err.splitlines()) == 1


GRAPH = '{"groups": 1, "tasks": [{"id": "v", "shape": "AIV", "dur_ns": 20000}]}'


@looped(
    "scenario",
    [each.name for each in SCENARIOS if each.name != "mix-admission"],
)
def test_a_task_graph_that_is_given_to_who_takes_requests_is_called_one_with_its_scenario(
    stepscope: Command, tmp_path: Path, scenario: str
) -> None:
    file = tmp_path / "graph.json"
    file.write_text(GRAPH)

    run = stepscope("record", scenario, "--workload", file, "-o", tmp_path / "run.trace")

    assert run.code == 2
    assert run.err == (
        f"stepscope: {file}: holds task graphs, and {scenario} takes requests; record "
        "mix-admission with it, or give a file of requests\n"
    )


def test_a_trace_of_core_groups_alone_is_called_one_too(stepscope: Command, tmp_path: Path) -> None:
    file, trace = tmp_path / "graph.json", tmp_path / "cores.trace"
    file.write_text(GRAPH)
    stepscope("record", "mix-admission", "--workload", file, "-o", trace)

    run = stepscope("record", "slot-recycling", "--workload", trace, "-o", tmp_path / "run.trace")

    assert "cores.trace: holds task graphs, and slot-recycling takes requests" in run.err


def test_who_takes_both_says_how_either_is_written(stepscope: Command, tmp_path: Path) -> None:
    file = tmp_path / "neither.json"
    file.write_text('{"jobs": []}')

    run = stepscope("record", "mix-admission", "--workload", file, "-o", tmp_path / "run.trace")

    assert 'write {"requests": [' in run.err
    assert ', or write {"tasks": [' in run.err


def test_the_first_requests_of_a_workload_are_run_as_fast_as_asked(
    stepscope: Command, tmp_path: Path
) -> None:
    workload = tmp_path / "requests"
    rows = (f"2023-11-16 18:15:{second},30,4" for second in range(40, 50))
    workload.write_text("\n".join(("TIMESTAMP,ContextTokens,GeneratedTokens", *rows)))

    run = stepscope("record", "fcfs-preemption", "--workload", workload, "--first", 3,
                    "--speed", 2, "-o", tmp_path / "run.trace")  # fmt: skip

    assert run.code == 0
    arrivals = [spec.arrival_ns for spec in Workload.load(tmp_path / "run.trace").specs]
    assert arrivals == [0, 500_000_000, 1_000_000_000]


def test_a_workload_is_cut_and_sped_up_only_where_there_is_one(stepscope: Command) -> None:
    run = stepscope("record", "fcfs-preemption", "--first", 3)

    assert (run.code, len(run.err.splitlines())) == (2, 1)
    assert "add --workload FILE" in run.err


@slow
def test_a_fault_is_recorded_on_the_variant_that_is_sound_without_it(
    stepscope: Command, tmp_path: Path
) -> None:
    run = stepscope("record", "fcfs-preemption", "--fault", "shortest-bucket", *SMALL,
                    "-o", tmp_path / "run.trace")  # fmt: skip

    manifest = Trace.open(tmp_path / "run.trace").manifest
    assert (run.code, manifest.variant) == (0, "after")
    assert manifest.config["engine"]["faults"] == ["shortest-bucket"]


def test_list_names_each_scenarios_faults(stepscope: Command) -> None:
    run = stepscope("record", "--list")

    assert all(fault.name in run.out for fault in FAULTS)


def test_a_fault_or_executor_that_the_scenario_lacks_names_those_that_it_has(
    stepscope: Command, tmp_path: Path
) -> None:
    for words, why in (
        (("--fault", "shortest-bucke"), "try shortest-bucket"),
        (("--fault", "masked-row-leak"), "it has: completions-in-buckets, shortest-bucket"),
        (("--executor", "cluster"), "simulated"),
        (("--profile",), "--executor torch"),
    ):
        run = stepscope("record", "fcfs-preemption", *words, "-o", tmp_path / "run.trace")

        assert (run.code, run.out) == (2, "")
        assert why in run.err


def test_costs_of_one_step_are_refused(
    stepscope: Command, shared_data: Path, tmp_path: Path
) -> None:
    one = shared_data / "kineto" / "vllm_prefilldecode_mi300.json.gz"

    run = stepscope("record", "fcfs-preemption", "--cost", one, "-o", tmp_path / "run.trace")

    assert run.code == 2
    assert "times one step, which does not tell what each part of a step costs" in run.err


def test_doubts_about_costs_are_told(stepscope: Command, shared_data: Path, tmp_path: Path) -> None:
    cpu = shared_data / "kineto" / "vllm_cpu_tiny_llama_preemptions.json.gz"

    run = stepscope("record", "fcfs-preemption", *SMALL, "--cost", cpu, "-o", tmp_path / "r.trace")

    assert "warning: of 133 of 133 steps only the time of the CPU is known" in run.err


def test_steps_cost_what_those_of_another_trace_cost(stepscope: Command, tmp_path: Path) -> None:
    first, second = tmp_path / "a.trace", tmp_path / "b.trace"
    stepscope("record", "fcfs-preemption", "--variant", "after", *SMALL, "-o", first)
    run = stepscope("record", "fcfs-preemption", "--variant", "after", *SMALL, "--cost", first,
                    "-o", second)  # fmt: skip

    assert "steps cost 53.500 ms a step + 265.000 µs a prompt token" in run.err
    costs = [Trace.open(each).manifest.config["cost"] for each in (first, second)]
    assert costs[0] == costs[1]


@slow
def test_a_latency_that_nobody_had_is_not_0(stepscope: Command, tmp_path: Path) -> None:
    run = stepscope("record", "fcfs-preemption", "--variant", "before", "-o", tmp_path / "s.trace")

    header, _, row = run.out.splitlines()
    shown = dict(zip(header.split(), row.split(), strict=False))
    assert (shown["late"], shown["finished"], shown["mean_latency_s"]) == ("40", "0", "-")


def test_what_was_begun_of_a_run_that_is_refused_is_not_left_there(
    stepscope: Command, tmp_path: Path
) -> None:
    out = tmp_path / "r.trace"

    run = stepscope("record", "mix-admission", "--set", "heap_kib=64", "-o", out)

    assert (run.code, run.out) == (2, "")
    assert "make the ring larger" in run.err
    assert not out.exists()
