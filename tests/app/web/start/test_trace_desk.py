"""The page from which traces are opened: what it opens, what it refuses, and in which words."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client, TestResponse

from stepscope.analyzers.summary.slo import slo_of
from stepscope.app.cli.opening import OpenTrace
from stepscope.app.kept import recent
from stepscope.app.live.opener import Opener
from stepscope.app.web.safety.access import Access
from stepscope.app.web.server import create_app
from stepscope.app.web.start.dropped import Dropped
from stepscope.app.web.start.openings import MOST_OPEN
from stepscope.app.web.start.trace_desk import Desk
from stepscope.ingest.recorder import Recorder
from tests.app.web.small_traces import conflict_trace, loaded_of
from tests.conftest import ROOT

SAMPLE = ROOT / "sample_traces" / "mix-admission-before.trace"
PATIENCE_S = 180.0
MOST = 1 << 20
HERE = {"Host": "127.0.0.1:8050"}


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Client]:
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path / "state"))
    made = Desk(None, Access("127.0.0.1"), Opener(OpenTrace()), dropped=Dropped(MOST))
    yield Client(made)
    made.close()


def begin(desk: Client, **asked: Any) -> dict[str, Any]:
    answer: dict[str, Any] = desk.post("/open/begin", json=asked, headers=HERE).get_json()
    return answer


def drop(desk: Client, name: str, content: bytes) -> TestResponse:
    return desk.post(
        "/open/drop", query_string={"name": name}, data=content, headers=HERE,
        content_type="application/octet-stream",
    )  # fmt: skip


def opened(desk: Client, number: int) -> dict[str, Any]:
    """What came of an opening, once it is over."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        told: dict[str, Any] = desk.get(f"/open/progress/{number}", headers=HERE).get_json()
        if told["href"] or told["failed"]:
            return told
        time.sleep(0.02)
    raise AssertionError("it was never opened")


def test_without_a_trace_the_address_leads_to_the_page_and_a_path_is_opened(desk: Client) -> None:
    assert desk.get("/", headers=HERE).location == "/open/"
    told = opened(desk, begin(desk, path=str(SAMPLE))["number"])

    shown = desk.get(told["href"], headers=HERE).text
    assert 'src="/open/1/assets/page.js"' in shown
    with desk.get("/open/1/assets/page.js", headers=HERE) as script:
        assert script.status_code == 200
    assert "mix-admission-before" in desk.get("/open/1/_dash-layout", headers=HERE).text
    assert recent.recent() == [SAMPLE]


def test_what_was_opened_last_is_listed_as_text_and_opened_by_its_place(
    desk: Client, tmp_path: Path
) -> None:
    recent.opened(SAMPLE)
    (tmp_path / "<b>.log").write_text("x")
    recent.opened(tmp_path / "<b>.log")

    page = desk.get("/open/", headers=HERE)
    told = opened(desk, begin(desk, recent=1)["number"])

    assert "&lt;b&gt;.log" in page.text
    assert "<b>.log" not in page.text
    policy = page.headers["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert told["href"] == "/open/1/"


def test_a_file_that_is_dropped_is_opened_and_is_gone_at_the_end(desk: Client) -> None:
    content = b'{"traceEvents": [{"ph": "X", "name": "k", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}'
    number = drop(desk, "../../etc/a b<c>.json", content).get_json()["number"]
    told = opened(desk, number)
    application = desk.application
    assert isinstance(application, Desk)
    folder = Path(application._dropped._folder.name)
    (kept,) = [each for each in folder.rglob("*") if each.is_file()]

    assert told["failed"] == ""
    assert kept.name == "a-b-c-.json"
    assert kept.read_bytes() == content
    assert recent.recent() == []
    application.close()
    assert not folder.exists()


def test_a_file_that_is_too_large_is_refused_in_one_line_and_leaves_nothing(desk: Client) -> None:
    answer = drop(desk, "large.json", bytes(MOST + 1))

    failed = answer.get_json()["failed"]
    assert "large.json: a file that is dropped has 1,048,576 bytes at most; open it by" in failed
    application = desk.application
    assert isinstance(application, Desk)
    assert [*Path(application._dropped._folder.name).rglob("*")] == []


def test_a_file_of_which_less_came_or_whose_length_is_a_lie_is_refused() -> None:
    dropped = Dropped(MOST)
    with pytest.raises(Exception, match="3 of 5 bytes came"):
        dropped.take("x", 5, io.BytesIO(b"abc"))
    with pytest.raises(Exception, match="bytes at most"):
        dropped.take("x", 5, io.BytesIO(bytes(MOST + 1)))
    assert [*Path(dropped._folder.name).rglob("*")] == []
    dropped.close()


def test_what_cannot_be_opened_is_said_in_a_line(desk: Client) -> None:
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"path": "/nowhere/at/all"}, "there is no such file; check the path"),
        ({"path": ""}, "no file is named"),
        ({"path": "x" * 5_000}, "no file is named"),
        ({"path": "a\0b"}, "a·b: there is no such file"),
        ({"recent": 7}, "no file is named"),
        ({"path": 7}, "no file is named"),
    )

    lines = [(begin(desk, **query)["failed"], expected) for query, expected in wrong]

    assert [(line, expected) for line, expected in lines if expected not in line] == []


