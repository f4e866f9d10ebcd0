"""not-closed: the recording was never closed; what is here was recovered from its journal.

## What it finds
A trace whose manifest says that the recording was not closed: the engine was killed, crashed, or
ran out of disk, and the rows were recovered from the journal when the trace was opened. Or one that
was closed, and had stopped before or lost rows: its disk was full. Or one with a file that is
damaged or empty, or a manifest that is cut off; the files that are whole were read. Or a file of
another program that ends in the middle; what is whole in it was read. How many requests were open
then is told where requests are recorded. It is placed at the step that was under way: the first of
which no end was recorded after the last that did end. A recording whose program still writes it is
none of these: it has not ended.

Where only the close is missing it is a note: every row that was given is there, the last step had
ended, and no request was open.

## Why it hurts
Everything that was written before the end is there, and nothing after it. The last step may be
half recorded: requests without an end, blocks without a release, tasks without a retirement. Rules
that look for what never happened cannot tell "never" from "not yet" near the end.

## Example
    the recording of rank 1 was not closed: 48,211 rows recovered, 17 bytes unreadable;
    what came later is missing, 20 of 31 requests were open in step 412, which never ended

## How to fix
If the engine crashed, look at the last step: it is what the engine was doing. `stepscope close`
turns what it left into a trace that is small and opens at once. If it was stopped on
purpose, close the recorder on the way out (`with Recorder(...)`, or `recorder.close()` in a signal
handler).

## References
Flight recorders in general; PyTorch's NCCL flight recorder dumps what each rank last did on a
timeout (`TORCH_FR_BUFFER_SIZE`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.batches import last_steps
from stepscope.analyzers.views.known import any_row
from stepscope.analyzers.views.requests import has_histories, requests
from stepscope.ingest.display import is_damaged
from stepscope.ingest.manifest import STOPPED, ReadReport
from stepscope.ingest.trace import Trace

FIX = "see in the last step what the engine was doing; close the recorder on the way out"
FIX_OF_DAMAGE = "copy the recording again from where it was made; the files that are whole are read"
FIX_OF_LOSS = "make room on the disk that it is recorded to, and record again"
FIX_OF_FILE = "let the profiler or the log finish before its file is copied, and copy all of it"


@dataclass(frozen=True, slots=True)
class NotClosed:
    """The recording was not closed."""

    code: ClassVar[str] = "TRC001"
    name: ClassVar[str] = "not-closed"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ()

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, or part of one, that was recovered, at the step where it ends."""
        manifest = trace.manifest
        if manifest.closed:
            num_dropped = sum(manifest.dropped.values())
            return [self._of_loss(trace, num_dropped)] if num_dropped else []
        if manifest.report and not manifest.is_recording and not manifest.recovered:
            return [self._of_file(trace, manifest.report)]
        recovered = manifest.recovered or {str(rank): {} for rank in manifest.ranks}
        live = manifest.live_ranks
        recovered = {who: was for who, was in recovered.items() if who not in live}
        num_dropped = sum(manifest.dropped.values())
        return [self._finding(trace, who, was, num_dropped) for who, was in recovered.items()]

    def _finding(self, trace: Trace, who: str, was: Any, num_dropped: int) -> Finding:
        rank, _, part = who.partition(".")
        last = _last_step(trace, rank)
        num_rows, num_bytes = _counts(was if isinstance(was, Mapping) else {})
        num_open, num_came = _requests_of(trace, rank)
        name = f"rank {rank}{f', {part},' if part else ''}"
        if is_damaged(was):
            message = (
                f"files of the recording of {name} are damaged: {'; '.join(_texts(was)[:3])}"
                f" ({times(num_bytes, 'byte')} unreadable)"
            )
        else:
            message = (
                f"the recording of {name} was not closed: {times(num_rows, 'row')} recovered, "
                f"{times(num_bytes, 'byte')} unreadable; what came later is missing"
                f"{_open(num_open, num_came, last)}"
            )
        evidence: Evidence = {
            "rows recovered": num_rows,
            "discarded_bytes": num_bytes,
            "rows dropped": num_dropped,
            "last step": last["step"],
            "requests open": num_open or None,
        }
        fix = FIX_OF_DAMAGE if is_damaged(was) else FIX
        found = finding(self, message, fix, at=last, evidence=evidence)
        is_all = not num_bytes and not num_dropped and not _notes(was)
        is_quiet = is_all and _is_between(trace, rank, last)
        return replace(found, severity=Severity.INFO) if is_quiet else found

    def _of_loss(self, trace: Trace, num_dropped: int) -> Finding:
        """A recording that was closed in the end, and had no place for some of its rows."""
        ranks, report = trace.manifest.ranks, trace.manifest.report
        last = _last_step(trace, str(ranks[0]) if len(ranks) == 1 else "")
        notes = report.notes if report else ()
        why = next((f" ({note})" for note in notes if STOPPED in note), "")
        message = (
            f"the recording is not whole: {times(num_dropped, 'row')} "
            f"{'was' if num_dropped == 1 else 'were'} dropped{why}"
        )
        evidence: Evidence = {"rows dropped": num_dropped, "last step": last["step"]}
        return finding(self, message, FIX_OF_LOSS, at=last, evidence=evidence)

    def _of_file(self, trace: Trace, report: ReadReport) -> Finding:
        """A file of another program that ends too early: nothing of it was ever in a journal."""
        last = _last_step(trace, str(trace.manifest.ranks[0]))
        num_read, note = sum(report.read.values()), next(iter(report.notes), None)
        message = (
            f"the file ends too early: {times(num_read, 'record')} of it were read"
            f"{f' ({note})' if note else ''}; what came later is missing"
        )
        evidence: Evidence = {
            "records read": num_read,
            "records skipped": sum(report.skipped.values()),
            "last step": last["step"],
        }
        return finding(self, message, FIX_OF_FILE, at=last, evidence=evidence)


