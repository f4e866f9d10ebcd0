"""Workers of a Dask scheduler: each reads files in a process of its own, as a pool here does.

What a scheduler is sent runs on its workers, and what it sends back is unpickled here: whoever
reaches it rules both. So one on another machine is spoken to by TLS alone, unless it is asked for
otherwise. Certificates are those of Dask's own configuration (`distributed.comm.tls`).
"""

from __future__ import annotations

import queue
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from ipaddress import ip_address
from threading import local
from typing import Any

from stepscope.analyzers.fleet.fetched import EXTRA
from stepscope.analyzers.fleet.messages import Answer, Died, Task, answer_of, encoded, task_of
from stepscope.analyzers.fleet.worker_pool import Told, WorkerPool
from stepscope.ingest.errors import ConfigError, MissingExtra, StepscopeError

CONNECT_S = 20
WORKERLESS_S = 120
"""So long may a scheduler be without a worker: they are started anew as they die."""
_ADDRESS = re.compile(r"(?P<protocol>tcp|tls)://(?P<host>\[[^\]]+\]|[^:/\[\]]+):(?P<port>\d{1,5})")
_own = local()


def check_address(address: str, *, insecure: bool) -> None:
    """Raise ConfigError unless that is a scheduler's address that is safe to speak to."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise ConfigError("it is no address of a scheduler", where=address,
                          todo="write it like tls://10.0.0.7:8786")  # fmt: skip
    if found["protocol"] == "tcp" and not (insecure or _is_loopback(found["host"].strip("[]"))):
        raise ConfigError(
            "whoever is between here and there could run code on both sides", where=address,
            todo="use tls://, or add --insecure on a network that nobody else is on",
        )  # fmt: skip


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class DaskPool:
    """Hands tasks to a scheduler's workers; `timeout_s` is the most that one may take.

    Raises `MissingExtra` without Dask, and ConfigError where no scheduler answers.
    """

    def __init__(self, address: str, timeout_s: float) -> None:
        try:
            distributed: Any = import_module("distributed")  # it takes a second, and few ask
        except ModuleNotFoundError as error:
            what = "a scheduler needs an extra"
            raise MissingExtra(what, where=address, todo=EXTRA) from error
        self._address, self._timeout_s = address, timeout_s
        try:
            self._client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            said = str(error).partition("\n")[0]
            raise ConfigError(f"no scheduler answers: {said}", where=address) from None
        self._futures: dict[int, Any] = {}
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._workerless_since_s: float | None = None

    def room(self) -> int:
        """Twice as many as there are threads, so that none waits for its next task."""
        return 2 * max(self._num_threads(), 1) - len(self._futures)

    def submit(self, ticket: int, task: Task) -> None:
        """Hand in a task; Dask itself need not try it again, as whoever hands it in does."""
        message = encoded(task)
        with _explained(self._address):
            future = self._client.submit(done_there, message, self._timeout_s, pure=False)
        self._futures[ticket] = future
        future.add_done_callback(lambda _: self._ended.put(ticket))

    def wait(self, seconds: float) -> Told:
        """Give what was answered; raises StepscopeError where the scheduler is gone."""
        told: Told = []
        with suppress(queue.Empty):
            told.append(self._answered(self._ended.get(timeout=seconds)))
            while True:
                told.append(self._answered(self._ended.get_nowait()))
        if not told:
            self._refuse_to_wait_for_nobody()
        return told

    def close(self) -> None:
        """Leave the scheduler, which goes on."""
        with suppress(Exception):  # it may be gone
            self._client.cancel(list(self._futures.values()))
        with suppress(Exception):
            self._client.close(timeout=2)

    def _answered(self, ticket: int) -> tuple[int, Answer]:
        future = self._futures.pop(ticket)
        if future.status == "finished":
            with _explained(self._address):
                return ticket, answer_of(future.result(timeout=CONNECT_S))
        if future.status in ("cancelled", "lost"):
            raise _gone(self._address)
        error = future.exception(timeout=CONNECT_S)
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        return ticket, Died(f"was lost with its worker ({said})")

    def _num_threads(self) -> int:
        with _explained(self._address):
            return sum(self._client.nthreads().values())

    def _refuse_to_wait_for_nobody(self) -> None:
        if self._client.status not in ("running", "connecting"):
            raise _gone(self._address)
        if self._num_threads():
            self._workerless_since_s = None
            return
        now_s = time.monotonic()
        since_s = self._workerless_since_s = self._workerless_since_s or now_s
        if now_s - since_s > WORKERLESS_S:
            what = f"the scheduler has had no worker for {WORKERLESS_S} s"
            raise StepscopeError(what, where=self._address, todo="start some, and run it again")


@contextmanager
def _explained(address: str) -> Iterator[None]:
    """Turn what Dask raises of a connection that is gone into one line."""
    try:
        yield
    except StepscopeError:
        raise
    except Exception:  # Dask has many of its own, and Tornado has others
        raise _gone(address) from None


def _gone(address: str) -> StepscopeError:
    todo = "run it again: what was finished is in the archive"
    return StepscopeError("the scheduler is gone", where=address, todo=todo)


def done_there(message: bytes, timeout_s: float) -> bytes:
    """Do a task on a Dask worker: in a process of its own, so that a file ends no Dask worker."""
    pool: WorkerPool | None = getattr(_own, "pool", None)
    if pool is None:
        pool = _own.pool = WorkerPool(1, timeout_s)
    pool.submit(0, task_of(message))
    while not (told := pool.wait(1.0)):
        pass
    return encoded(told[0][1])
