"""Rules of core groups on swimlanes, against figures counted block by block.

Some are of a real runtime; two are of the reference engine, in every clone: the same work admitted
to core groups with and without a look at their vector cores.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.cor.cor006_idle_core_ready_work import IdleCoreReadyWork
from stepscope.analyzers.rules.cor.cor009_dispatch_bound import DispatchBound
from stepscope.analyzers.rules.trc.trc007_rows_contradict import RowsContradict
from stepscope.engine.runs.scenario import Options
from stepscope.ingest.trace import Trace
from tests.analyzers.real.engine_swimlane import write_swimlane
from tests.analyzers.real.files import SWIMLANES
from tests.analyzers.real.raw_swimlane import Part, RawSwimlane
from tests.analyzers.samples.raw_trace import RawTrace
from tests.engine.recorded_once import RecordedOnce
from tests.tiers import sampled, slow

TRIED = frozenset(
    {
        "COR001", "COR002", "COR003", "COR004", "COR006", "COR007", "COR009", "COR010", "COR011",
        "COR012", "TRC007",
    }
)  # fmt: skip
MIXED, QWEN, STARVED, SKIPS = SWIMLANES[1], SWIMLANES[3], SWIMLANES[4], SWIMLANES[2]
BEFORE, AFTER = ENGINE = "engine before", "engine after"
CASES = (*SWIMLANES, *ENGINE)
SMALL = {"requests": "3", "steps": "1"}
GRACE_NS = 2_000


@pytest.fixture(scope="session")
def folder_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """The folder of a swimlane; those of the engine are recorded and written, each but once."""
    written: dict[str, Path] = {}

    def folder(case: str) -> Path:
        if case not in ENGINE:
            shared: Path = request.getfixturevalue("shared_data")
            return shared / "swimlane" / case
        if case not in written:
            recorded: RecordedOnce = request.getfixturevalue("recorded_once")
            run = recorded.run("mix-admission", case.split()[1], Options(settings=SMALL)).path
            assert run is not None
            place = tmp_path_factory.mktemp("engine") / "swimlane"
            written[case] = write_swimlane(RawTrace(run), 2, place)
        return written[case]

    return folder


@pytest.fixture
def raw(folder_of: Callable[[str], Path], case: str) -> RawSwimlane:
    return _read(folder_of(case))


@pytest.fixture
def said(folder_of: Callable[[str], Path], case: str) -> CheckResult:
    return _checked(folder_of(case))


@cache
def _checked(folder: Path) -> CheckResult:
    return check(Trace.open(folder), [rule for rule in RULES if rule.code in TRIED])


_read = cache(RawSwimlane)
each_case = pytest.mark.parametrize("case", sampled(CASES, quick=(MIXED, *ENGINE)))


def findings(said: CheckResult, code: str) -> list[Finding]:
    return [each for each in said.findings if each.code == code]


@slow
@each_case
def test_cor001_finds_the_mixes_of_which_a_part_found_its_core_held(
    raw: RawSwimlane, said: CheckResult, case: str
) -> None:
    held = [[raw.is_held(part) for part in block] for block in raw.mixes()]
    num_partial = sum(any(each) and not all(each) for each in held)

    assert said.counts.get("COR001") == (num_partial if held else None)
    assert num_partial == {MIXED: 2, QWEN: 15, BEFORE: 56}.get(case, 0)


@each_case
def test_cor002_finds_no_two_blocks_that_run_on_a_core_at_once(
    raw: RawSwimlane, said: CheckResult, case: str
) -> None:
    overlaps = [
        (one, other)
        for core in _by_core(raw).values()
        for place, one in enumerate(core)
        for other in core[place + 1 :]
        if other.start_ns < one.end_ns and one.start_ns < other.end_ns
    ]

    assert (said.counts["COR002"], overlaps) == (0, [])
    assert (
        len(raw.parts)
        == dict(zip(CASES, (128, 36, 3, 872, 252, 40, 4_502, 4_502), strict=True))[case]
    )


@each_case
def test_cor003_finds_the_mixes_whose_parts_start_apart(
    raw: RawSwimlane, said: CheckResult, case: str
) -> None:
    skews = {}
    for place, block in enumerate(raw.mixes()):
        starts = [part.start_ns for part in block]
        skew_ns, length_ns = max(starts) - min(starts), max(p.end_ns for p in block) - min(starts)
        runs_long_enough = max(part.end_ns - part.start_ns for part in block) >= 1_000
        if runs_long_enough and skew_ns > 0.1 * length_ns:
            skews[place] = skew_ns
    told = [int(each.evidence["worst_skew_ns"] or 0) for each in findings(said, "COR003")]

    assert said.counts.get("COR003") == (len(skews) if raw.mixes() else None)
    assert max(told, default=0) == max(skews.values(), default=0)
    assert len(skews) == {MIXED: 6, BEFORE: 52}.get(case, 0)


def test_parts_of_the_mixed_example_start_up_to_33_ms_apart(shared_data: Path) -> None:
    blocks = _read(shared_data / "swimlane" / MIXED).mixes()
    worst = max(max(p.start_ns for p in block) - min(p.start_ns for p in block) for block in blocks)

    assert (len(blocks), worst) == (12, 32_951_680)


@each_case
def test_cor004_finds_no_mix_that_younger_work_overtook_again_and_again(
    raw: RawSwimlane, said: CheckResult, case: str
) -> None:
    """No block of one core became ready later than any of these and was dispatched before it.

    In the engine, a few did; it takes two for each core for a finding.
    """
    ready = raw.ready_ns()
    singles = [part for part in raw.parts if raw.shape(part.task) != "MIX"]
    overtaken = []
    for block in raw.mixes():
        dispatch_ns = min(part.dispatch_ns for part in block)
        since_ns = ready[block[0].task]
        overtaken.append(
            sum(since_ns < ready[p.task] and p.dispatch_ns < dispatch_ns for p in singles)
        )

    assert said.counts.get("COR004") == (0 if raw.mixes() else None)
    num_blocks = dict(zip(CASES, (0, 12, 0, 16, 84, 8, 108, 108), strict=True))[case]
    assert (len(overtaken), max(overtaken, default=0)) == (
        num_blocks,
        {BEFORE: 2, AFTER: 5}.get(case, 0),
    )


@each_case
def test_cor006_adds_up_what_idle_cores_lost_with_work_ready(
    raw: RawSwimlane, said: CheckResult, case: str
) -> None:
    told = {_shape(each): each.evidence["lost_ns"] for each in findings(said, "COR006")}

    assert told == {shape: _lost_ns(raw, shape) for shape in told}
    assert told == {SKIPS: {"AIC": 691_120}, STARVED: {"MIX": 6_231_020}}.get(case, {})


@each_case
def test_cor007_finds_no_task_that_began_before_one_it_waits_for_had_ended(
    raw: RawSwimlane, said: CheckResult, case: str
) -> None:
    began: dict[int, int] = {}
    for part in raw.parts:
        began[part.task] = min(part.start_ns, began.get(part.task, part.start_ns))
    ends = raw.ends_ns()
    judged = [edge for edge in raw.edges if edge[1] in began]
    early = [edge for edge in judged if began[edge[1]] < ends[edge[0]]]

    num_judged = dict(zip(CASES, (96, 0, 1, 1_163, 19, 1, 1_843, 1_843), strict=True))[case]
    assert (len(judged), early) == (num_judged, [])
    assert said.counts.get("COR007") == (0 if judged else None)


@each_case
def test_cor009_adds_up_what_dispatching_cost_beside_running(
    raw: RawSwimlane, said: CheckResult, case: str
) -> None:
    overhead, executed = _spent(raw)
    bound = {shape for shape in overhead if overhead[shape] > executed[shape]}
    told = {_shape(each): each.evidence for each in findings(said, "COR009")}

    assert set(told) == bound
    for shape, evidence in told.items():
        times = evidence["dispatch_ns"], evidence["executed_ns"]
        assert times == (overhead[shape], executed[shape])
        assert evidence["blocks"] == _num_blocks(raw, shape)
    assert bound or case in (QWEN, *ENGINE)


@each_case
def test_cor010_finds_no_task_that_was_left(raw: RawSwimlane, said: CheckResult, case: str) -> None:
    over = {part.task for part in raw.parts} | set(raw.passed_ns)
    ran = Counter(raw.shape(task) for task in {part.task for part in raw.parts})

    assert (said.counts["COR010"], set(raw.kernels) - over) == (0, set())
    if case == QWEN:
        assert (ran, len(raw.kernels)) == ({"AIC": 470, "AIV": 62, "MIX": 2}, 470 + 62 + 2 + 25)


@each_case
def test_cor011_finds_every_block_on_a_core_that_its_task_has_a_kernel_for(
    raw: RawSwimlane, said: CheckResult
) -> None:
    wrong = [
        part for part in raw.parts if not any(kernel >= 0 for kernel in _kernels_for(raw, part))
    ]

    assert (said.counts["COR011"], wrong) == (0, [])
    assert {raw.group(part.core) for part in raw.parts} <= set(range(8))


@each_case
def test_cor012_finds_no_task_without_its_blocks_but_those_that_were_skipped(
    raw: RawSwimlane, said: CheckResult, case: str
) -> None:
    ran = {part.task for part in raw.parts}
    not_run = {task for task in raw.kernels if task not in ran}

    assert said.counts["COR012"] == 0
    assert not_run <= set(raw.passed_ns)
    skipped = [task for task in not_run if raw.shape(task) != "DUMMY"]
    assert len(skipped) == {SKIPS: 1, BEFORE: 1_182, AFTER: 1_182}.get(case, 0)


@slow
@pytest.mark.parametrize("case", ENGINE)
def test_cor006_and_cor009_count_what_was_lost_however_little_it_is(
    raw: RawSwimlane, folder_of: Callable[[str], Path], case: str
) -> None:
    trace = Trace.open(folder_of(case))
    idle = IdleCoreReadyWork(max_share=0.0).check(trace)
    bound = DispatchBound(max_ratio=0.0).check(trace)
    shapes = {"AIC", "AIV", "MIX"}
    spent = _spent(raw)

    assert {_shape(each): each.evidence["lost_ns"] for each in idle} == {
        shape: _lost_ns(raw, shape) for shape in shapes
    }
    times = ("dispatch_ns", "executed_ns")
    assert {_shape(each): tuple(each.evidence[name] for name in times) for each in bound} == {
        shape: tuple(each[shape] for each in spent) for shape in shapes
    }


def _spent(raw: RawSwimlane) -> tuple[Counter[str], Counter[str]]:
    """How long blocks of each shape waited to be started, and ran, in nanoseconds."""
    ready, overhead, executed = raw.ready_ns(), Counter[str](), Counter[str]()
    for core in _by_core(raw).values():
        free_ns = 0
        for part in core:
            shape, could_ns = raw.shape(part.task), max(ready[part.task], free_ns)
            overhead[shape] += max(0, part.start_ns - could_ns)
            executed[shape] += part.end_ns - part.start_ns
            free_ns = max(free_ns, part.end_ns)
    return overhead, executed


def _by_core(raw: RawSwimlane) -> dict[int, list[Part]]:
    cores: dict[int, list[Part]] = defaultdict(list)
    for part in sorted(raw.parts, key=lambda part: part.start_ns):
        cores[part.core].append(part)
    return cores


def _kernels_for(raw: RawSwimlane, part: Part) -> list[int]:
    """The kernels of its task that are built for the kind of core that it ran on."""
    kernels: list[int] = raw.kernels[part.task]
    return kernels[:1] if part.core < raw.num_aic else kernels[1:]


def _num_blocks(raw: RawSwimlane, shape: str) -> int:
    if shape == "MIX":
        return len(raw.mixes())
    return sum(raw.shape(part.task) == shape for part in raw.parts)


@slow
@each_case
def test_trc007_finds_the_records_that_are_taken_out(
    folder_of: Callable[[str], Path], raw: RawSwimlane, said: CheckResult, case: str, tmp_path: Path
) -> None:
    """Without all blocks of a task that others waited for, and without a part of a MIX."""
    assert said.counts["TRC007"] == 0
    ran = {part.task for part in raw.parts}
    waited = sorted(pred for pred, succ in raw.edges if {pred, succ} <= ran)
    gone = [part for part in raw.parts if waited and part.task == waited[0]]
    if waited:
        assert _found_without(folder_of(case), gone, tmp_path / "task") == 1
    if mixes := raw.mixes():
        assert _found_without(folder_of(case), mixes[0][:1], tmp_path / "part") == 1
    assert bool(waited or mixes) == (case != SKIPS)


def _found_without(folder: Path, gone: list[Part], copy: Path) -> int:
    """How often TRC007 is found in a copy of the folder that lacks some parts."""
    shutil.copytree(folder, copy)
    file = copy / "chip_swimlane_records.json"
    records = json.loads(file.read_text())
    taken = {(part.core, part.task) for part in gone}
    registers = {(row[0], row[2]) for row in records["aicore_tasks"] if (row[0], row[1]) in taken}
    tasks = records["aicore_tasks"], records["aicpu_tasks"]
    records["aicore_tasks"] = [row for row in tasks[0] if (row[0], row[2]) not in registers]
    records["aicpu_tasks"] = [row for row in tasks[1] if (row[0], row[1]) not in registers]
    file.write_text(json.dumps(records))
    return check(Trace.open(copy), [RowsContradict()]).counts["TRC007"]


def _shape(finding: Finding) -> str:
    return next(shape for shape in ("AIC", "AIV", "MIX") if f"{shape} blocks" in finding.message)


def _lost_ns(raw: RawSwimlane, shape: str) -> int:
    """How long members of the pool of a shape stood idle with a block waiting, moment by moment."""
    ready = raw.ready_ns()
    changes = [
        (at_ns, unit, sign, 0)
        for unit, spans in _held(raw, shape).items()
        for span in spans
        for at_ns, sign in zip(span, (1, -1), strict=True)
    ]
    alone = [[part] for part in raw.parts if raw.shape(part.task) == shape]
    for block in raw.mixes() if shape == "MIX" else alone:
        since_ns = ready[block[0].task] + GRACE_NS
        until_ns = min(part.dispatch_ns for part in block)
        if since_ns < until_ns:
            changes += [(since_ns, -1, 0, 1), (until_ns, -1, 0, -1)]
    members = {"AIC": raw.num_aic, "AIV": raw.num_aiv, "MIX": raw.num_aic}[shape]
    held, num_waiting, lost_ns, then_ns = Counter[int](), 0, 0, 0
    for at_ns, unit, taken, waits in sorted(changes):
        num_idle = members - sum(number > 0 for number in held.values())
        lost_ns += (at_ns - then_ns) * min(num_idle, num_waiting)
        held[unit] += taken
        num_waiting, then_ns = num_waiting + waits, at_ns
    return lost_ns


def _held(raw: RawSwimlane, shape: str) -> dict[int, list[tuple[int, int]]]:
    """When each core, or for a MIX each group, was held, or had been until just before."""
    held: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for part in raw.parts:
        is_aic = part.core < raw.num_aic
        if shape == "MIX" or is_aic == (shape == "AIC"):
            unit = raw.group(part.core) if shape == "MIX" else part.core
            held[unit].append((part.dispatch_ns, part.end_ns + GRACE_NS))
    return held
