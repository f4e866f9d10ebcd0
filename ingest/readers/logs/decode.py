"""What reads one engine's lines; one file in `engines` and one line in `LINE_FORMATS` for each."""

from __future__ import annotations

from typing import Protocol

from stepscope.ingest.readers.logs.engines.atom import AtomLines
from stepscope.ingest.readers.logs.engines.llamacpp import LlamacppLines
from stepscope.ingest.readers.logs.engines.mistralrs import MistralrsLines
from stepscope.ingest.readers.logs.engines.servingsim import ServingSimLines
from stepscope.ingest.readers.logs.engines.sglang import SglangLines
from stepscope.ingest.readers.logs.engines.trtllm import TrtllmLines
from stepscope.ingest.readers.logs.engines.ttxla import TtxlaLines
from stepscope.ingest.readers.logs.engines.vllm import VllmLines
from stepscope.ingest.readers.text.collect import Line, LogRows


class LineFormat(Protocol):
    """Reads the lines of one engine; made anew for every log, so it may remember lines."""

    @property
    def name(self) -> str:
        """The engine."""

    @property
    def markers(self) -> tuple[str, ...]:
        """Texts of which a line of this engine has one; what has none is not looked at."""

    def take(self, line: Line, rows: LogRows) -> str | None:
        """Add what a line says; gives the kind of line, or None where it is not whole."""

    def end(self, rows: LogRows) -> None:
        """Add what was still open when the log ended."""


LINE_FORMATS: tuple[type[LineFormat], ...] = (
    VllmLines, SglangLines, AtomLines, TrtllmLines, LlamacppLines, MistralrsLines,
    TtxlaLines, ServingSimLines,
)  # fmt: skip
