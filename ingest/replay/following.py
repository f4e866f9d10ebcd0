"""Make the recorded calls one after another, as long as the scheduler decides what was recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from stepscope.ingest.replay.scheduler_calls import Formed, Scheduler
from stepscope.ingest.replay.script import (
    ABORT,
    ADD,
    DUMMY,
    READY,
    SCHEDULE,
    UPDATE,
    Asked,
    Call,
    Script,
)  # fmt: skip
from stepscope.ingest.replay.virtual_clock import Clock

Progress = Callable[[int, int], None]


@dataclass
class Followed:
    """How far the recorded calls were followed.

    `num_steps` batches were formed, all but the last as recorded if `diverged` is the call that the
    scheduler answered otherwise; it is the call `at`. `formed` are the batches whose results are
    still to come, by their step, in order; `generated` is how many tokens each request has.
    """

    num_steps: int = 0
    at: int = 0
    diverged: Call | None = None
    formed: dict[int, Formed] = field(default_factory=dict)
    generated: dict[str, int] = field(default_factory=dict)


def follow(script: Script, scheduler: Scheduler, clock: Clock, progress: Progress) -> Followed:
    """Make the calls of the script until a batch is another one than was recorded, or to the end.

    `progress(done, total)` is called now and then.
    """
    followed = Followed()
    asked = {each.request: each for each in script.requests}
    for at, call in enumerate(script.calls):
        clock.move_to(call.ts_ns)
        followed.at = at
        _make(call, asked, scheduler, followed)
        if followed.diverged is not None:
            break
        if at % 256 == 0:
            progress(at, len(script.calls))
    return followed


def _make(call: Call, asked: dict[str, Asked], scheduler: Scheduler, followed: Followed) -> None:
    if call.what == ADD:
        scheduler.add(asked[call.request])
    elif call.what == ABORT:
        scheduler.abort(call.request)
    elif call.what == READY:
        scheduler.ready(call.request)
    elif call.what == SCHEDULE:
        _schedule(call, scheduler, followed)
    elif call.what == UPDATE:
        _update(call, scheduler, followed)
    elif call.what == DUMMY:
        scheduler.dummy(call.began_ns)
        followed.num_steps += 1


def _schedule(call: Call, scheduler: Scheduler, followed: Followed) -> None:
    formed = scheduler.schedule(is_throttled=call.is_throttled)
    followed.formed[call.step] = formed
    followed.num_steps += 1
    if sorted((row.request, row.num_tokens) for row in formed.rows) != sorted(call.batch):
        followed.diverged = call


def _update(call: Call, scheduler: Scheduler, followed: Followed) -> None:
    scheduler.update(followed.formed.pop(call.step), call.tokens, call.ends)
    for request, number in call.tokens.items():
        followed.generated[request] = followed.generated.get(request, 0) + number
    if call.proposed:
        scheduler.propose(call.proposed)
