"""From a key to its frame on the step page of the TUI, in a real terminal of 200 by 64 cells.

The trace is that of bench_debug, a million steps. A key is written to the terminal, and a frame is
there with the last byte that follows before nothing comes for a while. Before the first key the
process has come to rest: what it checks in the background takes no processor then.
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
QUIET_S, MOST_S, REST_S = 0.4, 10.0, 120.0
NUM_KEYS = 15
KEYS = {
    "previous step": "[", "next step": "]", "next change": "i", "previous change": "I",
    "next request": "j", "previous request": "k",
}  # fmt: skip


def measure(num_steps: int = NUM_STEPS) -> list[dict[str, Any]]:
    """Return one row for each key: the median and the most of milliseconds until its frame."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.trace"
        save_trace(long_run(num_steps), path)
        return keys_to_frames(path, Path(folder) / "cache")


def keys_to_frames(trace: Path, cache: Path) -> list[dict[str, Any]]:
    """Open a trace in a terminal, press keys, and measure their frames."""
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
        os.write(terminal, b"G")  # to the last step, where many wait
        _rest(child.pid, terminal)
        return [{"key": name, **_pressed(terminal, key)} for name, key in KEYS.items()]
    finally:
        child.terminate()
        child.wait()
        os.close(terminal)


def _rest(child: int, terminal: int) -> None:
    """Wait until a process that has drawn something needs no processor for two seconds."""
    until, spent, drawn = time.perf_counter() + REST_S, -1.0, False
    while time.perf_counter() < until:
        drawn = _last_byte(terminal, 2.0) is not None or drawn
        before, spent = spent, _cpu_s(child)
        if drawn and spent - before < 0.1:
            return


def _cpu_s(child: int) -> float:
    fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _pressed(terminal: int, key: str) -> dict[str, Any]:
    took = []
    for _ in range(NUM_KEYS):
        began = time.perf_counter()
        os.write(terminal, key.encode())
        last = _last_byte(terminal)
        if last is not None:
            took.append((last - began) * 1e3)
    return {
        "frames": len(took), "of": NUM_KEYS,
        "median_ms": round(statistics.median(took), 1) if took else None,
        "most_ms": round(max(took), 1) if took else None,
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
