"""Small exports as Nsight Systems writes them: the tables and columns that its schema documents."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

PROCESS = 0x100_0000
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
"""So many numbers of threads a process has."""
TABLES = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    KERNELS: "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
    " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,"
    " shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
    " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
    " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER",
    CALLS: "start INTEGER, end INTEGER, eventClass INTEGER,"
    " globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER",
    "NVTX_EVENTS": "start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, text TEXT,"
    " globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER",
    "GPU_METRICS": "timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER",
    "TARGET_INFO_GPU_METRICS": "typeId INTEGER, metricId INTEGER, metricName TEXT",
    "SCHED_EVENTS": "start INTEGER, cpu INTEGER, globalTid INTEGER",
}
TEXTS = ("python", "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020", "gemm", "attention",
         "execute_context_1(64)_generation_0(0)", "execute_context_0(0)_generation_2(2)",
         "cuLaunchKernel", "cudaMemsetAsync_v3020", "vllm")  # fmt: skip
Rows = Mapping[str, Iterable[Sequence[Any]]]


def text(value: str) -> int:
    """The number of a text."""
    return TEXTS.index(value)


def thread(pid: int, tid: int) -> int:
    """A thread as a serialized number."""
    return pid * PROCESS + tid


def two_steps(pid: int = 7, since: int = 1_000) -> dict[str, list[tuple[Any, ...]]]:
    """A process of which two steps launch kernels, the first a copy and a fill as well."""
    main, whole = thread(pid, 11), pid * PROCESS
    gemm, attention = text("gemm"), text("attention")
    at = since
    return {
        "PROCESSES": [(whole, pid, "python")],
        "ThreadNames": [(text("python"), 20, main)],
        "NVTX_EVENTS": [
            (at, at + 100, 59, None, None, main, None, text(TEXTS[5]), 0),
            (at + 200, at + 260, 59, None, "execute_context_0(0)_generation_2(2)", main, None, None,
             0),
            (at + 50, None, 34, None, "a mark", main, None, None, 3),
            (None, None, 75, None, "engine", main, None, None, 3),
            (at + 10, at + 300, 60, 5, "elsewhere", main, main + 1, None, 3),
        ],
        CALLS: [
            (at + 10, at + 20, 0, main, 1, text("cudaLaunchKernel_v7000"), 0),
            (at + 30, at + 40, 1, main, 2, text("cuLaunchKernel"), 0),
            (at + 50, at + 60, 0, main, 3, text("cudaMemcpyAsync_v3020"), 0),
            (at + 70, at + 80, 0, main, 4, text("cudaMemsetAsync_v3020"), 0),
            (at + 210, at + 220, 0, main, 5, text("cudaLaunchKernel_v7000"), 0),
        ],
        KERNELS: [
            (at + 40, at + 90, 0, 1, 7, 1, whole, gemm, gemm, 16, 2, 1),
            (at + 80, at + 120, 0, 1, 7, 2, whole, attention, attention, 8, 1, 1),
            (at + 230, at + 290, 0, 1, 7, 5, whole, gemm, gemm, 16, 2, 1),
        ],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [(at + 130, at + 140, 0, 1, 7, 3, whole, 4096, 1)],
        "CUPTI_ACTIVITY_KIND_MEMSET": [(at + 150, at + 155, 0, 1, 7, 4, whole, 0, 256)],
    }  # fmt: skip


def launches(number: int, pid: int = 7, since: int = 1_000) -> dict[str, list[tuple[Any, ...]]]:
    """Return rows of a step whose calls launch so many kernels, of lengths by chance."""
    main, whole, chance = thread(pid, pid), (pid << 24) | PROCESS, random.Random(11)
    tag = f"execute_context_0(0)_generation_{number}({number})"
    rows: dict[str, list[tuple[Any, ...]]] = {
        "NVTX_EVENTS": [(since, since + 1_000 * number, 59, None, tag, main, None, None, 0)],
        CALLS: [],
        KERNELS: [],
    }
    call, names = text("cudaLaunchKernel_v7000"), (text("gemm"), text("attention"))
    for launch in range(number):
        at, name = since + 1_000 * launch, chance.choice(names)
        begin = at + chance.randrange(100, 400)
        end = begin + chance.randrange(1, 500)
        rows[CALLS].append((at, at + 90, 0, main, launch + 1, call, 0))
        rows[KERNELS].append((begin, end, 0, 1, 7, launch + 1, whole, name, name, 16, 2, 1))
    return rows


def together(*parts: Rows) -> dict[str, list[Sequence[Any]]]:
    """Rows of several processes in one export."""
    found: dict[str, list[Sequence[Any]]] = {}
    for part in parts:
        for table, rows in part.items():
            found.setdefault(table, []).extend(rows)
    return found


def exported(file: Path, rows: Rows, tables: Mapping[str, str] = TABLES) -> Path:
    """Write an export with these rows."""
    file.unlink(missing_ok=True)
    with closing(sqlite3.connect(file)) as made:
        for table, columns in tables.items():
            made.execute(f"CREATE TABLE {table} ({columns})")
        made.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(TEXTS))
        made.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2026.1')")
        made.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, ?)", (17 * 10**17, ""))
        for table, each in rows.items():
            for row in each:
                places = ", ".join("?" * len(row))
                made.execute(" ".join(("INSERT INTO", table, "VALUES (", places, ")")), row)
        made.commit()
    return file
