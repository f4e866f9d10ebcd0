"""not-closed: the recording was never closed; what is here was recovered from its journal.

## What it finds
A trace whose manifest says that the recording was not closed: the engine was killed, crashed, or
ran out of disk, and the rows were recovered from the journal when the trace was opened.

## Why it hurts
Everything that was written before the end is there, and nothing after it. The last step may be
half recorded: requests without an end, blocks without a release, tasks without a retirement. Rules
that look for what never happened cannot tell "never" from "not yet" near the end.

## Example
    recording of rank 1 was not closed: 48,211 rows recovered, 0 torn

## How to fix
If the engine crashed, look at the last step: it is what the engine was doing. If it was stopped on
purpose, close the recorder on the way out (`with Recorder(...)`, or `recorder.close()` in a signal
handler).

## References
Flight recorders in general; PyTorch's NCCL flight recorder dumps what each rank last did on a
timeout (`TORCH_FR_BUFFER_SIZE`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from stepscope.analyzers.finding import Evidence, Finding, Severity
from stepscope.analyzers.rule import finding

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace


@dataclass(frozen=True, slots=True)
class NotClosed:
    """The recording was not closed."""

    code: ClassVar[str] = "TRC001"
    name: ClassVar[str] = "not-closed"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ()

    def check(self, trace: Trace) -> list[Finding]:
        """One finding when the manifest says so, with what was recovered and dropped."""
        manifest = trace.manifest
        if manifest.closed:
            return []
        evidence: Evidence = {
            key: value if isinstance(value, int | float | str) else str(value)
            for key, value in (manifest.recovered or {}).items()
        }
        evidence |= {f"dropped {table}": rows for table, rows in manifest.dropped.items()}
        message = "the recording was not closed; its rows were recovered, later ones are missing"
        fix = (
            "look at the last step for what the engine was doing; close the recorder on the way out"
        )
        return [finding(self, message, fix, evidence=evidence)]
