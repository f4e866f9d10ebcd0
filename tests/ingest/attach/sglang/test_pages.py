from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.ingest.attach.sglang.pages import Pages


class Numbers(list[int]):
    """A row of a table, which is divided as a whole."""

    def __floordiv__(self, size: int) -> Numbers:
        return Numbers(number // size for number in self)

    def tolist(self) -> list[int]:
        return list(self)


class Table:
    """Of each request, the places of its tokens in the pool."""

    device = SimpleNamespace(type="cpu")

    def __init__(self, rows: list[list[int]]) -> None:
        self.rows = rows
        self.num_read = 0

    def __getitem__(self, at: tuple[Any, Any]) -> Numbers:
        rows, places = at
        if isinstance(places, slice):
            found = Numbers(self.rows[rows][places])
        else:
            found = Numbers(self.rows[row][place] for row, place in zip(rows, places, strict=True))
        self.num_read += len(found)
        return found


def scheduler(table: Table, size: int, sessions: dict[str, Any] | None = None) -> Any:
    return SimpleNamespace(
        tree_cache=SimpleNamespace(session_records=lambda: sessions or {}),
        req_to_token_pool=SimpleNamespace(req_to_token=table),
        token_to_kv_pool_allocator=SimpleNamespace(page_size=size),
    )


def request(name: str, row: int | None, length: int, shared: int = 0) -> Any:
    kv = SimpleNamespace(req_pool_idx=row, kv_allocated_len=length, cache_protected_len=shared)
    return SimpleNamespace(rid=name, kv=kv)


@pytest.mark.parametrize("size", [1, 4])
def test_who_decodes_claims_each_page_once_and_gives_all_of_them_back(size: int) -> None:
    table = Table([list(range(size * 50, size * 80)), list(range(size * 10, size * 40))])
    pages = Pages(scheduler(table, size), {})
    told = []
    for length in range(3 * size, 9 * size + 1):
        told += pages.changes([request("a", 0, length), request("b", 1, length)])

    claimed = [(change.owner, page) for change in told for page in change.ids]
    assert {change.op for change in told} == {"claim"}
    assert sorted(claimed) == [
        *(("a", page) for page in range(50, 59)), *(("b", page) for page in range(10, 19)),
    ]  # fmt: skip
    assert table.num_read == len(claimed)
    (gone,) = pages.changes([request("a", None, 0)])
    assert (gone.op, sorted(gone.ids)) == ("release", list(range(50, 59)))


def test_a_page_that_somebody_holds_already_is_shared() -> None:
    table = Table([[4, 5, 6], [4, 5, 9]])
    pages = Pages(scheduler(table, 1), {})
    pages.changes([request("a", 0, 2)])

    told = pages.changes([request("b", 1, 2, shared=2)])
    told += pages.changes([request("a", 0, 3), request("b", 1, 3, shared=2)])

    assert [(change.op, change.ids, change.owner) for change in told] == [
        ("share", [4], "b"), ("share", [5], "b"), ("claim", [6], "a"), ("claim", [9], "b"),
    ]  # fmt: skip


def test_a_session_keeps_its_pages_between_two_of_its_turns() -> None:
    sessions: dict[str, Any] = {}
    running: dict[str, Any] = {}
    pages = Pages(scheduler(Table([[4, 5, 6, 7]]), 1, sessions), running)

    def told(*requests: Any) -> list[tuple[str, str]]:
        each_page = [(each.op, each.owner, page) for each in pages.changes(requests)
                     for page in each.ids]  # fmt: skip
        changes = list(dict.fromkeys((op, owner) for op, owner, _ in each_page))
        assert sorted(each_page) == sorted((*each, page) for each in changes for page in (4, 5, 6))
        return changes

    turn = running["turn-0"] = request("turn-0", 0, 3)
    sessions["talk"] = turn.kv
    assert told(turn) == [("claim", "turn-0")]
    del running["turn-0"]
    turn.kv = request("", None, 0).kv  # it has ended, and the session has its record alone
    assert told(turn) == [("release", "turn-0"), ("claim", "session talk")]
    waiting = request("turn-1", 0, 3)
    waiting.kv = sessions["talk"]  # looked up, and not admitted
    assert told(waiting) == []
    running["turn-1"] = waiting
    assert told(waiting) == [("release", "session talk"), ("claim", "turn-1")]
    del running["turn-1"], sessions["talk"]
    waiting.kv = request("", None, 0).kv
    assert told(waiting) == [("release", "turn-1")]


def test_pages_of_a_session_that_is_closed_are_given_back() -> None:
    sessions = {"talk": request("", 0, 2).kv}
    pages = Pages(scheduler(Table([[4, 5]]), 1, sessions), {})
    pages.changes([])

    sessions.clear()

    gone = [(each.op, each.ids, each.owner) for each in pages.changes([])]
    assert gone == [("release", [4, 5], "session talk")]
    assert pages.changes([]) == []
