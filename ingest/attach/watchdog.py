"""Asks for the state of a scheduler when it stands still, or when somebody sends a signal.

A thread that sleeps looks at the number of steps now and then: the engine's own loop does nothing
for it. A signal wakes it even where the loop hangs outside of Python.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

STALL = "STEPSCOPE_STALL_S"
DEFAULT_STALL_S = 30.0
SIGNAL = getattr(signal, "SIGUSR2", None)
LOOKS_PER_STALL = 4


@dataclass
class Watchdog:
    """Calls `dump` with why, once for each time that no step ran for `stall_s` with requests open.

    `stall_s` of 0 leaves only the signal. `num_steps` and `num_open` are asked by its thread, while
    the engine runs on.
    """

    num_steps: Callable[[], int]
    num_open: Callable[[], int]
    dump: Callable[[str], None]
    stall_s: float = DEFAULT_STALL_S
    clock: Callable[[], float] = time.monotonic
    _ends: tuple[int, int] = field(init=False)
    _has_signal: bool = field(default=False, init=False)
    _thread: threading.Thread = field(init=False)

    def start(self) -> None:
        """Begin to watch; the signal is heard where it is free and this is the main thread."""
        self._ends = os.pipe()
        for end in self._ends:
            os.set_blocking(end, False)
        self._listen()
        self._thread = threading.Thread(target=self._watch, name="stepscope-watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and let the signal be what it was."""
        if (
            SIGNAL is not None
            and self._has_signal
            and threading.current_thread() is threading.main_thread()
        ):
            self._has_signal = False
            signal.signal(SIGNAL, signal.SIG_DFL)
            if (others := signal.set_wakeup_fd(-1)) != self._ends[1]:
                signal.set_wakeup_fd(others)
        _write(self._ends[1], b"\0")

    def _listen(self) -> None:
        """Have the signal's number written into the pipe, by C code where nobody else has that."""
        if SIGNAL is None or threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(SIGNAL) is not signal.SIG_DFL:
            return
        self._has_signal = True
        before = signal.set_wakeup_fd(self._ends[1], warn_on_full_buffer=False)
        if before == -1:
            signal.signal(SIGNAL, lambda _number, _frame: None)
        else:
            signal.set_wakeup_fd(before)
            signal.signal(SIGNAL, lambda number, _: _write(self._ends[1], bytes([number])))

    def _watch(self) -> None:
        with suppress(ReferenceError):  # the engine is gone, and nobody has said so
            self._look()
        for end in self._ends:
            os.close(end)

    def _look(self) -> None:
        seen, since, is_told = self.num_steps(), self.clock(), False
        pause_s = self.stall_s / LOOKS_PER_STALL or None
        while True:
            ready, _, _ = select.select([self._ends[0]], [], [], pause_s)
            heard = os.read(self._ends[0], 512) if ready else b""
            if b"\0" in heard:
                return
            if SIGNAL is not None and int(SIGNAL) in heard:
                self._tell(f"signal {SIGNAL.name}")
            steps, now = self.num_steps(), self.clock()
            if steps != seen or not self.num_open():
                seen, since, is_told = steps, now, False
            elif self.stall_s and now - since >= self.stall_s and not is_told:
                is_told = True
                self._tell(
                    f"no step for {now - since:.1f} s while {self.num_open()} requests are open"
                )

    def _tell(self, why: str) -> None:
        # What it reads changes under it, and the engine must run on, whatever comes of it.
        for _ in range(3):
            try:
                return self.dump(why)
            except Exception:
                time.sleep(0.01)
        return None


def stall_seconds() -> float:
    """How long without a step is a stall; the default where the environment says nonsense."""
    try:
        told = float(os.environ.get(STALL, DEFAULT_STALL_S))
    except ValueError:
        return DEFAULT_STALL_S
    return told if 0 <= told < float("inf") else DEFAULT_STALL_S


def _write(end: int, told: bytes) -> None:
    with suppress(OSError):
        os.write(end, told)
