"""What the page never asks for: refused with a status, and no traceback in the server's log."""

from __future__ import annotations

import http.client
import json
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.app.web import listen
from stepscope.app.web.server import create_app
from tests.app.web.small_traces import conflict_trace
from tests.tiers import slow

UPDATE = "/_dash-update-component"
Ask = Callable[..., int]


@pytest.fixture(scope="module")
def ask() -> Ask:
    """Send a request to a real server, and give the status of its answer."""
    trace = conflict_trace()
    app = create_app(trace, check(trace))
    listener = listen.bind("127.0.0.1", 0)
    serving = (listener, app.server, "127.0.0.1")
    threading.Thread(target=listen.until_stopped, args=serving, daemon=True).start()
    port = listener.getsockname()[1]

    def send(method: str, path: str, body: str | bytes | None = None) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=180)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    return send


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing may be logged as an error."""
    yield
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


def posted(output: str, given: str, value: object, **changes: Any) -> str:
    """What the page posts when a property has changed."""
    of, prop = output.split(".")
    component, named = given.split(".")
    body = {
        "output": output,
        "outputs": {"id": of, "property": prop},
        "inputs": [{"id": component, "property": named, "value": value}],
        "state": [{"id": "revision", "property": "data", "value": 0}],
        "changedPropIds": [given],
    }
    return json.dumps(body | changes)


@slow
def test_what_the_page_asks_for_is_answered(ask: Ask) -> None:
    assert ask("POST", UPDATE, posted("view.data", "address.data", {"search": "?tab=sql"})) == 200
    assert ask("POST", UPDATE, posted("hits.children", "find.value", "step 1")) == 200


def test_an_unknown_callback_is_not_found(ask: Ask) -> None:
    body = json.loads(posted("view.data", "address.data", {"search": ""}))
    outputs = ("nope.data", "..nope.data..", "", "view", "view.data@1")

    statuses = {
        output: ask("POST", UPDATE, json.dumps(body | {"output": output})) for output in outputs
    }

    assert statuses == dict.fromkeys(outputs, 404)


def test_what_cannot_be_read_is_a_bad_request(ask: Ask) -> None:
    bodies: tuple[str | bytes, ...] = (
        "", "{", "[]", "null", "{}", "5", b"\xff\xfe", '{"output":5}', "[" * 100_000,
        posted("view.data", "address.data", 5),
        posted("view.data", "address.data", {}),
        posted("view.data", "address.data", {"search": 5}),
        posted("view.data", "address.data", {"search": ""}, inputs=[]),
        posted("view.data", "address.data", {"search": ""}, inputs=5),
        posted("view.data", "address.data", {"search": ""}, outputs=None),
        posted("view.data", "address.data", {"search": ""}, outputs=[]),
        posted("view.data", "address.data", {"search": ""}, outputs={"id": "a", "property": "b"}),
        posted("view.data", "address.data", {"search": ""}, changedPropIds=5),
        posted("view.data", "find.value", "x"),
        posted("hits.children", "find.value", ["x"]),
    )  # fmt: skip

    statuses = [(ask("POST", UPDATE, body), body) for body in bodies]

    assert [(status, body[:200]) for status, body in statuses if status != 400] == []


def test_an_unknown_path_is_not_found(ask: Ask) -> None:
    paths = ("/nope", "/favicon.ico", "/assets/nope.js", "/assets/../server.py", "/%00", UPDATE,
             "/_dash-component-suites/dash/nope.js", "/_dash-component-suites/nope/nope.js",
             "/_dash-component-suites/dash/dcc/..%2f..%2fsecret.js")  # fmt: skip

    assert {path: ask("GET", path) for path in paths} == dict.fromkeys(paths, 404)


def test_another_method_is_not_allowed(ask: Ask) -> None:
    asked = (("PUT", UPDATE), ("POST", "/"), ("DELETE", "/"), ("POST", "/_dash-layout"))

    assert {each: ask(*each) for each in asked} == dict.fromkeys(asked, 405)
