"""A scheduler of SGLang that is replayed, and recorded by the adapter that records a whole one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepscope.ingest.attach.recorded import RecordedScheduler
from stepscope.ingest.attach.sglang.attached_to import ATTACHED, version
from stepscope.ingest.attach.sglang.followed import SGLangScheduler
from stepscope.ingest.attach.sglang.settings import config_of
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.replay.script import Script
from stepscope.ingest.replay.sglang.scheduler import SglangScheduler
from stepscope.ingest.replay.virtual_clock import Clock


class Replayed:
    """The scheduler that a script asks for, recorded into `out` on the replay's clock.

    `said` is what is told of it: its version, its class, and what of the configuration this version
    does not know.
    """

    def __init__(self, script: Script, out: Path, clock: Clock) -> None:
        self.scheduler = SglangScheduler(script.config)
        built = self.scheduler.scheduler
        kind = type(built)
        self.said: dict[str, Any] = {
            "version": version(),
            "scheduler": f"{kind.__module__}.{kind.__qualname__}",
            "unknown": self.scheduler.unknown,
        }
        recorder = Recorder(
            out, producer="sglang", producer_version=version(), config=config_of(built),
            rank=script.rank, variant="replay", now_ns=clock.now_ns,
        )  # fmt: skip
        self._attached = SGLangScheduler(built, RecordedScheduler(recorder))
        setattr(built, ATTACHED, self._attached)

    def __enter__(self) -> Replayed:
        return self

    def __exit__(self, *_: object) -> None:
        self._attached.close()
