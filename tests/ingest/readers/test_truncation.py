"""A small file of each format, cut at every byte: whole records are kept, and no error but ours.

Logs of engines are cut in `test_log_damage`.
"""

from __future__ import annotations

import gzip
import json
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pytest

from stepscope.ingest.errors import TraceError
from stepscope.ingest.readers.chrome.reader import ChromeReader
from stepscope.ingest.readers.core_runtime.reader import RuntimeLogReader
from stepscope.ingest.readers.forward_pass.reader import ForwardPassReader
from stepscope.ingest.readers.kv_events.reader import KvEventsReader
from stepscope.ingest.readers.native.reader import NativeReader
from stepscope.ingest.readers.requests.reader import RequestsReader
from stepscope.ingest.readers.samples.reader import SamplesReader
from stepscope.ingest.readers.seam import Reader
from stepscope.ingest.readers.swimlane.reader import SwimlaneReader
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording import background, segments
from stepscope.ingest.recording.forms.rows import row_struct
from stepscope.ingest.recording.segments import HEADER_BYTES
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import slice_
from tests.ingest.readers.core_runtime.logs import dispatched
from tests.ingest.readers.forward_pass.test_reader import JSON_LINES, RECORDS, pack
from tests.ingest.readers.kv_events.test_reader import message, stored
from tests.ingest.readers.requests.lists import AZURE, BRIX, MOONCAKE, SERVING_SIM
from tests.ingest.readers.swimlane.test_reader import records
from tests.ingest.zstd_frames import in_blocks
from tests.looped import looped
from tests.tiers import sampled, slow

TIMES = "ts_ns"


@dataclass(frozen=True, slots=True)
class Written:
    """A file as records behind a head, each of which is one row of `table`."""

    reader: Reader
    table: str
    head: bytes
    records: tuple[bytes, ...]
    tail: bytes = b""

    @property
    def content(self) -> bytes:
        return self.head + b"".join(self.records) + self.tail

    @property
    def ends(self) -> list[int]:
        """Where the head ends, and each record."""
        return list(accumulate(map(len, self.records), initial=len(self.head)))

    def num_whole(self, length: int) -> int:
        """How many records end within so many bytes."""
        return max(0, sum(end <= length for end in self.ends) - 1)


def lines(reader: Reader, table: str, text: str, num_header_lines: int = 0) -> Written:
    parts = [line.encode() for line in text.splitlines(keepends=True)]
    head, rest = parts[:num_header_lines], parts[num_header_lines:]
    return Written(reader, table, b"".join(head), tuple(rest))


EVENTS = tuple(json.dumps(slice_(f"event {at}", at, 1)).encode() for at in range(2))
# The comma belongs to the next event: without it the one before is whole.
SEPARATED = (EVENTS[0], *(b", " + event for event in EVENTS[1:]))


SHORT: dict[str, list[int]] = {
    "aicpu_scheduler_phases": [],
    "aicpu_orchestrator_phases": [],
    "aicpu_tasks": [],
}


def _swimlane() -> Written:
    head, _, rest = json.dumps(records(**SHORT)).partition('"aicore_tasks": [')
    blocks, _, tail = rest.partition("]], ")
    parts = (blocks + "]").replace("], [", "]\n, [").split("\n")
    return Written(
        SwimlaneReader(), "core_spans", (head + '"aicore_tasks": [').encode(),
        tuple(part.encode() for part in parts), ("], " + tail).encode(),
    )  # fmt: skip


WRITTEN = {
    "kineto": Written(ChromeReader(), "spans", b'{"traceEvents": [', SEPARATED, b"]}"),
    "kv-events": Written(
        KvEventsReader(), "allocations", b"", tuple(message(at, stored(at)) for at in range(4))
    ),
    "forward-pass": Written(ForwardPassReader(), "steps", b"", tuple(map(pack, RECORDS))),
    "forward-pass-json": lines(ForwardPassReader(), "steps", JSON_LINES),
    "azure": lines(RequestsReader(), "lifecycle", AZURE, 1),
    "mooncake": lines(RequestsReader(), "lifecycle", MOONCAKE),
    "servingsim": lines(RequestsReader(), "lifecycle", SERVING_SIM),
    "aibrix": lines(RequestsReader(), "lifecycle", BRIX),
    "samples": lines(SamplesReader(), "counters", "t,throughput\n1.0,3\n2.5,9\n", 1),
    "runtime": lines(
        RuntimeLogReader(), "core_spans",
        "".join(dispatched("aic", task, "0,-1,-1", "0/1", (3, 1)) for task in range(2)),
    ),
    "swimlane": _swimlane(),
}  # fmt: skip