def _requests_of(trace: Trace, rank: str) -> tuple[int, int]:
    """How many requests of a rank had not ended when its recording did, and how many had come."""
    of_rank = requests(trace).filter(pl.col("rank").cast(pl.String) == rank)
    is_open = pl.col("outcome").is_null().sum()
    num_open, num_came = of_rank.select(is_open, num=pl.len()).collect().row(0)
    return num_open, num_came


def _open(num_open: int, num_came: int, last: Mapping[str, Any]) -> str:
    if not num_open:
        return ""
    never = f" in step {last['step']}, which never ended" if last["has_no_end"] else ""
    return f", {num_open:,} of {times(num_came, 'request')} were open{never}"


def _counts(was: Mapping[str, Any]) -> tuple[int, int]:
    """Rows and unreadable bytes; what a manifest says otherwise is taken for nothing."""
    rows, num_bytes = was.get("rows"), was.get("discarded_bytes")
    counts = rows.values() if isinstance(rows, Mapping) else ()
    num_rows = sum(count for count in counts if isinstance(count, int))
    return num_rows, num_bytes if isinstance(num_bytes, int) else 0


def _notes(was: Any) -> bool:
    return bool(was.get("notes")) if isinstance(was, Mapping) else True


def _texts(was: Any) -> list[str]:
    notes = was.get("notes") if isinstance(was, Mapping) else None
    return [str(note) for note in notes] if isinstance(notes, list) else []


def _is_between(trace: Trace, rank: str, last: Mapping[str, Any]) -> bool:
    """Whether it is known that a rank was in no step when it ended, and had no open request."""
    if last["step"] is None or last["has_no_end"] is not False or not has_histories(trace):
        return False
    of_rank = pl.col("rank").cast(pl.String) == rank
    return not any_row(requests(trace).filter(of_rank, pl.col("outcome").is_null()))


def _last_step(trace: Trace, rank: str) -> Mapping[str, Any]:
    """Where the recording of a rank ends; all of it null when the rank recorded no step."""
    last = last_steps(trace).filter(pl.col("rank").cast(pl.String) == str(rank))
    nothing = {
        "rank": int(rank) if str(rank).isdecimal() else None,
        "step": None,
        "has_no_end": None,
    }
    return next(last.collect().iter_rows(named=True), nothing)
