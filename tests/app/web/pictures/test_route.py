"""What is answered to who asks for a picture, and who is not."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from stepscope.app.timeline import Timeline
from stepscope.app.web.safety.access import MOST_BYTES, Access, guard
from stepscope.app.web.server import create_app, create_both_app
from stepscope.ingest.trace import Trace
from tests.app.web.small_traces import NUM_STEPS, STEP_NS, conflict_trace, loaded_of
from tests.conftest import ROOT
from tests.tiers import slow
from tests.traces import trace_of

WISH = {"t0": 0, "t1": NUM_STEPS * STEP_NS, "width": 10, "lanes": [0, 1], "hide": []}
HERE = {"Host": "127.0.0.1:8050"}
FAR = {"Host": "10.0.0.7:8050"}
Ask = Callable[..., TestResponse]


def client_of(access: Access) -> FlaskClient:
    trace = conflict_trace()
    server: Flask = create_app(trace, loaded_of(trace).result).server
    guard(server, access)
    return server.test_client()


@pytest.fixture(scope="module")
def ask() -> Ask:
    """Post something to the page of a small trace on loopback."""
    client = client_of(Access("127.0.0.1"))

    def post(body: Any, headers: dict[str, str] | None = None) -> TestResponse:
        sent = body if isinstance(body, bytes) else json.dumps(body)
        return client.post("/picture", data=sent, headers=HERE | (headers or {}))

    return post


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing may be logged as an error."""
    yield
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


def read(answer: TestResponse) -> tuple[dict[str, Any], bytes]:
    line, _, columns = answer.data.partition(b"\n")
    return json.loads(line), columns


def test_a_picture_is_what_the_timeline_says_and_where_that_is(ask: Ask) -> None:
    answer = ask(WISH)

    head, columns = read(answer)
    assert answer.status_code == 200
    assert answer.mimetype == "application/octet-stream"
    assert (head["t0"], head["t1"], head["lanes"]) == (0, NUM_STEPS * STEP_NS, [0, 1])
    assert "of 6" in head["position"]
    at, size = head["sparse"][0]["start"]
    starts = np.frombuffer(columns[at : at + size], "<f8")
    assert list(starts) == [step * STEP_NS for step in range(NUM_STEPS)]


def test_a_counter_that_never_had_a_value_is_answered() -> None:
    nothing = [{"ts_ns": 0, "track": "t", "name": "n", "value": float("nan")}]
    trace = trace_of(counters=nothing, spans=[{"ts_ns": 0, "dur_ns": 9, "track": "t", "name": "n"}])
    client = create_app(trace, loaded_of(trace).result).server.test_client()

    assert client.post("/picture", json=WISH).status_code == 200


def test_what_is_no_question_is_a_bad_request(ask: Ask) -> None:
    bodies = (b"", b"{", b"[]", b"null", b"{}", b"5", b"\xff\xfe", b"[" * 100_000)

    answers = {body[:9]: ask(body) for body in bodies}

    assert {body: answer.status_code for body, answer in answers.items()} == dict.fromkeys(
        answers, 400
    )
    assert [body for body, answer in answers.items() if "cannot be read" not in answer.text] == []
    assert [body for body, answer in answers.items() if "Traceback" in answer.text] == []


def test_a_picture_of_no_window_is_a_bad_request(ask: Ask) -> None:
    windows: tuple[tuple[str, object], ...] = (
        ("t0", "a"), ("t1", None), ("t1", float("inf")), ("t0", float("nan")), ("t0", 10**400),
        ("width", []), ("lanes", ["x"]), ("lanes", [0.5]), ("lanes", 5), ("hide", 5), ("hide", [5]),
        ("colours", 5), ("revision", 0.5), ("revision", None), ("revision", "x" * 1_001),
    )  # fmt: skip

    answers = [(ask(WISH | {name: value}), name, value) for name, value in windows]

    assert [(name, value) for answer, name, value in answers if answer.status_code != 400] == []
    assert [
        (name, value) for answer, name, value in answers if "cannot be read" not in answer.text
    ] == []