def kept(reader: Reader, path: Path, table: str) -> list[int]:
    """Times of the rows that are read of a file; none where it is refused."""
    try:
        tables, manifest = reader.read(path, None)
    except TraceError as error:
        assert str(error)  # noqa: PT017 - any of ours will do
        return []
    trace = Trace.from_tables(tables, manifest)
    return trace.table(table).collect()[TIMES].to_list()


def assert_whole_are_kept(
    written: Written,
    file: Path,
    content: bytes,
    num_whole: Callable[[int], int],
    lengths: Iterable[int] = (),
) -> None:
    """Cut a file to some lengths, or to every one, and compare what is read with what is whole."""
    file.write_bytes(content)
    whole = kept(written.reader, file, written.table)
    assert len(whole) == len(written.records)
    for length in lengths or range(len(content)):
        file.write_bytes(content[:length])
        times = kept(written.reader, file, written.table)
        assert len(times) >= num_whole(length), length
        assert Counter(times) <= Counter(whole), length


@looped("name", WRITTEN)
def test_a_file_cut_near_the_end_of_a_record_or_at_some_byte_keeps_all_whole_records(
    name: str, tmp_path: Path
) -> None:
    written = WRITTEN[name]
    size = len(written.content)
    assert written.num_whole(size) == len(written.records)
    near = {end + by for end in written.ends for by in (-1, 0, 1)}

    lengths = sorted({*range(3), *range(3, size, 11), *near, size - 2, size - 1} & {*range(size)})
    assert_whole_are_kept(written, tmp_path / "file", written.content, written.num_whole, lengths)


@slow
@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_cut_at_any_byte_keeps_all_whole_records(name: str, tmp_path: Path) -> None:
    written = WRITTEN[name]

    assert_whole_are_kept(written, tmp_path / "file", written.content, written.num_whole)


@slow
@pytest.mark.parametrize("every", sampled([1, 3], [3]))
def test_gzip_cut_at_any_byte_keeps_all_whole_records(tmp_path: Path, every: int) -> None:
    written = WRITTEN["kineto"]
    content = gzip.compress(written.content, mtime=0)

    def num_whole(length: int) -> int:
        return written.num_whole(len(zlib.decompressobj(31).decompress(content[:length])))

    assert num_whole(len(content) - 8) == len(written.records)
    lengths = range(len(content) - 1, 0, -every)  # the last byte always
    assert_whole_are_kept(written, tmp_path / "file", content, num_whole, lengths)


@slow
@pytest.mark.parametrize("every", sampled([1, 3], [3]))
def test_zstd_cut_at_any_byte_keeps_all_whole_records(tmp_path: Path, every: int) -> None:
    written = WRITTEN["kineto"]
    *blocks, last = in_blocks((written.head, *written.records, written.tail))
    content = b"".join([*blocks, last])
    packed = Written(written.reader, written.table, blocks[0], tuple(blocks[1:]))

    near = {end + by for end in packed.ends for by in (-1, 0)}
    lengths = sorted({*range(0, len(content), every), *near} & {*range(len(content))})
    assert_whole_are_kept(written, tmp_path / "file", content, packed.num_whole, lengths)


@slow
def test_a_segment_of_a_journal_cut_at_any_byte_keeps_all_whole_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "SMALLEST_BYTES", 8 << 10)
    monkeypatch.setattr(background, "WORTH_BYTES", 1 << 60)
    with Recorder(tmp_path / "run.trace", producer="engine") as recorder:
        for row in range(3):
            recorder.lifecycle(step=row, ts_ns=row, request="a", event="arrive")
        killed = Path(shutil.copytree(recorder.path, tmp_path / "killed.trace"))
    file = killed / "journal.rank=0" / "lifecycle-000000.seg"
    content = file.read_bytes()
    size = row_struct(BY_NAME["lifecycle"].columns[1:]).size
    header = range(len(content[:HEADER_BYTES].rstrip(b"\0")) + 2)

    for length in (*header, *range(HEADER_BYTES - 2, HEADER_BYTES + 3 * size + 3)):
        file.write_bytes(content[:length])

        times = kept(NativeReader(), killed, "lifecycle")

        assert times == list(range(min(3, max(0, length - HEADER_BYTES) // size))), length
