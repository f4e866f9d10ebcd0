"""A head in this process and its workers in processes of their own, over gloo, on real time.

The head waits for each worker to be ready, however long torch takes to load there, and only then
does time begin and do they connect. On the way out workers get a moment to end by themselves, if
all went well; then their stdin is closed, which ends them; what is left after that is killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from stepscope.engine.clock import WallClock
from stepscope.engine.parallel.costs import Costs
from stepscope.engine.parallel.links.gloo import GlooTransport
from stepscope.engine.parallel.links.transport import Disconnected
from stepscope.engine.parallel.rank_config import ParallelConfig
from stepscope.engine.parallel.ranks.member import Journal, Member, no_time
from stepscope.engine.parallel.ranks.worker import Observer
from stepscope.engine.parallel.ranks.worker_process import LEFT, READY
from stepscope.ingest.recorder import Recorder

WORKER = "stepscope.engine.parallel.ranks.worker_process"
START_S = 120.0  # torch can take its time to load where others load it too
END_S = 20.0
LAST_WORDS_S = 2.0
LOOK_S = 0.01


@contextmanager
def processes(num_workers: int) -> Iterator[Workers]:
    """Give workers that have loaded what they need, and wait for orders; in the end they are gone.

    `Disconnected` where one of them does not start.
    """
    with tempfile.TemporaryDirectory(prefix="stepscope-") as folder:
        started = Workers(Path(folder), num_workers)
        try:
            started.wait_until_ready()
            yield started
        finally:
            started.end()


class Workers:
    """The processes of ranks 1 to `num_workers`, and the folder in which the ranks meet."""

    def __init__(self, folder: Path, num_workers: int) -> None:
        self._meeting_file = folder / "ranks"
        self._workers = [
            _WorkerProcess(rank, folder / f"rank-{rank}.err") for rank in range(1, num_workers + 1)
        ]
        self._patience_s = 0.0

    @contextmanager
    def head(
        self,
        config: ParallelConfig,
        clock: WallClock,
        recorder: Recorder | None,
        journal: Journal | None,
        timeout_s: float,
        observer_of: Callable[[int], Observer | None],
    ) -> Iterator[Member]:
        """Give every worker its orders, and the head, connected to all of them.

        `observer_of` gives who is shown what a worker holds: when all is over, as it is elsewhere.
        """
        orders = {
            "config": config.as_dict(),
            "journal": journal.as_dict() if journal else None,
            "meeting_file": str(self._meeting_file),
            "timeout_s": timeout_s,
            "epoch_ns": clock.epoch_ns,
        }
        for worker in self._workers:
            worker.give(orders, observer_of(worker.rank))
        transport = GlooTransport(
            self._meeting_file, 0, config.world_size, timeout_s, self._last_words
        )
        try:
            yield Member(config, transport, clock, recorder, no_time, Costs())
            self._patience_s = END_S
        finally:
            transport.leave("the head has ended")

    def wait_until_ready(self) -> None:
        """Wait until every worker has loaded everything."""
        for worker in self._workers:
            worker.wait_until_ready()

    def _last_words(self) -> str:
        """Return which rank has left and why; it says so right after it closed its connections."""
        said = (worker.last_words(LAST_WORDS_S / len(self._workers)) for worker in self._workers)
        return next(filter(None, said), "another rank has left")

    def end(self) -> None:
        """Wait for every worker's end, and for none for long if something went wrong."""
        for worker in self._workers:
            worker.end(self._patience_s)


class _WorkerProcess:
    """A worker's process, from its start to its end; what it complains of goes to a file."""

    def __init__(self, rank: int, complaints: Path) -> None:
        self.rank = rank
        self._complaints = complaints
        self._held_file = complaints.with_suffix(".held")
        self._observer: Observer | None = None
        self._said = b""
        with complaints.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-P", "-m", WORKER, str(complaints.parent)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                start_new_session=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
        assert self._process.stdin
        assert self._process.stdout
        self._orders, self._answers = self._process.stdin, self._process.stdout
        os.set_blocking(self._answers.fileno(), False)

    def give(self, orders: Mapping[str, Any], observer: Observer | None) -> None:
        """Let it begin; who is gone already is missed when the ranks meet."""
        self._observer = observer
        held_file = str(self._held_file) if observer else None
        told = {**orders, "rank": self.rank, "held_file": held_file}
        with suppress(BrokenPipeError):
            self._orders.write(json.dumps(told).encode() + b"\n")
            self._orders.flush()

    def wait_until_ready(self) -> None:
        """Wait until it has loaded everything; Disconnected if it never does."""
        if not self._wait(lambda: READY.encode() in self._heard(), START_S):
            raise Disconnected(f"rank {self.rank} did not start: {self._complaint()}")

    def last_words(self, patience_s: float) -> str | None:
        """Return why it left, if it does within `patience_s`."""
        if not self._wait(lambda: LEFT.encode() in self._heard(), patience_s):
            return None
        why = self._said.partition(LEFT.encode())[2].partition(b"\n")[0]
        return f"rank {self.rank} has left: {why.decode(errors='replace')}"

    def end(self, patience_s: float) -> None:
        """Wait for its end, `patience_s` for it to come by itself."""
        if not self._wait(self._has_ended, patience_s):
            self._orders.close()
        if not self._wait(self._has_ended, END_S):
            self._process.kill()
        self._process.wait()
        with suppress(BrokenPipeError):
            self._orders.close()
        self._answers.close()
        if self._observer and self._held_file.exists():
            _show(self._held_file, self._observer)

    def _wait(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Return whether something came to be in time, and before the process ended."""
        deadline_s = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() >= deadline_s or self._has_ended():
                return is_so()
            time.sleep(LOOK_S)
        return True

    def _has_ended(self) -> bool:
        return self._process.poll() is not None

    def _heard(self) -> bytes:
        self._said += self._answers.read() or b""
        return self._said

    def _complaint(self) -> str:
        lines = self._complaints.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it ended with {self._process.poll()} and said nothing"


def _show(held_file: Path, observer: Observer) -> None:
    """Show what a worker held, a line of JSON for each of its steps; numbers of slots are texts."""
    *lines, _cut_off = held_file.read_text(encoding="utf-8").split("\n")
    for held in map(json.loads, lines):
        slots = {name: held[name] for name in ("slots", "slot_tokens")}
        by_slot = {
            name: {int(slot): what for slot, what in of.items()} for name, of in slots.items()
        }
        observer({**held, **by_slot})
