"""Collectives between real processes, over `torch.distributed`'s gloo and the loopback alone.

The ranks find each other by a file, so that no port is agreed on. Every collective is bounded by a
timeout, after which both sides give up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore

from stepscope.engine.model.numpy_decoder import Array
from stepscope.engine.parallel.links.transport import NOT_JOINED, Disconnected, Operation
from stepscope.engine.parallel.protocol import as_signed_words, as_word

LOOPBACK = "127.0.0.1"
# Ranks that are ready meet at once. This bounds how long one waits for another that died then.
MEETING_S = 60.0
# Between two looks at whether a collective has ended; Ctrl-C is seen to in between.
LOOK_S = 100e-6


class GlooTransport:
    """This process's end of a group of `world_size` ranks that meet in `meeting_file`.

    `last_words` says what is known of a rank that has closed its connections.
    """

    def __init__(
        self,
        meeting_file: Path,
        rank: int,
        world_size: int,
        timeout_s: float,
        last_words: Callable[[], str] = lambda: "another rank has left",
    ) -> None:
        self._last_words = last_words
        self.rank = rank
        self.world_size = world_size
        self._timeout = timedelta(seconds=timeout_s)
        gloo: Any = dist.ProcessGroupGloo  # torch's stubs leave most of it out
        store = FileStore(str(meeting_file), world_size)
        options = gloo._Options()
        options._devices = [gloo.create_device(hostname=LOOPBACK)]
        options._timeout = timedelta(seconds=MEETING_S)
        # Not the process's default group: this one is nobody's business but ours.
        self._group: Any = gloo(store, rank, world_size, options)

    def broadcast(self, operation: Operation, words: Sequence[int] | None) -> list[int]:
        """Return the head's words; on the way they are 32-bit numbers with a sign."""
        given = [0] * operation.num_elements if words is None else as_signed_words(words)
        tensor = torch.tensor(given, dtype=torch.int32)
        options = dist.BroadcastOptions()
        options.rootRank = 0
        options.timeout = self._timeout
        self._finish(operation, self._group.broadcast([tensor], options))
        return [as_word(word) for word in tensor.tolist()]

    def all_reduce(self, operation: Operation, values: Array) -> Array:
        """Return the sum of all ranks' values; `values` stay as they are."""
        total = torch.from_numpy(values.copy())
        options = dist.AllreduceOptions()  # a sum, unless told otherwise
        options.timeout = self._timeout
        self._finish(operation, self._group.allreduce([total], options))
        summed: Array = total.numpy()
        return summed

    def leave(self, why: str) -> None:
        """Close the connections, so that who waits for this rank waits no more."""
        self._group = None

    def _finish(self, operation: Operation, work: Any) -> None:
        """Wait until it has ended, in small naps: in one long wait Ctrl-C would not be heard."""
        try:
            while not work.is_completed():
                time.sleep(LOOK_S)
            work.wait()
        except RuntimeError as error:
            raise Disconnected(self._told(operation, str(error))) from None

    def _told(self, operation: Operation, gloos_words: str) -> str:
        waits = f"rank {self.rank} waits in {operation}"
        if "Timed out" in gloos_words:
            return f"{waits}, and {NOT_JOINED} within {self._timeout.total_seconds():g} s"
        if "closed by peer" in gloos_words or "reset by peer" in gloos_words:
            return f"{self._last_words()}; {waits}"
        return f"{waits}: {gloos_words.splitlines()[0]}"
