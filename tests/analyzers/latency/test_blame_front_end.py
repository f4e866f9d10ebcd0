"""What a request's latency is from the front end that received it to the client that has it."""

from __future__ import annotations

import pytest

from stepscope.analyzers.latency.blame import Blame, blame
from stepscope.ingest.errors import ConfigError
from tests.analyzers.latency.test_blame import of_request
from tests.analyzers.rows import Row, event
from tests.tiers import slow
from tests.traces import trace_of

LIFE = [
    event("r", "receive", 0, external_id="chat-1"), event("r", "arrive", 4),
    event("r", "admit", 10), event("r", "first-token", 20), event("r", "deliver", 23),
    event("r", "finish", 30), event("r", "deliver", 36, num_generated=2),
]  # fmt: skip
STEPS = [
    {"step": 1, "ts_ns": 10, "dur_ns": 10, "kind": "prefill"},
    {"step": 2, "ts_ns": 20, "dur_ns": 12, "kind": "decode"},
]
ROWS = [
    {"step": 1, "ts_ns": 10, "request": "r", "phase": "prefill", "num_tokens": 8},
    {"step": 2, "ts_ns": 20, "request": "r", "phase": "decode", "num_tokens": 1},
]


def blamed(lifecycle: list[Row]) -> Blame:
    return blame(trace_of(lifecycle=lifecycle, steps=STEPS, batch_rows=ROWS))


def test_the_front_end_the_engine_and_the_delivery_are_blamed_apart() -> None:
    assert of_request(blamed(LIFE), "r") == {
        "front-end": 4, "idle": 6, "prefill": 10, "delivery": 9, "decode": 7,
    }  # fmt: skip


def test_what_the_engine_did_at_an_unknown_time_is_not_of_the_front_end() -> None:
    of_engine = ("arrive", "admit", "first-token", "finish")
    life = [row | {"ts_ns": None} if row["event"] in of_engine else row for row in LIFE]

    found = blamed(life)

    assert "front-end" not in of_request(found, "r")
    assert found.total_ns == 36
    assert any("without the time of the end" in note for note in found.notes)
    assert not any("without an end" in note for note in found.notes)


def test_the_first_token_is_there_when_the_client_has_it() -> None:
    found = blamed(LIFE)

    row = found.requests.row(0, named=True)
    assert (row["arrive_ns"], row["first_token_ns"], row["ended_ns"]) == (0, 23, 36)
    first = found.to_first_token.row(0, named=True)
    assert (first["front_end_ns"], first["prefill_ns"], first["delivery_ns"]) == (4, 10, 3)
    assert (first["decode_ns"], first["idle_ns"]) == (0, 6)


@slow
def test_who_is_given_all_at_once_waits_for_its_last_token_and_not_for_the_delivery() -> None:
    life = [each for each in LIFE if each["ts_ns"] != 23]
    outputs = [
        {"step": step, "ts_ns": ts_ns, "request": "r", "position": position}
        for position, (step, ts_ns) in enumerate([(1, 20), (2, 30)])
    ]

    for told in (outputs, []):
        found = blame(trace_of(lifecycle=life, steps=STEPS, batch_rows=ROWS, outputs=told))

        assert of_request(found, "r") == {
            "front-end": 4, "idle": 6, "prefill": 10, "decode": 10, "delivery": 6,
        }  # fmt: skip
        assert found.requests["first_token_ns"].to_list() == [36]


def test_a_delivery_begins_when_the_last_of_the_tokens_that_it_brings_was_sampled() -> None:
    life = [{**each, "num_generated": 2} if each["ts_ns"] == 23 else each for each in LIFE]
    outputs = [
        {"step": 1, "ts_ns": 20, "request": "r", "position": 0},
        {"step": 2, "ts_ns": 22, "request": "r", "position": 1},
    ]

    found = blame(trace_of(lifecycle=life, steps=STEPS, batch_rows=ROWS, outputs=outputs))

    assert found.to_first_token["delivery_ns"].to_list() == [1]


def test_what_a_client_was_given_of_an_error_is_no_first_token() -> None:
    life = [
        event("r", "receive", 0),
        event("r", "error", 5),
        event("r", "deliver", 9, num_generated=0),
    ]

    row = blame(trace_of(lifecycle=life)).requests.row(0, named=True)

    assert (row["first_token_ns"], row["outcome"], row["latency_ns"]) == (None, "error", 9)
    assert (row["front_end_ns"], row["delivery_ns"]) == (5, 4)


def test_without_a_front_end_nothing_is_blamed_on_it() -> None:
    life = [each for each in LIFE if each["event"] not in ("receive", "deliver")]

    assert of_request(blamed(life), "r") == {"idle": 6, "prefill": 10, "decode": 10}


def test_a_request_is_blamed_by_the_id_that_its_client_knows_it_by() -> None:
    other = [event("s", "receive", 1, external_id="chat-2"), event("s", "finish", 9)]
    trace = trace_of(lifecycle=[*LIFE, *other])

    assert blame(trace, "chat-1").requests["request"].to_list() == ["r"]


def test_a_client_that_the_trace_does_not_have_is_answered_with_near_ones() -> None:
    with pytest.raises(ConfigError, match="chat-1"):
        blame(trace_of(lifecycle=LIFE), "chat-11")
