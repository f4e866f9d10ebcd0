"""Known formats that stepscope does not read: what such a file is, and what to do instead.

Like all formats, they are recognized by the first bytes of a file. Only files that no reader takes
are looked up here, so that a format in this list never hides one that is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_NSYS = re.compile(rb"TABLE StringIds|CUPTI_ACTIVITY_KIND_|META_DATA_EXPORT|NVTX_EVENTS")
_TAR_MAGIC = slice(257, 262)
CHROME_JSON = "record with torch.profiler, or convert it to Chrome JSON"


@dataclass(frozen=True, slots=True)
class Foreign:
    """A format that is not read: its name, what to do instead, and how to recognize it."""

    what: str
    todo: str
    is_it: Callable[[bytes], bool]


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
        "this is a log of TensorRT-LLM without iteration lines",
        "start it with print_iter_log: true (LLM API), or with enable_iter_perf_stats and read "
        "/metrics as JSON lines",
        _has(rb"\[TRT-LLM\]|\[TensorRT-LLM\]", lacks=_REPORTS),
    ),
    Foreign(
        "this is a log of Text Generation Inference, which does not log its batches",
        "open a profile of it (torch.profiler), or serve the model with an engine that logs its "
        "batches",
        _has(rb"text_generation_(?:router|launcher)", lacks=_REPORTS),
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
    ),
    Foreign(
        "this is a log of SGLang without batches",
        "start the server with --log-level info, and with --decode-log-interval for more of them",
        _has(
            rb"sglang|server_args=ServerArgs",
            rb"(?m)^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
            lacks=_REPORTS,
        ),
    ),
)
"""The first entry that recognizes a file counts."""


def known_as(head: bytes) -> Foreign | None:
    """The format of a file that no reader takes, by its decompressed first bytes, if known."""
    return next((foreign for foreign in FOREIGN if foreign.is_it(head)), None)