def test_a_file_that_is_no_trace_is_said_by_its_reader(desk: Client, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")

    told = opened(desk, begin(desk, path=str(tmp_path / "notes.txt"))["number"])

    assert "notes.txt" in told["failed"]
    assert told["href"] == ""


def test_another_page_has_nothing_to_ask_here(desk: Client) -> None:
    number = begin(desk, path=str(SAMPLE))["number"]
    opened(desk, number)
    asked: tuple[tuple[dict[str, str], int], ...] = (
        (HERE, 200),
        ({"Host": "rebound.example"}, 403),
        ({**HERE, "Origin": "http://elsewhere.example"}, 403),
    )

    for headers, status in asked:
        for path in ("/open/", "/open/1/", f"/open/progress/{number}"):
            assert desk.get(path, headers=headers).status_code == status, (headers, path)
        answer = desk.post("/open/begin", json={"path": str(SAMPLE)}, headers=headers)
        assert answer.status_code == status, headers


def test_the_page_of_a_named_trace_stays_where_it_is_and_what_is_closed_says_so() -> None:
    trace = conflict_trace()
    first = create_app(trace, loaded_of(trace).result, opens_others=True).server
    application = Desk(first, Access("127.0.0.1"), Opener(OpenTrace()))
    desk = Client(application)

    assert 'src="/assets/page.js"' in desk.get("/", headers=HERE).text
    assert '"id":"open-other"' in desk.get("/_dash-layout", headers=HERE).text
    for number in range(1, MOST_OPEN + 2):
        opened(desk, begin(desk, path=str(SAMPLE))["number"])
        assert desk.get(f"/open/{number}/", headers=HERE).status_code == 200
    closed = desk.get("/open/1/", headers=HERE)
    assert (closed.status_code, "is not open any more" in closed.text) == (404, True)
    application.close()


def test_requests_that_nobody_writes_are_answered_with_a_status(desk: Client) -> None:
    assert desk.post("/open/begin", data=b"{", headers=HERE).status_code == 400
    assert desk.get("/open/progress/99", headers=HERE).status_code == 404
    assert desk.get("/open/assets/../desk.py", headers=HERE).status_code == 404
    assert desk.get("/open/99/", headers=HERE).status_code == 404
    assert desk.get("/nothing", headers=HERE).status_code == 404


def test_a_recording_in_progress_is_followed_and_held_against_the_slo_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr("stepscope.app.live.follower.READ_EVERY_S", 0.0)
    slo = slo_of("ttft=1s")
    with (
        closing(Desk(None, Access("127.0.0.1"), Opener(OpenTrace()), slo)) as made,
        Recorder(tmp_path / "run.trace", producer="test") as rec,
    ):
        desk = Client(made)
        arrive(rec, 1)
        href = opened(desk, begin(desk, path=str(rec.path))["number"])["href"]
        news = desk.get(f"{href}news", headers=HERE).get_json()
        arrive(rec, 2)
        later = desk.get(f"{href}news", headers=HERE).get_json()

        assert news["live"]
        assert later["revision"] > news["revision"]
        looked_at = [made._openings._source(each, lambda *_: None) for each in (rec.path, SAMPLE)]
        assert [each.now.slo for each in looked_at] == [slo, slo]
        assert looked_at[1].reload().slo == slo


def test_told_to_follow_nothing_it_reads_a_recording_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path / "state"))
    opener = Opener(OpenTrace(), follows=False)
    with (
        closing(Desk(None, Access("127.0.0.1"), opener)) as made,
        Recorder(tmp_path / "run.trace", producer="test") as rec,
    ):
        desk = Client(made)
        arrive(rec, 1)
        href = opened(desk, begin(desk, path=str(rec.path))["number"])["href"]
        assert desk.get(f"{href}news", headers=HERE).get_json()["live"] is False


def arrive(rec: Recorder, number: int) -> None:
    """Record that a request arrives and has its first token."""
    for name, ts_ns in (("arrive", number * 1_000), ("first-token", number * 1_000 + 500)):
        rec.lifecycle(ts_ns=ts_ns, request=f"req-{number}", event=name)
