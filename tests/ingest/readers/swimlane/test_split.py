"""A JSON file is read whole, or as far as it goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepscope.ingest.errors import LimitExceeded, TraceError, TruncatedTrace
from stepscope.ingest.readers.swimlane.split import load_json

WHOLE = {"a": [[1, 2], [3, 4]], "b": {"c": 'x,]}"\\'}, "d": [None, 12.5]}

_values = st.recursive(
    st.integers() | st.text(max_size=4) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


def test_a_whole_file_is_read_without_a_note(tmp_path: Path) -> None:
    file = tmp_path / "whole.json"
    file.write_text(json.dumps(WHOLE))

    assert load_json(file) == (WHOLE, None)


def test_a_file_that_was_cut_off_is_kept_up_to_its_last_whole_value(tmp_path: Path) -> None:
    file = tmp_path / "cut.json"
    file.write_text('{"a": [[1, 2], [3, 4], [5, 67')

    found, note = load_json(file)

    assert found == {"a": [[1, 2], [3, 4], [5]]}
    assert note == "cut.json: damaged or cut off after 29 characters; all before is kept"


def test_a_file_with_rubbish_in_it_is_kept_up_to_there(tmp_path: Path) -> None:
    file = tmp_path / "rubbish.json"
    file.write_text('{"a": [1, 2, \x00\x01, 3], "b": 4}')

    found, note = load_json(file)

    assert found == {"a": [1, 2]}
    assert note


@given(_values.map(lambda value: {"": value}), st.data())
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_wherever_a_file_is_cut_what_is_kept_is_a_part_of_it(
    tmp_path: Path, whole: dict[str, object], data: st.DataObject
) -> None:
    text = json.dumps(whole)
    file = tmp_path / "cut.json"
    file.write_text(text[: data.draw(st.integers(1, len(text)))])

    found, _ = load_json(file)

    assert isinstance(found, dict)
    assert found.keys() <= whole.keys()


def test_a_file_of_which_nothing_is_whole_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "not.json"
    file.write_text("hello")

    with pytest.raises(TruncatedTrace, match="before anything whole"):
        load_json(file)


def test_a_file_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    file.write_text("[" * 200_000)

    with pytest.raises((LimitExceeded, TruncatedTrace)):
        load_json(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        load_json(tmp_path / "nothing.json")
