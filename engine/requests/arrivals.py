"""Who is still to come: at a time of their own, or once somebody else has ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from heapq import heappop, heappush

from stepscope.engine.requests.request import Request


class Arrivals:
    """The requests of a workload in the order in which they arrive.

    `workload` gives them in order of arrival, those that come `after` another one before the rest.
    A client that waits for its answer before it asks again is a chain of such requests.
    """

    def __init__(self, workload: Iterable[Request]) -> None:
        self._workload = iter(workload)
        self._followers: defaultdict[str, list[Request]] = defaultdict(list)
        self._due: list[tuple[int, int, Request]] = []
        self._num_added = 0
        self._num_arrived = 0
        self._next_in_line()

    @property
    def next_ns(self) -> int | None:
        """When the next request arrives, None if none does unless others end."""
        return self._due[0][0] if self._due else None

    def take(self, now_ns: int) -> Iterable[Request]:
        """Give those who have arrived by now, one by one, and number them."""
        while self._due and self._due[0][0] <= now_ns:
            _, is_added, request = heappop(self._due)
            if not is_added:
                self._next_in_line()
            self._num_arrived += 1
            request.arrival_order = self._num_arrived
            yield request

    def ended(self, request: Request, now_ns: int) -> None:
        """Send those who waited for `request` to end."""
        for follower in self._followers.pop(request.id, ()):
            follower.arrival_ns += now_ns
            self.add(follower)

    def add(self, request: Request) -> None:
        """Let a request come that is not in line, at its time of arrival."""
        self._num_added += 1
        heappush(self._due, (request.arrival_ns, self._num_added, request))

    def _next_in_line(self) -> None:
        for request in self._workload:
            if request.after is None:
                heappush(self._due, (request.arrival_ns, 0, request))
                return
            self._followers[request.after].append(request)
