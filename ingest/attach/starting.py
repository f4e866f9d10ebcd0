"""A recorder for each start of an engine, in a directory of its own below `STEPSCOPE_TRACE`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepscope.ingest.recorder import Recorder

WHERE = "STEPSCOPE_TRACE"
START = "STEPSCOPE_START"


def name_start() -> None:
    """Name this start of the engine, for all processes that are started from here."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    os.environ.setdefault(START, f"{stamp}-{os.getpid()}")


def recorder_for(rank: int, producer: str, version: str, config: Mapping[str, Any]) -> Recorder:
    """Open the recorder of a rank of this start; raises `RecordingError` where there is no room."""
    name_start()
    parent, start = Path(os.environ[WHERE]), os.environ[START]
    number = 1
    while True:
        path = parent / (f"{start}.trace" if number == 1 else f"{start}-{number}.trace")
        if not (path / f"journal.rank={rank}").exists() and not any(path.glob(f"*/rank={rank}")):
            return Recorder(
                path, producer=producer, producer_version=version, rank=rank, config=config
            )
        number += 1
