"""Which request holds which page of SGLang's KV pool, where that can be read at no cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from stepscope.ingest.attach.scheduler_recording import BlockChange


class Held(NamedTuple):
    """The pages of a request, and by what it is known that they have changed."""

    row: int | None
    num_shared: int
    pages: list[int]


NOTHING = Held(None, 0, [])


class Holder(NamedTuple):
    """Who holds a record of pages: a request, or a session that keeps it between its turns."""

    rid: str
    kv: Any


_NO_RECORD = SimpleNamespace(req_pool_idx=None, cache_protected_len=0, kv_allocated_len=0)
SESSION = "session "


class Pages:
    """Compares the pages that requests hold with those that they held when last looked at.

    SGLang keeps their numbers in a table on the device. To read that of a GPU would make the
    scheduler wait for it, so nothing is told there: `are_told` is False.

    A streaming session lends its pages to the request that runs in it, and keeps them between two
    of them: its name is the owner's then. `running` are those who run, by their names.
    """

    def __init__(self, scheduler: Any, running: Mapping[str, Any]) -> None:
        self._running = running
        self._records: Callable[[], dict[str, Any]] = getattr(
            scheduler.tree_cache, "session_records", dict
        )
        self._sessions: set[str] = set()
        self._table = scheduler.req_to_token_pool.req_to_token
        self._size = scheduler.token_to_kv_pool_allocator.page_size
        self._held: dict[str, Held] = {}
        self._owners: Counter[int] = Counter()
        self.are_told = self._table.device.type == "cpu"

    def changes(self, requests: Iterable[Any]) -> list[BlockChange]:
        """Give what has changed hands since, what is given back before what is taken."""
        if not self.are_told:
            return []
        each_once = {req.rid: req for req in requests}
        if (records := self._records()) or self._sessions:
            each_once = {each.rid: each for each in self._beside_sessions(each_once, records)}
        longer = {name: req for name, req in each_once.items() if self._has_one_more(req)}
        looked = [
            (name, self._held.get(name, NOTHING), self._of(req))
            for name, req in each_once.items()
            if name not in longer
        ]
        changed = [each for each in looked if each[1] is not each[2]]
        given_back = [_left(name, before, now) for name, before, now in changed]
        for change in given_back:
            self._owners.subtract(change.ids)
        taken = [each for looked in changed for each in self._taken(*looked)]
        self._keep(changed)
        return [change for change in (*given_back, *taken, *self._one_more(longer)) if change.ids]

    def _beside_sessions(self, requests: dict[str, Any], records: dict[str, Any]) -> Iterator[Any]:
        """Requests and sessions with what each of them holds: a record is lent to one who runs."""
        lent = [req.kv for req in self._running.values()]
        for name, req in requests.items():
            is_kept = name not in self._running and _is_in(req.kv, records.values())
            yield Holder(name, _NO_RECORD) if is_kept else req
        kept = {SESSION + name: kv for name, kv in records.items() if not _is_in(kv, lent)}
        for name in self._sessions - kept.keys():
            yield Holder(name, _NO_RECORD)
        self._sessions = set(kept)
        yield from (Holder(name, kv) for name, kv in kept.items())

    def _has_one_more(self, req: Any) -> bool:
        """Tell whether nothing has become of what a request held but that it has a page more, as
        most who decode: to look at all of their pages at each step would take too long."""
        kv, before = req.kv, self._held.get(req.rid)
        return (
            before is not None
            and (before.row, before.num_shared)
            == (kv.req_pool_idx, kv.cache_protected_len // self._size)
            and -(-kv.kv_allocated_len // self._size) == len(before.pages) + 1
        )

    def _one_more(self, longer: dict[str, Any]) -> list[BlockChange]:
        """Look the pages up that are new, all at once."""
        if not longer:
            return []
        held = [self._held[name].pages for name in longer]
        rows = [req.kv.req_pool_idx for req in longer.values()]
        places = [len(pages) * self._size for pages in held]
        changes = []
        found = (self._table[rows, places] // self._size).tolist()
        for name, pages, page in zip(longer, held, found, strict=True):
            pages.append(page)
            is_shared = self._owners[page] > 0
            self._owners[page] += 1
            changes.append(BlockChange("share" if is_shared else "claim", [page], name))
        return changes

    def _keep(self, changed: list[tuple[str, Held, Held]]) -> None:
        for name, _, now in changed:
            if now.pages:
                self._held[name] = now
            else:
                self._held.pop(name, None)

    def _of(self, req: Any) -> Held:
        """What a request holds; the very same where nothing has changed."""
        kv, before = req.kv, self._held.get(req.rid, NOTHING)
        if kv.req_pool_idx is None:
            return NOTHING
        num_shared = kv.cache_protected_len // self._size
        since = 0
        if (before.row, before.num_shared) == (kv.req_pool_idx, num_shared):
            since = len(before.pages)
            if since * self._size >= kv.kv_allocated_len:
                return before
        first = since * self._size
        row = self._table[kv.req_pool_idx, first : kv.kv_allocated_len : self._size]
        pages = [*before.pages[:since], *(row // self._size).tolist()]
        return Held(kv.req_pool_idx, num_shared, pages)

    def _taken(self, name: str, before: Held, now: Held) -> list[BlockChange]:
        """What a request has now and had not: of the radix tree, or new to everybody."""
        had, changes = set(before.pages), []
        for place, page in enumerate(now.pages):
            if page not in had:
                is_shared = place < now.num_shared or self._owners[page] > 0
                self._owners[page] += 1
                changes.append(BlockChange("share" if is_shared else "claim", [page], name))
        return changes


def _is_in(kv: Any, records: Iterable[Any]) -> bool:
    """Whether it is one of these very records."""
    return any(kv is each for each in records)


def _left(name: str, before: Held, now: Held) -> BlockChange:
    has = set(now.pages)
    return BlockChange("release", [page for page in before.pages if page not in has], name)
