"""Who is answered, and who is not."""

from __future__ import annotations

import re
from contextlib import closing

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import Client

from stepscope.app.cli.opening import OpenTrace
from stepscope.app.live.opener import Opener
from stepscope.app.web.safety.access import MOST_BYTES, SHORTEST, Access, guard
from stepscope.app.web.safety.hosts import is_loopback
from stepscope.app.web.server import create_app
from stepscope.app.web.start.trace_desk import Desk
from stepscope.ingest.errors import ConfigError
from tests.app.web.small_traces import conflict_trace, loaded_of

HERE = {"Host": "10.0.0.7:8050"}
LOCAL = {"Host": "127.0.0.1:8050"}
PATHS = ("/", "/_dash-layout", "/_dash-dependencies", "/assets/page.js")


def client_of(access: Access) -> FlaskClient:
    trace = conflict_trace()
    server: Flask = create_app(trace, loaded_of(trace).result).server
    guard(server, access)
    return server.test_client()


@pytest.fixture(scope="module")
def local() -> FlaskClient:
    """A client of a page on loopback, to which no request leaves anything."""
    return client_of(Access("127.0.0.1"))


@pytest.fixture
def access() -> Access:
    """The access to a page that other machines reach."""
    return Access.to("10.0.0.7")


@pytest.fixture
def far(access: Access) -> FlaskClient:
    """A client of that page."""
    return client_of(access)


def test_it_knows_which_addresses_only_this_machine_reaches() -> None:
    loopback = ("localhost", "127.0.0.1", "127.8.8.8", "::1")
    others = ("10.0.0.1", "192.168.1.4", "example.com", "")

    assert [host for host in loopback if not is_loopback(host)] == []
    assert [host for host in others if is_loopback(host)] == []


def test_a_page_of_the_web_cannot_read_the_trace_under_its_own_name(local: FlaskClient) -> None:
    status = {"localhost:8050": 200, "127.0.0.1": 200, "[::1]:8050": 200, "rebound.example": 403,
              "10.0.0.7": 403, "[": 403}  # fmt: skip

    answers = {name: local.get("/", headers={"Host": name}) for name in status}

    assert {name: answer.status_code for name, answer in answers.items()} == status


def test_every_start_has_a_token_of_256_bits_unless_none_is_wanted() -> None:
    starts = [Access.to("127.0.0.1") for _ in range(20)]

    tokens = {str(access.token) for access in starts}
    assert len(tokens) == 20
    assert {len(token) for token in tokens} == {43}  # characters of 6 bits
    assert starts[0].query("?tab=sql") == f"?token={starts[0].token}&tab=sql"
    assert Access.to("127.0.0.1", token=False).query("?tab=sql") == "?tab=sql"


def test_a_token_of_the_user_is_asked_for_as_it_is() -> None:
    access = Access.to("127.0.0.1", "a b&c=d/e?f#g%h+i")
    client = client_of(access)

    assert client.get("/?token=a+b", headers=LOCAL).status_code == 403
    assert client.get(f"/{access.query()}", headers=LOCAL).status_code == 303


def test_tokens_that_are_short_or_unprintable_and_none_for_other_machines_are_refused() -> None:
    wrong = ("", "x" * (SHORTEST - 1), "x" * SHORTEST + "\n", "x" * SHORTEST + "é")
    for token in wrong:
        with pytest.raises(ConfigError, match="leave it out for a random one"):
            Access.to("127.0.0.1", token)
    with pytest.raises(ConfigError, match="leave out --no-token"):
        Access.to("10.0.0.7", token=False)


def test_without_the_token_every_route_and_method_is_refused_in_one_plain_line() -> None:
    trace = conflict_trace()
    access = Access.to("127.0.0.1")
    first = create_app(trace, loaded_of(trace).result, opens_others=True).server
    guard(first, access)
    with closing(Desk(first, access, Opener(OpenTrace()))) as desk:
        client = Client(desk)
        own = [rule.rule for server in (first, desk._own) for rule in server.url_map.iter_rules()]
        paths = {
            *own,
            *PATHS,
            "/nothing",
            "/open/1/",
            "/open/begin",
            "/picture",
            "/sentence",
            "/news",
        }
        for path in sorted(paths):
            for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
                answer = client.open(path, method=method, headers=LOCAL, data=b"{}")
                assert (answer.status_code, answer.mimetype) == (403, "text/plain"), path
                assert answer.text.count("\n") == (0 if method == "HEAD" else 1), path


