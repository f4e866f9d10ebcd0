"""Small databases as rocprofv3 writes them: the tables and columns of rocpd's schema, version 3."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

_ID = "id INTEGER NOT NULL PRIMARY KEY, guid TEXT"
_PLACE = f"{_ID}, nid INTEGER NOT NULL, pid INTEGER NOT NULL"
_WHEN = '"start" BIGINT NOT NULL, "end" BIGINT NOT NULL'
TABLES = {
    "metadata": "id INTEGER NOT NULL PRIMARY KEY, tag TEXT NOT NULL, value TEXT NOT NULL",
    "string": f"{_ID}, string TEXT NOT NULL",
    "info_process": f"{_ID}, nid INTEGER, ppid INTEGER, pid INTEGER NOT NULL, command TEXT",
    "info_agent": f"{_PLACE}, type TEXT, absolute_index INTEGER, type_index INTEGER",
    "info_kernel_symbol": f"{_PLACE}, kernel_name TEXT, display_name TEXT",
    "info_pmc": f"{_PLACE}, agent_id INTEGER, name TEXT NOT NULL, symbol TEXT, units TEXT",
    "track": f"{_ID}, nid INTEGER NOT NULL, pid INTEGER, tid INTEGER, name_id INTEGER",
    "event": f"{_ID}, category_id INTEGER, stack_id INTEGER, parent_stack_id INTEGER,"
    " correlation_id INTEGER, extdata JSONB",
    "pmc_event": f"{_ID}, event_id INTEGER, pmc_id INTEGER NOT NULL, value REAL",
    "region": f"{_PLACE}, tid INTEGER NOT NULL, {_WHEN}, name_id INTEGER NOT NULL,"
    " event_id INTEGER",
    "sample": f"{_ID}, track_id INTEGER NOT NULL, timestamp BIGINT NOT NULL, event_id INTEGER",
    "kernel_dispatch": f"{_PLACE}, tid INTEGER, agent_id INTEGER NOT NULL, kernel_id INTEGER,"
    f" dispatch_id INTEGER, queue_id INTEGER, stream_id INTEGER, {_WHEN},"
    " workgroup_size_x INTEGER, grid_size_x INTEGER, event_id INTEGER",
    "memory_copy": f"{_PLACE}, tid INTEGER, {_WHEN}, name_id INTEGER, dst_agent_id INTEGER,"
    " src_agent_id INTEGER, size INTEGER NOT NULL, event_id INTEGER",
    "memory_allocate": f"{_PLACE}, tid INTEGER, type TEXT, level TEXT, {_WHEN}, size INTEGER,"
    " event_id INTEGER",
}
STRINGS = ("", "KERNEL_DISPATCH", "HIP_RUNTIME_API", "MARKER_CORE_RANGE_API", "MEMORY_COPY",
           "hipLaunchKernel", "roctxThreadRangeA", "MEMORY_COPY_HOST_TO_DEVICE", "roctxMarkA",
           "MEMORY_ALLOCATION")  # fmt: skip
Row = dict[str, Any]


def number(text: str) -> int:
    """The number of a text."""
    return STRINGS.index(text) + 1


def event(own: int, category: str, call: int, message: str | None = None) -> Row:
    """An event of a call's number."""
    said = json.dumps({} if message is None else {"message": message})
    return {"id": own, "category_id": number(category), "stack_id": call, "correlation_id": 0,
            "extdata": said}  # fmt: skip


