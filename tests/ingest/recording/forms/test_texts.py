"""Bytes that rows point to are written in C as in Python, and who left is told alike."""

from __future__ import annotations

from array import array
from functools import partial
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.recording.forms import rows, texts
from stepscope.ingest.recording.forms.rows import build_row, row_struct, stored
from stepscope.ingest.recording.lasting import HEAD
from stepscope.ingest.schema import BY_NAME

compiled: Any = rows.compiled
needs_c = pytest.mark.skipif(compiled is None, reason="the rows are not compiled")
NAMES = [f"request-{number}" for number in range(40)]
NEW = st.text(max_size=9) | st.just("half a character: \ud800")


def placed(size: int, first: int) -> list[Any]:
    """A segment in which a header stands."""
    return [bytearray(size), 16, first]


@needs_c
@given(st.lists(st.binary(max_size=30)), st.integers(16, 200), st.sampled_from([0, 8, 4096]))
def test_bytes_are_written_alike(told: list[bytes], size: int, first: int) -> None:
    said = []
    for write in (compiled.write_bytes, texts._write_bytes):
        place = placed(size, first)
        numbers = [write(place, raw) for raw in told]
        said.append((numbers, place))

    assert said[0] == said[1]


@needs_c
def test_no_number_is_above_what_a_row_holds() -> None:
    place = placed(200, 8 * ((1 << 32) - 3))

    assert compiled.write_bytes(place, b"last") == (1 << 32) - 1
    assert compiled.write_bytes(place, b"over") is None


@needs_c
@given(
    st.integers(1, (1 << 32) - 1), st.integers(0, (1 << 63) - 1),
    st.lists(st.integers(0, 1 << 20), max_size=70), st.integers(16, 400),
)  # fmt: skip
def test_a_change_that_some_leave_is_written_as_any_other(
    before: int, counter: int, left: list[int], size: int
) -> None:
    place, other = placed(size, 8), placed(size, 8)
    raw = HEAD.pack(before, len(left), 0, counter) + array("I", left).tobytes()

    number = compiled.write_left(place, before, counter, left)

    if len(left) > 64:
        assert number is None
    else:
        assert number == texts._write_bytes(other, raw)
    assert place == other


class Texts(dict[Any, int]):
    """Ids of texts, with the place where they are written."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.place = placed(size, 8)

    def __missing__(self, text: Any) -> int:
        if type(text) is not str:
            raise KeyError(text)
        number = texts._write_bytes(self.place, text.encode("utf-8", "replace"))
        if number is None:
            raise OSError("no room")
        self[text] = number
        return number


def mend(refused: list[Any], _segment: Any, *row: Any) -> None:
    refused.append(row)


@needs_c
@given(st.lists(st.tuples(NEW, NEW | st.integers())), st.integers(16, 300))
def test_texts_that_are_new_are_written_alike(told: list[tuple[Any, Any]], size: int) -> None:
    table = BY_NAME["lifecycle"]
    columns = stored(table, [c for c in table.given if c.name in (*table.required, "cause")])
    said = []
    for way in (compiled, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows, "compiled", way)
            ids, refused = Texts(size), list[Any]()
            segment = bytearray(row_struct(columns).size * len(told) + 4)
            record, _ = build_row(
                [segment, 0], table, columns, ids, partial(mend, refused), count(1).__next__
            )
            for request, cause in told:
                record(ts_ns=2, request=request, event="arrive", cause=cause)
            said.append((bytes(segment), ids.place, dict(ids), refused))

    assert said[0] == said[1]


WAYS = [
    pytest.param(getattr(compiled, "places_left", None), marks=needs_c, id="compiled"),
    pytest.param(texts._places_left, id="python"),
]


@pytest.mark.parametrize("places_left", WAYS)
@given(st.data())
def test_who_left_is_told_by_places(places_left: Any, data: st.DataObject) -> None:
    before = NAMES[: data.draw(st.integers(0, 12))]
    now = data.draw(st.lists(st.sampled_from(NAMES[:14]), unique=True, max_size=14))
    stayed = [name for name in before if name in now]
    places = [place for place, name in enumerate(before) if name not in now]

    assert places_left(before, now) == (places if now and stayed == now else None)
    assert places_left(before, stayed) == (places if stayed else None)


@pytest.mark.parametrize("places_left", WAYS)
def test_nobody_left_what_is_no_batch(places_left: Any) -> None:
    assert places_left(None, NAMES) is None
    assert places_left(NAMES, NAMES) == []


@needs_c
def test_an_equal_name_that_is_another_object_is_left_to_be_looked_up() -> None:
    other = "".join(["request", "-1"])

    assert compiled.places_left([NAMES[0], NAMES[1]], [other]) is None
    assert compiled.keys_left({NAMES[0]: 1, NAMES[1]: 2}, {other: 3}) is None


@pytest.mark.parametrize("keys_left", [
    pytest.param(getattr(compiled, "keys_left", None), marks=needs_c, id="compiled"),
    pytest.param(texts._keys_left, id="python"),
])  # fmt: skip
@given(st.data())
def test_which_keys_left_is_told_or_left_to_be_looked_up(
    keys_left: Any, data: st.DataObject
) -> None:
    before = dict.fromkeys(data.draw(st.lists(st.sampled_from(NAMES[:9]), unique=True)))
    now = dict.fromkeys(data.draw(st.lists(st.sampled_from(NAMES[:9]), unique=True)))
    stayed = {name: None for name in before if name in now}
    left = [name for name in before if name not in now]

    assert keys_left(before, stayed) == left
    assert keys_left(before, now) == left or [*stayed] != [*now]
    assert keys_left(before, now) in (left, None)
