"""A run with changes, held against the recorded one: what `stepscope diff` says of the two."""

from __future__ import annotations

from pathlib import Path

from stepscope.app.present.blocks import Table
from stepscope.app.present.diff_text import (
    causes_table,
    findings_told,
    inputs_table,
    rows_told,
    totals_table,
    verdict,
    who_told,
)
from stepscope.app.replay.compared import Compared, compared
from stepscope.app.replay.fidelity import Kind
from stepscope.app.replay.own_engine import rerun, rerun_lines
from stepscope.app.replay.resimulated import resimulated, resimulated_lines
from stepscope.app.replay.what_if.asked import Asked
from stepscope.app.replay.what_if.came import Came, Figures
from stepscope.app.replay.what_if.choices import changes_of
from stepscope.ingest.progress import Progress
from stepscope.ingest.trace import Trace


def run_otherwise(trace: Trace, kind: Kind, asked: Asked, out: Path, report: Progress) -> Came:
    """Run a trace with changes, record that to `out`, and hold it against the trace.

    Raises ConfigError for what its scenario does not know.
    """
    if kind is Kind.RESIMULATED:
        report("simulating", 0, None)
        anew = resimulated(trace, changes_of(asked), out)
        replayed, ran = anew.replayed, resimulated_lines(anew)
    else:
        report("running again", 0, None)
        again = rerun(trace, changes_of(asked), out)
        replayed, ran = again.replayed, rerun_lines(again)
    told = tuple(line.strip() for line in ran)
    return _of(kind, told, compared((trace, replayed), rules=True, report=report))


def _of(kind: Kind, ran: tuple[str, ...], both: Compared) -> Came:
    found, where = both.found, both.found.divergence
    assert both.results is not None
    findings, judged = findings_told(*both.results)
    return Came(
        kind,
        ran,
        tuple(line.strip() for line in verdict(found)),
        where.rank if where else None,
        where.step if where else None,
        tuple(rows_told(where)) if where else (),
        _figures(inputs_table(found)),
        _as_text(totals_table(found)),
        _figures(causes_table(found)),
        tuple(who_told(found)),
        _figures(findings),
        tuple(line.strip() for line in judged),
    )


def _figures(table: Table | None) -> Figures | None:
    return None if table is None else _as_text(table)


def _as_text(table: Table) -> Figures:
    rows = tuple(tuple(str(cell) for cell in row) for row in table.rows)
    return Figures(table.columns, rows, table.num_more)
