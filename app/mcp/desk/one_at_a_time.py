"""A thread that answers one call after the other, whoever asks and however many at once.

Polars takes all cores for one question, so two at once would each take twice as long. Whoever no
longer waits when the turn comes is not answered; whoever stops waiting while it is answered has the
work stopped: an exception is raised in the thread, behind what Polars is just at (decision 0142).
The thread ends with the process, whatever it is at.
"""

from __future__ import annotations

import asyncio
import ctypes
import queue
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, TypeVar

Result = TypeVar("Result")
_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in.argtypes = (ctypes.c_ulong, ctypes.py_object)
_let_go = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p)(
    ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
)
"""The same, given nothing: what was to be raised in a thread is not."""


class Stopped(BaseException):
    """Nobody waits for the answer any more."""


class OneAtATime:
    """Runs what it is given in a thread of its own, in the order in which it came."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = Lock()
        self._answering: asyncio.Future[Any] | None = None
        self._thread = Thread(target=self._work, name="stepscope answers", daemon=True)
        self._thread.start()

    def first(self, work: Callable[[], object]) -> None:
        """Run something before anybody asks; what goes wrong shows when it is asked for."""

        def run() -> None:
            with suppress(Exception):
                work()

        self._waiting.put(run)

    async def run(self, work: Callable[[], Result]) -> Result:
        """Wait for the turn, and for what `work` gives or raises; to be cancelled stops it."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()

        def run() -> None:
            try:
                with self._lock:
                    if answer.cancelled():
                        return
                    self._answering = answer
                result = work()
            except Stopped:
                return
            except BaseException as error:  # Polars panics in a class of its own
                _tell(loop, answer, error)
            else:
                _tell(loop, answer, None, result)
            finally:
                self._end()

        self._waiting.put(run)
        try:
            return await answer
        except asyncio.CancelledError:
            self._stop(answer)
            raise

    def _stop(self, answer: asyncio.Future[Any]) -> None:
        """Stop the work for an answer, if that is what the thread is at."""
        with self._lock:
            if self._answering is answer and self._thread.ident is not None:
                _raise_in(self._thread.ident, Stopped)

    def _end(self) -> None:
        """Be at nothing; a stop that has come late does not stop the next work."""
        while True:
            with suppress(Stopped), self._lock:
                self._answering = None
                _let_go(self._thread.ident or 0, None)
                return

    def _work(self) -> None:
        while True:
            with suppress(Stopped):
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
