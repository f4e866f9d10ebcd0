"""What rules say of profiles that we took, one rank or two, against their events one by one."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.check.registry import select
from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.col.col001_order_mismatch import OrderMismatch
from stepscope.analyzers.rules.col.col007_collective_alone import CollectiveAlone
from stepscope.analyzers.rules.col.col008_straggler import Straggler
from stepscope.ingest.trace import Trace
from tests.analyzers.real.raw_profile import TAG, Event, generation, span_ns
from tests.analyzers.samples.conftest import EngineRun
from tests.analyzers.samples.raw_trace import Row
from tests.tiers import slow

TRIED = frozenset({"COL001", "COL007", "COL008", "TRC001", "TRC002", "TRC003", "TRC004", "TRC005"})
Profile = dict[str, Any]
NUM_STEPS = {"torch_profiler_cpu": 17, "torch_executor_cpu": 20}
RANKS = (0, 1)
OF_TIME = select(["TRC"])
LATE_NS = 10_000_000
"""Rank 1 sleeps twice as long before one all-reduce of most steps."""


def events(profile: Profile, *names: str) -> list[Event]:
    """The events whose names begin so, in order of time."""
    named = [row for row in profile["traceEvents"] if row["name"].startswith(names)]
    return sorted(named, key=lambda row: float(row["ts"]))


def steps(profile: Profile) -> list[Event]:
    tagged = events(profile, "execute_", "prefill[", "decode[", "mixed[")
    return [row for row in tagged if row["cat"] == "user_annotation"]


def decodes_of(profile: Profile) -> list[tuple[int, int]]:
    """The rows that decode in each step, and their tokens, as its tag says."""
    return [generation(row["name"]) for row in steps(profile) if TAG.fullmatch(row["name"])]


def found(result: CheckResult, code: str) -> list[Finding]:
    return [each for each in result.findings if each.code == code]


def unpacked(file: Path) -> Profile:
    profile: Profile = json.loads(gzip.decompress(file.read_bytes()))
    return profile


@pytest.fixture(scope="module")
def profiles(sample_traces: Path) -> dict[str, tuple[Profile, CheckResult]]:
    """Each profile of one rank as JSON, and what all rules say of it."""
    files = {name: sample_traces / f"{name}.json.gz" for name in NUM_STEPS}
    return {name: (unpacked(file), check(Trace.open(file))) for name, file in files.items()}


# -- one rank ------------------------------------------------------------------------------------


@slow
def test_trc002_and_trc003_count_the_steps_that_follow_one_another(
    profiles: dict[str, tuple[Profile, CheckResult]],
) -> None:
    for name, (profile, result) in profiles.items():
        spans = [span_ns(row) for row in steps(profile)]
        inferred = [int(each.evidence["steps"] or 0) for each in found(result, "TRC003")]

        assert all(one[1] <= other[0] for one, other in pairwise(spans))
        assert result.counts["TRC002"] == 0
        assert sum(inferred) == len(spans) == NUM_STEPS[name]


def test_trc001_tells_what_is_left_of_a_profile_that_was_cut_off(
    sample_traces: Path, profiles: dict[str, tuple[Profile, CheckResult]], tmp_path: Path
) -> None:
    assert {result.counts["TRC001"] for _, result in profiles.values()} == {0}
    whole = gzip.decompress((sample_traces / "torch_profiler_cpu.json.gz").read_bytes())
    half, file = whole[: len(whole) // 2], tmp_path / "half.json"
    file.write_bytes(half)

    (cut,) = found(check(Trace.open(file), OF_TIME), "TRC001")

    num_events = half.count(b'"ph": "') - 1  # the last one is not whole
    assert cut.message.startswith(f"the file ends too early: {num_events:,} records of it")
    assert cut.evidence["last step"] == len(re.findall(rb'"execute_context_', half))


def test_trc005_finds_the_step_whose_tag_has_more_tokens_than_rows(
    profiles: dict[str, tuple[Profile, CheckResult]], tmp_path: Path
) -> None:
    """As vLLM tags a step that computes a preempted request again."""
    for profile, result in profiles.values():
        decodes = decodes_of(profile)
        assert all(rows == tokens for rows, tokens in decodes)
        assert result.counts["TRC005"] == 0

    profile = json.loads(json.dumps(profiles["torch_profiler_cpu"][0]))
    last = steps(profile)[-1]
    rows, _ = generation(last["name"])
    last["name"] = re.sub(r"generation_.*", f"generation_{rows}({rows + 90})", last["name"])
    (tmp_path / "again.json").write_text(json.dumps(profile))
    decodes = decodes_of(profile)

    (again,) = found(check(Trace.open(tmp_path / "again.json"), OF_TIME), "TRC005")

    more = [(rows, tokens) for rows, tokens in decodes if tokens > rows]
    assert (again.count, again.evidence["tokens in excess"]) == (len(more), 90)
    assert (again.evidence["rows at worst"], again.evidence["tokens at worst"]) == more[0]
    assert again.evidence["steps with generation"] == sum(rows > 0 for rows, _ in decodes)


# -- two ranks -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ranks(sample_traces: Path) -> list[Profile]:
    """Two processes that met over gloo."""
    folder = sample_traces / "torch_gloo_two_ranks"
    return [unpacked(folder / f"rank{rank}.json.gz") for rank in RANKS]


@pytest.fixture(scope="module")
def pair(sample_traces: Path) -> Trace:
    return Trace.open(sample_traces / "torch_gloo_two_ranks")


@pytest.fixture(scope="module")
def of_pair(pair: Trace) -> CheckResult:
    return check(pair)


def calls(profile: Profile) -> list[Event]:
    return events(profile, "gloo:")


def changed(folder: Path, profiles: list[Profile], change: Callable[[Profile], None]) -> Trace:
    """Both ranks, and something of rank 1 otherwise."""
    copies = json.loads(json.dumps(profiles))
    change(copies[1])
    for rank, profile in enumerate(copies):
        (folder / f"rank{rank}.json").write_text(json.dumps(profile))
    return Trace.open(folder)


def test_col001_and_col007_find_two_ranks_that_call_the_same_in_one_order(
    ranks: list[Profile], of_pair: CheckResult
) -> None:
    one, other = (
        [(row["name"], row["args"]["Input Dims"]) for row in calls(profile)] for profile in ranks
    )
    groups = [profile["distributedInfo"]["pg_config"] for profile in ranks]

    assert one == other
    assert len(one) == 4 * len(steps(ranks[0])) == 56
    assert [[group["ranks"] for group in each] for each in groups] == [[[0, 1]]] * 2
    assert (of_pair.counts["COL001"], of_pair.counts["COL007"]) == (0, 0)


def test_col008_adds_up_how_late_the_rank_that_slept_was(ranks: list[Profile], pair: Trace) -> None:
    """Who comes last is in it for the shortest time; in a broadcast nobody waits for all."""
    late_ns = {rank: [0] for rank in RANKS}
    num_met = 0
    for one, other in zip(*map(calls, ranks), strict=True):
        spans = span_ns(one), span_ns(other)
        lengths = [ended - began for began, ended in spans]
        meet = max(began for began, _ in spans) <= min(ended for _, ended in spans)
        if one["name"] == "gloo:broadcast" or not meet:
            continue
        num_met += 1
        if abs(lengths[0] - lengths[1]) >= LATE_NS:
            late_ns[lengths.index(min(lengths))].append(abs(lengths[0] - lengths[1]))

    (straggler,) = check(pair, [Straggler(min_late_ns=LATE_NS)]).findings

    late = late_ns[1][1:]
    assert (straggler.rank, straggler.count) == (1, len(late))
    assert straggler.evidence["collectives"] == num_met
    assert straggler.evidence["cost_ns"] == pytest.approx(sum(late), abs=2 * len(late))
    assert straggler.evidence["worst_late_ns"] == pytest.approx(max(late), abs=2)
    assert len(late) >= 10


def test_trc003_counts_the_collectives_that_were_read_from_annotations(
    ranks: list[Profile], of_pair: CheckResult
) -> None:
    told = found(of_pair, "TRC003")
    num_calls = sum(len(calls(profile)) for profile in ranks)
    name = "collectives from annotations such as nccl:all_reduce"

    assert [each.evidence["steps"] for each in told[:2]] == [len(steps(each)) for each in ranks]
    assert told[-1].evidence[name] == num_calls == 112


def test_trc004_finds_how_long_before_the_other_a_rank_stopped(
    ranks: list[Profile], of_pair: CheckResult, tmp_path: Path
) -> None:
    def cut(profile: Profile) -> None:
        until_ns = span_ns(steps(profile)[6])[0]
        timed = [row for row in profile["traceEvents"] if row["ph"] == "X"]
        late = [row for row in timed if span_ns(row)[1] > until_ns]
        profile["traceEvents"] = [row for row in profile["traceEvents"] if row not in late]

    (lost,) = found(check(changed(tmp_path, ranks, cut), OF_TIME), "TRC004")

    cut_ranks = [json.loads((tmp_path / f"rank{rank}.json").read_bytes()) for rank in RANKS]
    signs = [[span_ns(row) for row in (*steps(each), *calls(each))] for each in cut_ranks]
    one, other = (sorted({moment for span in each for moment in span}) for each in signs)
    assert of_pair.counts["TRC004"] == 0
    assert (lost.rank, lost.step) == (1, 6)
    assert lost.evidence["silent_ns"] == pytest.approx(one[-1] - other[-1], abs=10)
    longest_ns = max(later - earlier for earlier, later in pairwise(other))
    assert lost.evidence["longest_silence_ns"] == pytest.approx(longest_ns, abs=10)


# -- ranks of the reference engine ---------------------------------------------------------------


def test_col001_finds_the_first_place_at_which_two_ranks_of_the_engine_differ(
    engine_run: EngineRun,
) -> None:
    run = engine_run("ep-multiplexing", "v2-device-staging", fault="preambles-up-front")
    said: dict[int, dict[int, Row]] = {rank: {} for rank in RANKS}
    for row in run.raw.table("collectives"):
        said[row["rank"]][row["ordinal"]] = row
    asked = ("op", "dtype", "num_elements", "command", "slot")
    differ = [
        ordinal
        for ordinal in sorted(said[0].keys() & said[1].keys())
        if [said[0][ordinal][name] for name in asked] != [said[1][ordinal][name] for name in asked]
    ]

    (mismatch,) = run.findings(OrderMismatch())

    assert mismatch.evidence["ordinal"] == differ[0] > 30


def test_col007_finds_what_a_rank_of_the_engine_called_with_nobody_else_expected(
    engine_run: EngineRun,
) -> None:
    run = engine_run("ep-multiplexing", "after", fault="collective-at-world-size-1")
    alone = [row for row in run.raw.table("collectives") if row["expected_ranks"].isdecimal()]

    (lonely,) = run.findings(CollectiveAlone())

    assert (lonely.rank, lonely.count) == (alone[0]["rank"], len(alone))
