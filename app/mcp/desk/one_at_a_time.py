"""A thread that answers one call after the other, whoever asks and however many at once.

Polars takes all cores for one question, so two at once would each take twice as long. Whoever no
longer waits when the turn comes is not answered; whoever stops waiting while it is answered is left
with nobody to tell. The thread ends with the process, whatever it is at.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

Result = TypeVar("Result")


class OneAtATime:
    """Runs what it is given in a thread of its own, in the order in which it came."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        Thread(target=self._work, name="stepscope answers", daemon=True).start()

    def first(self, work: Callable[[], object]) -> None:
        """Run something before anybody asks; what goes wrong shows when it is asked for."""

        def run() -> None:
            with suppress(Exception):
                work()

        self._waiting.put(run)

    async def run(self, work: Callable[[], Result]) -> Result:
        """Wait for the turn, and for what `work` gives or raises."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()

        def run() -> None:
            if answer.cancelled():
                return
            try:
                result = work()
            except BaseException as error:  # Polars panics in a class of its own
                _tell(loop, answer, error)
            else:
                _tell(loop, answer, None, result)

        self._waiting.put(run)
        return await answer

    def _work(self) -> None:
        while True:
            self._waiting.get()()


def _tell(
    loop: asyncio.AbstractEventLoop,
    answer: asyncio.Future[Any],
    error: BaseException | None,
    result: Any = None,
) -> None:
    def tell() -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(_as_exception(error))

    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:
        return  # the loop has ended: the client has gone


def _as_exception(error: BaseException) -> Exception:
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"{type(error).__name__}: {error}".partition("\n")[0])
