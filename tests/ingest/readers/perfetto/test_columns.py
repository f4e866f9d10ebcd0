"""Packets read many at a time, by columns: they say what they say one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.encodings.protobuf_columns import Content, Fields
from stepscope.ingest.readers.perfetto import decode
from stepscope.ingest.readers.perfetto.packets import runs
from stepscope.ingest.readers.perfetto.reader import PerfettoReader
from stepscope.ingest.trace import Trace
from tests.ingest.perfetto_files import event, pack
from tests.tiers import examples, sampled, slow

NUMBERS = st.integers(0, (1 << 64) - 1)
TEXTS = st.text(max_size=4)
NAMES = [{"iid": iid, "name": name} for iid, name in enumerate(("a", "b", "c"), start=1)]
STRINGS = [{"iid": 1, "str": b"one"}, {"iid": 2, "str": b"two"}]
KEYS = [{"iid": 1, "name": "k"}, {"iid": 2, "name": "correlation"}, {"iid": 3, "name": "k"},
        {"iid": 4, "name": "stepscope.step"}, {"iid": 5, "name": "stepscope.form"}]  # fmt: skip
STATE = {"event_names": NAMES, "event_categories": NAMES, "debug_annotation_names": KEYS,
         "debug_annotation_string_values": STRINGS}  # fmt: skip
COUNTERS = (7, 8)
TRACKS: list[dict[str, Any]] = [
    *({"track_descriptor": {"uuid": uuid, "name": f"t{uuid}"}} for uuid in (1, 2, 3)),
    {"track_descriptor": {"uuid": 7, "name": "n", "counter": {"is_incremental": True}}},
    {"track_descriptor": {"uuid": 8, "name": "m", "counter": {"unit_multiplier": 3}}},
]
CLOCKS = [{"clock_id": 6, "timestamp": 1000}, {"clock_id": 3, "timestamp": 400},
          {"clock_id": 64, "timestamp": 5, "is_incremental": True}]  # fmt: skip


PLAIN_VALUES = st.one_of(
    st.just({}),
    *(
        st.fixed_dictionaries({name: value})
        for name, value in {
            "int_value": st.integers(-(1 << 63), (1 << 63) - 1), "uint_value": NUMBERS,
            "bool_value": st.booleans(), "double_value": st.floats(), "pointer_value": NUMBERS,
            "string_value": TEXTS, "string_value_iid": st.integers(0, 3),
            "legacy_json_value": st.sampled_from(["[1]", "{", '{"a": 1}']),
        }.items()
    ),
)  # fmt: skip
VALUES = PLAIN_VALUES | st.just({"dict_entries": [{"name": "x", "int_value": 1}]})
KEYED = st.fixed_dictionaries({"name_iid": st.integers(0, 6)})
PLAIN_SLICES = st.fixed_dictionaries(
    {
        "type": st.sampled_from([1, 1, 2, 2, 3]), "name_iid": st.integers(0, 4),
        "debug_annotations": st.lists(st.builds(dict.__or__, KEYED, PLAIN_VALUES), max_size=4),
    },
    optional={"track_uuid": st.integers(0, 4), "correlation_id": NUMBERS, "name": TEXTS,
              "category_iids": st.lists(st.integers(1, 4), min_size=1, max_size=1)},
)  # fmt: skip
NAMED: st.SearchStrategy[dict[str, Any]] = (
    KEYED | st.fixed_dictionaries({"name": TEXTS}) | st.just({})
)
SLICES = st.fixed_dictionaries(
    {"type": st.sampled_from([1, 2, 3, 5])},
    optional={
        "categories": st.just(["d"]), "category_iids": st.lists(st.integers(1, 4), max_size=2),
        "flow_ids": st.just([5]),
        "debug_annotations": st.lists(st.builds(dict.__or__, NAMED, VALUES), max_size=4),
    },
)  # fmt: skip
SAMPLES = st.fixed_dictionaries(
    {"type": st.just(4), "track_uuid": st.sampled_from(COUNTERS)},
    optional={"counter_value": st.integers(-5, 5), "double_counter_value": st.just(0.5)},
)
SEQUENCES = {"trusted_packet_sequence_id": st.sampled_from([1, 2])}
PLAIN = st.fixed_dictionaries(
    {"timestamp": st.integers(0, 50), "track_event": PLAIN_SLICES | PLAIN_SLICES | SAMPLES},
    optional=SEQUENCES,
)
CLOCKED = {"timestamp_clock_id": st.sampled_from([6, 3, 64, 99])}
EVENTS = st.fixed_dictionaries(
    {"track_event": PLAIN_SLICES | SLICES | SAMPLES},
    optional={"timestamp": st.integers(0, 50) | NUMBERS, **CLOCKED, **SEQUENCES},
)
OTHERS = st.sampled_from([
    {"sequence_flags": 1, "interned_data": STATE},
    {"interned_data": {"event_names": [{"iid": 1, "name": "other"}]}},
    {"interned_data": {"debug_annotation_names": [{"iid": 1, "name": "q"}]}},
    {"clock_snapshot": {"clocks": CLOCKS}},
    {"trace_packet_defaults": {"track_event_defaults": {"track_uuid": 2}}},
    {"trace_packet_defaults": {"timestamp_clock_id": 64}},
    {"trace_config": {}}, {"previous_packet_dropped": 1},
])  # fmt: skip


def read(file: Path, few: int, monkeypatch: pytest.MonkeyPatch) -> Trace:
    for module in (decode, runs):
        monkeypatch.setattr(module, "FEW", few)
    return Trace.from_tables(*PerfettoReader().read(file, None, Limits(text=40)))


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(PLAIN | PLAIN | EVENTS | OTHERS, min_size=10, max_size=40))
def test_many_packets_at_a_time_say_what_they_say_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, packets: list[Any]
) -> None:
    file = tmp_path_factory.getbasetemp() / "columns.pftrace"
    known = [{"interned_data": STATE, "trusted_packet_sequence_id": number} for number in (1, 2)]
    file.write_bytes(pack(*TRACKS, {"clock_snapshot": {"clocks": CLOCKS}}, *known, *packets))

    with pytest.MonkeyPatch.context() as patch:
        each, many = read(file, 1 << 30, patch), read(file, 1, patch)

    assert many.manifest == each.manifest
    for table in ("spans", "counters", "flows"):
        assert many.table(table).collect().equals(each.table(table).collect()), table


@given(st.lists(NUMBERS, min_size=1))
def test_numbers_of_any_size_are_read(numbers: list[int]) -> None:
    packets = [TracePacket(timestamp=number).SerializeToString() for number in numbers]
    end = np.cumsum([len(packet) for packet in packets])
    content = Content(b"".join(packets))

    (fields,) = content.fields(end - np.diff(end, prepend=0), end, 2)

    assert isinstance(fields, Fields)
    assert fields.number.tolist() == numbers
    assert fields.end.tolist() == end.tolist()


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=9))
def test_messages_of_any_bytes_end_or_are_broken(messages: list[bytes]) -> None:
    end = np.cumsum([len(message) for message in messages])
    begin = end - np.diff(end, prepend=0)
    at, broken = begin.copy(), np.zeros(len(messages), np.bool_)

    for found in Content(b"".join(messages)).fields(begin, end, 50):
        if isinstance(found, Fields):
            assert (found.end <= end[found.rows]).all()
            at[found.rows] = found.end
        else:
            broken[found] = True

    assert (broken | (at == end)).all()


@slow
@pytest.mark.parametrize("every", sampled([1, 7], [7]))
def test_a_file_cut_within_its_last_packets_keeps_all_whole_ones(
    tmp_path: Path, every: int
) -> None:
    note = [{"name": "n", "string_value": 'x"'}, {"name": "k", "int_value": -1}]
    packets = [event(ts, 3, f"e{ts % 3}", debug_annotations=note) for ts in range(300)]
    content = pack(*packets)
    borders = [len(pack(*packets[:num])) for num in range(298, 301)]
    file = tmp_path / "cut.pftrace"

    near = {border + by for border in borders for by in (-1, 0, 1)}
    for length in sorted({*range(borders[0], borders[-1] + 1, every), *near - {borders[-1] + 1}}):
        file.write_bytes(content[:length])
        tables, manifest = PerfettoReader().read(file, None)
        spans = Trace.from_tables(tables, manifest).spans.collect()
        assert spans["ts_ns"].to_list() == [*range(297 + sum(length >= at for at in borders))]
        assert set(spans["args"]) == {'{"n": "x\\"", "k": -1}'}
        assert manifest.closed == (length in borders)
