"""A process that records runs, each in a child of its own, which it kills at some moment.

A child writes what the engine holds to a file whenever it is told of it: what is written is there
when the child is not any more.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stepscope.engine.batch import Row
from stepscope.engine.runs.rerun import run_to_its_end
from stepscope.engine.runs.scenario import Options
from stepscope.engine.scenarios import scenario
from stepscope.engine.serving.recording import Recording

FAILED = 1
LOOKS_AFTER_S = 0.0001


@dataclass(frozen=True)
class Order:
    """A run to be recorded to `out`, with the snapshots beside it in `told`.

    It is killed `after_s` seconds after so many bytes were told, or just behind the row of a batch
    with a number, counted over all batches; never where both are None.
    """

    scenario: str
    variant: str
    options: Options
    out: Path
    told: Path
    killed_at_bytes: int | None = None
    after_s: float = 0.0
    killed_at_row: int | None = None


def main() -> None:
    """Carry out orders until there are no more, and say of each how it ended and how long it ran.

    As `subprocess` says it: less than 0 is the signal that ended it.
    """
    orders = sys.stdin.buffer
    while True:
        try:
            order = pickle.load(orders)  # noqa: S301 - our own parent wrote it
        except EOFError:
            return
        began = time.monotonic()
        child = os.fork() or _record(order)
        ended = _ended(child, order)
        sys.stdout.write(f"{ended} {time.monotonic() - began}\n")
        sys.stdout.flush()


def _ended(child: int, order: Order) -> int:
    """Wait for the end of a child, and bring it about at its time."""
    while order.killed_at_bytes is not None:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if _size(order.told) >= order.killed_at_bytes:
            time.sleep(order.after_s)
            os.kill(child, signal.SIGKILL)
            break
        time.sleep(LOOKS_AFTER_S)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def _record(order: Order) -> int:
    """Record the run, and end the process there: what is above belongs to the parent."""
    ended = FAILED
    if order.killed_at_row is not None:
        _die_behind(order.killed_at_row)
    try:
        with order.told.open("wb", buffering=0) as told:

            def tell(snapshot: dict[str, Any]) -> None:
                told.write(pickle.dumps(snapshot))

            options = replace(order.options, observer=tell)
            run_to_its_end(scenario(order.scenario), order.variant, order.out, options)
            ended = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(ended)


def _die_behind(number: int) -> None:
    """Let this process be killed when it has recorded so many rows of batches, and told no step."""
    left, record = iter(range(number)), Recording.row

    def record_and_die(recording: Recording, row: Row) -> None:
        record(recording, row)
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(Recording, "row", record_and_die)  # noqa: B010 - a method is replaced here


if __name__ == "__main__":
    main()
