"""Rules on real profiles, one rank or two, against figures counted event by event."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.finding import Finding
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Real
from tests.analyzers.real import raw_profile as raw
from tests.analyzers.real.files import PROFILES
from tests.tiers import sampled, slow

TRIED = frozenset({"COL001", "COL007", "COL008", "TRC001", "TRC002", "TRC003", "TRC004", "TRC005"})
VLLM = "vllm_cpu_tiny_llama_preemptions"
TAGGED = (VLLM, "sglang_qwen3_8b_prefilldecode", "vllm_prefilldecode_mi300")
NUM_STEPS = dict(zip(PROFILES, (1, 0, 3, 2, 2, 1, 133, 1), strict=True))
RANKS = (0, 1)

SMALL = "hta_sampled_rank-0"

each_profile = pytest.mark.parametrize("name", sampled(PROFILES, quick=(SMALL,)))


@pytest.fixture
def profile(shared_data: Path, name: str) -> list[raw.Event]:
    return raw.events(shared_data / "kineto" / f"{name}.json.gz")


@pytest.fixture
def said(real: Real, name: str) -> CheckResult:
    return _checked(real(f"kineto/{name}.json.gz"))


_checked = cache(check)


@pytest.fixture(scope="module")
def pair(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Both ranks of HTA's example, from a folder."""
    folder = tmp_path_factory.mktemp("pair")
    for rank in RANKS:
        shutil.copy(shared_data / "kineto" / f"hta_sampled_rank-{rank}.json.gz", folder)
    return Trace.open(folder)


@pytest.fixture(scope="module")
def ranks(shared_data: Path) -> list[list[raw.Event]]:
    folder = shared_data / "kineto"
    return [raw.events(folder / f"hta_sampled_rank-{rank}.json.gz") for rank in RANKS]


def findings(said: CheckResult, code: str) -> list[Finding]:
    return [each for each in said.findings if each.code == code]


# -- one rank ------------------------------------------------------------------------------------


@each_profile
def test_col007_finds_no_collective_of_a_rank_that_is_alone(
    profile: list[raw.Event], said: CheckResult, name: str
) -> None:
    """Of 21 collectives that name their ranks each has two; elsewhere none names any."""
    asked = [
        event["args"]["Process Group Ranks"]
        for event in profile
        if event["name"] == "record_param_comms" and event["args"].get("Process Group Name")
    ]

    assert asked == ["[0, 1]"] * (21 if name == "hta_nccl_data" else 0)
    assert said.counts.get("COL007") == (0 if asked else None)


@each_profile
@pytest.mark.usefixtures("profile")
def test_trc001_finds_no_profile_that_is_whole_to_be_cut_off(said: CheckResult) -> None:
    assert said.counts["TRC001"] == 0


