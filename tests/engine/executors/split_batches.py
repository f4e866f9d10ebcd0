"""Batches that are split into segments, and the accesses of preparing one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stepscope.engine.batch import DECODE, PREFILL, Batch
from stepscope.engine.batch import Row as BatchRow
from stepscope.engine.executors.segments.split import Prepared, Split
from stepscope.engine.requests.request import Request
from tests.engine.rows import Row, Rows

CHUNK = (PREFILL, 30, False)


LAST_CHUNK = (PREFILL, 12, True)


TOKEN = (DECODE, 1, True)


def batch(*rows: tuple[str, int, bool], num_draft: int = 0) -> Batch:
    made = Batch()
    for number, (phase, num_tokens, samples) in enumerate(rows):
        request = Request(f"req-{number:02d}", 0, 64, 8, block_table=[0, 1, 2, 3])
        drafts = num_draft if phase is DECODE else 0
        made.append(
            BatchRow(request, phase, num_tokens, 0, samples, False, num_draft=drafts)
        )  # fmt: skip
    return made


MIXED = batch(CHUNK, LAST_CHUNK, TOKEN, TOKEN, TOKEN)


def prepared(
    *faults: str,
    of: Batch = MIXED,
    backend: str = "v4",
    overlaps: bool = False,
    ratios: Sequence[int] = (),
) -> tuple[Prepared, Rows]:
    rows = Rows()
    made = Split(frozenset(faults), None, backend, overlaps=overlaps, ratios=ratios)
    return made.prepare(of, 7, 100, rows.recorder), rows


def reads_of(rows: Rows) -> Iterable[Row]:
    """What the segments read when they run."""
    taken = [row["ts_ns"] for row in rows.of("accesses", event="staged 1 7")]
    return (row for row in rows.of("accesses", op="read") if row["ts_ns"] > max(taken))
