"""What the cores themselves do with the blocks that they are given.

A block published to an idle core's running slot starts after its set-up. One published to a pending
slot starts when the block before it has ended, after a switch.

What a MIX on a busy AIV does. The kernel of a MIX is one program spread over several cores that
exchange tiles, so its parts meet before they compute: a part that started early holds its core,
doing nothing, until the last one starts, and all end together one kernel time later. A conflict
therefore costs the time of the held cores, most of all of the AIC. It cannot deadlock: all parts of
a block are published in one instant, so two blocks have the same order on every core they share.

That is hardware that queues. On other hardware nobody promises anything for a part that starts
before its mate's core has ended what it executes; what happens then is a `LatePart`.

`Run.conflicts` is the truth against which the rule COR001 is measured. It is read off the cores in
the instant in which a MIX block is published, not from anything that is recorded about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepscope.engine.device.dispatch_costs import Costs
from stepscope.engine.device.events import END, START, EventLoop
from stepscope.engine.device.late_parts import WAITS, LatePart
from stepscope.engine.device.run_log import Conflict, Run
from stepscope.engine.device.topology import Core, Part


class Silicon:
    """The cores' side of a run; calls `on_end(core)` when a core's block has ended.

    `late_part` says what becomes of a MIX whose parts do not start together.
    """

    def __init__(
        self,
        loop: EventLoop,
        costs: Costs,
        run: Run,
        on_end: Callable[[Core], None],
        late_part: LatePart = WAITS,
    ) -> None:
        self._loop = loop
        self._costs = costs
        self._run = run
        self._on_end = on_end
        self._late_part = late_part
        self._lost: set[Part] = set()
        run.tiles = late_part.tiles()

    def publish(self, parts: Sequence[Part]) -> None:
        """Hand blocks to their cores, all in this instant."""
        self._run.parts += parts
        self._loop.changed()
        for part in parts:
            if part is part.mates[0] and len(part.mates) > 1:
                self._judge(part.mates)
            self._load(part)

    def _judge(self, mates: Sequence[Part]) -> None:
        """Note the truth: some part takes its core at once, some core is still held."""
        held = next((p.core for p in mates if not p.core.is_empty), None)
        if held is not None and any(part.slot == "running" for part in mates):
            holder = held.running or held.pending
            first = mates[0]
            self._run.conflicts.append(
                Conflict(
                    self._loop.now_ns, first.task.id, first.block, first.group, held.id, str(holder)
                )
            )

    def _load(self, part: Part) -> None:
        core, now_ns = part.core, self._loop.now_ns
        part.dispatch_ns = now_ns
        is_waiting = part.slot == "pending" and core.running is not None
        if part.slot == "running":
            # No hardware check: a scheduler that is wrong about its core double-books it.
            core.running = part
        else:
            core.pending = part
        if not is_waiting:
            self._loop.post(now_ns + self._costs.setup_ns, START, self._start, part)

    def _start(self, part: Part) -> None:
        core, now_ns = part.core, self._loop.now_ns
        self._loop.changed()
        core.running = part
        if core.pending is part:
            core.pending = None
        part.start_ns = now_ns
        if self._run.tiles:
            self._run.tiles.begin(part, now_ns)
        if self._late_part.loses_tile(part):
            self._lost.add(part.mates[0])
        length_ns = part.task.durations_ns[part.block]
        # What takes no time at all still ends behind whatever starts in the same instant.
        rank = END if length_ns else START
        if part.mates[0] not in self._lost:
            for each in self._late_part.computing(part):
                self._loop.post(now_ns + length_ns, rank, self._end, each)

    def _end(self, part: Part) -> None:
        core = part.core
        self._loop.changed()
        part.end_ns = self._loop.now_ns
        part.task.retired_ns = part.end_ns
        if self._run.tiles:
            self._run.tiles.end(part, part.end_ns)
        if core.running is part:
            core.running = None
            if core.pending is not None:
                start_ns = part.end_ns + self._costs.switch_ns
                self._loop.post(start_ns, START, self._start, core.pending)
        self._on_end(core)
