"""What the stories tell in both fronts: the same hits, steps, reasons and rows.

They are of the runs of `fcfs-preemption` before and after its fix.
"""

from __future__ import annotations

from stepscope.app.palette import HIT_GLYPH

BEFORE, AFTER = "fcfs-preemption-before.trace", "fcfs-preemption-after.trace"

TAKEN_AWAY = "lifecycle: event = 'preempt' and cause = 'another bucket runs'"
"""The conflict: requests lose all that they computed, as another bucket is run."""
ALL_TAKEN_AWAY = f"{HIT_GLYPH} 229 hits"
FIRST_TAKEN_AWAY = f"{HIT_GLYPH} hit 1 of 229"
FIRST_AT = "step 66 of 88"
FIRST_ROW = "lifecycle: event=preempt request=req-01 cause=another bucket runs"
VERDICT, REASON = "preempted", "another bucket runs"
NOWHERE = "no row of this trace meets it"

WATCHED = "watch block 2"
"""A block that goes on changing hands up to the end."""
TAKEN = (
    f"{HIT_GLYPH} hit 23 of 24",
    "step 87 of 88",
    "op=claim resource=kv-block id=2 owner=req-28",
)
LOST = (
    f"{HIT_GLYPH} hit 22 of 24",
    "step 86 of 88",
    "op=release resource=kv-block id=2 owner=req-12",
)
"""The last two hits before the last step, backward: which, where, and the row."""

WHO, WAITS_AT = "req-17", 67
CAUSE = "req-17: policy: the bucket len=193 text runs: shortest goes first"
LINK = "1 → step 67"
WHY = "req-17 is preempted: another bucket runs: needs 0, free 32, held by req-30"
PROOF = "decisions: verdict=preempted subject=req-17 reason=another bucket runs"
"""The row behind the link."""
