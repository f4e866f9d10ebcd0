"""A head and its workers in one process, each worker a thread, on virtual time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from stepscope.engine.clock import Clock, VirtualClock
from stepscope.engine.parallel.costs import Costs
from stepscope.engine.parallel.links.rendezvous import Rendezvous
from stepscope.engine.parallel.rank_config import ParallelConfig
from stepscope.engine.parallel.ranks.member import Journal, Member, no_time, serve
from stepscope.engine.parallel.ranks.worker import Observer
from stepscope.ingest.recorder import Recorder


@contextmanager
def threads(
    config: ParallelConfig,
    clock: Clock,
    recorder: Recorder | None,
    journal: Journal | None,
    observer_of: Callable[[int], Observer | None],
) -> Iterator[Member]:
    """Give the head, with its workers running; what goes wrong in a worker reaches the head.

    The ranks' clocks all begin at 0, and meet at every collective. `observer_of` gives who is shown
    what a worker holds.
    """
    costs = Costs()
    place = Rendezvous(config.world_size, latency_ns=costs.collective_ns)
    # Alone and in earnest there is nothing to simulate.
    spend = clock.advance if isinstance(clock, VirtualClock) else no_time
    head = Member(config, place.end(0, clock), clock, recorder, spend, costs)
    workers = [
        threading.Thread(
            target=_serve,
            daemon=True,
            args=(config, place, rank, journal, costs, observer_of(rank)),
        )
        for rank in range(1, config.world_size)
    ]
    for worker in workers:
        worker.start()
    try:
        yield head
    finally:
        head.link.leave("the head has ended")
        for worker in workers:
            worker.join()


def _serve(
    config: ParallelConfig,
    place: Rendezvous,
    rank: int,
    journal: Journal | None,
    costs: Costs,
    observer: Observer | None,
) -> None:
    clock = VirtualClock()
    opened = journal.recorder(rank, {"parallel": config.as_dict()}) if journal else nullcontext()
    with opened as recorder:
        member = Member(config, place.end(rank, clock), clock, recorder, clock.advance, costs)
        serve(member, observer)
