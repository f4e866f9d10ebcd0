"""Each file is taken for what it is: by one reader, or by none and with a line that says so."""

from __future__ import annotations

import gzip
import json
import lzma
import pickle
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.errors import LimitExceeded, TraceError, UnknownFormat
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers import reader_of, readers
from stepscope.ingest.readers.encodings.inflate import inflated
from stepscope.ingest.readers.foreign import FOREIGN, known_as
from stepscope.ingest.readers.seam import HEAD_BYTES
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.ingest.kineto_files import open_bytes, rows, slice_
from tests.tiers import slow

SHARED = ROOT.parent / "shared"
FOLDERS = (ROOT / "sample_traces", SHARED / "data", SHARED / "foreign")
# How the name of each reader begins.
NATIVE, SWIMLANE, CHROME, FOLDER = "stepscope", "core-group", "torch.profiler", "folder"
KV, PERFETTO, REQUESTS = "KV cache", "Perfetto", "list of requests"
RUNTIME, ENGINE = "log of the core-group", "log of an engine"
FORWARD, SAMPLES = "forward pass metrics", "measurements over time"
NSYS, ROCPROF, XPLANE = "Nsight Systems", "rocprofv3", "XPlane"
OTLP = "OpenTelemetry"
PROFILERS = (NSYS, ROCPROF, XPLANE, OTLP)
NAMES = tuple(reader.name for reader in readers())
# What each file must be: one of these, or a part of the line that refuses it.
EXPECTED = {
    "sample_traces/*.trace": NATIVE,
    "sample_traces/*.json.gz": CHROME,
    "sample_traces/*.xplane.pb.gz": XPLANE,
    "sample_traces/*.pftrace": PERFETTO,
    "sample_traces/*.log": ENGINE,
    "sample_traces/*.msgpack": KV,
    "sample_traces/*.py": "not known",
    "sample_traces/README.md": "not known",
    "data/kineto/*.json.gz": CHROME,
    "data/logs/*livebug*": RUNTIME,
    "data/logs/mixed_example*": RUNTIME,
    "data/logs/scope_deadlock*": RUNTIME,
    "data/logs/stall_*": RUNTIME,
    "data/logs/formats.log": ENGINE,
    "data/logs/sglang_retract.log": ENGINE,
    "data/requests/*": REQUESTS,
    "data/swimlane/*": SWIMLANE,
    "data/README.md": "not known",
    "foreign/README.md": "not known",
    "foreign/MANIFEST.tsv": "not known",
    "foreign/aibrix_5s_workload.jsonl": REQUESTS,
    "foreign/fpm.jsonl": FORWARD,
    "foreign/fpm.msgpack": FORWARD,
    "foreign/jax_conv_mi300.xplane.pb": XPLANE,
    "foreign/llmservingsim_sim.log": ENGINE,
    "foreign/llmservingsim_vllm_requests.jsonl": REQUESTS,
    "foreign/llmservingsim_vllm_timeseries.csv": SAMPLES,
    "foreign/llmservingsim_workload.jsonl": REQUESTS,
    "foreign/merged_tp.json": CHROME,
    "foreign/nsys_mock.sqlite": NSYS,
    "foreign/otlp.json": OTLP,
    "foreign/rocprofv3_908_results.json.gz": ROCPROF,
    "foreign/sglang_int4_dgx_spark.log": ENGINE,
    "foreign/trt_metrics.json": ENGINE,
    "foreign/trt_new.log": ENGINE,
    "foreign/vllm_dgx_spark.log": ENGINE,
    "foreign/xprof_trace_viewer.json": CHROME,
}


def files() -> list[str]:
    """Every file, and every folder that is one trace, as its place beside the others."""
    found = [
        str(path.relative_to(folder.parent))
        for folder in FOLDERS
        for path in folder.rglob("*")
        if not any(parent.suffix == ".trace" for parent in path.parents)
        and "__pycache__" not in path.parts
        and (path.is_file() or path.suffix == ".trace")
    ]
    return sorted(found)


def expected(name: str) -> str:
    (what,) = {what for pattern, what in EXPECTED.items() if fnmatch(name, pattern)}
    return what


def path_of(name: str) -> Path:
    (folder,) = (folder for folder in FOLDERS if folder.name == Path(name).parts[0])
    return folder.parent / name


def head_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def test_each_file_is_taken_by_its_reader_alone_or_refused_with_a_line() -> None:
    for name in files():
        path, what = path_of(name), expected(name)
        head = b"" if path.is_dir() else inflated(head_of(path), HEAD_BYTES)

        takes = [reader.name for reader in readers() if reader.sniff(head, path)]

        if any(known.startswith(what) for known in NAMES):
            assert [taken.startswith(what) for taken in takes] == [True], name
            assert reader_of(path).name == takes[0], name
            assert known_as(head) is None, name
        else:
            assert takes == [], name
            with pytest.raises(UnknownFormat, match=what) as refused:
                reader_of(path)
            assert "\n" not in str(refused.value), name


# -- what is made here, so that it is told everywhere ------------------------------------------


def sqlite(folder: Path, table: str) -> bytes:
    with closing(sqlite3.connect(folder / "made.db")) as made:
        made.execute(f"create table {table} (start integer)")
        made.commit()
    return (folder / "made.db").read_bytes()


def tar(folder: Path) -> bytes:
    with tarfile.open(folder / "made.tar", "w") as made:
        made.add(__file__, "trace.json")
    return (folder / "made.tar").read_bytes()


