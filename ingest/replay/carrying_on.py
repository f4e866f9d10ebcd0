"""Go on where the recorded steps no longer fit: the engine's own loop, on a clock that is computed.

Requests come and are given up when they did. How long a step takes is what a model of costs says,
fitted to the trace. A request ends after as many tokens as it had; as many drafts of it are taken
as were when it was recorded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

from stepscope.ingest.replay.following import Followed, Progress
from stepscope.ingest.replay.scheduler_calls import Formed, Row, Scheduler
from stepscope.ingest.replay.script import (
    ABORT,
    ADD,
    READY,
    STOP,
    UPDATE,
    Asked,
    Call,
    Script,
    StepCosts,
)  # fmt: skip
from stepscope.ingest.replay.virtual_clock import Clock

MAX_EMPTY = 1000
"""So many batches of nobody in a row, with nobody left to come, and nobody ever will run."""


@dataclass(frozen=True, slots=True)
class _Flying:
    formed: Formed
    end_ns: int
    recorded: Call | None
    """The results that were recorded of this very batch, where it was formed as recorded."""


class CarryingOn:
    """The engine's loop from where `followed` left it."""

    def __init__(
        self, script: Script, scheduler: Scheduler, clock: Clock, followed: Followed
    ) -> None:
        assert script.costs is not None
        self._costs: StepCosts = script.costs
        self._scheduler, self._clock = scheduler, clock
        self._asked = {each.request: each for each in script.requests}
        self._drafts = {each.request: cycle(each.drafts) for each in script.requests if each.drafts}
        rest = script.calls[followed.at + 1 :] if followed.diverged else script.calls
        self._coming = deque(call for call in rest if call.what in (ADD, ABORT, READY))
        self._generated = dict(followed.generated)
        self._flying = deque(self._already_flying(rest, followed))
        self._num_flying = 2 if scheduler.is_async else 1
        self.num_steps = 0
        self.is_stuck = False

    def run(self, progress: Progress) -> None:
        """Run until everybody has ended, or nobody can."""
        total = len(self._coming) + len(self._scheduler.open_requests())
        num_empty = 0
        while not self.is_stuck:
            self._come()
            formed = None
            if self._scheduler.has_work() and len(self._flying) < self._num_flying:
                formed = self._form()
                if len(self._flying) < self._num_flying and formed.rows:
                    continue
            if self._flying:
                self._finish(self._flying.popleft())
            elif self._coming:
                self._clock.move_to(self._coming[0].ts_ns)
            else:
                break
            num_empty = num_empty + 1 if formed is not None and not formed.rows else 0
            self._wait_or_give_up(num_empty)
            if self.num_steps % 256 == 0:
                left = len(self._coming) + len(self._scheduler.open_requests())
                progress(max(0, total - left), total)

    def _wait_or_give_up(self, num_empty: int) -> None:
        """A loop that forms batches of nobody waits for whoever comes next."""
        if num_empty < self._num_flying + 1 or self._flying:
            return
        if self._coming:
            self._clock.move_to(self._coming[0].ts_ns)
        self.is_stuck = num_empty > MAX_EMPTY

    def _already_flying(self, rest: Sequence[Call], followed: Followed) -> list[_Flying]:
        updates = {call.step: call for call in rest if call.what == UPDATE}
        flying: list[_Flying] = []
        for step, formed in followed.formed.items():
            was_recorded = followed.diverged is None or step != followed.diverged.step
            recorded = updates.get(step) if was_recorded else None
            began_ns = flying[-1].end_ns if flying else self._clock.now_ns()
            end_ns = recorded.ts_ns if recorded else began_ns + self._step_ns(formed, began_ns)
            flying.append(_Flying(formed, end_ns, recorded))
        return flying

    def _step_ns(self, formed: Formed, began_ns: int) -> int:
        prefill = [row for row in formed.rows if not _decodes(row)]
        return self._costs.step_ns(
            sum(row.num_tokens for row in prefill),
            len(formed.rows) - len(prefill),
            sum(row.num_computed + row.num_tokens for row in formed.rows),
            began_ns,
        )

    def _come(self) -> None:
        """Whoever has come by now, and whoever was given up."""
        while self._coming and self._coming[0].ts_ns <= self._clock.now_ns():
            call = self._coming.popleft()
            if call.what == ADD:
                self._scheduler.add(self._asked[call.request])
            elif call.what == READY:
                self._scheduler.ready(call.request)
            elif call.request in self._scheduler.open_requests():
                self._scheduler.abort(call.request)

    def _form(self) -> Formed:
        formed = self._scheduler.schedule(is_throttled=False)
        now = self._clock.now_ns()
        began_ns = max(now, self._flying[-1].end_ns) if self._flying else now
        end_ns = began_ns + (self._step_ns(formed, began_ns) if formed.rows else 1)
        self._flying.append(_Flying(formed, end_ns, None))
        self.num_steps += 1
        return formed

    def _finish(self, flown: _Flying) -> None:
        self._clock.move_to(flown.end_ns)
        tokens: dict[str, int] = {}
        ends: dict[str, str] = {}
        proposed: dict[str, int] = {}
        still_open = set(self._scheduler.open_requests())
        for row in flown.formed.rows:
            if row.request not in still_open:
                continue
            self._sample(row, flown.recorded, tokens, ends)
            if self._scheduler.num_drafts and row.request not in ends:
                proposed[row.request] = self._num_proposed(row.request)
        self._scheduler.update(flown.formed, tokens, ends)
        if proposed and not self._scheduler.is_async:
            self._scheduler.propose(proposed)
        if not self._scheduler.is_async:
            self._clock.move_to(self._clock.now_ns() + round(self._costs.gap_ns))

    def _sample(
        self, row: Row, recorded: Call | None, tokens: dict[str, int], ends: dict[str, str]
    ) -> None:
        asked = self._asked[row.request]
        had = self._generated.get(row.request, 0)
        last = asked.num_outputs or asked.max_tokens
        if recorded is not None:
            number = recorded.tokens.get(row.request, 0)
        else:
            number = min(1 + self._num_accepted(row), last - had) if row.samples else 0
        if number <= 0:
            return
        tokens[row.request] = number
        self._generated[row.request] = had + number
        if had + number >= last:
            ends[row.request] = _end(asked)

    def _num_accepted(self, row: Row) -> int:
        if not row.num_drafts or row.request not in self._drafts:
            return 0
        return min(row.num_drafts, next(self._drafts[row.request])[1])

    def _num_proposed(self, request: str) -> int:
        known = self._asked[request].drafts
        at = self._generated.get(request, 0) % len(known) if known else 0
        return known[at][0] if known else 0


def _decodes(row: Row) -> bool:
    return row.samples and row.num_tokens == 1 + row.num_drafts


def _end(asked: Asked) -> str:
    return "length" if asked.num_outputs in (None, asked.max_tokens) else STOP
