"""Traces summed up as rows, for `summary` and `trend`: who cannot be read is named."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stepscope.app.cli.complaints import complain
from stepscope.app.cli.opening import OpenTrace
from stepscope.app.cli.progress import Report
from stepscope.app.failures import told
from stepscope.ingest.errors import TraceError


def summed_up(
    paths: Iterable[Path],
    slo: Any,
    reference: Any,
    open_trace: OpenTrace,
    report: Report,
    window: int | None = None,
) -> tuple[list[dict[str, Any]], int]:
    """A row for each trace, and how many could not be read: each of these is a line on stderr.

    `slo` is what was asked for, as text and as it was read; `reference` another trace and its name.
    With `window` there is a row for each window of so many steps, and none of a trace.
    Raises what is wrong with the only one.
    """
    rows, num_unread = [], 0
    every = list(paths)
    for path in every:
        try:
            if window is None:
                rows.append(_row(path, slo, reference, open_trace, report))
            else:
                rows += _window_rows(path, slo, window, open_trace, report)
        except Exception as error:
            said, code = told(error)
            is_unreadable = code == TraceError.exit_code or isinstance(error, OSError)
            if not is_unreadable or len(every) == 1:
                raise
            complain(said)
            num_unread += 1
    return rows, num_unread


def _row(
    path: Path, slo: Any, reference: Any, open_trace: OpenTrace, report: Report
) -> dict[str, Any]:
    from stepscope.analyzers.check.run import check
    from stepscope.analyzers.diff.compare import diff
    from stepscope.analyzers.many_runs.trace_row import compared_row, trace_row
    from stepscope.app.check_config import load_config

    trace = open_trace(path, report)
    checked = check(trace, load_config().rules(), progress=report)
    row = trace_row(trace, str(path), checked, slo)
    return row if reference is None else row | compared_row(reference[0], diff(reference[1], trace))


def _window_rows(
    path: Path, slo: Any, window: int, open_trace: OpenTrace, report: Report
) -> list[dict[str, Any]]:
    from stepscope.analyzers.check.run import check
    from stepscope.analyzers.many_runs.trace_row import trace_row
    from stepscope.analyzers.many_runs.window_rows import window_rows

    trace = open_trace(path, report)
    row = trace_row(trace, str(path), check(trace, ()), slo)  # findings are of a whole trace
    return window_rows(trace, row, window, slo[1] if slo else None)
