"""Tasks are handed to workers as there is room, and handed in again where a worker died of one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import count

from stepscope.analyzers.fleet.messages import Answer, Died, Failed
from stepscope.analyzers.fleet.under_way import Asked
from stepscope.analyzers.fleet.worker_pool import Pool
from stepscope.ingest.errors import ConfigError

MOST_TRIES = 6
"""So often a worker may die of a file before it is given up: others may have ended it."""
WAIT_S = 1.0


class HandingOut:
    """Hands tasks of files to `pool`, and those of `jobs` to `joining`, which come first."""

    def __init__(self, pool: Pool, joining: Pool) -> None:
        self.jobs: deque[Asked] = deque()
        self.num_deaths = 0
        self._pool, self._joining = pool, joining
        self._tickets = count()
        self._under_way: dict[int, Asked] = {}
        self._tries: dict[int, int] = {}

    def answered(self, tasks: Iterable[Asked]) -> Iterator[tuple[Asked, Answer]]:
        """Hand tasks in as there is room, and give what is answered; a death is tried again.

        Raises ConfigError where a worker is not set up, and StepscopeError where none works.
        """
        left = iter(tasks)
        is_more = True
        while is_more or self._under_way or self.jobs:
            while self.jobs and self._joining.room() > 0:
                self._hand_in(self._joining, self.jobs.popleft())
            while is_more and self._pool.room() > 0:
                asked = next(left, None)
                is_more = asked is not None
                if asked is not None:
                    self._hand_in(self._pool, asked)
            yield from self._heard()

    def _heard(self) -> Iterator[tuple[Asked, Answer]]:
        pools = list(dict.fromkeys((self._pool, self._joining)))
        for pool in pools if self._under_way else ():
            for ticket, answer in pool.wait(WAIT_S / (20 if len(pools) > 1 else 1)):
                asked = self._under_way.pop(ticket)
                tries = self._tries.pop(ticket)
                if isinstance(answer, Failed) and answer.is_setup:
                    raise ConfigError(answer.reason, todo="install the same one everywhere")
                if isinstance(answer, Died):
                    self.num_deaths += 1
                    if not answer.is_final and tries < MOST_TRIES:
                        self._hand_in(pool, asked, tries + 1)
                        continue
                yield asked, answer

    def _hand_in(self, pool: Pool, asked: Asked, tries: int = 1) -> None:
        ticket = next(self._tickets)
        self._under_way[ticket], self._tries[ticket] = asked, tries
        pool.submit(ticket, asked.task)
