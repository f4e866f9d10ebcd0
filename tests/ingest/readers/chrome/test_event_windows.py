"""Events read in one pass are those that are decoded each by itself, or the way is not taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from stepscope.ingest.readers.chrome import decode
from stepscope.ingest.readers.chrome.decode import IS_COMPILED, decoded, scanned
from stepscope.ingest.readers.chrome.frames import Events
from stepscope.ingest.readers.chrome.split import EventStream
from stepscope.ingest.readers.encodings.inflate import contents
from tests.ingest.real_files import OWN_TORCH, profile
from tests.looped import looped
from tests.tiers import slow

KINETO = (
    *OWN_TORCH,
    "h100_qwen15_05b_chat", "hta_event_sync_trace", "hta_nccl_data", "hta_sampled_rank-0",
    "hta_sampled_rank-1", "sglang_qwen3_8b_prefilldecode", "vllm_cpu_tiny_llama_preemptions",
    "vllm_prefilldecode_mi300",
)  # fmt: skip

ODD = ("", "a\\", '"', 'x"args": {', '}, {"ph": "X"', "{", "}", "[1]", "é", "\n", "ph")
texts = st.one_of(st.text(max_size=6), st.sampled_from(ODD))
leaves = st.one_of(texts, st.integers(-5, 1 << 60), st.floats(allow_nan=False), st.none())
nested = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)
SPOILS = (b"", *(bytes([byte]) for byte in b'"{}[],:\\ \n0-e\xc3'))
DAMAGED = json.dumps(
    [
        {"ph": "X", "name": "a\\b", "ts": 12.5, "dur": -1e-7, "args": {"correlation": 7}},
        {"ph": "b", "id": "0x1", "id2": {"local": "3"}, "ts": "8", "args": [{}, {"a": [1]}]},
        {"ph": "C", "pid": "p", "ts": 1.0005, "args": {"External id": 12, "x": {"y": "1"}}},
    ],
    indent=1,
).encode()[1:-1]
values = {
    "ph": st.sampled_from("XBEiMCsf"),
    "name": texts,
    "cat": texts,
    "ts": st.floats(0, 1e15) | st.integers(0, 1 << 50),
    "dur": st.floats(-5, 1e9),
    "pid": st.integers(0, 9) | texts,
    "tid": leaves,
    "id": st.integers(0, 9) | texts,
    "bp": st.just("e"),
    "args": st.dictionaries(st.sampled_from(["args", "ph", "value", "External id"]), nested),
}


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.permutations(sorted(values)))
    kept = draw(st.integers(1, len(names)))
    return {name: draw(values[name]) for name in names[:kept]}


@st.composite
def alike(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Events with the same keys in the same order, as writers make them, and some that are not."""
    names = draw(st.permutations(sorted(values)))[: draw(st.integers(1, len(values)))]
    event = st.fixed_dictionaries({name: values[name] for name in names})
    return draw(st.lists(event | events(), min_size=1, max_size=8))


pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the scanner is not compiled")
LAYOUTS: tuple[dict[str, Any], ...] = (
    {}, {"separators": (",", ":")}, {"indent": 1}, {"indent": "\t"}, {"ensure_ascii": False},
)  # fmt: skip


@slow
@given(alike(), st.sampled_from(LAYOUTS))
def test_events_of_one_pass_are_the_events_one_by_one(
    made: list[dict[str, Any]], layout: dict[str, Any]
) -> None:
    assert_read_alike_or_left(json.dumps(made, **layout).encode()[1:-1])


def assert_read_alike_or_left(window: bytes) -> None:
    events = scanned(window)
    if events is not None:
        assert_same(events, decoded(window))


def assert_same(events: Events, expected: Events | None) -> None:
    assert expected is not None
    assert_frame_equal(events.whole(), expected.whole())


@looped("layout", LAYOUTS)
def test_what_profilers_write_is_read_in_one_pass(layout: dict[str, Any]) -> None:
    made = [
        {"ph": "X", "cat": "cpu_op", "name": f"aten::add{n}", "pid": 1, "tid": "s",
         "ts": n + 0.5, "dur": 1, "args": {"External id": n, "dims": [[1], []]}}
        for n in range(20)
    ]  # fmt: skip
    made += [{"ph": "f", "id": 7, "pid": 1, "tid": 2, "ts": 3, "cat": "ac2g", "name": "ac2g"}] * 3
    window = json.dumps(made, **layout).encode()[1:-1]

    events = scanned(window)

    assert events is not None
    assert len(events.templates) == 21
    assert_same(events, decoded(window))


