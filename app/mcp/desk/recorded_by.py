"""What a trace lacks, and what would record it: unknown is never answered as zero."""

from __future__ import annotations

from collections.abc import Iterable

from stepscope.app.mcp.answering.uncut import NotRecorded
from stepscope.app.mcp.desk.held_traces import HeldTrace

_ENGINE = (
    "an engine records it with stepscope's recorder, vLLM and SGLang with STEPSCOPE_TRACE=DIR set"
)
_OF_TABLE = {
    "spans": "torch.profiler and other profilers record it; stepscope merge puts such a profile "
             "into a recording",
    "flows": "torch.profiler and Perfetto record it",
    "counters": "Perfetto and other profilers record it, and stepscope listen the metrics that an "
                "engine publishes",
    "tasks": "a runtime of core groups records it: a swimlane file, or stepscope's recorder",
    "core_spans": "a runtime of core groups records it: a swimlane file, or stepscope's recorder",
    "core_waits": "a runtime of core groups records it with stepscope's recorder",
    "task_edges": "a runtime of core groups records it: a swimlane file, or stepscope's recorder",
    "collectives": "an engine of several ranks records it with stepscope's recorder; a profile of "
                   "each rank with NCCL's kernels tells it too",
    "accesses": "an engine records it with stepscope's recorder, of buffers that steps share",
    "segments": "an engine records it with stepscope's recorder, where its batches run in parts",
    "slot_tokens": "an engine records it with stepscope's recorder, where requests have slots",
}  # fmt: skip
OF_REQUESTS = ("lifecycle", "batch_rows", "decisions")
"""Tables that name requests."""


def lacks_table(table: str) -> NotRecorded:
    """That a table has no row."""
    return NotRecorded(f"the table {table}, which has no row", _OF_TABLE.get(table, _ENGINE))


def lacks(what: str, *tables: str) -> NotRecorded:
    """That something is not told which rows of these tables would tell."""
    by = dict.fromkeys(_OF_TABLE.get(table, _ENGINE) for table in tables or ("lifecycle",))
    return NotRecorded(what, " and ".join(by))


def lacking_tables(held: HeldTrace, names: Iterable[str]) -> tuple[NotRecorded, ...]:
    """Those of some tables that have no row."""
    return tuple(lacks_table(name) for name in names if name not in held.tables)


def names_requests(held: HeldTrace) -> bool:
    """Whether the trace names any request."""
    return any(table in held.tables for table in OF_REQUESTS)
