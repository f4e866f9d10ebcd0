"""Calls are answered in the order in which they came, and whoever has gone is not waited for."""

from __future__ import annotations

import asyncio
import threading
from functools import cached_property, partial

import polars as pl
import pytest

from stepscope.app.mcp.desk.one_at_a_time import OneAtATime


def test_calls_are_answered_in_their_order_and_never_two_at_once() -> None:
    turns = OneAtATime()
    running: list[int] = []
    most: list[int] = []

    def work(number: int) -> int:
        running.append(number)
        most.append(len(running))
        running.remove(number)
        return number

    async def ask() -> list[int]:
        return await asyncio.gather(*(turns.run(partial(work, n)) for n in range(50)))

    assert asyncio.run(ask()) == list(range(50))
    assert max(most) == 1


def test_a_call_that_was_given_up_before_its_turn_is_not_answered() -> None:
    turns = OneAtATime()
    goes_on, done = threading.Event(), []

    async def ask() -> str:
        first = asyncio.ensure_future(turns.run(goes_on.wait))
        given_up = asyncio.ensure_future(turns.run(lambda: done.append("given up")))
        await asyncio.sleep(0)
        given_up.cancel()
        last = asyncio.ensure_future(turns.run(lambda: "last"))
        await asyncio.sleep(0)
        goes_on.set()
        await first
        return await last

    assert asyncio.run(ask()) == "last"
    assert done == []


def test_a_call_that_is_given_up_while_it_is_answered_leaves_the_others_theirs() -> None:
    turns = OneAtATime()
    begun, goes_on = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        goes_on.wait()

    async def ask() -> str:
        first = asyncio.ensure_future(turns.run(slow))
        await asyncio.to_thread(begun.wait)
        first.cancel()
        goes_on.set()
        return await turns.run(lambda: "next")

    assert asyncio.run(ask()) == "next"


def test_what_goes_wrong_is_raised_to_whoever_asked() -> None:
    turns = OneAtATime()

    with pytest.raises(ZeroDivisionError):
        asyncio.run(turns.run(lambda: 1 // 0))
    assert asyncio.run(turns.run(lambda: 7)) == 7


def test_a_panic_of_polars_ends_neither_the_thread_nor_the_server() -> None:
    turns = OneAtATime()

    def panics() -> None:
        raise pl.exceptions.PanicException("index out of bounds")

    with pytest.raises(RuntimeError, match="PanicException: index out of bounds"):
        asyncio.run(turns.run(panics))
    assert asyncio.run(turns.run(lambda: 7)) == 7


def test_a_client_that_has_gone_takes_nothing_with_it() -> None:
    turns = OneAtATime()
    goes_on = threading.Event()

    async def leave() -> None:
        asyncio.ensure_future(turns.run(goes_on.wait))  # noqa: RUF006 - nobody waits for it
        await asyncio.sleep(0.01)

    asyncio.run(leave())
    goes_on.set()

    assert asyncio.run(turns.run(lambda: 7)) == 7


def test_work_that_is_given_up_is_stopped() -> None:
    turns = OneAtATime()
    begun, ended = threading.Event(), threading.Event()

    def endless() -> None:
        begun.set()
        try:
            while True:
                pl.Series([1]).sum()
        finally:
            ended.set()

    async def ask() -> str:
        first = asyncio.ensure_future(turns.run(endless))
        await asyncio.to_thread(begun.wait)
        first.cancel()
        return await turns.run(lambda: "next")

    assert asyncio.run(asyncio.wait_for(ask(), timeout=180)) == "next"
    assert ended.is_set()


def test_a_stop_that_comes_as_the_work_ends_stops_nothing_else() -> None:
    turns = OneAtATime()
    number = 300

    async def ask() -> list[int]:
        kept = []
        for at in range(number):
            given_up = asyncio.ensure_future(turns.run(lambda: None))
            following = asyncio.ensure_future(turns.run(partial(int, at)))
            await asyncio.sleep(0)
            given_up.cancel()
            kept.append(await following)
        return kept

    assert asyncio.run(asyncio.wait_for(ask(), timeout=180)) == [*range(number)]


def test_what_was_being_made_when_it_was_stopped_is_made_when_it_is_asked_for_again() -> None:
    turns = OneAtATime()
    begun, goes_on = threading.Event(), threading.Event()

    class Held:
        @cached_property
        def made(self) -> int:
            begun.set()
            while not goes_on.is_set():
                pass
            return 7

    held = Held()

    async def ask() -> int:
        first = asyncio.ensure_future(turns.run(lambda: held.made))
        await asyncio.to_thread(begun.wait)
        first.cancel()
        await turns.run(lambda: None)
        assert "made" not in vars(held)
        goes_on.set()
        return await turns.run(lambda: held.made)

    assert asyncio.run(asyncio.wait_for(ask(), timeout=180)) == 7