def test_a_browser_that_comes_from_another_site_is_sent_on_by_our_own_page() -> None:
    access = Access.to("127.0.0.1")
    headers = {**LOCAL, "Sec-Fetch-Site": "cross-site"}

    answer = client_of(access).get(f"/{access.query('?tab=sql&q=%22%3E')}", headers=headers)

    assert answer.status_code == 200
    assert 'content="0;url=/?tab=sql&amp;q=%22%3E"' in answer.text
    assert "SameSite=Strict" in answer.headers["Set-Cookie"]
    assert str(access.token) not in answer.text


def test_the_address_without_the_token_is_never_another_site() -> None:
    access = Access.to("127.0.0.1")
    client = client_of(access)

    paths = ("//evil.example/", "/\\evil.example", "/%2f/evil.example")
    answers = [client.get(f"{path}{access.query()}", headers=LOCAL) for path in paths]

    places = [answer.headers["Location"] for answer in answers]
    assert [place for place in places if place[0] != "/" or place[1:2] in ("/", "\\")] == []


def test_two_tunnels_to_one_port_have_two_cookies() -> None:
    access = Access.to("127.0.0.1")
    client = client_of(access)

    names = [client.get(f"/{access.query()}", headers={"Host": f"localhost:{port}"})
             .headers["Set-Cookie"].partition("=")[0] for port in (9000, 9001)]  # fmt: skip

    assert names == ["stepscope-9000", "stepscope-9001"]


def test_another_page_of_the_browser_is_refused(local: FlaskClient) -> None:
    origins = ("http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:8050")
    statuses = {}
    for origin in origins:
        headers = {"Host": "127.0.0.1:8050", "Origin": origin}
        page = local.get("/", headers=headers)
        update = local.post("/_dash-update-component", headers=headers, json={})
        statuses[origin] = (page.status_code, update.status_code)

    assert statuses == dict.fromkeys(origins, (403, 403))


def test_the_page_itself_is_answered(local: FlaskClient) -> None:
    own = {"Host": "127.0.0.1:8050", "Origin": "http://127.0.0.1:8050"}

    assert local.get("/", headers=own).status_code == 200


def test_whoever_has_no_token_gets_nothing_of_the_page(far: FlaskClient) -> None:
    answers = {path: far.get(path, headers=HERE) for path in PATHS}

    assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(
        PATHS, 403
    )
    assert all("stepscope web has printed" in answer.text for answer in answers.values())
    assert [path for path, answer in answers.items() if "Set-Cookie" in answer.headers] == []


def test_the_token_becomes_a_cookie_and_leaves_the_address(
    far: FlaskClient, access: Access
) -> None:
    first = far.get(f"/{access.query('?tab=sql&sel=1@2')}", headers=HERE)

    assert first.status_code == 303
    assert first.headers["Location"] == "/?tab=sql&sel=1@2"
    cookie = first.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert str(access.token) not in cookie
    value = re.match(r"([\w-]+)=([^;]+)", cookie)
    assert value
    far.set_cookie(value[1], value[2], domain="10.0.0.7")
    for path in PATHS:
        with far.get(path, headers=HERE) as answer:
            assert answer.status_code == 200


def test_another_token_is_refused(far: FlaskClient) -> None:
    queries = ("?token=", "?token=guessed", "?token=%ff%00", "?TOKEN=x")

    statuses = {query: far.get(f"/{query}", headers=HERE).status_code for query in queries}

    assert statuses == dict.fromkeys(queries, 403)


def test_a_cookie_of_another_start_is_refused(far: FlaskClient) -> None:
    far.set_cookie("stepscope-8050", Access.to("10.0.0.7")._session, domain="10.0.0.7")

    assert far.get("/", headers=HERE).status_code == 403


def test_with_a_token_a_name_that_anybody_can_point_here_is_refused_all_the_same(
    far: FlaskClient, access: Access
) -> None:
    answer = far.get(f"/{access.query()}", headers={"Host": "rebound.example"})

    assert answer.status_code == 403


def test_a_request_that_holds_too_much_is_refused(local: FlaskClient) -> None:
    sent = local.post(
        "/_dash-update-component",
        headers={"Host": "127.0.0.1"},
        data=b"x" * (MOST_BYTES + 1),
        content_type="application/json",
    )

    assert sent.status_code == 413
