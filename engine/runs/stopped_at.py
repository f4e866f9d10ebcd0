"""At which operation the ranks of a run diverged, in a few words."""

from __future__ import annotations

from pathlib import Path

from stepscope.engine.parallel.links.first_difference import first_difference
from stepscope.engine.parallel.links.transport import DEADLOCK, NOT_JOINED, Operation
from stepscope.engine.runs.outcome import in_short
from stepscope.ingest.trace import Trace


def stopped_at(stopped: str | None, journal: Path | None) -> str | None:
    """Return what a run was `stopped` by in a collective, None where that was nothing.

    Real ranks that time out know only their own side: what faced what is in their journals.
    """
    if stopped is None:
        return None
    how = "timeout" if NOT_JOINED in stopped else DEADLOCK if DEADLOCK in stopped else None
    diverged = _divergence(journal) if journal and how else None
    return f"{how} {diverged}" if diverged else in_short(stopped)


def _divergence(journal: Path) -> str | None:
    """Where the ranks' operations first differ, as their journals have them."""
    rows = Trace.open(journal).table("collectives").sort("rank", "ordinal").collect().to_dicts()
    histories: dict[int, list[Operation]] = {}
    for row in rows:
        operation = Operation(row["op"], row["dtype"], row["num_elements"])
        histories.setdefault(row["rank"], []).append(operation)
    ordinal = first_difference(histories)
    if ordinal is None:
        return None
    facing = (each[ordinal].op if ordinal < len(each) else "nothing" for each in histories.values())
    return f"at operation {ordinal}: {' faces '.join(facing)}"
