"""The formats that other programs write, in the order in which they are tried."""

from __future__ import annotations

from stepscope.ingest.readers.engine_log import EngineLogReader
from stepscope.ingest.readers.kineto import KinetoReader
from stepscope.ingest.readers.kineto_folder import KinetoFolderReader
from stepscope.ingest.readers.kv_events import KvEventsReader
from stepscope.ingest.readers.perfetto import PerfettoReader
from stepscope.ingest.readers.reader import Reader
from stepscope.ingest.readers.requests import RequestsReader
from stepscope.ingest.readers.runtime_log import RuntimeLogReader
from stepscope.ingest.readers.swimlane import SwimlaneReader

READERS: tuple[Reader, ...] = (
    SwimlaneReader(), KinetoReader(), KinetoFolderReader(), KvEventsReader(), PerfettoReader(),
    RequestsReader(), RuntimeLogReader(), EngineLogReader(),
)  # fmt: skip
