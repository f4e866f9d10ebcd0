"""How many drafts were proposed behind each step, as far as the batches behind it tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]
Batches = Mapping[int, Sequence[Json]]


class Drafts:
    """Drafts by step and request.

    `batches` are rows (request, num_draft) by step, `sampled` how many tokens each request sampled
    in a step, `preempted` the steps at which each was thrown out; `most` the drafts that an engine
    proposes at most.
    """

    def __init__(
        self,
        batches: Batches,
        sampled: Mapping[int, Mapping[str, int]],
        preempted: Mapping[str, Sequence[int]],
        most: int,
    ) -> None:
        self._batches, self._sampled = batches, sampled
        self._preempted, self._most = preempted, most
        self._next: dict[tuple[str, int], int] = {}
        own: dict[str, int] = {}
        for step in sorted(batches, reverse=True) if most else ():
            for row in batches[step]:
                if row["request"] in own:
                    self._next[row["request"], step] = own[row["request"]]
                own[row["request"]] = step
        self._number = {
            (row["request"], step): int(row["num_draft"] or 0)
            for step, rows in batches.items()
            for row in rows
        }

    def proposed(self, step: int) -> dict[str, int]:
        """The drafts proposed behind a step: those that the next batch of each request has.

        Of a request that is preempted before its next batch they are not known. What matters is
        that it needed room then, so it is given as many as there can be.
        """
        if not self._most:
            return {}
        rows = self._batches.get(step, ())
        return {row["request"]: self._behind(row["request"], step) for row in rows}

    def taken(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """(proposed, accepted) of each request's steps, in order."""
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for (request, step), proposed in sorted(self._number.items(), key=lambda each: each[0][1]):
            if self._most and (number := self._sampled.get(step, {}).get(request)):
                found[request].append((proposed, number - 1))
        return {request: tuple(each) for request, each in found.items()}

    def _behind(self, request: str, step: int) -> int:
        after = self._next.get((request, step))
        for each in self._preempted.get(request, ()):
            if step < each and (after is None or each <= after):
                return self._most
        return 0 if after is None else self._number[request, after]
