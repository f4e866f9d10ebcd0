"""A scheduler like vLLM's with the adapter attached to it, and what it held at every step."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from stepscope.ingest.attach.vllm.attaching import attach_to
from stepscope.ingest.attach.vllm.engine_config import config_of
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.trace import Trace
from tests.ingest.attach.vllm.stand_in import Request, Scheduler


class Recorded:
    """An engine's loop around a scheduler; `lines` are what a witness would have written."""

    def __init__(
        self, folder: Path, scheduler: Any = None, *,
        now_ns: Callable[[], int] = time.time_ns, **settings: Any,
    ) -> None:  # fmt: skip
        self.path = folder / "run.trace"
        self.scheduler: Any = scheduler or Scheduler(**settings)
        config = config_of(self.scheduler)
        recorder = Recorder(self.path, producer="vllm", config=config, now_ns=now_ns)
        self.attached = attach_to(self.scheduler, recorder)
        self.lines: list[dict[str, Any]] = []

    def add(self, *requests: Request) -> None:
        """Requests come, in this order."""
        for request in requests:
            self.scheduler.add_request(request)

    def form(self, *, throttled: bool = False) -> Any:
        """Form a batch, which runs from now on."""
        output = self.scheduler.schedule(throttled)
        manager, requests = self.scheduler.kv_cache_manager, self.scheduler.requests
        self.lines.append({
            "batch": dict(output.num_scheduled_tokens),
            "waiting": [each.request_id for each in self.scheduler.waiting],
            "running": [each.request_id for each in self.scheduler.running],
            "blocks": {name: manager.get_block_ids(name) for name in requests},
        })  # fmt: skip
        return output

    def step(self, count: int = 1, *, throttled: bool = False, **told: Any) -> None:
        """Form a batch and take its outputs, so many times; `told` is the model's output."""
        for _ in range(count):
            output = self.form(throttled=throttled)
            self.scheduler.update_from_output(output, SimpleNamespace(**told))

    def trace(self) -> Trace:
        """Close the recording, and open it."""
        self.attached.close()
        return Trace.open(self.path)