MADE: dict[str, Callable[[Path], bytes]] = {
    "an SQLite database that neither Nsight": lambda folder: sqlite(folder, "music"),
    "JSON in UTF-16": lambda _: '{"traceEvents": []}'.encode("utf-16"),
    "a pickle of Python": lambda _: pickle.dumps({"segments": []}),
    "a tar archive": tar,
    "a zip archive": lambda _: b"PK\3\4" + bytes(26),
    "compressed by xz": lambda _: lzma.compress(b'{"traceEvents": []}'),
    "a single Parquet file": lambda _: b"PAR1" + bytes(26),
    "a result of a serving benchmark": lambda _: b'{"mean_ttft_ms": 0.1}',
    "an execution trace of Chakra": lambda _: b'{"schema": "1.1.1-chakra.0.0.4"}',
    "JSON of iterations in another form": lambda _: b'{"iter": 1, "num_ctx_requests": 2}',
    "an error of Prometheus's API": lambda _: b'{"status": "error", "error": "x"}',
    "an error of the API of Jaeger": lambda _: b'{"data": null, "errors": [{"msg": "x"}]}',
    "an answer of the API of Jaeger or Tempo without": lambda _: b'{"data": []}',
    "a log of Ollama": lambda _: b'time=x level=INFO source=routes.go:1 msg="up"\n',
    "a log of LMDeploy": lambda _: b"2026-04-11 04:15:17,172 - lmdeploy - INFO - up\n",
    "a log of llama.cpp's server without": lambda _: b"main: loading llama\nsrv  init: up\n",
    "a log of TensorRT-LLM without": lambda _: b"[09/04/2026-19:08:00] [TRT-LLM] [I] started\n",
    "a log of Text Generation Inference": lambda _: b"INFO text_generation_router: up\n",
    "a log of a router": lambda _: b"[INFO] sglang_router: added a worker\n",
    "a log of vLLM without": lambda _: b"INFO 06-18 10:00:10 [config.py:9] vllm config\n",
    "a log of SGLang without": lambda _: b"[2026-08-10 09:00:00] server_args=ServerArgs()\n",
}


@slow
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_known_format_that_is_not_read_is_refused_by_its_name(
    tmp_path: Path, is_packed: bool
) -> None:
    for what, make in MADE.items():
        made = make(tmp_path)

        with pytest.raises(UnknownFormat, match=what) as refused:
            open_bytes(tmp_path, gzip.compress(made) if is_packed else made, "trace.json")

        assert refused.value.todo, what
        assert "\n" not in str(refused.value), what


def test_every_line_on_a_format_that_is_not_read_is_tried(tmp_path: Path) -> None:
    found = {known_as(made(tmp_path)) for made in MADE.values()}

    assert {foreign.what for foreign in FOREIGN} == {each.what for each in found if each}


def test_a_file_of_packets_of_which_none_can_be_decoded_is_no_empty_trace(tmp_path: Path) -> None:
    packet = b"\x0a\x06\x50\x01\x5a\x02\xff\xff"

    with pytest.raises(TraceError, match="none of its packets can be decoded"):
        open_bytes(tmp_path, packet * 8, "a.pftrace")


# -- much before the events --------------------------------------------------------------------

LONG = "x" * (HEAD_BYTES + 1000)
BEFORE: dict[str, dict[str, Any]] = {
    "an object": {"otherData": {"note": LONG}},
    "many fields": {f"field {number}": "y" * 100 for number in range(2_000)},
    "arrays and words that are none": {"a": [{"b": [1, 2, '"traceEvents": ['], "c": LONG}]},
}


@slow
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_events_are_found_behind_more_than_is_looked_at_first(tmp_path: Path, suffix: str) -> None:
    events = [slice_("a", 1, 2), slice_("b", 4, 2)]
    for before, fields in BEFORE.items():
        for indent in (None, 1):
            text = json.dumps({**fields, "traceEvents": events}, indent=indent).encode()
            content = gzip.compress(text) if suffix else text

            trace = open_bytes(tmp_path, content, f"a.json{suffix}")

            assert rows(trace, "spans", "name") == ["a", "b"], before


def test_an_array_whose_first_event_is_long_is_known(tmp_path: Path) -> None:
    first = {"args": {"name": LONG}, "name": "process_name", "pid": 1, "ph": "M"}
    content = json.dumps([first, slice_("a", 1, 2)]).encode()

    assert rows(open_bytes(tmp_path, content), "spans", "name") == ["a"]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"otherData": LONG, "events": []}),
        json.dumps([{"a": LONG}, {"phase": 1}]),
        (json.dumps({"text": "w" * 90}) + "\n") * 1_000 + '{"traceEvents": []}',
    ],
    ids=["an object without events", "an array of others", "lines of JSON"],
)
def test_other_json_of_that_length_is_not_known(tmp_path: Path, content: str) -> None:
    with pytest.raises(UnknownFormat):
        open_bytes(tmp_path, content.encode())


def test_an_object_of_which_the_events_come_too_late_says_which_limit_it_was(
    tmp_path: Path,
) -> None:
    content = json.dumps({"otherData": 64 * LONG, "traceEvents": [slice_("a", 1, 2)]}).encode()
    (tmp_path / "a.json").write_bytes(content)

    with pytest.raises(LimitExceeded, match="no traceEvents in the first"):
        Trace.open(tmp_path / "a.json", limits=Limits(event=HEAD_BYTES))
