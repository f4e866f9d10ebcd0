"""What Chrome's JSON cannot hold as it is: times, ids, names, arguments and nulls."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.ingest.errors import WriteError
from stepscope.ingest.manifest import ClockInfo
from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.chrome import write_chrome
from tests.ingest.kineto_files import rows
from tests.ingest.writers.test_chrome import shown, written
from tests.looped import looped
from tests.tiers import examples, slow
from tests.traces import trace_of


@pytest.mark.parametrize("first_ns", [-5, 1 << 52, 1_760_000_000_123_456_789])
def test_times_that_viewers_would_round_or_drop_are_counted_from_the_first(
    tmp_path: Path, first_ns: int
) -> None:
    clock = ClockInfo("wall", epoch_ns=1 << 50)
    span = {"track": "t", "name": "a", "form": "slice", "dur_ns": 1001}
    spans = [{**span, "ts_ns": first_ns + 7}]
    counters = [{"ts_ns": first_ns, "name": "free", "value": 1.0}]

    document = written(trace_of(clock=clock, spans=spans, counters=counters), tmp_path)

    assert shown(document) == [("t", "t", "a", 0.007, 1.001)]
    assert document["traceEvents"][-1]["ts"] == 0
    assert document["baseTimeNanoseconds"] == (1 << 50) + first_ns


def test_times_that_viewers_read_exactly_stay_as_they_are(tmp_path: Path) -> None:
    last_ns = 1000 * (1 << 42) - 1
    span = {"track": "t", "name": "a", "form": "slice", "dur_ns": 1, "ts_ns": last_ns}

    document = written(trace_of(spans=[span]), tmp_path)

    assert round(shown(document)[0][3] * 1000) == last_ns
    assert document["baseTimeNanoseconds"] == 0


def test_arrows_of_several_ranks_or_with_words_for_ids_get_numbers(tmp_path: Path) -> None:
    flow = {"flow": "step 7", "track": "t"}
    ends = [{**flow, "end": "start"}, {**flow, "end": "finish"}]

    document = written(
        trace_of(ranks=(0, 1), flows=[*ends, *({**end, "rank": 1} for end in ends)]), tmp_path
    )

    ids = [event["id"] for event in document["traceEvents"] if event["ph"] in "sf"]
    assert ids == ["1", "1", "2", "2"]


def test_a_track_without_a_name_is_called_unnamed(tmp_path: Path) -> None:
    span = {"track": "", "name": "a", "form": "slice", "dur_ns": 1000, "ts_ns": 0}

    document = written(trace_of(spans=[span]), tmp_path)

    assert shown(document) == [("unnamed", "unnamed", "a", 0, 1)]


@looped("args", ["[1, 2]", "{", "x", '{"a":NaN}', "[" * 9999, '{"a":1}}'])
def test_arguments_that_are_no_object_become_text(tmp_path: Path, args: str) -> None:
    span = {"track": "t", "name": "a", "form": "slice", "dur_ns": 1, "args": args}

    document = written(trace_of(spans=[span]), tmp_path)

    (found,) = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert found["args"] == {"args": args}


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("written")


@slow
@settings(max_examples=examples(60))
@given(track=TEXT, name=TEXT, category=st.none() | TEXT, args=st.none() | TEXT, value=st.floats())
def test_any_text_gives_valid_json_and_comes_back(
    folder: Path, track: str, name: str, category: str | None, args: str | None, value: float
) -> None:
    span = {"track": track, "name": name, "category": category, "form": "slice", "args": args}
    trace = trace_of(
        steps=[{"step": 1, "kind": "idle", "executed_path": name, "dur_ns": 1, "tag": args}],
        spans=[{**span, "dur_ns": 4}],
        counters=[{"name": name, "value": value, "track": track}],
        lifecycle=[{"request": track, "event": "arrive", "cause": name}],
    )

    document = written(trace, folder)

    assert any(event["name"] == name and event["ph"] == "X" for event in document["traceEvents"])
    assert name in rows(Trace.open(folder / "out.json"), "spans", "name")


def test_nulls_where_a_value_belongs_do_no_harm(tmp_path: Path) -> None:
    empty = pl.DataFrame(
        {"ts_ns": [1, None], "track": [None, "a"], "name": [None, "b"], "form": [None, None]},
        schema={"ts_ns": pl.Int64, "track": pl.String, "name": pl.String, "form": pl.String},
    )
    trace = Trace.from_tables({"spans": empty}, trace_of().manifest)

    assert shown(written(trace, tmp_path)) == [("global", "global", "", 0.001, None)]


def test_a_place_that_cannot_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="cannot be written"):
        write_chrome(trace_of(), tmp_path / "missing" / "out.json")

    assert not list(tmp_path.iterdir())
