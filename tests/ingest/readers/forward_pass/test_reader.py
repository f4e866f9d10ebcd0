"""Forward pass metrics: a record for each iteration, as JSON lines, as msgpack, as it was sent."""

from __future__ import annotations

import gzip
import json
import random
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stepscope.ingest.errors import TruncatedTrace
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.forward_pass.reader import ForwardPassReader
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.ingest.real_files import shared_file
from tests.looped import looped

pack = msgspec.msgpack.encode
NOW_NS = 1_790_000_000_000_000_000


def record(number: int, prefills: int = 1, decodes: int = 3, **fields: Any) -> dict[str, Any]:
    """A record as vLLM, SGLang and Dynamo write them."""
    return {
        "version": 1, "worker_id": "w0", "dp_rank": 0, "counter_id": number, "wall_time": 0.25,
        "scheduled_requests": {
            "num_prefill_requests": prefills, "sum_prefill_tokens": 128 * prefills,
            "var_prefill_length": 2.5, "sum_prefill_kv_tokens": 16, "num_decode_requests": decodes,
            "sum_decode_kv_tokens": 300 * decodes, "var_decode_kv_tokens": 4.0,
        },
        "queued_requests": {
            "num_prefill_requests": 2, "sum_prefill_tokens": 300, "var_prefill_length": 0.0,
            "num_decode_requests": 1, "sum_decode_kv_tokens": 50, "var_decode_kv_tokens": 0.0,
        },
        **fields,
    }  # fmt: skip


RECORDS = [record(0), record(1, prefills=0), record(2, decodes=0), record(3, dp_rank=1)]
JSON_LINES = "".join(json.dumps(each) + "\n" for each in RECORDS)
CAPTURE = b"".join(map(pack, RECORDS))


def sent(said: dict[str, Any], seq: int = 0, *received: int) -> bytes:
    """What a publisher sends in three frames, and when it came."""
    return pack([b"", struct.pack(">q", seq), pack(said), *received])


def open_file(folder: Path, content: bytes | str, limits: Limits | None = None) -> Trace:
    file = folder / "metrics"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return Trace.open(file, limits=limits or Limits())


@pytest.mark.parametrize("content", [JSON_LINES, CAPTURE], ids=["JSON lines", "msgpack"])
def test_each_record_is_a_step_with_the_numbers_of_its_batch_and_queue(
    tmp_path: Path, content: bytes | str
) -> None:
    trace = open_file(tmp_path, content)

    columns = ("rank", "step", "ts_ns", "dur_ns", "kind", "num_prefill_reqs", "num_decode_reqs",
               "num_prefill_tokens", "num_waiting")  # fmt: skip
    assert rows(trace, "steps", *columns) == [
        (0, 0, 0, 250_000_000, "mixed", 1, 3, 128, 3),
        (0, 1, 250_000_000, 250_000_000, "decode", 0, 3, 0, 3),
        (0, 2, 500_000_000, 250_000_000, "prefill", 1, 0, 128, 3),
        (1, 3, 0, 250_000_000, "mixed", 1, 3, 128, 3),
    ]
    assert report_of(trace).read == {"iterations": 4}


def test_what_a_record_does_not_tell_stays_unknown(tmp_path: Path) -> None:
    trace = open_file(tmp_path, JSON_LINES)

    untold = ("num_decode_tokens", "num_running", "kv_blocks_free", "token_budget", "tag")
    assert set(rows(trace, "steps", *untold)) == {(None,) * len(untold)}
    assert not trace.has("batch_rows")
    assert not trace.has("lifecycle")


def test_other_numbers_are_counters_of_the_part_that_has_them(tmp_path: Path) -> None:
    trace = open_file(tmp_path, json.dumps(record(0)))

    assert set(rows(trace, "counters", "name", "value", "unit")) == {
        ("scheduled_requests.var_prefill_length", 2.5, None),
        ("scheduled_requests.sum_prefill_kv_tokens", 16.0, "tokens"),
        ("scheduled_requests.sum_decode_kv_tokens", 900.0, "tokens"),
        ("scheduled_requests.var_decode_kv_tokens", 4.0, None),
        ("queued_requests.num_prefill_requests", 2.0, "requests"),
        ("queued_requests.sum_prefill_tokens", 300.0, "tokens"),
        ("queued_requests.var_prefill_length", 0.0, None),
        ("queued_requests.num_decode_requests", 1.0, "requests"),
        ("queued_requests.sum_decode_kv_tokens", 50.0, "tokens"),
        ("queued_requests.var_decode_kv_tokens", 0.0, None),
    }


