"""How a run ended, in a few words: served, or at which operation the ranks parted."""

from __future__ import annotations

from pathlib import Path

from stepscope.engine.parallel.first_difference import first_difference
from stepscope.engine.parallel.member import REFUSED
from stepscope.engine.parallel.transport import Operation
from stepscope.ingest.trace import Trace

SERVED = "served"


def outcome(stopped: str | None, journal: Path | None, *, is_real: bool) -> str:
    """Return how a run ended that was `stopped`; real ranks know only from all their journals."""
    if stopped is None:
        return SERVED
    if is_real and journal and REFUSED not in stopped:
        parted = told_by(journal)
        return f"timeout: {parted}" if parted else stopped
    return stopped.partition(";")[0]


def told_by(journal: Path) -> str | None:
    """Return where the ranks' operations first differ, as their journals have them."""
    rows = Trace.open(journal).table("collectives").sort("rank", "ordinal").collect().to_dicts()
    histories: dict[int, list[Operation]] = {}
    for row in rows:
        operation = Operation(
            row["op"], row["dtype"], row["num_elements"], row["command"], row["slot"]
        )
        histories.setdefault(row["rank"], []).append(operation)
    ordinal = first_difference(histories)
    if ordinal is None:
        return None
    facing = " faces ".join(
        str(each[ordinal]) if ordinal < len(each) else "nothing" for each in histories.values()
    )
    return f"at operation {ordinal} {facing}"
