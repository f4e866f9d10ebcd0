"""What is fuzzed: for each reader, files to begin with, and how bytes become what it reads."""

from __future__ import annotations

import gzip
import json
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from polars.testing import assert_frame_equal

from stepscope.ingest.errors import TraceError
from stepscope.ingest.limits import Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.readers.benchmark.reader import BenchmarkReader
from stepscope.ingest.readers.chrome import decode
from stepscope.ingest.readers.chrome.reader import ChromeReader
from stepscope.ingest.readers.core_runtime.reader import RuntimeLogReader
from stepscope.ingest.readers.encodings.inflate import inflated
from stepscope.ingest.readers.forward_pass.reader import ForwardPassReader
from stepscope.ingest.readers.jaeger.reader import JaegerReader
from stepscope.ingest.readers.kv_events.reader import KvEventsReader
from stepscope.ingest.readers.logs.reader import EngineLogReader
from stepscope.ingest.readers.native.reader import NativeReader
from stepscope.ingest.readers.nsys.reader import NsysReader
from stepscope.ingest.readers.otlp.reader import OtlpReader
from stepscope.ingest.readers.perfetto.reader import PerfettoReader
from stepscope.ingest.readers.prometheus.reader import PrometheusReader
from stepscope.ingest.readers.requests.reader import RequestsReader
from stepscope.ingest.readers.rocpd.reader import RocpdReader
from stepscope.ingest.readers.rocprofv3.reader import Rocprofv3Reader
from stepscope.ingest.readers.samples.reader import SamplesReader
from stepscope.ingest.readers.seam import HEAD_BYTES, Reader
from stepscope.ingest.readers.stat_lines.reader import StatLinesReader
from stepscope.ingest.readers.swimlane.reader import SwimlaneReader
from stepscope.ingest.readers.xplane.reader import XPlaneReader
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording import background, segments
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.ingest.log_files import LOGS
from tests.ingest.perfetto_files import LEGACY, event, pack
from tests.ingest.readers.benchmark.test_reader import RESULT
from tests.ingest.readers.chrome.test_damage import LAYOUTS
from tests.ingest.readers.core_runtime.logs import RUNTIME_LOGS
from tests.ingest.readers.forward_pass.test_reader import CAPTURE as PASSES
from tests.ingest.readers.forward_pass.test_reader import JSON_LINES
from tests.ingest.readers.jaeger.test_reader import answer as jaeger_answer
from tests.ingest.readers.jaeger.test_reader import request
from tests.ingest.readers.kv_events.test_reader import CAPTURE
from tests.ingest.readers.nsys.files import TABLES, exported, two_steps
from tests.ingest.readers.otlp.test_reader import SERVED, span
from tests.ingest.readers.otlp.test_reader import exported as spans_exported
from tests.ingest.readers.prometheus.test_reader import scrape, unix_time
from tests.ingest.readers.requests.lists import LISTS
from tests.ingest.readers.rocpd import files as rocpd_files
from tests.ingest.readers.rocprofv3.files import process, written
from tests.ingest.readers.samples.test_reader import SAMPLES
from tests.ingest.readers.stat_lines.test_reader import nested
from tests.ingest.readers.swimlane.test_reader import deps, records
from tests.ingest.readers.xplane.files import two_steps as two_xla_steps
from tests.ingest.zstd_frames import framed

# Small enough that what a limit leaves out is met, too.
LIMITS = Limits(inflated=8 << 20, event=256 << 10, message=64 << 10, text=4 << 10, line=8 << 10,
                depth=32, events=2_000, rows=2_000, tracks=64)  # fmt: skip
SAMPLE_BYTES = 6 << 10
Place = Callable[[bytes, Path], Path]


@dataclass(frozen=True, slots=True)
class Target:
    """A reader, seeds, and how bytes are laid out in a folder for it: gives what is opened."""

    reader: Reader
    seeds: Callable[[], Iterator[bytes]]
    place: Place

    def __call__(self, content: bytes, folder: Path) -> None:
        """Read what may or may not be a trace; raises all but `TraceError`."""
        path = self.place(content, folder)
        self.reader.sniff(
            b"" if path.is_dir() else inflated(content[:HEAD_BYTES], HEAD_BYTES), path
        )
        with suppress(TraceError):
            use(Trace.from_tables(*self.reader.read(path, None, LIMITS)))


