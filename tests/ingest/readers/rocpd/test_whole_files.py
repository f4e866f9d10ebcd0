"""A whole database of two processes, against the plain rows that SQLite gives of it."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.ingest.readers.rocpd.files import Row, database, event, number, two_steps

NUM_STEPS, NUM_KERNELS = 25, 3
KERNELS = ("gemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
SUFFIXES = ("_019a_0", "_019a_1")
"""What stands behind the names of the tables of each process."""


def many_steps(pid: int, seed: int) -> dict[str, list[Row]]:
    """A process that launches three kernels and a copy in each of its steps; one counts waves."""
    draw, made = random.Random(seed), two_steps(pid)
    of = {"nid": 1, "pid": pid, "tid": 11}
    made |= {name: [] for name in ("event", "region", "sample", "kernel_dispatch", "memory_copy",
                                   "memory_allocate", "pmc_event")}  # fmt: skip
    made["info_kernel_symbol"] = [
        of | {"id": own, "kernel_name": f"_Z{name}", "display_name": name}
        for own, name in enumerate(KERNELS, start=1)
    ]
    for symbol in made["info_kernel_symbol"]:
        del symbol["tid"]
    at = 10_000 * seed

    def happened(category: str, call: int, message: str | None = None) -> int:
        own = len(made["event"]) + 1
        made["event"].append(event(own, category, call, message))
        return own

    def add(table: str, begin: int, length: int, **more: Any) -> None:
        own = len(made[table]) + 1
        made[table].append(of | {"id": own, "start": begin, "end": begin + length, **more})

    for step in range(NUM_STEPS):
        decodes = draw.randrange(1, 9)
        tag = f"execute_context_0(0)_generation_{decodes}({decodes})"
        begin, call = at, 100 * step
        for kernel in range(NUM_KERNELS):
            call += 1
            add("region", at, 20, name_id=number("hipLaunchKernel"),
                event_id=happened("HIP_RUNTIME_API", call))  # fmt: skip
            launched = happened("KERNEL_DISPATCH", call)
            add("kernel_dispatch", at + draw.randrange(30, 90), draw.randrange(1, 400),
                agent_id=4, kernel_id=1 + kernel % 2, dispatch_id=call, queue_id=2, stream_id=0,
                workgroup_size_x=64, grid_size_x=512, event_id=launched)  # fmt: skip
            made["pmc_event"] += [
                {"id": len(made["pmc_event"]) + each, "event_id": launched, "pmc_id": 31,
                 "value": float(draw.randrange(50))}
                for each in (1, 2)
            ]  # fmt: skip
            at += 25
        add("memory_copy", at, draw.randrange(5, 50), size=4096, dst_agent_id=4, src_agent_id=3,
            name_id=number("MEMORY_COPY_HOST_TO_DEVICE"),
            event_id=happened("MEMORY_COPY", call))  # fmt: skip
        add("region", begin, at - begin, name_id=number("roctxThreadRangeA"),
            event_id=happened("MARKER_CORE_RANGE_API", call + 1, tag))  # fmt: skip
        at += 1_000
    return made


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rocpd")
    return database(folder / "results.db", many_steps(7, 1), many_steps(9, 2))


@pytest.fixture(scope="module")
def trace(file: Path) -> Trace:
    return Trace.open(file)


def asked(file: Path, table: str, columns: str) -> list[tuple[Any, ...]]:
    """The rows of a table of both processes, each with its rank."""
    found = []
    with closing(sqlite3.connect(file)) as opened:
        for rank, suffix in enumerate(SUFFIXES):
            query = " ".join(("SELECT", columns, "FROM", f"rocpd_{table}{suffix}"))
            found += [(rank, *row) for row in opened.execute(query)]
    return found


def test_every_row_of_a_database_is_read(file: Path, trace: Trace) -> None:
    tables = ("kernel_dispatch", "memory_copy", "region", "pmc_event")

    assert report_of(trace).read == {table: len(asked(file, table, "id")) for table in tables}
    assert (report_of(trace).skipped, report_of(trace).repaired) == ({}, {})
    assert len(asked(file, "kernel_dispatch", "id")) == 2 * NUM_STEPS * NUM_KERNELS


def test_every_kernel_and_copy_has_its_time_and_name_and_every_all_reduce_is_a_collective(
    file: Path, trace: Trace
) -> None:
    names = {(rank, own): name for rank, own, name in asked(file, "info_kernel_symbol",
                                                           "id, display_name")}  # fmt: skip
    kernels = [
        (rank, "kernel_dispatch", names[rank, kernel], begin, end - begin)
        for rank, kernel, begin, end in asked(file, "kernel_dispatch", 'kernel_id, "start", "end"')
    ]
    copies = [
        (rank, "memory_copy", "MEMORY_COPY_HOST_TO_DEVICE", begin, end - begin)
        for rank, begin, end in asked(file, "memory_copy", '"start", "end"')
    ]

    told = rows(trace, "spans", "rank", "category", "name", "ts_ns", "dur_ns")

    on_gpu = [row for row in told if row[1] in ("kernel_dispatch", "memory_copy")]
    assert Counter(on_gpu) == Counter(kernels + copies)
    assert trace.num_rows("collectives") == sum("AllReduce" in name for _, _, name, *_ in kernels)


def test_a_step_lasts_as_long_on_the_host_as_its_range_and_on_the_gpu_as_what_it_launched(
    file: Path, trace: Trace
) -> None:
    """Kernels that overlap count once; a step's launches have numbers of its own hundred."""
    ranges = [
        (rank, begin, end - begin)
        for rank, name, begin, end in asked(file, "region", 'name_id, "start", "end"')
        if name == number("roctxThreadRangeA")
    ]
    calls = {(rank, own): call for rank, own, call in asked(file, "event", "id, stack_id")}
    busy: dict[tuple[int, int], set[int]] = defaultdict(set)
    for table in ("kernel_dispatch", "memory_copy"):
        for rank, launched, begin, end in asked(file, table, 'event_id, "start", "end"'):
            busy[rank, calls[rank, launched] // 100] |= set(range(begin, end))

    told = rows(trace, "steps", "rank", "ts_ns", "cpu_dur_ns", "gpu_busy_ns")

    assert [row[:3] for row in told] == ranges
    assert [row[3] for row in told] == [len(each) for _, each in sorted(busy.items())]


def test_what_a_kernel_counted_is_added_up_over_its_instances(file: Path, trace: Trace) -> None:
    began = {(rank, own): at for rank, own, at in asked(file, "kernel_dispatch",
                                                        'event_id, "start"')}  # fmt: skip
    sums: dict[tuple[int, int], float] = defaultdict(float)
    for rank, own, value in asked(file, "pmc_event", "event_id, value"):
        sums[rank, own] += value

    told = rows(trace, "counters", "rank", "ts_ns", "name", "value")

    assert Counter(told) == Counter(
        (rank, began[rank, own], "SQ_WAVES", value) for (rank, own), value in sums.items()
    )
