"""Jobs of several ranks with known truth, as the torch.profiler file that each of them would write.

A job is a list of collectives, each with a moment at which all of its ranks leave it. A rank's file
is what a profiler would show of that: a window of it, on a clock of its own, with what somebody
took out or changed.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows

Event = dict[str, Any]
CLOCK_US = 5_000_000
NOISE_US = 2
OPS = {"allreduce": "AllReduce_Sum_bf16", "_allgather_base": "AllGather"}
OPS |= {"_reduce_scatter_base": "ReduceScatter_Sum_bf16", "broadcast": "Broadcast"}
ANNOTATED = {"allreduce": "all_reduce", "broadcast": "broadcast"}


@dataclass(frozen=True, slots=True)
class Meeting:
    """A collective: its group and ranks, its number there, and when each rank was in it, in us."""

    step: int
    group: str
    ranks: tuple[int, ...]
    number: int
    op: str
    num_elements: int
    entered_us: tuple[float, ...]
    left_us: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """How a rank's file shows it: its clock, window and dialect, and what was done to it.

    `without` and `swapped` are numbers of collectives: that one is not there, or it stands as the
    one behind it. `tags` is what steps are called, with the number or not; the last `behind` of a
    step come behind its tag. Of the window the first `skipped` and the last `cut` are not there.
    """

    late_us: float = 0
    first_step: int = 0
    last_step: int = 1 << 30
    has_seq: bool = True
    has_calls: bool = True
    has_kernels: bool = True
    tags: str = "ProfilerStep#{step}"
    dialect: str = "nccl"
    without: tuple[int, ...] = ()
    swapped: int | None = None
    top: dict[str, Any] = field(default_factory=dict)
    behind: int = 0
    skipped: int = 0
    cut: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What a job does: `groups` meet `per_step` times in each step; `late_rank` comes last.

    `gaps_us` is how much longer each place of a step takes, in every step alike. `goes_on` tells
    whether sizes go on from step to step, so that steps differ.
    """

    num_ranks: int = 2
    num_steps: int = 6
    per_step: int = 4
    seed: int = 0
    late_rank: int | None = None
    late_us: float = 400
    jitter_us: float = 300
    noise_us: float = 2
    sizes: tuple[int, ...] = (4096, 8192, 4096, 1024)
    ops: tuple[str, ...] = ("allreduce",)
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    gaps_us: tuple[float, ...] = (0,)
    goes_on: bool = False

    def meetings(self) -> list[Meeting]:
        """Let it run."""
        chance = random.Random(self.seed)
        groups = self.groups or {"tp": tuple(range(self.num_ranks))}
        places = product(range(self.num_steps), range(self.per_step), groups.items())
        numbers = dict.fromkeys(groups, 0)
        found, now = [], 1_000.0
        for step, place, (name, ranks) in places:
            now += 1_000 + self.gaps_us[place % len(self.gaps_us)]
            now += chance.random() * self.jitter_us
            came = [now + chance.random() * self.noise_us for _ in ranks]
            if self.late_rank in ranks:
                came[ranks.index(self.late_rank)] += self.late_us
            now = max(came) + 50
            left = [now + chance.random() * self.noise_us for _ in ranks]
            size = self.sizes[(numbers[name] if self.goes_on else place) % len(self.sizes)]
            what = self.ops[place % len(self.ops)], size
            times = tuple(_whole_ns(came)), tuple(_whole_ns(left))
            found.append(Meeting(step, name, ranks, numbers[name], *what, *times))
            numbers[name] += 1
        return found


def _whole_ns(times_us: list[float]) -> list[float]:
    return [round(us, 3) for us in times_us]


def job(num_ranks: int = 2, **given: Any) -> list[Meeting]:
    """The collectives of a job of so many ranks, as a `Plan` has it."""
    return Plan(num_ranks, **given).meetings()


def events(meetings: list[Meeting], rank: int, look: Look) -> list[Event]:
    """What a profiler shows of a job on one rank, its times in microseconds of its own clock."""
    own = [m for m in meetings if rank in m.ranks and look.first_step <= m.step <= look.last_step]
    tagged = _tagged(own, look)
    own = own[look.skipped : len(own) - look.cut]
    kept = [m for m in _swapped(own, look.swapped) if m.number not in look.without]
    found: list[Event] = []
    for number, meeting in enumerate(kept, start=1):
        found += _shown(meeting, meeting.ranks.index(rank), number, look)
    return [*found, *_steps([m for m in own if (m.group, m.number) in tagged], rank, look)]


def _tagged(own: list[Meeting], look: Look) -> set[tuple[str, int]]:
    """The group and number of those that do not come behind the tag of their step."""
    of_steps: dict[int, list[tuple[str, int]]] = {}
    for meeting in own:
        of_steps.setdefault(meeting.step, []).append((meeting.group, meeting.number))
    return {each for of_step in of_steps.values() for each in of_step[: len(of_step) - look.behind]}


def _swapped(own: list[Meeting], place: int | None) -> list[Meeting]:
    """Let the collective of that number do what the next one of its group does, and the reverse."""
    if place is None:
        return own
    at = {m.number: m for m in own}
    if place not in at or place + 1 not in at:
        return own
    a, b = at[place], at[place + 1]
    changed = {
        place: replace(a, op=b.op, num_elements=b.num_elements),
        place + 1: replace(b, op=a.op, num_elements=a.num_elements),
    }
    return [changed.get(m.number, m) for m in own]