class EventsTarget(Target):
    """Trace events: what is read of them in one pass must be what decoding each gives."""

    def __call__(self, content: bytes, folder: Path) -> None:
        """Read it, and its events by themselves both ways."""
        super().__call__(content, folder)
        events = content.strip().removeprefix(b"[").removesuffix(b"]")
        if decode.IS_COMPILED and (found := decode.scanned(events)):
            expected = decode.decoded(events)
            assert expected is not None
            assert_frame_equal(found.whole(), expected.whole())


def use(trace: Trace) -> None:
    """Do with a trace what every command does: all of its rows, what it says, and its manifest."""
    trace.start_ns()
    repr(trace)
    text = trace.manifest.to_json()
    assert Manifest.from_json(text.encode()).to_json() == text


def as_file(name: str) -> Place:
    def place(content: bytes, folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return place


def as_one_of(template: Callable[[], Path]) -> Place:
    """Let the first byte choose which file of a folder the others replace."""

    def place(content: bytes, folder: Path) -> Path:
        made = folder / "made"
        shutil.rmtree(made, ignore_errors=True)
        shutil.copytree(template(), made)
        files = files_of(made)
        files[content[0] % len(files) if content else 0].write_bytes(content[1:])
        return made

    return place


def files_of(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def each_of(template: Callable[[], Path]) -> Iterator[bytes]:
    for number, file in enumerate(files_of(template())):
        yield bytes([number]) + file.read_bytes()


def of_a_folder(make: Callable[[Path], None]) -> Callable[[], Path]:
    """Make a folder once, which is there until the process ends."""
    made: list[TemporaryDirectory[str]] = []

    def template() -> Path:
        if not made:
            made.append(TemporaryDirectory())
            make(Path(made[0].name))
        return Path(made[0].name)

    return template


def _journal(folder: Path) -> None:
    """A trace of a few rows whose recorder never came to close it."""
    sizes = patch.multiple(segments, SMALLEST_BYTES=8 << 10, LARGEST_BYTES=8 << 10)
    alone = patch.object(background, "WORTH_BYTES", 1 << 60)  # no other process compacts
    with TemporaryDirectory() as made, sizes, alone, Recorder(made, producer="fuzz") as recorder:
        for step in range(4):
            recorder.lifecycle(step=step, ts_ns=step, request=f"r{step}", event="arrive")
        shutil.copytree(made, folder, dirs_exist_ok=True)


def _swimlane(folder: Path) -> None:
    (folder / "chip_swimlane_records.json").write_text(json.dumps(records()))
    (folder / "deps.json").write_text(json.dumps(deps()))
    (folder / "name_map_a.json").write_text('{"callable_id_to_name": {"7": "softmax"}}')
    scopes = [{"task_window_max": [4]}, {"ring": 1, "task_window_end": 2, "heap_end": 3}]
    (folder / "scope_stats.jsonl").write_text("\n".join(map(json.dumps, scopes)))


JOURNAL, SWIMLANE = of_a_folder(_journal), of_a_folder(_swimlane)


def _kineto() -> Iterator[bytes]:
    yield from LAYOUTS.values()
    for sample in sorted((ROOT / "sample_traces").glob("*.json.gz")):
        yield gzip.decompress(sample.read_bytes())[:SAMPLE_BYTES]
    for content in (LAYOUTS["compact"], LAYOUTS["array"]):
        yield gzip.compress(content)
        yield framed(content)


def _perfetto() -> Iterator[bytes]:
    """A sample in part, old events, as many as are read at once, and those in other packets."""
    sample = (ROOT / "sample_traces" / "perfetto_two_ranks.pftrace").read_bytes()[:SAMPLE_BYTES]
    arguments = [{"name": "a", "dict_entries": [{"name": "b", "legacy_json_value": "[1]"}]}]
    events = pack(*LEGACY, event(1, 1, "a", debug_annotations=arguments, flow_ids=[1]), event(2, 2))
    yield sample
    yield events
    yield pack(*(event(ts, 3, f"e{ts % 7}", correlation_id=ts) for ts in range(300)))
    yield gzip.compress(sample)
    yield pack({"compressed_packets": zlib.compress(events)})
    yield pack({"zstd_compressed_packets": framed(events)})


def _nsys() -> Iterator[bytes]:
    """An export of the tables that spans are made of, plain and compressed."""
    few = {name: columns for name, columns in TABLES.items() if name in two_steps()}
    few |= {name: TABLES[name] for name in NAMED}
    with TemporaryDirectory() as folder:
        content = exported(Path(folder) / "a.sqlite", two_steps(), few).read_bytes()
    yield content
    yield gzip.compress(content)


NAMED = ("StringIds", "TARGET_INFO_SESSION_START_TIME", "META_DATA_EXPORT")


def _rocpd() -> Iterator[bytes]:
    """A database of two steps, plain and compressed."""
    with TemporaryDirectory() as folder:
        content = rocpd_files.database(Path(folder) / "a.db", rocpd_files.two_steps()).read_bytes()
    yield content
    yield gzip.compress(content)


def _texts(*texts: str) -> Callable[[], Iterator[bytes]]:
    return lambda: (text.encode() for text in texts)


TARGETS = {
    "kineto": EventsTarget(ChromeReader(), _kineto, as_file("trace.json")),
    "journal": Target(NativeReader(), lambda: each_of(JOURNAL), as_one_of(JOURNAL)),
    "swimlane": Target(SwimlaneReader(), lambda: each_of(SWIMLANE), as_one_of(SWIMLANE)),
    "kv-events": Target(KvEventsReader(), lambda: iter([CAPTURE]), as_file("events.bin")),
    "forward-pass": Target(
        ForwardPassReader(), lambda: iter([PASSES, JSON_LINES.encode()]), as_file("metrics")
    ),
    "perfetto": Target(PerfettoReader(), _perfetto, as_file("trace.pftrace")),
    "runtime-log": Target(
        RuntimeLogReader(), _texts(*RUNTIME_LOGS.values()), as_file("device.log")
    ),
    "rocprofv3": Target(
        Rocprofv3Reader(), _texts(json.dumps(written(process()))), as_file("results.json")
    ),
    "xplane": Target(
        XPlaneReader(),
        lambda: iter([two_xla_steps(), two_xla_steps(marked=False)]),
        as_file("a.xplane.pb"),
    ),
    "otlp": Target(
        OtlpReader(),
        _texts(json.dumps(spans_exported(SERVED, span("a", 0, 1)))),
        as_file("spans.json"),
    ),
    "jaeger": Target(
        JaegerReader(), _texts(json.dumps(jaeger_answer(request(1, 0.0, 1.2)))), as_file("j.json")
    ),
    "benchmark": Target(BenchmarkReader(), _texts(json.dumps(RESULT)), as_file("result.json")),
    "prometheus": Target(
        PrometheusReader(),
        _texts("".join(unix_time(number) + scrape(number) for number in range(3))),
        as_file("metrics.txt"),
    ),
    "stat-lines": Target(
        StatLinesReader(),
        _texts("\n".join(json.dumps(nested(number)) for number in range(3))),
        as_file("stats.jsonl"),
    ),
    "rocpd": Target(RocpdReader(), _rocpd, as_file("results.db")),
    "nsys": Target(NsysReader(), _nsys, as_file("report.sqlite")),
    "requests": Target(RequestsReader(), _texts(*LISTS), as_file("requests.csv")),
    "samples": Target(SamplesReader(), _texts(SAMPLES), as_file("samples.csv")),
    **{
        f"log-{engine}": Target(EngineLogReader(), _texts(text), as_file("server.log"))
        for engine, text in LOGS.items()
    },
}


def every_seed() -> Iterator[bytes]:
    """The seeds of all targets, each behind the number of its target."""
    for number, target in enumerate(TARGETS.values()):
        yield from (bytes([number]) + seed for seed in target.seeds())


def every_target(content: bytes, folder: Path) -> None:
    """Let the first byte choose the target."""
    targets = list(TARGETS.values())
    targets[content[0] % len(targets) if content else 0](content[1:], folder)
