"""Make `sglang_retractions.trace`, and the log and the KV cache events of the same run.

    .venv-sglang/bin/python sample_traces/make_sglang.py

Needs the environment of `make test-sglang`. SGLang's own event loop serves sixteen requests over a
tiny Llama with random weights on a CPU. The pool of 160 tokens is too small for what runs, so that
some are retracted. Prompts are longer than a chunk, and begin alike, so that the radix cache has
parts of them. Times and throughputs differ from run to run; who runs, waits and is retracted at
which step does not.
"""

# ruff: noqa: PLC0415 - SGLang reads what is set of it in the environment when it is imported
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import zmq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.sglang.drive_scheduler import start
from tests.sglang.situations import SHARED

HERE = Path(__file__).resolve().parent
TRACE = HERE / "sglang_retractions.trace"
LOG = HERE / "sglang_scheduler.log"
EVENTS = HERE / "sglang_kv_events.msgpack"
PROMPTS = (22, 13, 28, 17, 10, 33, 20, 14, 25, 18, 30, 12)
LATE_PROMPTS = (26, 11, 19, 31)
LATE_STEP, MAX_TOKENS = 30, 30
SETTINGS = {
    "max_total_tokens": 160, "page_size": 4, "chunked_prefill_size": 16,
    "schedule_conservativeness": 0.3, "decode_log_interval": 4, "max_running_requests": 8,
}  # fmt: skip
ENVIRONMENT = {"SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS": "2", "SGLANG_RETRACT_DECODE_STEPS": "1"}
"""After a retraction SGLang soon lets in more than there is room for again."""
OF_SCHEDULER = re.compile(r"Prefill batch|Decode batch|#retracted_reqs")
LONGER_S = 0.02
"""How much longer each batch takes: a log has seconds, and a tiny model takes milliseconds."""


def requests() -> list[dict[str, object]]:
    """Who comes, and before which step; half of each prompt is shared."""
    steps = [0] * len(PROMPTS) + [LATE_STEP] * len(LATE_PROMPTS)
    return [
        {"id": f"req-{number:02}", "at": at, "max_tokens": MAX_TOKENS,
         "prompt": SHARED[: length // 2] + own(number, length - length // 2)}
        for number, (at, length) in enumerate(zip(steps, PROMPTS + LATE_PROMPTS, strict=True))
    ]  # fmt: skip


def own(number: int, length: int) -> list[int]:
    """Tokens that no other prompt has in this order."""
    return [3 + (11 * number + place) % 240 for place in range(length)]


class Capture:
    """Takes the messages of a publisher, and keeps them as they came, one behind the other."""

    def __init__(self, address: str) -> None:
        self.messages: list[list[bytes]] = []
        self._context: zmq.Context[zmq.SyncSocket] = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.SUBSCRIBE, b"")
        self._socket.bind(address)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._take)
        self._thread.start()

    def _take(self) -> None:
        while self._socket.poll(200) or not self._ended.is_set():
            if self._socket.poll(0):
                self.messages.append(self._socket.recv_multipart())

    def end(self) -> bytes:
        """Wait for what is under way, and give all in msgpack."""
        self._ended.set()
        self._thread.join()
        self._context.destroy(linger=0)
        return b"".join(map(msgspec.msgpack.encode, self.messages))


def slowed(run_batch: Any) -> Any:
    """The scheduler's call of its model, over a model that takes longer."""

    @wraps(run_batch)
    def longer(*args: Any, **kwargs: Any) -> Any:
        time.sleep(LONGER_S)
        return run_batch(*args, **kwargs)

    return longer


def run(folder: Path) -> None:
    """Serve the requests; the folder gets the trace, what was logged, and the events."""
    os.environ.update(ENVIRONMENT)
    from sglang.srt.managers.scheduler import Scheduler
    from sglang.srt.utils import configure_logger

    Scheduler.run_batch = slowed(Scheduler.run_batch)
    configure_logger(SimpleNamespace(log_level="info"))
    address = f"ipc://{folder}/events"
    events = {"publisher": "zmq", "topic": "kv-events", "endpoint": address, "bind": False}
    situation = {
        "settings": {**SETTINGS, "kv_events_config": json.dumps(events)}, "requests": requests(),
        "aborts": [], "pauses": [], "sessions": [],
    }  # fmt: skip
    pid = start(folder / "run", situation)
    capture = Capture(address)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    (folder / "events.msgpack").write_bytes(capture.end())
    if code:
        sys.exit((folder / "run" / "log").read_text())


def main() -> None:
    """Record, and keep the trace, the scheduler's lines of the log, and the events."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(folder)
        (trace,) = (folder / "run" / "traces").iterdir()
        shutil.rmtree(TRACE, ignore_errors=True)
        shutil.copytree(trace, TRACE)
        lines = (folder / "run" / "log").read_text().splitlines(keepends=True)
        LOG.write_text("".join(line for line in lines if OF_SCHEDULER.search(line)))
        shutil.copyfile(folder / "events.msgpack", EVENTS)


if __name__ == "__main__":
    main()
