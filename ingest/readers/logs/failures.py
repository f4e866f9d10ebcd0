"""Lines about an engine's end: that it failed, with which error, and how the log goes on.

Only lines without a row are looked at, and an exception only after a line that says that the engine
failed: requests that are refused raise exceptions, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from stepscope.ingest.manifest import LogMessage
from stepscope.ingest.readers.text.collect import Source
from stepscope.ingest.readers.text.split import origin_of, text_of
from stepscope.ingest.readers.text.times import stamp_of

MOST_MESSAGES = 64
MOST_CHARS = 400
LINES_AFTER_A_FAILURE = 400
"""So many lines after a fatal one are looked through for the exception."""
_FATAL = re.compile(
    rb"EngineCore encountered a fatal error|EngineDeadError|[Ee]ngine [Cc]ore proc[^\n]{0,80} died"
    rb"|Engine core initialization failed|AsyncLLMEngine has failed|Scheduler hit an exception"
    rb"|TpModelWorker[^\n]{0,60} hit an exception|Received sigquit from a child process"
    rb"|memory leak detected|[Ww]atchdog timeout|Watchdog caught collective operation timeout"
    rb"|Error in event loop|Encountered an error in forward function|GGML_ASSERT\(|GGML_ABORT"
    rb"|(?:CUDA|HIP|NPU|ACL) (?:error|out of memory)\b|OutOfMemoryError|Segmentation fault"
    rb"|Hang detected after \d|HangDetector: self-SIGKILL|MPI_ABORT was invoked"
    rb"|Health check failed\b|failed to decode the batch"
    rb"|terminate called after throwing|Fatal Python error|thread '[^']{0,80}' panicked"
)
_SURE = re.compile(
    rb"EngineCore encountered|EngineDeadError|[Ee]ngine [Cc]ore|AsyncLLMEngine has failed"
    rb"|hit an exception|Received sigquit|memory leak detected|Error in event loop"
)
"""Lines that an engine writes of its own end; others may be a request's text or an error that it
survives, and count only if no report follows."""
_SHUTDOWN = re.compile(
    rb"received signal=SIG|[Ss]hutdown triggered|[Ss]hutting down|SIGTERM|SIGINT|KeyboardInterrupt"
    rb"|kill_process_tree called|cleaning up before exit|[Ss]topping (?:the )?server"
)
"""Somebody stopped the server: processes that then lose each other did not fail."""
_REQUEST = re.compile(
    rb"Received request|[Rr]eceive(?:d)?: obj=|Finish: obj=|ReqInput\(|SamplingParams\("
    rb"|\b(?:prompt|text|messages|content)\\?[\"']?\s?[:=]\s?[\[{(]{0,3}\\?[\"']"
)
"""What stands before the text of a request where requests are logged."""
_LEVEL = re.compile(
    rb"\b(TRACE|DEBUG|INFO|WARN|ERROR|CRIT|FATAL|PANIC)|\[([TDIVWEF])\]|\b([IWEF])\d{3,8} \d\d:"
    rb"|\blevel\\?[\"']?\s?[=:]\s?\\?[\"']?(trace|debug|info|warn|error|crit|fatal)"
)
_HARMLESS = frozenset(
    (b"TRACE", b"DEBUG", b"INFO", b"T", b"D", b"I", b"V", b"trace", b"debug", b"info")
)
_LEVEL_BYTES = 256
_UNHEALTHY = b"Health check failed"
LEAST_UNHEALTHY = 3
"""A long prefill fails one or two checks of its health."""
_START = re.compile(
    rb"vLLM API server version|Initializing an? (?:V\d )?LLM engine|server_args=ServerArgs\("
    rb"|TensorRT-LLM version|Started server process \[|main: loading model|\bbuild: \d{1,6} \("
)
"""What a server writes first: reports that stopped before are those of another process."""
_EITHER = re.compile(_FATAL.pattern + b"|" + _SHUTDOWN.pattern)
_EXCEPTION = re.compile(r"((?:[A-Za-z_]\w{0,63}\.){0,8}[A-Z]\w{0,63}(?:Error|Exception)(?:: .+)?)$")
_HEAD = re.compile(r"^.{0,160}?\[[\w.]{1,64}\.(?:py|cc|cpp|rs):\d{1,6}\]\s?")
_ENGINE = re.compile(r"\bEngineCore_(?:DP)?(\d{1,6})\b|\bEngine (\d{1,6}): |[\[ ](DP\d{1,5})\b")
Sources = Mapping[tuple[str, str, str], Source]
_CONSEQUENCES = ("EngineDeadError", "EngineGenerateError", "CancelledError")
"""Errors by which other processes say that the engine is gone."""


class Failures:
    """Collects messages while a log is read."""

    def __init__(self) -> None:
        self.messages: list[LogMessage] = []
        self._last, self._num_after, self._num_since_failure = b"", 0, LINES_AFTER_A_FAILURE
        self._code, self._is_stopping = "", False
        self._first_unsure: int | None = None
        self._unsure_rank: int | None = None
        self._ts_ns: int | None = None
        self._has_reported, self._num_unhealthy = False, 0
        self._before_start: tuple[bytes, int] | None = None

    @property
    def is_silent_restart(self) -> bool:
        """Whether a server starts after the last report, and no line says why."""
        kinds = {message.kind for message in self.messages}
        return self._before_start is not None and not kinds & {"fatal", "shutdown"}

    def reported(self, content: bytes, sources: Sources, ts_ns: int | None) -> None:
        """Note that a line reports what the engine does; `ts_ns` is its time, if that is known."""
        self._ts_ns = ts_ns if ts_ns is not None else self._ts_ns
        self._num_after, self._num_unhealthy, self._is_stopping = 0, 0, False
        self._has_reported, self._before_start = True, None
        if self._first_unsure is not None and (
            self._unsure_rank is None or _rank_of(content, sources) in (None, self._unsure_rank)
        ):
            del self.messages[self._first_unsure :]
            self._first_unsure, self._num_since_failure = None, LINES_AFTER_A_FAILURE

    def other(self, content: bytes, sources: Sources) -> None:
        """Look at a line that is none of an engine's reports."""
        if self._has_reported and self._before_start is None and _is_start(content, sources):
            self._before_start = self._last, self._num_after
            self._add("start", content)
        self._last = content
        self._num_after += 1
        if not self._is_stopping and _EITHER.search(content):
            self._look_for_an_end(content, sources)
        if self._num_since_failure < LINES_AFTER_A_FAILURE:
            self._num_since_failure += 1
            self._look_for_an_exception(content)

    def _look_for_an_end(self, content: bytes, sources: Sources) -> None:
        found = _EITHER.search(content)
        if found is None or _REQUEST.search(content, 0, found.start()):
            return
        if _FATAL.search(content):
            if _is_harmless(content):
                return
            if _UNHEALTHY in content:
                self._num_unhealthy += 1
                if self._num_unhealthy != LEAST_UNHEALTHY:
                    return
            self._num_since_failure = 0
            rank = _rank_of(content, sources)
            if _SURE.search(content):
                self._first_unsure = None
            elif self._first_unsure is None:
                self._first_unsure, self._unsure_rank = len(self.messages), rank
            self._add("fatal", content, rank=rank)
        else:  # no fatal line: clients log that they shut down when they find the engine dead
            self._is_stopping = True
            self._add("shutdown", content)

    def end(self, near_ns: int | None) -> tuple[LogMessage, ...]:
        """Return the messages, with the last line if other lines than reports end the log.

        Where a server starts after the last report, the last line before that counts.
        """
        if self._before_start is not None:
            self._last, self._num_after = self._before_start
        if self._num_after:
            self._add("end", self._last, near_ns)
        return tuple(self.messages)

    def _look_for_an_exception(self, content: bytes) -> None:
        text = _HEAD.sub("", text_of(content)[0]).strip()
        match = _EXCEPTION.search(text)
        is_consequence = any(name in text for name in _CONSEQUENCES)
        if match and text.startswith(match[1]) and not is_consequence:
            error = match[1]
            shown = error if ": " in error or not self._code else f"{error}: {self._code}"
            self._add("exception", content, text=shown)
        elif text and not text.startswith(("^", "~")):
            self._code = text

    def _add(
        self,
        kind: str,
        content: bytes,
        near_ns: int | None = None,
        *,
        text: str | None = None,
        rank: int | None = None,
    ) -> None:
        line, packed_time = text_of(content)
        near = stamp_of(packed_time) if packed_time else None
        stamp = stamp_of(line, near.ns if near else self._ts_ns or near_ns) or near
        is_time = stamp is not None and not stamp.is_uptime
        ts_ns = stamp.ns if stamp is not None and is_time else None
        self._ts_ns = ts_ns if ts_ns is not None else self._ts_ns
        if len(self.messages) < MOST_MESSAGES or kind == "end":
            shown = (_HEAD.sub("", line) if text is None else text).strip()[:MOST_CHARS]
            self.messages.append(LogMessage(kind, shown, ts_ns, self._num_after, rank))


def _is_harmless(content: bytes) -> bool:
    """Whether a line says of itself that it only informs: an engine does not die in one."""
    level = _LEVEL.search(content[:_LEVEL_BYTES])
    return level is not None and level[level.lastindex or 0] in _HARMLESS


def _rank_of(content: bytes, sources: Sources) -> int | None:
    """The rank of the engine that a line names, if one that reported has that name."""
    text = text_of(content)[0][:_LEVEL_BYTES]
    match = _ENGINE.search(text)
    if match is None:
        return None
    label, origin = match[3] or str(int(match[1] or match[2])), origin_of(text)
    ranks = [
        source.rank
        for (_, where, name), source in sources.items()
        if where == origin and (name == label or name.startswith(f"{label} "))
    ]
    return ranks[0] if len(ranks) == 1 else None


def _is_start(content: bytes, sources: Sources) -> bool:
    """Whether a server starts that takes the place of all that reported so far."""
    found = _START.search(content)
    if found is None or _REQUEST.search(content, 0, found.start()):
        return False
    origin = origin_of(text_of(content)[0])
    return all(where == origin for _, where, _ in sources)
