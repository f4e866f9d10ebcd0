"""What a run of a trace again can be held to, by who recorded the trace and on which clock."""

from __future__ import annotations

from enum import StrEnum

SCENARIO, VARIANT = "mixed-batches", "decode-first"
"""What stands in for another engine: decodes before prompts in one budget, as vLLM and SGLang's
chunked prefill have it.
"""


class Kind(StrEnum):
    """Run again by the engine that recorded it, or by one that stands in for that."""

    EXACT = "exact"
    REAL_CLOCK = "real clock"
    RESIMULATED = "re-simulated"


SAYS = {
    Kind.EXACT: "EXACT: the reference engine recorded it, and runs it again on its virtual clock; "
    "unchanged it has the same bytes",
    Kind.REAL_CLOCK: "RUN AGAIN on a real clock: decisions follow from the scheduler, the times "
    "are those of this machine now",
    Kind.RESIMULATED: "RE-SIMULATED: its arrivals, lengths and limits on the reference engine "
    f"({SCENARIO}), at what its steps cost; not the scheduler that recorded it",
}
"""What each kind means, in a sentence."""
