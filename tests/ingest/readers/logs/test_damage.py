"""Logs that are cut off, torn, or made to hurt."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stepscope.ingest.readers.logs.reader import (
    CUT_OFF,
    OTHER_LINES,
    EngineLog,
    EngineLogReader,
)
from stepscope.ingest.readers.text.split import NO_END, Lines
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import ATOM, LOGS, SGLANG, VLLM, open_log, report_of
from tests.ingest.readers.hostile import use_or_refuse
from tests.tiers import sampled, slow

MAY_DIFFER = ("tag", "ts_ns")
QUICK = ("vllm", "sglang")


def read(content: bytes) -> tuple[list[str], dict[str, pl.DataFrame]]:
    """The kinds of the lines that were read, and their tables."""
    log = EngineLog()
    kinds = list(log.read(Lines([content])))
    return kinds, dict(log.rows.tables())


@slow
@pytest.mark.parametrize("engine", sampled(LOGS, QUICK))
def test_cut_anywhere_all_whole_lines_are_kept(engine: str) -> None:
    content = LOGS[engine].encode()

    for length in range(len(content)):
        begin = content.rfind(b"\n", 0, length) + 1
        kinds, tables = read(content[:length])
        expected_kinds, expected = read(content[:begin])
        assert kinds[: len(expected_kinds)] == expected_kinds
        if engine == "llamacpp":
            continue  # whether a batch goes on is told by the next line: its rows may still change
        for name, frame in expected.items():
            assert tables[name].head(len(frame)).equals(frame), (length, name)


@slow
@pytest.mark.parametrize("engine", sampled(LOGS, QUICK))
def test_cut_anywhere_nothing_is_told_that_the_whole_log_does_not_tell(engine: str) -> None:
    content = LOGS[engine].encode()
    _, whole = read(content)

    for length in range(len(content)):
        for name, frame in read(content[:length])[1].items():
            if engine == "llamacpp" and name == "steps":
                continue
            for column in frame.drop(MAY_DIFFER, strict=False).iter_columns():
                told = set(whole[name][column.name]) | {None}
                assert set(column) <= told, (length, column.name)


def test_a_log_that_ends_within_a_line_says_so(tmp_path: Path) -> None:
    for engine, log in LOGS.items():
        torn = report_of(open_log(tmp_path, log + log[: log.index("\n") // 2]))
        whole = report_of(open_log(tmp_path, log[:-1]))

        others = whole.skipped.get(OTHER_LINES, 0)
        is_counted = CUT_OFF in torn.skipped or torn.skipped[OTHER_LINES] > others
        assert is_counted or NO_END in torn.repaired, engine


def test_the_last_number_of_a_line_without_its_end_is_not_believed(tmp_path: Path) -> None:
    trace = open_log(tmp_path, "Decode batch, #running-req: 12, #token: 81316, #queue-req: 1")

    assert rows(trace, "steps", "num_running", "num_waiting") == [(12, None)]
    assert report_of(trace).repaired == {NO_END: 1}


def test_a_damaged_gzip_log_keeps_the_lines_before(tmp_path: Path) -> None:
    packed = gzip.compress((VLLM * 200).encode())
    counts = []

    for length in range(len(packed) // 2, len(packed), 97):
        trace = open_log(tmp_path, packed[:length])
        assert not trace.manifest.closed
        assert trace.manifest.tables["counters"] == "partial"
        assert any("cut off" in note for note in report_of(trace).notes)
        counts.append(trace.num_rows("steps"))

    assert counts == sorted(counts)
    assert counts[-1] > 500


JUNK = (
    b"", b"\n", b"\r", b"\0", b"\xff", b"\x1b[", b"9" * 40, b", ", b": ", b" = ", b"{",
    b"]", b"nan",
)  # fmt: skip
BATCH = b"Scheduled prefill batch: 1 reqs, 5 tokens"


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    content = draw(st.sampled_from([text.encode() for text in LOGS.values()]))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(content)))
        end = start + draw(st.integers(0, 12))
        content = content[:start] + draw(st.sampled_from(JUNK)) + content[end:]
    return gzip.compress(content) if draw(st.booleans()) else content


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


def open_or_refuse(folder: Path, content: bytes) -> None:
    """Read a file, known or not, and use all that comes out of it."""
    file = folder / "hostile.log"
    file.write_bytes(content)
    use_or_refuse(EngineLogReader(), file)


@slow
@settings(max_examples=150)
@given(content=mutated())
def test_mutated_logs_raise_nothing_but_our_errors(folder: Path, content: bytes) -> None:
    open_or_refuse(folder, content)


@slow
@settings(max_examples=100)
@given(content=st.binary(max_size=300))
@example(content=b"")
@example(content=b'{"iterLatencyMS": ' + b"[" * 200_000)
@example(content=b'{"\xffiter": 5, "iterLatencyMS": 12.5}\n')
@example(content=b"{1: 2, 'iterLatencyMS': {3}, 'iter': b''}\n{1: 2, 'iterLatencyMS': 9e999}\n")
@example(content=b"{'iterLatencyMS': " + b"(" * 5_000)
@example(content=b'{"stats": ' * 5_000 + b'"iterLatencyMS"')
@example(content=b'{"iterLatencyMS": 1e999, "iter": -5, "timestamp": "9999-99-99 99:99:99"}\n')
@example(content=b'{"iterLatencyMS": null, "kvCacheStats": 7, "inflightBatchingStats": [1]}\n')
@example(content=b'[{"iterLatencyMS": 1, "iter": 99999999999999999999999}, 5]\n')
@example(content=b"iter = 1, " * 100_000 + b"host_step_time = ")
@example(content=BATCH + b", req_ids: (" * 20_000)
@example(content=BATCH + b" (new: [" + b"9" * 9_000 + b"]), req_ids: (1)")
@example(content=b"Scheduled prefill batch: 0 reqs, 0 tokens, req_ids: ()\n")
@example(content=b"Throughput (T/s) 1.00, " * 50_000)
@example(content=b"Prefill batch, #new-seq: 99999999999999999999, " * 10_000)
@example(content=b"KV cache pool is full. #retracted_reqs: 2000000000\n" * 3)
@example(content=b"\x1b[0;" * 100_000 + b"Decode batch, ")
@example(content=b"Engine 9: " * 50_000 + b"Avg prompt throughput: 1")
@example(content=b"slot x: id  1 | task -9 | stop processing: n_tokens = -1\n")
@example(content=b"slot x: id  1 | task 1 | prompt done, n_past = 3, n_tokens = 999999999\n" * 3)
@example(content=SGLANG.replace("2025", "0000").encode() + ATOM.encode())
def test_arbitrary_bytes_raise_nothing_but_our_errors(folder: Path, content: bytes) -> None:
    open_or_refuse(folder, content)


def test_a_retraction_of_absurdly_many_is_counted_and_not_followed(tmp_path: Path) -> None:
    trace = open_log(tmp_path, "KV cache pool is full. #retracted_reqs: 2000000000\n")

    assert trace.num_rows("lifecycle") == 65_536
    assert sum(report_of(trace).skipped.values()) == 2_000_000_000 - 65_536
