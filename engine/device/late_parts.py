"""What the hardware does with a MIX block whose parts do not start together.

- `waits`: hardware that queues. A part that started early holds its core, doing nothing, until the
  last one starts, and all end together one kernel time later.
- `corrupts`: no part waits for another. The tile that the early part sends lands in the memory of
  the block that runs there (`tiles`). No block takes longer, and what they compute is wrong.
- `hangs`: the tile that is sent is lost. The late part waits for it and the others wait for that
  part; their cores are held for ever.

A part that is late on a core that executes nothing just then does no harm in any case.

Adding another one is one class and one line in `LATE_PARTS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stepscope.engine.device.graphs.tasks import AIC
from stepscope.engine.device.tiles import Tiles
from stepscope.engine.device.topology import Part
from stepscope.engine.named import named


class LatePart(Protocol):
    """One behaviour; `name` is as the command line spells it."""

    name: str

    def tiles(self) -> Tiles | None:
        """The local memories of a run, where something can be in the way there; None by default."""
        return None

    def loses_tile(self, part: Part) -> bool:
        """Whether a tile of the block is lost because `part` starts now; never, by default."""
        return False

    def computing(self, part: Part) -> Sequence[Part]:
        """The parts that begin to compute now that `part` has started, if no tile was lost.

        By default all of its block, once the last of them has started.
        """
        is_met = all(mate.start_ns >= 0 and not _is_misplaced(mate) for mate in part.mates)
        return part.mates if is_met else ()


class Waits(LatePart):
    """Hardware that queues."""

    name = "waits"


class Corrupts(LatePart):
    """Nothing holds a part back, and what it sends is written over what is there."""

    name = "corrupts"

    def tiles(self) -> Tiles | None:
        """What every core's memory holds."""
        return Tiles()

    def computing(self, part: Part) -> Sequence[Part]:
        """The part alone."""
        return () if _is_misplaced(part) else (part,)


class Hangs(LatePart):
    """What is sent to a core that executes another block never comes to the part behind it."""

    name = "hangs"

    def loses_tile(self, part: Part) -> bool:
        """Some mate has not started, and its core still executes a block that is not its own."""
        return any(
            mate.start_ns < 0 and mate.core.running not in (None, mate) for mate in part.mates
        )


def _is_misplaced(part: Part) -> bool:
    """A cube kernel on a vector core, or the reverse, never comes back, nor do its mates."""
    return (part.role == AIC) != (part.core.role == AIC)


WAITS = Waits()
LATE_PARTS: tuple[LatePart, ...] = (WAITS, Corrupts(), Hangs())


def late_part(name: str) -> LatePart:
    """The behaviour of that name; raises ConfigError naming all of them for any other."""
    return named(name, LATE_PARTS, "behaviour of a late part")
