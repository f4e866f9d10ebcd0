"""Limits on what is read: how they are set, what a file beyond one still gives."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from stepscope.ingest.errors import ConfigError, LimitExceeded
from stepscope.ingest.limits import DEFAULTS, NAMES, Limits, limits_of
from stepscope.ingest.readers.chrome.bounded import depth_of
from stepscope.ingest.readers.encodings import buffers
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import Event, rows, slice_
from tests.ingest.log_files import LOGS, report_of
from tests.ingest.readers.kv_events.test_reader import CAPTURE
from tests.ingest.readers.swimlane.test_reader import folder as swimlane
from tests.ingest.zstd_frames import framed
from tests.looped import looped
from tests.tiers import slow


def test_each_limit_is_set_by_its_name_in_numbers_or_bytes() -> None:
    found = limits_of(["depth=64", "inflated=2GiB", "line = 8 k".replace(" = ", "="), "rows=1_000"])

    assert (found.depth, found.inflated, found.line, found.rows) == (64, 2 << 30, 8 << 10, 1_000)
    assert found.tracks == DEFAULTS.tracks


@looped("text", ["depth", "depth=", "depth=0", "depth=-1", "depth=1.5", "text=1x"])
def test_what_is_no_number_from_1_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not NAME=N"):
        limits_of([text])


def test_an_unknown_limit_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match=", ".join(NAMES)):
        limits_of(["deep=3"])


# -- events --------------------------------------------------------------------------------------


def opened(folder: Path, content: bytes, **limits: int) -> Trace:
    file = folder / "trace.json"
    file.write_bytes(content)
    return Trace.open(file, limits=Limits(**limits))


def events(*several: Event) -> bytes:
    return json.dumps({"schemaVersion": 1, "traceEvents": several}).encode()


def nested(depth: int) -> Any:
    found: Any = 1
    for number in range(depth):
        found = [found] if number % 2 else {"in": found}
    return found


def test_arguments_that_are_too_deep_are_left_out_and_counted(tmp_path: Path) -> None:
    deep = [slice_(f"{depth}", 1, 1, args={"a": nested(depth)}) for depth in (1, 8, 9, 10)]
    wide = slice_("wide", 1, 1, args={"a": [[]] * 100, "b": "[" * 100, "c": '\\"{' * 100})

    trace = opened(tmp_path, events(*deep, wide), depth=10)

    kept = dict(rows(trace, "spans", "name", "args"))
    assert kept["10"] is None
    assert [kept[name] is not None for name in ("1", "8", "9", "wide")] == [True] * 4
    what = "args deeper than 10 left out (--max depth=N raises it)"
    assert report_of(trace).repaired == {what: 1}


def test_texts_that_are_too_long_are_cut_or_left_out_and_counted(tmp_path: Path) -> None:
    long = [slice_("é" * 100, 1, 1, cat="c" * 101), slice_("b", 2, 1, args={"text": "a" * 100})]

    trace = opened(tmp_path, events(*long), text=100)

    name, cat, _ = rows(trace, "spans", "name", "category", "args")[0]
    assert (name, cat) == ("é" * 25, "c" * 25)
    assert rows(trace, "spans", "args")[1] is None
    assert sorted(report_of(trace).repaired.values()) == [1, 1, 1]
    assert all("--max text=N" in what for what in report_of(trace).repaired)


def test_tracks_beyond_the_limit_are_shown_as_one(tmp_path: Path) -> None:
    many = [slice_("a", number, 1, tid=number // 2) for number in range(20)]
    named = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 9, "args": {"name": "last"}}]

    trace = opened(tmp_path, events(*named, *many), tracks=4)

    assert trace.num_rows("spans") == 20
    assert trace.spans.collect()["track"].n_unique() == 5
    what = "tracks beyond 4 shown as one (--max tracks=N raises it)"
    assert report_of(trace).repaired[what] == 12


def test_events_beyond_the_limit_are_not_read(tmp_path: Path) -> None:
    trace = opened(tmp_path, events(*(slice_("a", at, 1) for at in range(9))), events=5)

    assert trace.num_rows("spans") == 5
    assert not trace.manifest.closed
    assert "more than 5 events (--max events=N raises it)" in report_of(trace).notes[0]


def test_what_is_before_an_event_too_large_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "BLOCK_BYTES", 1_000)
    small = [slice_("a", at, 1) for at in range(30)]

    trace = opened(tmp_path, events(*small, slice_("x" * 100_000, 1, 1)), event=5_000)

    assert trace.num_rows("spans") == 30
    assert "an event of more than 5,000 bytes" in report_of(trace).notes[0]


def test_a_file_whose_first_bytes_hold_no_events_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(LimitExceeded, match="--max event=N raises it"):
        opened(tmp_path, b'{"schemaVersion": 1, ' + b" " * 9_000_000, event=1 << 20)


@slow
def test_a_bomb_is_read_up_to_its_limit(tmp_path: Path) -> None:
    bomb = gzip.compress(events(slice_("a", 1, 1))[:-2] + b" " * (100 << 20))

    trace = opened(tmp_path, bomb, ratio=200)

    assert trace.num_rows("spans") == 1
    assert "it inflates to more than 200 times its size" in report_of(trace).notes[0]


@given(
    st.recursive(
        st.none() | st.text(), lambda some: st.lists(some) | st.dictionaries(st.text(), some)
    )
)
def test_the_depth_of_json_is_how_far_its_brackets_nest(value: Any) -> None:
    def depth(some: Any) -> int:
        inner = (
            some.values() if isinstance(some, dict) else some if isinstance(some, list) else None
        )
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    assert depth_of(json.dumps(value).encode()) == depth(value)


# -- other formats -------------------------------------------------------------------------------


def test_a_swimlane_is_read_up_to_its_limit(tmp_path: Path) -> None:
    folder = swimlane(tmp_path)
    size = (folder / "chip_swimlane_records.json").stat().st_size

    trace = Trace.open(folder, limits=Limits(whole=size - 200))

    assert trace.num_rows("core_spans") > 0
    assert not trace.manifest.closed
    assert "(--max whole=N raises it)" in report_of(trace).notes[0]


@slow
@pytest.mark.parametrize("compress", [gzip.compress, framed])
def test_every_format_is_read_compressed(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    folder = swimlane(tmp_path, scopes='{"ring": 1}\n')
    files = {
        "kineto": events(slice_("a", 1, 1)),
        "log": LOGS["vllm"].encode(),
        "capture": CAPTURE,
        "swimlane": (folder / "chip_swimlane_records.json").read_bytes(),
    }
    for name, content in files.items():
        plain, packed = folder / f"{name}-rank0", folder / f"{name}-rank0.packed"
        plain.write_bytes(content)
        packed.write_bytes(compress(content))
        ours, theirs = Trace.open(packed), Trace.open(plain)

        assert ours.manifest == theirs.manifest, name
        for table in TABLES:
            assert_frame_equal(ours.table(table.name).collect(), theirs.table(table.name).collect())