@slow
def test_trc001_tells_what_is_left_of_a_profile_that_was_cut_off(
    shared_data: Path, tmp_path: Path
) -> None:
    whole = gzip.decompress((shared_data / "kineto" / f"{VLLM}.json.gz").read_bytes())
    half, file = whole[: len(whole) // 2], tmp_path / "half.json"
    file.write_bytes(half)

    said = check(Trace.open(file))

    (found,) = findings(said, "TRC001")
    num_events = half.count(b'"ph": "') - 1  # the last one is not whole
    assert found.message.startswith(f"the file ends too early: {num_events:,} records of it")
    assert found.evidence["last step"] == len(re.findall(rb"execute_context_", half))


@each_profile
def test_trc002_finds_no_step_that_began_before_the_one_before_it(
    profile: list[raw.Event], said: CheckResult, name: str
) -> None:
    steps = raw.steps(profile)
    ends = [raw.span_ns(step) for step in steps]

    assert len(steps) == NUM_STEPS[name]
    assert all(one[1] <= other[0] for one, other in pairwise(ends))
    assert said.counts.get("TRC002") == (0 if steps else None)


@each_profile
def test_trc003_counts_the_steps_that_were_read_from_tags(
    profile: list[raw.Event], said: CheckResult, name: str
) -> None:
    told = [int(each.evidence.get("steps") or 0) for each in findings(said, "TRC003")]

    assert sum(told) == len(raw.steps(profile)) == NUM_STEPS[name]


@slow
def test_trc005_finds_the_four_steps_that_recompute_what_was_preempted(
    shared_data: Path, real: Real
) -> None:
    profile = raw.events(shared_data / "kineto" / f"{VLLM}.json.gz")
    decodes = [raw.generation(step["name"]) for step in raw.steps(profile)]
    more = [(rows, tokens) for rows, tokens in decodes if tokens > rows]

    (found,) = findings(check(real(f"kineto/{VLLM}.json.gz")), "TRC005")

    assert found.count == len(more) == 4
    assert found.evidence["tokens in excess"] == sum(tokens - rows for rows, tokens in more) == 150
    assert found.evidence["steps with generation"] == sum(rows > 0 for rows, _ in decodes) == 132
    worst = max(more, key=lambda each: each[1] - each[0])
    assert worst == (found.evidence["rows at worst"], found.evidence["tokens at worst"]) == (6, 64)


@slow
@pytest.mark.parametrize("name", TAGGED[1:])
def test_trc005_finds_no_other_engine_to_compute_more_tokens_than_rows(
    profile: list[raw.Event], said: CheckResult
) -> None:
    (step,) = raw.steps(profile)
    rows, tokens = raw.generation(step["name"])

    assert (said.counts["TRC005"], tokens) == (0, rows)


# -- two ranks -----------------------------------------------------------------------------------


def late_device(shared_data: Path, folder: Path, swapped: tuple[int, int] | None = None) -> Trace:
    """A real rank, and the same as another: its clock 3 ms ahead, its device 1 ms late.

    Only its all-reduces begin late, and end as before. `swapped` are two of its calls.
    """
    file = shared_data / "kineto" / "hta_nccl_data.json.gz"
    shutil.copy(file, folder / "rank0.json.gz")
    whole = json.loads(gzip.decompress(file.read_bytes()))
    whole["distributedInfo"]["rank"] = 1
    for event in whole["traceEvents"]:
        if "ts" in event:
            event["ts"] += 3_000
        if event["name"].startswith("ncclKernel_AllReduce"):
            event |= {"ts": event["ts"] + 1_000, "dur": event["dur"] - 1_000}
    if swapped:
        calls = [event for event in whole["traceEvents"] if event["name"] == "record_param_comms"]
        calls.sort(key=lambda event: float(event["ts"]))
        one, other = (calls[place]["args"] for place in swapped)
        one["In msg nelems"], other["In msg nelems"] = other["In msg nelems"], one["In msg nelems"]
    (folder / "rank1.json").write_text(json.dumps(whole))
    return Trace.open(folder)


@slow
def test_col008_adds_up_how_late_the_device_of_a_rank_was(
    shared_data: Path, tmp_path: Path
) -> None:
    """Both ranks call at the same time: only the kernels tell who was late."""
    trace = late_device(shared_data, tmp_path)

    (found,) = findings(check(trace), "COL008")

    assert (found.rank, found.count) == (1, 15)
    assert found.evidence["cost_ns"] == pytest.approx(15 * 1_000_000, abs=15)
    assert trace.manifest.config["clocks"]["1"]["moved_ns"] == pytest.approx(-3_000_000, abs=2)


@slow
def test_col001_finds_where_two_real_ranks_part(shared_data: Path, tmp_path: Path) -> None:
    (found,) = findings(check(late_device(shared_data, tmp_path, (13, 14))), "COL001")

    assert found.evidence["verdict"] == "size or syntax"
    assert "faces" in found.message


@slow
def test_of_two_ranks_of_many_nothing_says_which_collectives_are_one(
    pair: Trace, ranks: list[list[raw.Event]]
) -> None:
    """Both name their operations, and neither a group: of 128 ranks any may join."""
    streams = [raw.kernels(profile, "nccl") for profile in ranks]
    said = _checked(pair)

    assert [{on: len(found) for on, found in each.items()} for each in streams] == [
        {84: 8, 203: 2}, {84: 8, 203: 2},
    ]  # fmt: skip
    assert not {"COL001", "COL008"} & set(said.counts)


def test_trc004_finds_no_rank_to_stop_long_before_the_other(
    pair: Trace, ranks: list[list[raw.Event]]
) -> None:
    moments = []
    for profile in ranks:
        nccl = [event for found in raw.kernels(profile, "nccl").values() for event in found]
        spans = [raw.span_ns(event) for event in [*raw.steps(profile), *nccl]]
        moments.append(sorted({moment for span in spans for moment in span}))
    apart_ns = abs(moments[0][-1] - moments[1][-1])
    silences = [max(later - earlier for earlier, later in pairwise(each)) for each in moments]

    assert apart_ns == 8_496_000 < 5 * min(silences)
    assert _checked(pair).counts["TRC004"] == 0


def test_trc003_says_from_what_the_collectives_of_both_were_read(
    pair: Trace, ranks: list[list[raw.Event]]
) -> None:
    found = _checked(pair).findings[-1]
    num_nccl = sum(len(each) for profile in ranks for each in raw.kernels(profile, "nccl").values())

    assert found.code == "TRC003"
    assert found.evidence["collectives from record_param_comms"] == 16
    assert found.evidence["collectives from annotations such as nccl:all_reduce"] == 4
    assert num_nccl == 20