def two_steps(pid: int = 7, since: int = 1_000) -> dict[str, list[Row]]:
    """A process of which two steps launch a kernel each, the first a copy as well."""
    at, of = since, {"nid": 1, "pid": pid}
    on_thread = of | {"tid": 11}

    def ranging(own: int, begin: int, end: int, name: str) -> Row:
        return on_thread | {
            "id": own, "start": at + begin, "end": at + end, "name_id": number(name),
            "event_id": own,
        }  # fmt: skip

    def kernel(own: int, begin: int, end: int) -> Row:
        return on_thread | {
            "id": own, "agent_id": 4, "kernel_id": 3, "dispatch_id": own, "queue_id": 2,
            "stream_id": 0, "start": at + begin, "end": at + end, "workgroup_size_x": 64,
            "grid_size_x": 512, "event_id": own,
        }  # fmt: skip

    return {
        "metadata": [{"tag": "schema_version", "value": "3"}],
        "string": [{"id": number(text), "string": text} for text in STRINGS],
        "info_process": [{"id": pid, "nid": 1, "pid": pid, "command": "serve"}],
        "info_agent": [
            of | {"id": 3, "type": "CPU", "absolute_index": 3, "type_index": 0},
            of | {"id": 4, "type": "GPU", "absolute_index": 4, "type_index": 1},
        ],
        "info_kernel_symbol": [of | {"id": 3, "kernel_name": "_Zgemm", "display_name": "gemm"}],
        "info_pmc": [of | {"id": 31, "agent_id": 4, "name": "SQ_WAVES", "units": ""}],
        "track": [of | {"id": 1, "tid": 11, "name_id": number("MARKER_CORE_RANGE_API")}],
        "event": [
            event(1, "MARKER_CORE_RANGE_API", 1, "execute_context_1(64)_generation_0(0)"),
            event(2, "HIP_RUNTIME_API", 2),
            event(3, "MARKER_CORE_RANGE_API", 3, "execute_context_0(0)_generation_2(2)"),
            event(4, "HIP_RUNTIME_API", 4),
            event(5, "KERNEL_DISPATCH", 2),
            event(6, "KERNEL_DISPATCH", 4),
            event(7, "MEMORY_COPY", 2),
            event(8, "MARKER_CORE_RANGE_API", 8, "a mark"),
            event(9, "MEMORY_ALLOCATION", 9),
        ],
        "region": [
            ranging(1, 0, 100, "roctxThreadRangeA"),
            ranging(2, 10, 20, "hipLaunchKernel"),
            ranging(3, 200, 260, "roctxThreadRangeA"),
            ranging(4, 210, 220, "hipLaunchKernel"),
        ],
        "sample": [{"id": 8, "track_id": 1, "timestamp": at + 50, "event_id": 8}],
        "kernel_dispatch": [kernel(5, 40, 90), kernel(6, 230, 290)],
        "memory_copy": [
            on_thread
            | {"id": 1, "start": at + 100, "end": at + 110, "size": 4096, "dst_agent_id": 4,
               "src_agent_id": 3, "name_id": number("MEMORY_COPY_HOST_TO_DEVICE"), "event_id": 7}
        ],
        "memory_allocate": [
            on_thread
            | {"id": 1, "type": "ALLOC", "level": "REAL", "start": at + 5, "end": at + 8,
               "size": 256, "event_id": 9}
        ],
        "pmc_event": [
            {"id": 1, "event_id": 5, "pmc_id": 31, "value": 8.0},
            {"id": 2, "event_id": 5, "pmc_id": 31, "value": 4.0},
        ],
    }  # fmt: skip


def database(file: Path, *processes: Mapping[str, Iterable[Row]]) -> Path:
    """Write a database: of each process every table, with the process's id behind its name."""
    file.unlink(missing_ok=True)
    with closing(sqlite3.connect(file)) as made:
        named = {f"_019a_{place}": process for place, process in enumerate(processes)}
        for table, columns in TABLES.items():
            for suffix in named:
                made.execute(f'CREATE TABLE "rocpd_{table}{suffix}" ({columns})')
            view = f"CREATE VIEW rocpd_{table} AS SELECT * FROM"
            made.execute(" ".join((view, f"rocpd_{table}_019a_0")))
        for suffix, process in named.items():
            for table, rows in process.items():
                for row in rows:
                    _insert(made, f"rocpd_{table}{suffix}", row)
        made.commit()
    return file


def _insert(made: sqlite3.Connection, table: str, row: Row) -> None:
    names: Sequence[str] = [f'"{name}"' for name in row]
    places = ", ".join("?" * len(names))
    query = " ".join(("INSERT INTO", table, "(", ", ".join(names), ") VALUES (", places, ")"))
    made.execute(query, tuple(row.values()))