UNUSUAL = [
    b"",
    b"1, 2",
    b'{"ph": "X"',
    b'{"ph": "X"},',
    b'{"ph": "X"}, {"ph": }',
    b'{"ph": "X"} {"ph": "X"}',
    b'{"ph": "X",}',
    b'{"ph": "X", "ph": "B"}',
    b'{"p\\u0068": "X", "name": "a"}',
    b'{"ph": "X", "name": "\xff"}',
    b'{"ph": "X", "name": "\\ud800"}',
    b'{"ph": "X", "name": "\\x"}',
    b'{"ph": "X", "name": 5}',
    b'{"ph": null}',
    b'{"ph": "X", "args": {"l": [{"ph": 1}, {"ph": 2}]}}, 5',
    b'{"ph": "X", "args": {"l": [1}]}',
    b'{"ph": "X", "args": ' + b"[" * 600 + b"]" * 600 + b"}",
    b'{"ph": "X", "name": "a\nb", "ts": 1}, {"ph": "X", "name": NaN, "ts": 1}',
    b'{"ph": "X", "ts": 01}',
    b'{"ph": "X", "ts": 1, "bind_id": 1, "flow_out": true}',
    b'{"ph": "X", "ts": 1, "args": {"correlation": 1.0}}',
    b'{"ph": "X", "ts": 1, "args": {"c\\u006frrelation": 1}}',
    b'{"ph": "X", "ts": 1, "args": {"correlation": 1e0}}',
    b'{"ph": "X", "ts": 1, "args": {"External id": "1"}}',
    b'{"ph": "X", "ts": 1.}',
    b'{"ph": "X", "ts": -}',
]


def test_what_is_unusual_is_left_to_be_decoded() -> None:
    assert [window for window in UNUSUAL if scanned(window + b" " * 99) is not None] == []


def test_more_events_than_there_is_room_for_are_left_to_be_decoded() -> None:
    assert scanned(b",".join([b"{}"] * 99_999)) is None


def test_as_many_templates_as_events_are_told_apart() -> None:
    made = [{"ph": "X", "name": "é" * (n % 7) + str(n), "ts": n} for n in range(5000)]
    window = json.dumps(made).encode()[1:-1]

    events = scanned(window)

    assert events is not None
    assert len(events.templates) == len(made)
    assert_same(events, decoded(window))


def test_a_window_stays_as_it_is_when_the_next_is_read() -> None:
    windows = [
        json.dumps(
            [{"ph": "X", "name": f"{n % size}", "ts": n, "id": n, "args": {"n": n}}
             for n in range(500)]
        ).encode()[1:-1]
        for size in (7, 5, 3)
    ]  # fmt: skip

    read = [scanned(window) for window in windows]

    for events, window in zip(read, windows, strict=True):
        assert events is not None
        assert_same(events, decoded(window))


@given(st.data())
def test_a_window_that_was_damaged_is_read_alike_or_left(data: st.DataObject) -> None:
    window = bytearray(DAMAGED)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(window) - 1))
        window[at : at + data.draw(st.integers(0, 2))] = data.draw(st.sampled_from(SPOILS))

    assert_read_alike_or_left(bytes(window))


@slow
@pytest.mark.parametrize("name", KINETO)
def test_a_real_file_in_one_pass_is_the_file_one_by_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = profile(name)
    in_one_pass = every_event(file)
    monkeypatch.setattr(decode, "IS_COMPILED", False)

    assert_frame_equal(in_one_pass, every_event(file))


def every_event(file: Path) -> pl.DataFrame:
    with contents(file) as held:
        return pl.concat(EventStream(held, file.name, Events.whole))


@slow
@given(
    st.from_regex(r"\A-?[0-9]{1,20}(\.[0-9]{0,9})?(e-?[0-9])?\Z"),
    st.sampled_from(["ts", "dur", "pid", "id"]),
    st.sampled_from(["", " ", "\n  "]),
)
def test_a_number_of_any_length_is_what_it_is_decoded_to(number: str, key: str, space: str) -> None:
    window = f'{{"ph": "X", "ts": 5, "{key}x": 1, "{key}": {number}{space}}}'.encode()
    window = window.replace(b'"ts": 5, ', b"" if key == "ts" else b'"ts": 5, ')

    assert_read_alike_or_left(window)


@given(
    st.integers(0, 40), st.sampled_from(["\\n", "é", '\\"', "\x01", "", '"x', "\\"]), st.booleans()
)
def test_what_ends_a_string_ends_it_wherever_it_stands(
    place: int, odd: str, is_in_args: bool
) -> None:
    text = "a" * place + odd + "b" * (40 - place)
    args = f'{{"k{text}": "{text}"}}' if is_in_args else "{}"
    name = "n" if is_in_args else text

    assert_read_alike_or_left(f'{{"ph": "X", "name": "{name}", "ts": 1, "args": {args}}}'.encode())


@slow
@given(st.from_regex(r"\A[0-9]{1,21}[.eE}, ]?\Z"), st.sampled_from(["correlation", "External id"]))
def test_the_number_of_a_launch_is_read_whole(number: str, key: str) -> None:
    assert_read_alike_or_left(
        f'{{"ph": "X", "ts": 1, "args": {{"{key}": {number}, "x": 1}}}}'.encode()
    )
