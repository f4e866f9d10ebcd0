"""Events taken apart by forms are those that are read one by one, or the way is not taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.readers import event_stream
from stepscope.ingest.readers.event import Event
from stepscope.ingest.readers.event_forms import MAX_LAYOUTS, taken_apart
from stepscope.ingest.readers.event_frames import Events, events_of
from stepscope.ingest.readers.event_stream import EventStream
from stepscope.ingest.readers.inflate import Inflater

KINETO = (
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


LAYOUTS: tuple[dict[str, Any], ...] = (
    {}, {"separators": (",", ":")}, {"indent": 1}, {"indent": "\t"}, {"ensure_ascii": False},
)  # fmt: skip


@given(alike(), st.sampled_from(LAYOUTS))
def test_events_by_columns_are_the_events_one_by_one(
    made: list[dict[str, Any]], layout: dict[str, Any]
) -> None:
    window = json.dumps(made, **layout).encode()
    events = taken_apart(window)

    if events is not None:
        assert whole(events).equals(one_by_one(window))


def one_by_one(window: bytes) -> pl.DataFrame:
    return whole(events_of(msgspec.json.decode(window, type=list[Event]))[0])


def whole(events: Events) -> pl.DataFrame:
    """All columns of events, those of their forms too."""
    said = events.forms[events.rows["form"]]
    return pl.concat([events.rows.drop("form"), said], how="horizontal")


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_what_profilers_write_is_taken_apart(layout: dict[str, Any]) -> None:
    made = [
        {"ph": "X", "cat": "cpu_op", "name": f"aten::add{n}", "pid": 1, "tid": "s", "ts": n + 0.5,
         "dur": 1, "args": {"External id": n, "dims": [[1], []]}}
        for n in range(20)
    ]  # fmt: skip
    made += [{"ph": "f", "id": 7, "pid": 1, "tid": 2, "ts": 3, "cat": "ac2g", "name": "ac2g"}] * 3
    window = json.dumps(made, **layout).encode()

    events = taken_apart(window)

    assert events is not None
    assert whole(events).equals(one_by_one(window))


@pytest.mark.parametrize(
    "window",
    [
        b"",
        b"1, 2",
        b'{"ph": "X"',
        b'{"ph": "X"}, {"ph": }',
        b'{"ph": "X", "name": "\xff"}',
        b'{"ph": "X", "args": {"l": [{"ph": 1}, {"ph": 2}]}}, 5',
        b'{"ph": "X", "name": "a\nb", "ts": 1}, {"ph": "X", "name": NaN, "ts": 1}',
    ],
)
def test_what_cannot_be_proved_is_left_to_be_read_one_by_one(window: bytes) -> None:
    assert taken_apart(b"[%b]" % window) is None


def test_more_layouts_than_are_learned_are_read_all_the_same() -> None:
    made = [{"ph": "X", **{f"k{n}": 1 for n in range(num)}} for num in range(2 * MAX_LAYOUTS)]

    events = taken_apart(json.dumps(made).encode())

    assert events is not None
    assert whole(events)["ph"].to_list() == ["X"] * len(made)


@pytest.mark.parametrize("name", KINETO)
def test_a_real_file_by_forms_is_the_file_one_by_one(
    shared_data: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = shared_data / "kineto" / f"{name}.json.gz"
    by_forms = pl.concat(EventStream(Inflater(file), name, whole))
    monkeypatch.setattr(event_stream, "SMALL_BYTES", 1 << 40)

    assert by_forms.equals(pl.concat(EventStream(Inflater(file), name, whole)))
