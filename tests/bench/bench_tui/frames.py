"""Frames of the timeline in a terminal of 200 by 64 cells while a key is held, over 1e7 spans.

A key is written to a real terminal as often as a keyboard repeats it, sixty times a second, and a
frame is counted with the sequence by which Textual ends one, whole, for a terminal that has
synchronised output, and only where lanes were drawn in it: what is said beside them, of the same
key, may come in a frame of its own. The trace is that of `bench_timeline`, its index in the cache.
`key to frame` is from a single key, with the screen at rest before, to the end of the frame that
follows.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import Any

from tests.bench.bench_timeline import write_blocks
from tests.bench.bench_tui import HEIGHT, RESTING_S, WIDTH

NUM_SPANS = 10_000_000
HELD_S, KEYS_A_SECOND, REST_S, QUIET_S = 4.0, 60, 300.0, 2.0
NUM_KEYS = 15
FRAME, ASKS, HAS = b"\x1b[?2026l", b"\x1b[?2026$p", b"\x1b[?2026;2$y"
"""What ends a frame, asks whether it may, and answers that."""
LANES = tuple(b"\x1b[%d;1H" % row for row in range(12, 40))
"""Where the lines of lanes begin: one of them is in each frame that draws lanes."""
HELD = {"pan": ("d", "a"), "zoom": ("w", "s"), "lane": ("j", "k")}
"""A key that is held, and the one that leads back."""
ZOOMED = 6
"""How often is zoomed in before it is panned: there is somewhere to go, and much to add up."""


class Screen:
    """A terminal in which the command runs; what it writes is read and counted, not shown."""

    def __init__(self, trace: Path, cache: Path) -> None:
        self._terminal, inside = pty.openpty()
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        told = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "STEPSCOPE_CACHE": str(cache)}
        words = ["-m", "stepscope.app", "tui", str(trace), "--page", "timeline"]
        self._child = subprocess.Popen(
            [sys.executable, *words], stdin=inside, stdout=inside, stderr=inside,
            env=os.environ | told, start_new_session=True,
        )  # fmt: skip
        os.close(inside)
        self._last = b""

    def close(self) -> None:
        """End the command."""
        self._child.terminate()
        self._child.wait()
        os.close(self._terminal)

    def press(self, keys: str) -> None:
        """Write keys."""
        os.write(self._terminal, keys.encode())

    def frames(self, seconds: float) -> list[float]:
        """Read what comes for a while; when each frame with lanes in it ended."""
        found, until = [], time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            if select.select([self._terminal], [], [], left)[0]:
                self._last += os.read(self._terminal, 1 << 16)
                if ASKS in self._last:
                    os.write(self._terminal, HAS)
                    self._last = self._last.replace(ASKS, b"")
                *frames, self._last = self._last.split(FRAME)
                drawn = sum(any(line in frame for line in LANES) for frame in frames)
                found += [time.perf_counter()] * drawn
        return found

    def rest(self, *, drawn: bool = False) -> None:
        """Wait until something was drawn, if not before, and it does but look for news."""
        until, spent, num = time.perf_counter() + REST_S, -1.0, int(drawn)
        while time.perf_counter() < until:
            num += len(self.frames(QUIET_S))
            before, spent = spent, self.cpu_s()
            if num and spent - before < RESTING_S:
                return
        raise TimeoutError(f"it has drawn nothing, or has not come to rest in {REST_S:.0f} s")

    def cpu_s(self) -> float:
        """What the command took of processors."""
        fields = Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(num_spans: int = NUM_SPANS) -> list[dict[str, Any]]:
    """Return a row for each key: frames a second while it is held, and milliseconds to one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "blocks.trace"
        write_blocks(path, num_spans // 2)
        screen = Screen(path, Path(folder) / "cache")
        try:
            screen.rest()
            return [_held(screen, name, num_spans) for name in HELD]
        finally:
            screen.close()


def _held(screen: Screen, name: str, num_spans: int) -> dict[str, Any]:
    key, back = HELD[name]
    if name == "pan":
        screen.press(HELD["zoom"][0] * ZOOMED)
        screen.rest()
    cpu_began = screen.cpu_s()
    alone = [_one_frame(screen, each) for _ in range(NUM_KEYS) for each in (key, back)]
    alone_s = screen.cpu_s() - cpu_began
    shown, began, cpu_began = 0, time.perf_counter(), screen.cpu_s()
    for at in range(int(HELD_S * KEYS_A_SECOND)):
        screen.press(key if at % KEYS_A_SECOND < KEYS_A_SECOND // 2 else back)
        shown += len(screen.frames(began + (at + 1) / KEYS_A_SECOND - time.perf_counter()))
    took, cpu_s = time.perf_counter() - began, screen.cpu_s() - cpu_began
    screen.rest(drawn=True)  # who keeps up with the keys has nothing left to draw
    ms = [each for each in alone if each is not None]
    return {
        "held": name, "spans": num_spans, "frames a second": shown / took,
        "CPU ms a frame": 1e3 * cpu_s / max(1, shown), "key to frame ms": statistics.median(ms),
        "most ms": max(ms), "CPU ms a key": 1e3 * alone_s / len(alone),
    }  # fmt: skip


def _one_frame(screen: Screen, key: str) -> float | None:
    """From a key to the last frame before none comes for a while; None where none came."""
    began = time.perf_counter()
    screen.press(key)
    found = screen.frames(0.25)
    return 1e3 * (found[0] - began) if found else None
