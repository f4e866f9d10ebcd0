"""From a key to its frame on the step page of the TUI, in a real terminal of 200 by 64 cells.

The trace is that of bench_debug, a million steps; keys are pressed in the middle of it, where many
wait. A key is written to the terminal, and its frame is there with the last byte that follows
before nothing comes for a while: what is looked up behind the key is on the screen then. Before the
first key the process has come to rest: what it checks in the background takes no processor then.
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

from stepscope.ingest.storage.saving import save_trace
from tests.bench.bench_debug import NUM_STEPS, long_run

WIDTH, HEIGHT = 200, 64
QUIET_S, MOST_S, REST_S = 0.25, 10.0, 300.0
RESTING_S = 0.3
"""Processor that a command at rest may take in two seconds: to wake it costs some machines much."""
NUM_KEYS = 15
MIDDLE = ":{}\r"
"""What is typed to go to a step."""
STOP = "Bsteps: num_waiting = 26\r"
"""What is typed to look for a condition that every seventh step meets."""
KEYS = {
    "next step": "]", "previous step": "[", "next event": "l", "previous event": "h",
    "next change": "i", "previous change": "I", "next request": "j", "previous request": "k",
    "next step, with why": "]", "previous step, with why": "[",
    "next change, with why": "i", "previous change, with why": "I",
    "to the proof": "o", "back from it": "b",
    "next hit": "c", "previous hit": "C", "last step": "G", "first step": "g",
}  # fmt: skip
BEFORE = {"next step, with why": "j" * 100}
"""What is pressed before a key is measured: down to the last request, which waits."""
IN_TURN = ("to the proof", "back from it"), ("last step", "first step")
"""Keys of which each draws a frame only behind the other."""


def measure(num_steps: int = NUM_STEPS) -> list[dict[str, Any]]:
    """Return one row for each key: median, 90th percentile and most of milliseconds to a frame."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.trace"
        save_trace(long_run(num_steps), path)
        return keys_to_frames(path, Path(folder) / "cache", num_steps // 2)


def keys_to_frames(trace: Path, cache: Path, middle: int) -> list[dict[str, Any]]:
    """Open a trace in a terminal, press keys around a step, and measure their frames."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    told = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "STEPSCOPE_CACHE": str(cache)}
    child = subprocess.Popen(
        [sys.executable, "-m", "stepscope.app", "tui", str(trace), "--page", "step"],
        stdin=inside, stdout=inside, stderr=inside, env=os.environ | told, start_new_session=True,
    )  # fmt: skip
    os.close(inside)
    try:
        _rest(child.pid, terminal)
        for typed in (STOP, MIDDLE.format(middle)):
            for keys in (typed[0], typed[1:]):  # what asks for a text has to be there first
                os.write(terminal, keys.encode())
                _rest(child.pid, terminal)
        took: dict[str, list[float]] = {}
        for names in _in_turn():
            if pressed := BEFORE.get(names[0]):
                os.write(terminal, pressed.encode())
                _rest(child.pid, terminal)
            took |= _pressed(terminal, names)
        return [{"key": name, **_told(took[name])} for name in KEYS]
    finally:
        child.terminate()
        child.wait()
        os.close(terminal)


def _in_turn() -> list[tuple[str, ...]]:
    paired = {names[0]: names for names in IN_TURN}
    second = {names[1] for names in IN_TURN}
    return [paired.get(name, (name,)) for name in KEYS if name not in second]


def _rest(child: int, terminal: int) -> None:
    """Wait until a process that has drawn something does but look whether there is news."""
    until, spent, drawn = time.perf_counter() + REST_S, -1.0, False
    while time.perf_counter() < until:
        drawn = _last_byte(terminal, 2.0) is not None or drawn
        before, spent = spent, _cpu_s(child)
        if drawn and spent - before < RESTING_S:
            return
    raise TimeoutError(f"it has drawn nothing, or has not come to rest in {REST_S:.0f} s")


def _cpu_s(child: int) -> float:
    fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _pressed(terminal: int, names: tuple[str, ...]) -> dict[str, list[float]]:
    """Press keys in turn; milliseconds to the frames of each, without those that draw none."""
    took: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(NUM_KEYS):
        for name in names:
            began = time.perf_counter()
            os.write(terminal, KEYS[name].encode())
            last = _last_byte(terminal)
            if last is not None:
                took[name].append((last - began) * 1e3)
    return took


def _told(took: list[float]) -> dict[str, Any]:
    if not took:
        return {
            "frames": 0, "of": NUM_KEYS, "median_ms": None, "p90_ms": None, "most_ms": None,
        }  # fmt: skip
    ninth = sorted(took)[-(-9 * len(took) // 10) - 1]
    return {
        "frames": len(took), "of": NUM_KEYS, "median_ms": round(statistics.median(took), 1),
        "p90_ms": round(ninth, 1), "most_ms": round(max(took), 1),
    }  # fmt: skip


def _last_byte(terminal: int, quiet_s: float = QUIET_S) -> float | None:
    """When the last byte came, once none comes for a while; None where none came at all."""
    last, until = None, time.perf_counter() + MOST_S
    while time.perf_counter() < until:
        readable, _, _ = select.select([terminal], [], [], quiet_s)
        if not readable or not os.read(terminal, 1 << 16):
            break
        last = time.perf_counter()
    return last
