"""Known formats that stepscope does not read: what such a file is, and what to do instead.

Like all formats, they are recognized by the first bytes of a file. Only files that no reader takes
are looked up here, so that a format in this list never hides one that is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from stepscope.ingest.errors import TraceError, UnknownFormat
from stepscope.ingest.readers.encodings.inflate import Inflater
from stepscope.ingest.readers.text.split import SNIFF_BYTES, Lines, text_of

_NSYS = re.compile(rb"TABLE StringIds|CUPTI_ACTIVITY_KIND_|META_DATA_EXPORT|NVTX_EVENTS")
MOST_CHARS = 300
_PREFIX = re.compile(
    r"^(?:\([^()]{1,60} pid=\d{1,9}\) )?"
    r"(?:[^\[\]]{0,60}\[[^\[\]]{1,64}\.(?:py|cc|cpp|rs|go):\d{1,6}\] ?)?"
    r"(?:\[[A-Z]\] )?"
)
"""What processes of vLLM, and levels, write before a message."""
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w{0,63}\.){0,8}[A-Z]\w{0,63}(?:Error|Exception)(?:: .|$)")
_CONSEQUENCE = re.compile(
    r"EngineDeadError|EngineGenerateError|CancelledError|initialization failed|See root cause above"
)
"""Errors by which other processes say that the engine did not start, or is gone."""
_ERROR_LINE = re.compile(
    rb"\b(?:ERROR|CRITICAL|FATAL)\b(?: \d\d-\d\d [\d:]{8})?|level=(?:error|fatal)"
    rb"|\[TRT-LLM\] \[E\]"
)
_TAR_MAGIC = slice(257, 262)
CHROME_JSON = "record with torch.profiler, or convert it to Chrome JSON"


@dataclass(frozen=True, slots=True)
class Foreign:
    """A format that is not read: its name, what to do instead, and how to recognize it.

    Of a log the last error that its engine wrote is part of the message, of an answer of an API its
    own error.
    """

    what: str
    todo: str
    is_it: Callable[[bytes], bool]
    is_log: bool = False


def _begins(*magic: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(magic)


def _is_tar(head: bytes) -> bool:
    return head[_TAR_MAGIC] == b"ustar"


def _is_utf16_json(head: bytes) -> bool:
    encoding = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(head[:2])
    return encoding is not None and head[2:].decode(encoding, "replace").lstrip()[:1] in ("{", "[")


def _has(*patterns: bytes, lacks: bytes = b"(?!)") -> Callable[[bytes], bool]:
    """Return a test that all patterns are in the head of a file, and `lacks` is not."""
    compiled, absent = [re.compile(pattern) for pattern in patterns], re.compile(lacks)
    return lambda head: (
        not absent.search(head) and all(pattern.search(head) for pattern in compiled)
    )


_JSON = rb"^\s*[\[{]"
_REPORTS = (
    rb"iter = \d|iterLatencyMS|Avg prompt throughput|Iteration\(\d|(?:Prefill|Decode) batch"
    rb"|#retracted_reqs|slot +\w+: +id"
)
"""What readers of logs look for; such a log is not refused."""
_AGAIN = "ask again, with the time of the run, its service, or the id of a trace that exists"
FOREIGN = (
    Foreign("this is a tar archive", "unpack it, and open a file or the folder", _is_tar),
    Foreign(
        "this is a zip archive", "unpack it, and open a file or the folder", _begins(b"PK\3\4")
    ),
    Foreign(
        "this is compressed by xz, bzip2, LZ4 or 7-Zip; stepscope opens gzip and zstd itself",
        "unpack it first",
        _begins(b"\xfd7zXZ\0", b"BZh", b"\x04\x22\x4d\x18", b"7z\xbc\xaf\x27\x1c"),
    ),
    Foreign(
        "this is a single Parquet file; a trace of stepscope is the folder around it",
        "open the .trace directory",
        _begins(b"PAR1"),
    ),
    Foreign(
        "this is an SQLite database that neither Nsight Systems nor rocprofv3 wrote",
        "export a report of Nsight Systems: nsys export --type sqlite",
        lambda head: head.startswith(b"SQLite format 3\0") and not _NSYS.search(head),
    ),
    Foreign(
        "this is JSON in UTF-16",
        "convert it: iconv -f UTF-16 -t UTF-8",
        _is_utf16_json,
    ),
    Foreign(
        "this is a pickle of Python, as torch's memory snapshots and flight recorder write; "
        "stepscope does not read it, as reading one runs what is in it",
        CHROME_JSON,
        _begins(b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
    ),
    Foreign(
        "this is a result of a serving benchmark (vllm bench serve, SGLang's bench_serving) with "
        "totals only; it does not list its requests",
        "run it again with --save-detailed (vllm bench serve) or --output-details (SGLang's "
        "bench_serving), or open the server's log of that time",
        _has(_JSON, rb'"(?:ttfts|itls|mean_ttft_ms|request_throughput|total_input_tokens)"'),
    ),
    Foreign(
        "this is an execution trace of Chakra, a graph without the times of a run",
        CHROME_JSON,
        _has(_JSON, rb'"schema"\s*:\s*"[\w.-]{0,40}chakra'),
    ),
    Foreign(
        "this is JSON of iterations in another form than that of TensorRT-LLM's /metrics, whose "
        "objects have iter, iterLatencyMS and inflightBatchingStats",
        "start trtllm-serve with enable_iter_perf_stats: true, and save the answers of /metrics as "
        "JSON lines; or open a log with print_iter_log: true",
        _has(
            _JSON,
            rb'(?i)"(?:iter|iterations?|iteration[_ ]?(?:counter|stats|log)|iter_?latency\w{0,8})"',
            rb"(?i)num_?(?:ctx|context|gen|scheduled|active|queued)_?\w{0,16}req"
            rb'|"Active Request Count"|"Scheduled Requests"|batching_?stats|kv_?cache_?stats',
            lacks=rb'"iterLatencyMS"',
        ),
    ),
    Foreign(
        "this is an error of Prometheus's API",
        "ask /api/v1/query_range again, for the metrics and the time of the run",
        lambda head: _answer(head).get("status") == "error",
    ),
    Foreign(
        "this is an error of the API of Jaeger or Tempo",
        _AGAIN,
        lambda head: not _answer(head).get("data") and _api_error(head) is not None,
    ),
    Foreign(
        "this is an answer of the API of Jaeger or Tempo without a trace",
        f"{_AGAIN} (lookback or start and end, limit)",
        lambda head: any(
            name in _answer(head) and not _answer(head)[name]
            for name in ("data", "batches", "traces")
        ),
    ),
    Foreign(
        "this is a log of Ollama, which does not log its batches",
        "serve the model with llama.cpp's llama-server, whose log names slots and tasks",
        _has(
            rb"(?i)\bOLLAMA_\w|\bollama\b|source=(?:routes|sched|server|runner|images)\.go:\d",
            rb"\[GIN|level=(?:DEBUG|INFO|WARN|ERROR)",
            lacks=_REPORTS,
        ),
        is_log=True,
    ),
    Foreign(
        "this is a log of LMDeploy, which does not log its batches",
        "open a profile of its PyTorch engine (start it with LMDEPLOY_PROFILE_CPU=1 "
        "LMDEPLOY_PROFILE_CUDA=1 LMDEPLOY_PROFILE_OUT_PREFIX=/path/profile_), or serve the model "
        "with an engine that logs its batches",
        _has(rb"- lmdeploy - [A-Z]|\[TM\]\[[A-Z]{4,8}\]", lacks=_REPORTS),
        is_log=True,
    ),
    Foreign(
        "this is a log of llama.cpp's server without slots that work",
        "send requests to the server while it logs, or run it with --verbose",
        _has(
            rb"(?m)^(?:[\d.]{4,24} [A-Z] )?(?:llama_\w{4,32}|main|srv +\w{1,32}|build): ",
            rb"llama",
            rb"(?m)main: |srv +\w{1,32}: |build: \d",
            lacks=_REPORTS,
        ),
        is_log=True,
    ),
    Foreign(
        "this is a log of TensorRT-LLM without iteration lines",
        "start it with print_iter_log: true (LLM API), or with enable_iter_perf_stats and read "
        "/metrics as JSON lines",
        _has(rb"\[TRT-LLM\]|\[TensorRT-LLM\]", lacks=_REPORTS),
        is_log=True,
    ),
    Foreign(
        "this is a log of Text Generation Inference, which does not log its batches",
        "open a profile of it (torch.profiler), or serve the model with an engine that logs its "
        "batches",
        _has(rb"text_generation_(?:router|launcher)", lacks=_REPORTS),
        is_log=True,
    ),
    Foreign(
        "this is a log of a router, which shows where requests went, not what the engines did",
        "open the logs of the engines behind it",
        _has(rb"(?:vllm|sglang|sgl)[_-](?:production-stack|model-gateway|router)", lacks=_REPORTS),
    ),
    Foreign(
        "this is a log of vLLM without reports of its engine",
        "start the server without --disable-log-stats; of a script that calls LLM.generate, set "
        "disable_log_stats=False, or record it (docs/attach.md)",
        _has(
            rb"vllm|VLLM",
            rb"(?m)(?:INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \[",
            lacks=_REPORTS,
        ),
        is_log=True,
    ),
    Foreign(
        "this is a log of SGLang without batches",
        "start the server with --log-level info, and with --decode-log-interval for more of them",
        _has(
            rb"sglang|server_args=ServerArgs",
            rb"(?m)^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
            lacks=_REPORTS,
        ),
        is_log=True,
    ),
)
"""The first entry that recognizes a file counts."""


def known_as(head: bytes) -> Foreign | None:
    """The format of a file that no reader takes, by its decompressed first bytes, if known."""
    return next((foreign for foreign in FOREIGN if foreign.is_it(head)), None)


def refusal_of(head: bytes, path: Path) -> UnknownFormat | None:
    """The error for a file of a known format that no reader takes; None for any other file."""
    foreign = known_as(head)
    if foreign is None:
        return None
    if foreign.is_log and (error := _last_error(path)):
        what = f"{foreign.what}; the last error in it is: {error}"
        todo = f"if it did not start, act on that error; if it did, {foreign.todo}"
        return UnknownFormat(what, where=str(path), todo=todo)
    error = _api_error(head)
    what = f"{foreign.what}: {error}" if error else foreign.what
    return UnknownFormat(what, where=str(path), todo=foreign.todo)


# -- answers of APIs -----------------------------------------------------------------------------


def _answer(head: bytes) -> dict[str, Any]:
    """The object that a short file is, empty if it is none."""
    try:
        found = msgspec.json.decode(head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _api_error(head: bytes) -> str | None:
    """The error that an answer of an API consists of; None for any other file."""
    answer = _answer(head)
    listed = answer.get("errors")
    first = listed[0] if isinstance(listed, list) and listed else answer.get("error")
    if isinstance(first, dict):
        first = first.get("msg") or first.get("message")
    if not isinstance(first, str):
        return None
    kind = answer.get("errorType")
    return _shown(f"{kind}: {first}" if isinstance(kind, str) else first)


# -- errors in logs ------------------------------------------------------------------------------


def _last_error(path: Path) -> str | None:
    """The last exception in a log that is no consequence of another, else its last error line."""
    exception = consequence = line_of_error = None
    try:
        for line, _ in Lines(_begin(path)):
            if b"rror" not in line and b"xception" not in line and not _ERROR_LINE.search(line):
                continue
            text = _PREFIX.sub("", text_of(line)[0]).strip()
            if _EXCEPTION.match(text):
                if _CONSEQUENCE.search(text):
                    consequence = text
                else:
                    exception = text
            elif match := _ERROR_LINE.search(line):
                rest = text_of(line[match.end() :])[0]
                line_of_error = _PREFIX.sub("", rest).strip() or line_of_error
    except (OSError, TraceError):
        pass
    error = exception or consequence or line_of_error
    return None if error is None else _shown(error)


def _begin(path: Path) -> Iterator[bytes]:
    """As much of a file as readers look through for a line that they know."""
    num_bytes = 0
    for block in Inflater(path):
        yield block
        num_bytes += len(block)
        if num_bytes > SNIFF_BYTES:
            return


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_CHARS else f"{line[: MOST_CHARS - 1]}…"