def test_of_records_without_times_only_the_order_is_told(tmp_path: Path) -> None:
    trace = open_file(tmp_path, JSON_LINES)

    assert not trace.manifest.is_measured("steps")
    assert trace.manifest.clock.kind == "virtual"
    assert any("not when it was" in note for note in report_of(trace).notes)


def test_what_was_sent_ends_when_it_came(tmp_path: Path) -> None:
    later = NOW_NS + 10**9
    content = sent(record(5), 5, NOW_NS) + sent(record(6), 6, later)

    trace = open_file(tmp_path, gzip.compress(content))

    assert rows(trace, "steps", "step", "ts_ns", "dur_ns") == [
        (5, NOW_NS - 250_000_000, 250_000_000),
        (6, later - 250_000_000, 250_000_000),
    ]
    assert trace.manifest.clock.kind == "wall"
    assert trace.manifest.is_measured("steps")


def test_workers_and_ranks_stay_apart(tmp_path: Path) -> None:
    content = "".join(
        json.dumps(record(0, worker_id=worker, dp_rank=rank)) + "\n"
        for worker in ("w0", "w1") for rank in (0, 1)
    )  # fmt: skip

    trace = open_file(tmp_path, content)

    assert trace.manifest.config["sources"] == {
        "0": "forward pass metrics 0 w0", "1": "forward pass metrics 1 w0",
        "2": "forward pass metrics 0 w1", "3": "forward pass metrics 1 w1",
    }  # fmt: skip


def test_a_heartbeat_is_no_step_and_its_number_is_not_missing(tmp_path: Path) -> None:
    idle = record(1, prefills=0, decodes=0, wall_time=0.0)

    trace = open_file(tmp_path, pack(record(0)) + pack(idle) + pack(record(2)))

    assert rows(trace, "steps", "step") == [0, 2]
    assert report_of(trace).read == {"iterations": 2, "heartbeats of an idle scheduler": 1}
    assert trace.manifest.dropped == {}


def test_lost_records_are_counted_by_their_numbers_and_said_to_be_lost(tmp_path: Path) -> None:
    numbers = (4, 5, 9, 2)

    trace = open_file(tmp_path, b"".join(pack(record(number)) for number in numbers))

    report = report_of(trace)
    assert report.skipped == {"iterations that are missing by their numbers": 3}
    assert report.repaired["records whose numbers repeat or start over"] == 1
    assert trace.manifest.dropped == {"steps": 3}
    assert trace.num_rows("steps") == 4


def test_what_is_no_record_and_what_is_of_another_version_is_counted(tmp_path: Path) -> None:
    odd = ["7", "[]", '{"wall_time": 1}', json.dumps(record(1, version=2)), "{torn", '"text"']
    content = JSON_LINES + "".join(f"{line}\n" for line in odd)

    report = report_of(open_file(tmp_path, content))

    assert report.read == {"iterations": 4}
    assert report.skipped == {
        "records that are not forward passes": 4, "records of another version": 1,
        "lines that are not JSON": 1,
    }  # fmt: skip


@looped("value", [None, -1, "3", True, 1.5, 1 << 40, [1]])
def test_a_number_of_requests_that_is_none_is_unknown_and_so_is_the_kind(
    tmp_path: Path, value: Any
) -> None:
    said = record(0)
    said["scheduled_requests"]["num_decode_requests"] = value

    trace = open_file(tmp_path, json.dumps(said))

    assert rows(trace, "steps", "num_decode_reqs", "kind", "num_prefill_reqs") == [(None, None, 1)]