def test_whatever_window_is_wanted_some_picture_is_answered(ask: Ask) -> None:
    windows: tuple[tuple[str, object], ...] = (
        ("t0", -1e300), ("t1", 1e300), ("t1", -1), ("width", 1e300), ("width", -3), ("lanes", []),
        ("lanes", [-1, 10**30]), ("lanes", [0] * 10_000), ("hide", ["nope"]), ("colours", "nope"),
        ("revision", 99), ("revision", -(10**30)), ("revision", "step"),
    )  # fmt: skip

    heads = [(read(ask(WISH | {name: value}))[0], name, value) for name, value in windows]

    assert [(name, value) for head, name, value in heads if not head["t0"] < head["t1"]] == []
    assert [(name, value) for head, name, value in heads if head["revision"] != 0] == []


@slow
def test_two_traces_are_answered_by_how_one_lies_on_the_other() -> None:
    client = create_both_app((conflict_trace(), conflict_trace())).server.test_client()

    for align in ("time", "step"):
        head, _ = read(client.post("/picture", json=WISH | {"revision": align}))
        assert head["revision"] == align


def test_another_page_of_the_browser_is_refused(ask: Ask) -> None:
    own = {"Origin": "http://127.0.0.1:8050"}

    assert ask(WISH, own).status_code == 200
    assert ask(WISH, {"Origin": "http://evil.example"}).status_code == 403
    assert ask(WISH, {"Host": "rebound.example"}).status_code == 403


def test_who_has_no_token_gets_no_picture() -> None:
    access = Access.to("10.0.0.7")
    far = client_of(access)
    assert far.post("/picture", headers=FAR, json=WISH).status_code == 403

    cookie = far.get(f"/{access.query()}", headers=FAR).headers["Set-Cookie"]
    name, _, value = cookie.partition(";")[0].partition("=")
    far.set_cookie(name, value, domain="10.0.0.7")
    assert far.post("/picture", headers=FAR, json=WISH).status_code == 200


def test_a_question_that_holds_too_much_is_refused(ask: Ask) -> None:
    assert ask(b"x" * (MOST_BYTES + 1)).status_code == 413


def test_the_browser_is_told_to_run_nothing_of_it(ask: Ask) -> None:
    headers = ask(WISH).headers

    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_a_picture_is_posted_for() -> None:
    client = client_of(Access("127.0.0.1"))
    status = {"GET": 404, "PUT": 405, "DELETE": 405}

    answers = {each: client.open("/picture", method=each, headers=HERE) for each in status}

    assert {method: answer.status_code for method, answer in answers.items()} == status


def test_a_sentence_says_why_the_request_of_a_lane_waits() -> None:
    trace = Trace.open(ROOT / "sample_traces" / "vllm_crowd.trace")
    loaded = loaded_of(trace)
    client = create_app(trace, loaded.result).server.test_client()
    timeline = Timeline(trace)
    lane = next(lane.id for lane in timeline.lanes if lane.label.startswith("12-"))

    def sentence(**asked: object) -> str:
        answer = client.post("/sentence", json=asked)
        assert answer.status_code == 200
        return str(answer.json and answer.json["sentence"])

    assert sentence(lane=lane, t=124_000_000).startswith("12-a98f2481 waited 196 ms; 74% of")
    assert sentence(lane=lane, t=300_000_000) == ""  # it decodes
    assert [sentence(lane=each, t=5) for each in (-1, 10**9)] == ["", ""]
    assert sentence(lane=lane, t=1e30) == sentence(lane=lane, t=-1e30) == ""


def test_a_sentence_about_nothing_that_can_be_read_is_refused() -> None:
    client = client_of(Access("127.0.0.1"))
    bodies = (b"", b"{}", b'{"lane": "x", "t": 0}', b'{"lane": 0, "t": 1e999}')

    answers = [client.post("/sentence", data=body, headers=HERE) for body in bodies]

    assert {answer.status_code for answer in answers} == {400}
