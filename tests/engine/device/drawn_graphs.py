"""Random task graphs and devices, and the truth about a run read off its parts alone."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import strategies as st

from stepscope.engine.device.admission import ADMISSIONS, Admission
from stepscope.engine.device.dispatcher import Dispatcher
from stepscope.engine.device.graphs.tasks import Region, TaskGraph
from stepscope.engine.device.late_parts import WAITS, LatePart
from stepscope.engine.device.rings import Rings
from stepscope.engine.device.run_log import Run
from stepscope.engine.device.topology import Device, Part

Block = tuple[int, int]
Launch = tuple[int, list[int], bool, bool, list[tuple[str, int]], list[tuple[str, int]]]

# Few dependencies, few all-or-nothing tasks and long blocks beside short ones make for contention.
regions = st.lists(st.tuples(st.sampled_from("vwxyz"), st.integers(0, 3)), max_size=1)
launches = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 2, 3, 4, 5, 6, 7, 7, 7, 0]),
        st.lists(st.integers(0, 30_000), min_size=1, max_size=6),
        st.sampled_from([False] * 9 + [True]),
        st.sampled_from([True] * 9 + [False]),
        regions,
        regions,
    ),
    min_size=6,
    max_size=30,
)
policies = st.sampled_from(ADMISSIONS)
num_groups = st.integers(1, 6)
num_threads = st.integers(1, 4)


def graph_of(given: list[Launch], groups: int) -> TaskGraph:
    """Submit the launches; an all-or-nothing one is cut to what every policy can start at once."""
    graph = TaskGraph()
    for index, (mask, times, is_sync, enabled, reads, writes) in enumerate(given):
        graph.submit(
            f"k{index}", mask, times[:groups] if is_sync else times,
            reads=[Region(tensor, at, at + 2) for tensor, at in reads],
            writes=[Region(tensor, at, at + 2) for tensor, at in writes],
            is_sync_start=is_sync, enabled=enabled,
        )  # fmt: skip
    return graph


def run_of(
    graph: TaskGraph,
    policy: Admission,
    groups: int = 4,
    threads: int = 3,
    *,
    rings: Rings | None = None,
    faults: frozenset[str] = frozenset(),
    late_part: LatePart = WAITS,
    is_told: bool = True,
) -> Run:
    device = Device(groups, threads)
    dispatcher = Dispatcher(
        device, policy, rings=rings, faults=faults, late_part=late_part, is_told=is_told
    )
    return dispatcher.run(graph)


def blocks_of(run: Run) -> dict[Block, list[Part]]:
    """The parts of every block."""
    blocks: dict[Block, list[Part]] = defaultdict(list)
    for part in run.parts:
        blocks[part.task.id, part.block].append(part)
    return blocks


def split_blocks(run: Run) -> list[Block]:
    """MIX blocks of which a part took its core at once while another core was still held.

    A core is held by a part that was handed to it earlier and ended later.
    """
    seen: dict[int, list[Part]] = defaultdict(list)
    found = []
    for block, parts in blocks_of(run).items():
        held = len(parts) > 1 and any(
            0 <= other.dispatch_ns <= part.dispatch_ns and not 0 <= other.end_ns <= part.dispatch_ns
            for part in parts
            for other in seen[part.core.id]
        )
        if held and any(part.slot == "running" for part in parts):
            found.append(block)
        for part in parts:
            seen[part.core.id].append(part)
    return found