@looped("value", [None, -0.5, "0.1", True, 1e300])
def test_a_length_that_is_none_is_unknown(tmp_path: Path, value: Any) -> None:
    trace = open_file(tmp_path, json.dumps(record(0, wall_time=value)))

    assert rows(trace, "steps", "dur_ns", "kind") == [(None, "mixed")]


def test_a_file_that_ends_within_a_record_says_so(tmp_path: Path) -> None:
    for content in (JSON_LINES[:-9], CAPTURE[:-9]):
        trace = open_file(tmp_path, content)

        assert trace.num_rows("steps") == 3
        assert not trace.manifest.closed
        assert report_of(trace).skipped == {"cut off by the end of the file": 1}


def test_a_file_that_ends_within_its_first_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metrics").write_bytes(pack(RECORDS[0])[:-1])

    with pytest.raises(TruncatedTrace, match=r"no forward pass in it: cut off within a message"):
        ForwardPassReader().read(tmp_path / "metrics", None)


def test_beyond_a_limit_all_before_is_kept(tmp_path: Path) -> None:
    trace = open_file(tmp_path, JSON_LINES, Limits(rows=25))

    assert trace.num_rows("steps") == 3
    assert report_of(trace).notes[0].startswith("more than 25 rows (--max rows=N raises it)")


def many_records() -> list[dict[str, Any]]:
    """Records of an engine whose batches and queues are of sizes by chance."""
    chance = random.Random(13)
    records = []
    for number in range(40):
        made = record(number, chance.randrange(5), chance.randrange(1, 40))
        made["wall_time"] = chance.randrange(1, 900) / 1024
        for part in ("scheduled_requests", "queued_requests"):
            for name in ("sum_decode_kv_tokens", "sum_prefill_kv_tokens", "var_prefill_length"):
                if name in made[part]:
                    made[part][name] = chance.randrange(9_000)
        records.append(made)
    return records


@pytest.mark.parametrize("form", ["jsonl", "msgpack"])
@pytest.mark.parametrize("origin", ["written", "real"])
def test_a_file_is_counted_whole_by_another_reader(tmp_path: Path, origin: str, form: str) -> None:
    if origin == "real":
        file = shared_file(f"foreign/fpm.{form}")
        lines = (file.parent / "fpm.jsonl").read_text().splitlines()
        told = [json.loads(line) for line in lines]
    else:
        file, told = tmp_path / f"fpm.{form}", many_records()
        packed = [
            json.dumps(each).encode() + b"\n" if form == "jsonl" else pack(each) for each in told
        ]
        file.write_bytes(b"".join(packed))

    trace = Trace.open(file)

    scheduled = [each["scheduled_requests"] for each in told]
    columns = ("step", "dur_ns", "num_prefill_reqs", "num_prefill_tokens", "num_decode_reqs")
    assert rows(trace, "steps", *columns) == [
        (each["counter_id"], round(each["wall_time"] * 1e9), batch["num_prefill_requests"],
         batch["sum_prefill_tokens"], batch["num_decode_requests"])
        for each, batch in zip(told, scheduled, strict=True)
    ]  # fmt: skip
    said = Counter(
        (f"{part}.{name}", float(value))
        for each in told for part in ("scheduled_requests", "queued_requests")
        for name, value in each[part].items()
    )  # fmt: skip
    counted = Counter(rows(trace, "counters", "name", "value"))
    in_steps = {name for name, _ in said} - {name for name, _ in counted}
    assert {key: num for key, num in said.items() if key[0] not in in_steps} == counted
    assert in_steps == {
        "scheduled_requests.num_prefill_requests", "scheduled_requests.sum_prefill_tokens",
        "scheduled_requests.num_decode_requests",
    }  # fmt: skip


# -- made to hurt ------------------------------------------------------------------------------


def test_more_requests_than_a_column_can_hold_are_unknown(tmp_path: Path) -> None:
    queued = {"num_prefill_requests": 2**31 - 1, "num_decode_requests": 2**31 - 1}

    trace = open_file(tmp_path, json.dumps(record(0, queued_requests=queued)))

    assert rows(trace, "steps", "step", "num_waiting") == [(0, None)]
