from __future__ import annotations

import pytest

from stepscope.engine.runs.scenario import Setting, parse_settings
from stepscope.engine.scenarios import SCENARIOS, scenario
from stepscope.ingest.errors import ConfigError
from tests.looped import looped

SETTINGS = {
    "size": Setting(4, "a size", at_least=1),
    "cores": Setting(4, "some cores", at_most=8),
    "share": Setting(1.5, "a share"),
    "policy": Setting("fair", "a policy", choices=("fair", "unfair")),
    "is_on": Setting(True, "a switch"),
}


def test_a_setting_is_read_as_the_type_of_its_default() -> None:
    given = {"size": "7", "share": "2", "policy": "unfair", "is_on": "no"}
    expected = {"size": 7, "cores": 4, "share": 2.0, "policy": "unfair", "is_on": False}
    assert parse_settings(SETTINGS, given) == expected
    assert parse_settings(SETTINGS, {})["size"] == 4


@looped(
    ("key", "text", "why"),
    [
        ("size", "many", "a whole number is needed"),
        ("size", "0", "at least 1"),
        ("size", "9223372036854775808", "at most 16,777,216"),
        ("share", "1e300", "at most 16,777,216"),
        ("cores", "9", "at most 8"),
        ("share", "x", "a number is needed"),
        ("share", "nan", "a number is needed"),
        ("policy", "rude", "choose fair, unfair"),
        ("is_on", "maybe", "true or false"),
        ("sise", "3", "try size"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(key: str, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_settings(SETTINGS, {key: text})


def test_a_scenario_is_found_by_its_name_and_a_typo_gets_the_nearest() -> None:
    assert scenario("fcfs-preemption").name == "fcfs-preemption"
    with pytest.raises(ConfigError, match="try fcfs-preemption"):
        scenario("fcfs-preemtion")


@looped("each", SCENARIOS)
def test_every_scenario_has_before_and_after_and_refuses_other_variants(each: object) -> None:
    known = scenario(getattr(each, "name", ""))
    assert known.variants[:2] == ("before", "after")
    with pytest.raises(ConfigError):
        known.record("between", None)
