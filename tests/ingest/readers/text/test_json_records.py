"""Records cut out of JSON of any size: at their places alone, wherever blocks end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.text.json_records import JsonRecords

WANTED = {("a",), ("c", "a"), ("d", "e f", "g")}
NESTED: list[dict[str, Any]] = [
    {"a": [{"b": 1}, {"b": '}]"{'}, [{"b": "\\"}]], "c": {"a": {"x": [[{}]]}}},
    {"no": [{"a": 1}, [{"a": {"c": 2}}]], "d": {"e f": {"g": {"h": {"i": {}}}}}},
    {"a": {"é\u2028": '\\\\"'}, "": [], "z": None},
]
EXPECTED = [{"b": 1}, {"b": '}]"{'}, {"b": "\\"}, {"x": [[{}]]}, {"h": {"i": {}}},
            {"é\u2028": "\\\\\""}]  # fmt: skip


def records_of(content: bytes, block_bytes: int, limits: Limits | None = None) -> JsonRecords:
    blocks = (content[at : at + block_bytes] for at in range(0, len(content), block_bytes))
    return JsonRecords(blocks, WANTED.__contains__, 5, limits or Limits())


@pytest.mark.parametrize("indent", [None, 2])
def test_objects_at_wanted_places_are_found_wherever_blocks_end(indent: int | None) -> None:
    content = "\n".join(json.dumps(each, indent=indent) for each in NESTED).encode()

    for block_bytes in (1, 2, 3, 7, 1_000):
        records = records_of(content, block_bytes)
        assert [json.loads(record.text) for record in records] == EXPECTED, block_bytes
        assert records.ended is None, block_bytes


def test_records_of_one_container_have_its_number() -> None:
    content = b'{"a": [{}, {}]}\n{"a": [{}]}'

    first, second, third = (record.within for record in records_of(content, 4))

    assert first == second
    assert set(first).isdisjoint(third)


def test_what_was_cut_off_keeps_all_whole_records() -> None:
    content = json.dumps(NESTED[0]).encode()

    for size in range(1, len(content)):
        records = records_of(content[:size], 16)
        found = [json.loads(record.text) for record in records]
        assert (found, records.ended) == (EXPECTED[: len(found)], "cut off"), size


def test_a_record_larger_than_an_event_may_be_ends_it_with_a_line() -> None:
    content = b'{"a": [{"b": 1}, {"b": "' + b"x" * 10_000

    records = records_of(content, 64, Limits(event=1_000))

    assert len(list(records)) == 1
    assert records.ended == "a record of more than 1,000 bytes (--max event=N raises it)"


def test_brackets_that_close_nothing_end_it_with_a_line() -> None:
    records = records_of(b'{"a": [{"b": 1}]}]}', 5)

    assert len(list(records)) == 1
    assert records.ended == "damaged: a bracket closes what was never opened"


def test_a_million_brackets_deep_costs_no_stack() -> None:
    records = records_of(
        b'{"no": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b', "a": {"b": 1}}', 9_999
    )

    assert [record.text for record in records] == [b'{"b": 1}']
