"""Tables of rocpd, what is asked of each, and where what it says of itself stands.

rocpd_kernel_dispatch, rocpd_memory_copy, rocpd_memory_allocate, rocpd_region (a call or a range)
and rocpd_sample (an instant) say what was when, and name an event (`rocpd_event`), which has a
category and a `stack_id`: the number of a call, which what it launched has as well.
`rocpd_pmc_event` gives events a counter's value. Texts are numbers of `rocpd_string`.

Behind each name stands the id of the process that recorded it, so a database that was merged has
every table several times. The format: rocprofiler-sdk, `source/share/rocprofiler-sdk-rocpd/` (its
tables, schema version 3) and `source/lib/output/generateRocpd.cpp` (what is put into them).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

DISPATCH, COPY, ALLOCATION = "kernel_dispatch", "memory_copy", "memory_allocate"
REGION, SAMPLE, EVENT, PMC_EVENT = "region", "sample", "event", "pmc_event"
Columns = Mapping[str, str]
_TIMED = dict.fromkeys(("start", "end", "event_id", "pid", "tid"), "integer")
_SIZES = dict.fromkeys(
    (f"{what}_size_{axis}" for what in ("grid", "workgroup") for axis in "xyz"), "integer"
)
TIMED: Mapping[str, Columns] = {
    DISPATCH: _TIMED
    | dict.fromkeys(("agent_id", "kernel_id", "queue_id", "stream_id"), "integer")
    | _SIZES,
    COPY: _TIMED | dict.fromkeys(("name_id", "dst_agent_id", "src_agent_id", "size"), "integer"),
    ALLOCATION: _TIMED | {"type": "text", "level": "text", "size": "integer"},
    REGION: _TIMED | {"name_id": "integer"},
}
"""What is asked of rows that say when something began and ended."""
SAMPLES: Columns = {"track_id": "integer", "timestamp": "integer", "event_id": "integer"}
EVENTS: Columns = {"id": "integer", "category_id": "integer", "stack_id": "integer",
                   "extdata": "text"}  # fmt: skip
PMC_EVENTS: Columns = {"event_id": "integer", "pmc_id": "integer", "value": "real"}
TRACKS: Columns = dict.fromkeys(("id", "pid", "tid", "name_id"), "integer")
PMC: Columns = {"id": "integer", "agent_id": "integer", "name": "text", "units": "text"}
AGENTS: Columns = {"id": "integer", "type": "text", "type_index": "integer"}
SYMBOLS: Columns = {"id": "integer", "display_name": "text", "kernel_name": "text"}
STRINGS: Columns = {"id": "integer", "string": "text"}
PROCESSES: Columns = {"pid": "integer", "command": "text"}
ABOUT: Columns = {"tag": "text", "value": "text"}
ARGS = {
    DISPATCH: (*_SIZES, "stream_id"),
    COPY: ("size",),
    ALLOCATION: ("size",),
}
"""Columns that become arguments."""
CATEGORIES = {r"^MARKER": "marker_api", r"^HIP": "hip_api", r"^HSA": "hsa_api",
              r"^RCCL": "rccl_api"}  # fmt: skip
"""What the JSON of rocprofv3 calls calls of these kinds."""
PREFIX = "rocpd_"
_KNOWN = (*TIMED, SAMPLE)


def processes(tables: Iterable[str]) -> list[str]:
    """What stands behind the names of the tables of each process, in order."""
    found = {
        table.removeprefix(PREFIX + known)
        for table in tables
        for known in _KNOWN
        if table.startswith(PREFIX + known)
    }
    return sorted(found)
