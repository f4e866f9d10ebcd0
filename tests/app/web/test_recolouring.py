"""What the server sends as the page becomes light or dark: charts, and what has not come yet."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from stepscope.analyzers.check.run import check
from stepscope.app.web.server import create_app
from tests.app.web.small_traces import conflict_trace

OUTPUTS = ("pane.children", "about.children", "tokens.figure", "rule.children", "filled.data",
           "relation.children")  # fmt: skip


@pytest.fixture(scope="module")
def client() -> FlaskClient:
    trace = conflict_trace()
    client: FlaskClient = create_app(trace, check(trace)).server.test_client()
    return client


def sent(client: FlaskClient, changed: str, search: str, filled: object, revision: object) -> Any:
    """What the server sends of a pane, when the page says what has changed and what it shows."""
    told = {"id": "view", "property": "data", "value": {"search": search}}
    light = {"id": "light", "property": "data", "value": True}
    pairs = [dict(zip(("id", "property"), each.split("."), strict=True)) for each in OUTPUTS]
    body = {
        "output": f"..{'...'.join(OUTPUTS)}..", "outputs": pairs, "inputs": [told, light],
        "changedPropIds": [changed],
        "state": [
            {"id": "filled", "property": "data", "value": filled},
            {"id": "revision", "property": "data", "value": revision},
        ],
    }  # fmt: skip
    answer = client.post("/_dash-update-component", json=body)
    assert answer.status_code == 200
    return answer.get_json()["response"]


def test_a_pane_that_is_shown_is_sent_again_for_its_charts_alone(client: FlaskClient) -> None:
    for tab, has_charts in (("table", False), ("sql", False), ("overview", True)):
        search = f"?tab={tab}"

        shown = sent(client, "view.data", search, None, 0)
        assert shown["filled"]["data"] == [search, 0, None]
        again = sent(client, "light.data", search, shown["filled"]["data"], 0)
        assert {*again} == {"tokens", "filled"} | ({"pane"} if has_charts else set()), tab


def test_tokens_near_a_step_are_sent_when_it_is_another_step(client: FlaskClient) -> None:
    at_two = sent(client, "view.data", "?step=2", None, 0)["filled"]["data"]

    assert "tokens" not in sent(client, "view.data", "?step=2&tab=table", at_two, 0)
    assert "tokens" in sent(client, "view.data", "?step=3", at_two, 0)
    assert "tokens" in sent(client, "view.data", "?step=2", [*at_two[:1], 1, 2], 0)
    assert "tokens" in sent(client, "light.data", "?step=2", at_two, 0)


def test_a_pane_that_has_not_come_yet_is_sent_whole(client: FlaskClient) -> None:
    """What is on its way when the ground changes is dropped by Dash: this answer stands for it."""
    first = sent(client, "view.data", "?tab=table", None, 0)
    shown: tuple[object, ...] = (None, ["?tab=sql", 0], ["?tab=table", 1], "?tab=table", 5, {})

    answers = [(filled, sent(client, "light.data", "?tab=table", filled, 0)) for filled in shown]

    assert [filled for filled, answer in answers if answer != first] == []
