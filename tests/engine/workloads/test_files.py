"""Workloads from files: every format, and whatever may be wrong with one."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.engine.runs.scenario import recorder_for
from stepscope.engine.workloads.files import FILE_BESIDE, LIMIT_BYTES, MAX_LISTED
from stepscope.engine.workloads.workload import RequestSpec, Workload, identical
from stepscope.ingest.errors import ConfigError, StepscopeError, TraceError
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.times import SECOND
from stepscope.ingest.trace import Trace
from tests.tiers import slow

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
AZURE = HEADER + "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
MOONCAKE = """\
{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}
{"timestamp": 27.5, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14], "more": 1}
"""
OURS = '{"requests": [{"id": "a", "arrival_ns": 0, "prompt_len": %s, "max_tokens": 1}]}'


def load(folder: Path, text: str | bytes) -> Workload:
    file = folder / "requests"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Workload.load(file)


def test_azure_rows_arrive_as_long_after_the_first_as_they_did(tmp_path: Path) -> None:
    first, second = load(tmp_path, AZURE).specs
    assert first == RequestSpec("req-00", 0, 374, 44)
    assert (second.arrival_ns, second.prompt_len, second.max_tokens) == (4_314_579_000, 396, 109)


def test_azure_times_with_a_time_zone_are_the_same_times(tmp_path: Path) -> None:
    rows = "2024-05-10 01:00:00.5+01:00,3,4\n2024-05-10 00:00:00.009930+00:00,5,6\n"
    first, second = load(tmp_path, HEADER + rows).specs
    assert (first.prompt_len, second.prompt_len) == (5, 3)
    assert second.arrival_ns == 490_070_000


def test_mooncake_ids_are_the_prefix_of_a_prompt(tmp_path: Path) -> None:
    first, second = load(tmp_path, MOONCAKE).specs
    assert first == RequestSpec("req-00", 0, 6758, 500, prefix=(0, 1, 2))
    assert (second.arrival_ns, second.prefix) == (27_500_000, (0, 14))


def test_blank_lines_count_and_hold_nothing(tmp_path: Path) -> None:
    assert len(load(tmp_path, AZURE + "\n\n")) == 2
    assert len(load(tmp_path, "\n".join(MOONCAKE.splitlines()) + "\n\n")) == 2


def test_a_file_may_be_gzipped(tmp_path: Path) -> None:
    for text in (AZURE, MOONCAKE, OURS % 7):
        packed = gzip.compress(text.encode())
        assert load(tmp_path, packed).specs == load(tmp_path, text).specs


@slow
@pytest.mark.parametrize(
    ("name", "num_requests", "longest"),
    [("azure_conv.csv", 19_366, 14_050), ("mooncake_conversation_trace.jsonl", 12_031, 126_195)],
)
def test_the_published_files_are_read_whole(
    shared_data: Path, name: str, num_requests: int, longest: int
) -> None:
    workload = Workload.load(shared_data / "requests" / name)
    assert len(workload) == num_requests
    assert max(spec.prompt_len for spec in workload.specs) == longest
    assert workload.specs[0].arrival_ns == 0
    assert 3500 < workload.specs[-1].arrival_ns / SECOND < 3600


WRONG = [
    ("", "requests: is not JSON"),
    ("[]", "Expected `object`, got `array`; write"),
    ("[" * 100_000, "requests: "),
    ('{"requests": []}', "there is no request in it"),
    (
        '{"requests": [{"id": "a"}]}',
        r"missing required field `arrival_ns` - at `\$.requests\[0\]`",
    ),
    (OURS % '"4"', r"got `str` - at `\$.requests\[0\].prompt_len`"),
    (OURS % "true", "got `bool`"),
    (OURS % "0", "request a: arrival 0, prompt 0"),
    (OURS % "1e300", "Expected `int`"),
    (OURS % ("9" * 40), "prompt of 133 bits"),
    (OURS % '1, "priorty": 3', "unknown field `priorty`"),
    (OURS % '1, "prefix": [99999999999999999999]', "prefix"),
    (HEADER, "there is no request in it"),
    (AZURE + "yesterday,1,1", "requests:4: Invalid RFC3339.* mend the line"),
    (AZURE + "\n2023-11-16 18:15:51,1", "requests:5: .*GeneratedTokens"),
    (AZURE + "2023-11-16 18:15:51,1,1,1", "requests:4: .*fields beyond the header"),
    (AZURE + "2023-11-16 18:15:51,-3,1", "requests:4: request req-02: .* prompt -3"),
    (AZURE + "9999-01-01 00:00:00,3,1", "requests:4: .* arrival of 68 bits"),
    (AZURE + '2023-11-16 18:15:51,"3,1', "requests:4: is not CSV"),
    (AZURE + "x" * 200_000 + ",3,1", "requests:4: is not CSV: field larger"),
    ("ContextTokens\n1\n", "requests:2: .*TIMESTAMP"),
    (MOONCAKE + '{"timestamp": 30, "input_le', "requests:3: is not JSON: .* truncated"),
    (MOONCAKE.replace("27.5", "-1"), "requests:2: Expected `float` >= 0"),
    (MOONCAKE.replace("27.5", "1e400"), "requests:2: .*timestamp"),
    (MOONCAKE.replace("14]", "null]"), r"requests:2: .*hash_ids\[1\]"),
    (MOONCAKE.replace("7322", "0"), "requests:2: request req-01: .* prompt 0"),
]


def test_a_file_that_is_wrong_is_refused_and_told_where(tmp_path: Path) -> None:
    for text, why in WRONG:
        with pytest.raises(ConfigError, match=why):
            load(tmp_path, text)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    for raw, why in (
        (HEADER.encode() + b"\xff", "not UTF-8"),
        (b"\xff\xfe", "is not JSON"),
        (gzip.compress(AZURE.encode())[:-9], "damaged gzip"),
        (b"\x1f\x8b junk", "damaged gzip"),
    ):
        with pytest.raises(ConfigError, match=why):
            load(tmp_path, raw)


def test_a_file_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(1 << 20)) * ((LIMIT_BYTES >> 20) + 1)
    with pytest.raises(ConfigError, match="holds more than 256 MiB"):
        load(tmp_path, bomb)


@given(st.sampled_from([AZURE, MOONCAKE, OURS % 7]), st.data())
def test_a_file_that_is_cut_or_garbled_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, draw: st.DataObject
) -> None:
    raw = bytearray(text.encode())
    at = draw.draw(st.integers(0, len(raw) - 1))
    raw[at : at + draw.draw(st.integers(1, 9))] = draw.draw(st.binary(max_size=3))
    with suppress(StepscopeError):
        assert len(load(tmp_path_factory.getbasetemp(), bytes(raw)))


@pytest.mark.parametrize("num_requests", [2, MAX_LISTED + 1])
def test_the_workload_of_a_trace_is_there_to_be_run_again(
    tmp_path: Path, num_requests: int
) -> None:
    workload = identical(num_requests, 3, 4, gap_ns=5).due(99)
    out = tmp_path / "run.trace"
    with recorder_for(out, "fcfs-preemption", "after", {}, workload.as_dict()):
        pass

    assert Workload.load(out).specs == workload.specs
    assert (out / FILE_BESIDE).exists() == (num_requests > MAX_LISTED)
    assert (out / "manifest.json").stat().st_size < 2_000
    assert Trace.open(out).manifest.closed


def test_a_trace_that_holds_no_workload_gives_the_arrivals_that_it_tells_of_from_the_first(
    tmp_path: Path,
) -> None:
    with Recorder(tmp_path / "run.trace", producer="another engine") as recorder:
        recorder.lifecycle(1, 7, "a", "arrive", None, None, 0, 30, 40, None, 2)
        recorder.lifecycle(1, 8, "a", "admit")
        recorder.lifecycle(1, 9, "b", "arrive", None, None, 0, 31, 41, None, None, 99)

    assert Workload.load(tmp_path / "run.trace").specs == (
        RequestSpec("a", 0, 30, 40, priority=2),
        RequestSpec("b", 2, 31, 41, deadline_ns=92),
    )


def test_a_trace_without_arrivals_and_a_folder_that_is_no_trace_are_refused(
    tmp_path: Path,
) -> None:
    with Recorder(tmp_path / "run.trace", producer="another engine") as recorder:
        recorder.steps(1, 0, 5, "decode")
    with pytest.raises(ConfigError, match="records no arrival"):
        Workload.load(tmp_path / "run.trace")
    with pytest.raises(TraceError):
        Workload.load(tmp_path)


def test_a_trace_that_was_taken_away_from_its_workload_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "run.trace"
    with recorder_for(out, "x", "after", {}, identical(MAX_LISTED + 1, 1, 1).as_dict()):
        pass
    (out / FILE_BESIDE).unlink()
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        Workload.load(out)
