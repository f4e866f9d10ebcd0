"""The seam of policies: what is in a file is in the tuple, and the tuple is what is run."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from stepscope.engine.config import OPTIONAL, EngineConfig
from stepscope.engine.schedulers import SCHEDULERS, Scheduler
from stepscope.engine.schedulers.bucketed import Bucketed
from stepscope.ingest.errors import ConfigError
from tests.conftest import ROOT
from tests.engine.small_engines import request, serve

FOLDER = ROOT / "engine" / "schedulers"
each_policy = pytest.mark.parametrize("policy", SCHEDULERS, ids=lambda policy: policy.__name__)


def test_every_file_beside_the_tuple_holds_one_policy_that_is_in_it() -> None:
    files = {path for path in FOLDER.glob("*.py") if path.name != "__init__.py"}

    assert sorted(Path(inspect.getfile(policy)).resolve() for policy in SCHEDULERS) == sorted(files)


def test_no_two_policies_have_one_name() -> None:
    assert len({policy().name for policy in SCHEDULERS}) == len(SCHEDULERS)


@each_policy
def test_every_knob_is_a_setting_and_each_of_its_values_can_be_set(policy: type[Scheduler]) -> None:
    settings: Any = policy
    assert policy.knobs.keys() <= {field.name for field in fields(settings)}
    for knob, choices in policy.knobs.items():
        assert choices
        taken = [value for value in choices if _accepts(policy, knob, value)]
        assert taken, knob


def _accepts(policy: type[Scheduler], knob: str, value: Any) -> bool:
    try:
        policy(**{knob: value})
    except ConfigError:
        return False
    return True


@each_policy
def test_what_a_policy_supports_is_an_optional_part_of_an_engine(policy: type[Scheduler]) -> None:
    assert policy().supports <= set(OPTIONAL)


def test_an_engine_refuses_a_policy_that_knows_nothing_of_a_part_that_is_on() -> None:
    with pytest.raises(ConfigError, match="bucketed does not work with prefix_cache"):
        serve([request("a")], Bucketed(), EngineConfig(prefix_cache=True))