def _shown(meeting: Meeting, place: int, number: int, look: Look) -> list[Event]:
    began, ended = (
        CLOCK_US + look.late_us + times[place] for times in (meeting.entered_us, meeting.left_us)
    )
    called, correlation = began - 300, 10 * number
    said: Event = {"External id": number, "Collective name": meeting.op, "dtype": "BFloat16",
                   "In msg nelems": meeting.num_elements, "Process Group Name": meeting.group,
                   "Process Group Ranks": str(list(meeting.ranks))}  # fmt: skip
    if look.has_seq:
        said["Seq"] = meeting.number + 1
    if look.dialect == "old":
        said = {"External id": number}
    on_host = {"ph": "X", "pid": 1, "tid": 1, "ts": called}
    call = {**on_host, "cat": "cpu_op", "name": "record_param_comms", "dur": 40, "args": said}
    launch = {**on_host, "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "dur": 5,
              "ts": called + 20, "args": {"correlation": correlation}}  # fmt: skip
    kernel = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 20, "ts": began, "dur": ended - began,
              "name": _kernel(meeting.op, look.dialect),
              "args": {"stream": 20, "correlation": correlation}}  # fmt: skip
    host = [call, launch] if look.has_calls else []
    if look.dialect == "old":
        dims = {"Input Dims": [[meeting.num_elements]], "Input type": ["float"]}
        name = f"nccl:{ANNOTATED.get(meeting.op, meeting.op)}"
        host.append({**on_host, "cat": "user_annotation", "name": name, "ts": called + 5,
                     "dur": 30, "args": dims})  # fmt: skip
    return host + [kernel] * look.has_kernels


def _kernel(op: str, dialect: str) -> str:
    if dialect == "rccl":
        return "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"
    if dialect == "old":
        return "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)"
    return f"ncclDevKernel_{OPS[op]}_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def _steps(own: list[Meeting], rank: int, look: Look) -> list[Event]:
    spans: dict[int, list[float]] = {}
    for meeting in own:
        began = meeting.entered_us[meeting.ranks.index(rank)]
        spans.setdefault(meeting.step, []).append(CLOCK_US + look.late_us + began - 310)
    return [
        {"ph": "X", "cat": "user_annotation", "name": look.tags.format(step=step), "pid": 1,
         "tid": 1, "ts": min(starts), "dur": max(starts) - min(starts) + 60}
        for step, starts in spans.items() if look.tags
    ]  # fmt: skip


def write_job(folder: Path, meetings: list[Meeting], *looks: Look) -> Path:
    """Write a file for each rank, as it looks, and give the folder."""
    folder.mkdir(exist_ok=True)
    for rank, look in enumerate(looks):
        info = {"rank": rank, "world_size": len(looks), **look.top.get("distributedInfo", {})}
        top = {"schemaVersion": 1, **look.top, "distributedInfo": info}
        content = json.dumps({**top, "traceEvents": events(meetings, rank, look)})
        (folder / f"rank{rank}.json").write_text(content)
    return folder


def clocks(trace: Trace) -> dict[int, dict[str, Any]]:
    """What is said of the clock of each rank."""
    return {int(rank): said for rank, said in trace.manifest.config["clocks"].items()}


def of_rank(trace: Trace, rank: int, column: str) -> list[Any]:
    """A column of the collectives of one rank."""
    return [value for who, value in rows(trace, "collectives", "rank", column) if who == rank]


def open_job(folder: Path, meetings: list[Meeting], *looks: Look) -> Trace:
    """Write a job and open it."""
    return Trace.open(write_job(folder / "job", meetings, *looks))


def period_us(plan: Plan) -> float:
    """How long a step of a job takes, if no time is drawn."""
    gaps = [plan.gaps_us[place % len(plan.gaps_us)] for place in range(plan.per_step)]
    waited = plan.late_us if plan.late_rank is not None else 0
    return sum(gaps) + plan.per_step * (1_050 + waited)


def wrong_pairs(trace: Trace, *looks: Look) -> list[tuple[Any, ...]]:
    """Rows of two ranks with one ordinal that did not leave together, by the times of the job.

    What is not the same in both is shown as where they diverge, and paired by nobody.
    """
    moved = {0: 0} | {rank: said["moved_ns"] for rank, said in clocks(trace).items()}
    late = {rank: round(look.late_us * 1000) + moved[rank] for rank, look in enumerate(looks)}
    left_ns = pl.col("ts_ns") + pl.col("dur_ns") - pl.col("rank").replace_strict(late)
    apart = (
        trace.collectives.drop_nulls(["ordinal", "dur_ns"])
        .group_by("group", "stream", "ordinal")
        .agg(
            num_kinds=pl.struct("op", "num_elements").n_unique(),
            apart_ns=left_ns.max() - left_ns.min(),
        )
        .filter(pl.col("apart_ns") > 1_000 * NOISE_US + 1_000, pl.col("num_kinds") == 1)
    )
    return apart.collect().rows()


def assert_nothing_is_wrong(trace: Trace, *looks: Look) -> None:
    """Pairs met, and each clock is right within its bounds or left alone with the reason."""
    assert wrong_pairs(trace, *looks) == []
    for rank, said in clocks(trace).items():
        ahead_ns = round((looks[rank].late_us - looks[0].late_us) * 1000)
        if said["why_not"]:
            assert said["moved_ns"] == 0
            continue
        assert abs(said["offset_ns"] - ahead_ns) <= said["residual_ns"] + 1_000 * NOISE_US
        assert said["least_ns"] - 1_000 <= ahead_ns <= said["most_ns"] + 1_000
        assert said["moved_ns"] in (0, -said["offset_ns"])
