"""What following a recording costs: from a row recorded to the row in the model, memory, idling.

Rows are recorded as fast as they go in another process, a share of them steps; memory is told at
half of them and at all. Nobody looks for a while at the end, and the processor's time is counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

from stepscope.app.live.carried_over import timeline_since
from stepscope.app.live.follower import Follower
from stepscope.app.timeline import Composition
from stepscope.app.web import listen
from stepscope.app.web.server import create_app

ROWS = 36_000_000
"""An hour at 10,000 rows a second."""
PER_S = 10_000
LATENCIES = 40
IDLE_S = 10.0

WRITER = """
import sys, time
from stepscope.ingest.recorder import Recorder
path, rows, per_s = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rec = Recorder(path, producer="bench")
steps, batch = rec.narrow("steps", "step", "ts_ns", "kind"), rec.narrow(
    "batch_rows", "step", "ts_ns", "row", "request", "phase", "num_tokens")
began, step, done, told = time.perf_counter(), 0, 0, False
while done < rows:
    step += 1
    ts_ns = rec.now_ns()
    steps(step, ts_ns, "decode")
    for row in range(9):
        batch(step, ts_ns, row, f"req-{step // 200}-{row}", "decode", 1)
    done += 10
    if per_s:
        time.sleep(max(began + done / per_s - time.perf_counter(), 0))
    if not told and done >= rows // 2:
        told = True
        print("half", flush=True)
print("done", flush=True)
sys.stdin.readline()
rec.close()
"""


def measure(rows: int = ROWS) -> list[dict[str, Any]]:
    """Return a row for each figure: what, how many, and the unit."""
    with tempfile.TemporaryDirectory() as folder:
        return [
            *_latencies(Path(folder) / "paced.trace"),
            *_an_hour(Path(folder) / "fast.trace", rows),
        ]


def _writer(path: Path, rows: int, per_s: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(rows), str(per_s)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def _latencies(path: Path) -> list[dict[str, Any]]:
    """How old the newest row is when a front has laid it out, at 10,000 rows a second."""
    with _writer(path, 60 * PER_S, PER_S) as writer:
        follower = _following(path)
        ages: list[float] = []
        laid_out: list[float] = []
        while len(ages) < LATENCIES:
            status = follower.refresh()
            began = time.perf_counter()
            look = follower.look()
            timeline_since(look.trace, look.status)
            Composition.of(look.trace)
            laid_out.append(time.perf_counter() - began)
            # A row that came just behind the newest has waited for a whole turn.
            ages.append((time.time_ns() - (look.status.last_ns or 0)) / 1e9)
            time.sleep(0.3)
        rows = status.num_rows
        writer.kill()
    return [
        _figure("rows recorded meanwhile", sum(rows.values()), "rows"),
        _figure("newest row laid out, median", median(ages), "s after it was recorded"),
        _figure("newest row laid out, worst", max(ages), "s after it was recorded"),
        _figure("row that came just after, worst", max(ages) + 0.3 + max(laid_out), "s"),
    ]


def _following(path: Path) -> Follower:
    while not list(path.glob("journal.rank=0/*.seg")):
        time.sleep(0.05)
    return Follower(path)


def _an_hour(path: Path, rows: int) -> list[dict[str, Any]]:
    """Memory at half of so many rows and at all, while a page asks; then what it costs unasked."""
    with _writer(path, rows, 0) as writer:
        follower = _following(path)
        app = create_app(follower.look().trace, None, follower=follower)
        listener = listen.bind("127.0.0.1", 0)
        serving = (listener, app.server, "127.0.0.1")
        threading.Thread(target=listen.until_stopped, args=serving, daemon=True).start()
        news = f"{listen.address('127.0.0.1', listener.getsockname()[1])}news"
        told: list[str] = []
        assert writer.stdout
        lines = iter(writer.stdout.readline, "done\n")
        reading = threading.Thread(target=lambda: told.extend(lines))
        reading.start()
        at_half, begun = 0.0, time.perf_counter()
        while reading.is_alive():
            urlopen(news).read()  # noqa: S310 - our own server
            if told and not at_half:
                at_half = _memory_mb()
            time.sleep(0.3)
        wall_s = time.perf_counter() - begun
        urlopen(news).read()  # noqa: S310 - our own server
        status, at_all = follower.refresh(), _memory_mb()
        follower.wait_for_check()
        before, since = time.process_time(), time.perf_counter()
        time.sleep(IDLE_S)
        share = (time.process_time() - before) / (time.perf_counter() - since)
        if writer.stdin:
            writer.stdin.close()
    num_rows = sum(status.num_rows.values())
    return [
        _figure("rows recorded as fast as it goes", num_rows, "rows"),
        _figure("recorded in", wall_s, "s"),
        _figure("of these left out, and counted", sum(status.num_left_out.values()), "rows"),
        _figure("memory at half", at_half, "MB of its own"),
        _figure("memory at all", at_all, "MB of its own"),
        _figure("processor while nobody looks", 100 * share, "% of a core"),
    ]


def _memory_mb() -> float:
    """Memory of this process alone, without files that are mapped."""
    lines = Path(f"/proc/{os.getpid()}/status").read_text("ascii").splitlines()
    own = next(line for line in lines if line.startswith("RssAnon"))
    return int(own.split()[1]) / 1000


def _figure(what: str, number: float, unit: str) -> dict[str, Any]:
    return {"what": what, "figure": number, "unit": unit}
