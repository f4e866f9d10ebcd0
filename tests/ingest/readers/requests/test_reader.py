"""Published lists of requests as traces of arrivals: whole, odd, torn, and real."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.analyzers.check.coverage import coverage
from stepscope.analyzers.latency.blame import blame
from stepscope.engine.workloads.workload import Workload
from stepscope.ingest.errors import TraceError
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.requests import reader
from stepscope.ingest.readers.requests.collect import HASHES, MooncakeLines
from stepscope.ingest.readers.requests.reader import MALFORMED, RequestsReader
from stepscope.ingest.readers.text.split import NO_END
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import open_log, report_of
from tests.ingest.readers.requests.lists import (
    ARRIVAL,
    AZURE,
    BRIX,
    HEADER,
    LISTS,
    MEASURED,
    MOONCAKE,
    SERVING_SIM,
)
from tests.looped import looped
from tests.tiers import slow


def test_a_line_of_azure_s_is_an_arrival_at_its_time(tmp_path: Path) -> None:
    trace = open_log(tmp_path, AZURE)

    assert rows(trace, "lifecycle", *ARRIVAL) == [
        ("req-00", "arrive", 1_700_158_546_680_590_000, 374, 44),
        ("req-01", "arrive", 1_700_158_550_995_169_000, 396, 109),
    ]
    assert trace.manifest.clock.kind == "wall"
    assert report_of(trace).read == {"headers": 1, "arrivals": 2}


def test_a_time_may_have_a_zone_and_columns_another_order(tmp_path: Path) -> None:
    text = "GeneratedTokens,TIMESTAMP,ContextTokens\n4,2024-05-10 01:00:00.5+01:00,3\n"

    trace = open_log(tmp_path, text)

    assert rows(trace, "lifecycle", *ARRIVAL[2:]) == [(1_715_299_200_500_000_000, 3, 4)]


def test_a_line_of_mooncake_s_arrives_so_many_milliseconds_in(tmp_path: Path) -> None:
    trace = open_log(tmp_path, MOONCAKE)

    assert rows(trace, "lifecycle", *ARRIVAL) == [
        ("req-00", "arrive", 0, 6758, 500), ("req-01", "arrive", 27_500_000, 7322, 490),
    ]  # fmt: skip
    assert report_of(trace).skipped == {HASHES: 5}


def test_a_line_of_llmservingsim_s_workload_arrives_so_many_nanoseconds_in(tmp_path: Path) -> None:
    trace = open_log(tmp_path, SERVING_SIM)

    assert rows(trace, "lifecycle", *ARRIVAL) == [
        ("req-00", "arrive", 101_537_000, 27_369, 1_626),
        ("req-01", "arrive", 144_370_000, 1_390, 527),
    ]


def test_requests_of_aibrix_that_come_together_are_each_an_arrival(tmp_path: Path) -> None:
    several = '{"timestamp": 30, "requests": [{"Output Length": 1}, {"Prompt Length": 5}]}\n'
    none = '{"timestamp": 31, "requests": []}\n'

    trace = open_log(tmp_path, BRIX + several + none)

    assert rows(trace, "lifecycle", *ARRIVAL) == [
        ("req-00", "arrive", 21_000_000, 909, 22), ("req-01", "arrive", 26_500_000, None, 7),
        ("req-02", "arrive", 30_000_000, None, 1), ("req-03", "arrive", 30_000_000, 5, None),
    ]  # fmt: skip
    assert report_of(trace).skipped == {"lines without a request": 1}


@slow
@pytest.mark.parametrize("text", [SERVING_SIM, BRIX])
def test_a_workload_says_that_it_is_no_run(tmp_path: Path, text: str) -> None:
    trace = open_log(tmp_path, text)

    assert any(note.startswith("a workload, not a run") for note in report_of(trace).notes)
    assert any("it does not say when" in note for note in blame(trace).notes)
    assert "its recording alone" in coverage(trace).share


def test_what_was_measured_of_a_request_is_its_life(tmp_path: Path) -> None:
    trace = open_log(tmp_path, MEASURED)

    columns = ("ts_ns", "request", "event", "prompt_len", "max_tokens", "num_generated")
    assert rows(trace, "lifecycle", *columns) == [
        (27_536_500_000_000, "bench-0", "arrive", 2358, 531, None),
        (27_536_625_000_000, "bench-0", "admit", None, None, None),
        (27_537_000_000_000, "bench-1", "arrive", 1034, 769, None),
        (27_537_250_000_000, "bench-0", "first-token", None, None, 1),
        (27_554_000_000_000, "bench-0", "finish", None, None, 531),
    ]
    assert report_of(trace).read == {"requests": 2}
    assert report_of(trace).skipped == {"times of arrival on another clock than the engine's": 1}


def test_a_line_that_is_no_request_is_counted(tmp_path: Path) -> None:
    for line in (
        '{"request_id": "a", "input_toks": 1, "output_toks": 1, "queued_ts": -1}',
        '{"request_id": "a", "input_toks": 1, "output_toks": 1, "queued_ts": 1e300}',
        '{"request_id": 7, "input_toks": 1, "output_toks": 1, "queued_ts": 1}',
        '{"request_id": "a", "input_toks": -1, "output_toks": 1, "queued_ts": 1}',
        '{"request_id": "a", "input_toks": 1, "output_toks": 1, "queued_ts": 1, '
        '"last_token_ts": -1}',
        "7", "{", "",
    ):  # fmt: skip
        report = report_of(open_log(tmp_path, f"{MEASURED}{line}\n"))

        assert report.read == {"requests": 2}, line
        assert report.skipped.get(MALFORMED, 0) == bool(line), line


def test_however_it_was_saved_it_holds_the_same(tmp_path: Path) -> None:
    for text in LISTS:
        plain = rows(open_log(tmp_path, text), "lifecycle", *ARRIVAL)
        for how, saved in {
            "gzip": gzip.compress(text.encode()),
            "BOM": b"\xef\xbb\xbf" + text.encode(),
            "CRLF": text.replace("\n", "\r\n").encode(),
            "no end": text.rstrip().encode(),
        }.items():
            trace = open_log(tmp_path, saved)

            assert rows(trace, "lifecycle", *ARRIVAL) == plain, how
            assert report_of(trace).repaired == ({NO_END: 1} if how == "no end" else {}), how


def test_a_line_of_azure_s_that_is_no_request_is_counted(tmp_path: Path) -> None:
    for line in (
        "yesterday,1,2", "2023-11-16 18:15:46,-1,2", "2023-11-16 18:15:46,1", "x" * 99, "\0,\xff,9",
    ):  # fmt: skip
        report = report_of(open_log(tmp_path, AZURE + line + "\n"))

        assert report.skipped == {MALFORMED: 1}, line
        assert report.read["arrivals"] == 2, line


def test_a_line_of_mooncake_s_that_is_no_request_is_counted(tmp_path: Path) -> None:
    for line in ("[]", '{"timestamp": 1}', '{"input_length": 1', "{" * 2000):
        report = report_of(open_log(tmp_path, MOONCAKE + line + "\n"))

        assert report.skipped[MALFORMED] == 1, line
        assert report.read["arrivals"] == 2, line


@slow
@looped("text", LISTS[:-1])
def test_cut_anywhere_all_whole_lines_are_kept(tmp_path: Path, text: str) -> None:
    whole = rows(open_log(tmp_path, text), "lifecycle", *ARRIVAL)
    num_heads = text.startswith(HEADER)

    for length in range(text.index("\n", num_heads * len(HEADER)) + 1, len(text)):
        found = rows(open_log(tmp_path, text[:length]), "lifecycle", *ARRIVAL)
        num_whole = text[:length].count("\n") - num_heads
        assert found[:num_whole] == whole[:num_whole]


def test_a_list_without_a_request_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no line in it is a request"):
        open_log(tmp_path, HEADER + "a,b,c\n")


def test_requests_up_to_the_limit_are_kept_and_the_option_is_named(tmp_path: Path) -> None:
    file = tmp_path / "requests.csv"
    file.write_text(AZURE)

    trace = Trace.open(file, limits=Limits(rows=1))

    assert trace.num_rows("lifecycle") == 1
    assert not trace.manifest.closed
    note = "more than 1 requests (--max rows=N raises it); all lines before are kept"
    assert note in report_of(trace).notes


@pytest.mark.parametrize("text", [AZURE, MOONCAKE])
def test_a_trace_of_it_is_the_workload_that_the_file_is(tmp_path: Path, text: str) -> None:
    save_trace(open_log(tmp_path, text), tmp_path / "arrivals.trace")

    again = Workload.load(tmp_path / "arrivals.trace").specs
    told = Workload.load(tmp_path / "server.txt").specs

    said = [
        [(each.id, each.prompt_len, each.max_tokens) for each in specs] for specs in (again, told)
    ]
    assert said[0] == said[1]
    assert [each.arrival_ns for each in again] == [each.arrival_ns for each in told]


@slow
@settings(max_examples=100)
@given(junk=st.binary(max_size=60), at=st.integers(0, 200), text=st.sampled_from(LISTS))
def test_junk_raises_nothing_but_our_errors(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int, text: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "junk"
    content = text.encode()
    file.write_bytes(content[:at] + junk + content[at:])
    try:
        tables, manifest = RequestsReader().read(file, None)
    except TraceError:
        return
    assert Trace.from_tables(tables, manifest).lifecycle.collect().width


def test_a_list_is_read_a_few_lines_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_CHUNK_BYTES", 2 * len(MOONCAKE.splitlines()[0]))
    given: list[int] = []
    read = MooncakeLines.rows

    def counted(self: MooncakeLines, lines: list[bytes], skipped: Counter[str]) -> pl.DataFrame:
        given.append(len(lines))
        return read(self, lines, skipped)

    monkeypatch.setattr(MooncakeLines, "rows", counted)
    trace = open_log(tmp_path, MOONCAKE * 30)

    assert max(given) <= 4
    assert trace.num_rows("lifecycle") == 30 * MOONCAKE.count("\n")


@pytest.mark.parametrize(("limit", "is_whole"), [(5, False), (6, True), (7, True)])
def test_the_limit_counts_the_requests_of_all_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, is_whole: bool
) -> None:
    monkeypatch.setattr(reader, "_CHUNK_BYTES", 1)  # a block for each line
    file = tmp_path / "requests.jsonl"
    file.write_text(MOONCAKE * 3)

    trace = Trace.open(file, limits=Limits(rows=limit))

    arrivals = [6758, 7322] * 3
    assert rows(trace, "lifecycle", "prompt_len") == arrivals[:limit]
    assert report_of(trace).read == {"arrivals": min(limit, 6)}
    assert trace.manifest.closed is is_whole
