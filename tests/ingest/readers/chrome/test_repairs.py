"""What is no event, what can be repaired, and what is not a file of torch.profiler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope.ingest.errors import TraceError, UnknownFormat
from tests.ingest.kineto_files import num_accounted, open_bytes, rows, slice_
from tests.ingest.readers.chrome.test_events import report
from tests.looped import looped
from tests.tiers import slow


@slow
@looped(
    ("event", "reason"),
    [
        ("17", "not an object"),
        ('"text"', "not an object"),
        ("{}", "no ph"),
        ('{"ph":"O","ts":1}', "ph O"),
        ('{"ph":"\\n\\n","ts":1}', "ph of another kind"),
        ('{"ph":"X","name":"a","dur":1}', "no ts"),
        ('{"ph":"X","name":"a","ts":null,"dur":1}', "no ts"),
        ('{"ph":"X","name":"a","ts":"soon","dur":1}', "ts is not a number of this era"),
        ('{"ph":"X","name":"a","ts":1e300,"dur":1}', "ts is not a number of this era"),
        ('{"ph":"X","name":"a","ts":1,"dur":[1]}', "dur is not a number of this era"),
        ('{"ph":"M","name":"num_cpus","args":{"number":2}}', "metadata that is not a name"),
        ('{"ph":"X","args":' + "[" * 9999 + "]" * 9999 + "}", "nested too deep"),
    ],
)
def test_what_is_no_event_is_skipped_by_reason(tmp_path: Path, event: str, reason: str) -> None:
    good = json.dumps(slice_("good", 1, 1))

    trace = open_bytes(tmp_path, f'{{"traceEvents":[{good},{event},{good}]}}'.encode())

    assert report(trace).skipped == {reason: 1}
    assert num_accounted(trace) == 3
    assert rows(trace, "spans", "name") == ["good", "good"]


@looped(
    ("event", "repair"),
    [
        ('{"ph":"X","name":"a","ts":1,"dur":-4}', "negative dur taken as 0"),
        ('{"ph":"X","name":"a","ts":1}', "slice without dur, kept as unfinished"),
        ('{"ph":"X","ts":1,"dur":0}', "no name"),
        ('{"ph":"X","name":7,"ts":1,"dur":0}', "text field of another type"),
        (
            '{"ph":"X","name":"a\tb\n","ts":1,"dur":0}',
            "NaN, control characters or lone surrogates replaced",
        ),
        (
            '{"ph":"X","name":"a","ts":1,"dur":0,"args":{"x":NaN,"y":"NaN"}}',
            "NaN, control characters or lone surrogates replaced",
        ),
    ],
)
def test_what_can_be_repaired_is_kept_and_counted(tmp_path: Path, event: str, repair: str) -> None:
    trace = open_bytes(tmp_path, f"[{event}]".encode())

    assert trace.num_rows("spans") == 1
    assert report(trace).repaired == {repair: 1}
    assert report(trace).read == {"X": 1}


@pytest.mark.parametrize("place", ["name", "args"])
def test_text_that_is_not_utf8_is_replaced(tmp_path: Path, place: str) -> None:
    content = b'[{"ph":"X","name":"a","ts":1,"dur":0,"%s":"\xff\xfe"}]' % place.encode()

    trace = open_bytes(tmp_path, content)

    assert "\ufffd" in rows(trace, "spans", place)[0]
    assert report(trace).repaired == {"bytes that are not UTF-8 replaced": 1}


def test_lone_surrogates_cannot_break_the_text(tmp_path: Path) -> None:
    trace = open_bytes(tmp_path, rb'[{"ph":"X","name":"\udfff\\ud800\ud83d\ude00","ts":1}]')

    assert rows(trace, "spans", "name") == ["\ufffd\\ud800\U0001f600"]


@pytest.mark.parametrize(("again", "skipped"), [("[{}, {}]", 2), ("7", 0), ("null", 0)])
def test_a_second_list_of_events_is_counted(tmp_path: Path, again: str, skipped: int) -> None:
    events = json.dumps([slice_("a", 1, 1)])

    trace = open_bytes(tmp_path, f'{{"traceEvents":{events},"traceEvents":{again}}}'.encode())

    assert trace.num_rows("spans") == 1
    assert sum(report(trace).skipped.values()) == skipped


@looped("content", [b"{}", b'{"a":[]}', b"[1]", b"hello", b'"ph"'])
def test_other_files_are_not_taken_for_traces(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UnknownFormat):
        open_bytes(tmp_path, content)


def test_an_object_without_events_says_so(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no traceEvents"):
        open_bytes(tmp_path, b'{"schemaVersion": 1}')
