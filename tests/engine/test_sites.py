"""Sites: where a policy decided, as a text that is the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.engine.config import EngineConfig
from stepscope.engine.plan import Action, Defer
from stepscope.engine.schedulers.bucketed import Bucketed
from stepscope.engine.sites import InFunction, Site, Sites, functions_in, functions_of
from stepscope.engine.state import State
from tests.conftest import ROOT
from tests.engine.recorded_once import RecordedOnce
from tests.engine.small_engines import request, serve
from tests.replays import SMALL, Run, runs
from tests.tiers import sampled, slow

DISPATCHER = {"engine/device/dispatcher.py", "engine/device/placement.py"}
STANDS_BY = "engine/serving/engine.py"
NAMES = st.from_regex(r"[a-z_]{1,8}(\.<locals>\.[a-z]{1,4})?", fullmatch=True)
FILES = st.from_regex(r"([a-z]{1,4}/){0,2}[a-z_]{1,8}\.py", fullmatch=True)
VARIANTS = [run for run in runs(SMALL) if run.fault is None]
QUICK = [run for run in VARIANTS if run.variant == "before"]
SOURCE = """
class Policy:
    def schedule(self, state):
        yield from self._admit(state)

    def _admit(self, state):
        def inner():
            yield 1
        yield from inner()


class Other:
    def schedule(self, state):
        yield 2
"""


class OfATest(Bucketed):
    """A policy that is not ours, and decides in an expression without a name."""

    def schedule(self, state: State) -> Iterator[Action]:
        yield from (Defer(each, "not yet") for each in [*state.waiting][: state.step < 2])
        yield from super().schedule(state)


class NoGenerator(Bucketed):
    """A policy that makes up its mind before it says anything."""

    def schedule(self, state: State) -> Iterator[Action]:
        return iter([Defer(state.waiting[0], "not yet")])


@pytest.mark.parametrize("run", sampled(VARIANTS, QUICK), ids=str)
def test_each_decision_was_taken_in_a_policy_of_its_scenario(
    run: Run, recorded_once: RecordedOnce
) -> None:
    decisions = recorded_once.trace(run.scenario, run.variant, run.options).decisions
    sites = decisions.select("subject_kind", "site").unique().collect().rows()
    policies = set()
    for kind, text in sites:
        site = Site.read(text)
        assert site is not None
        assert str(site) == text
        policies.add(site.functions[-1].file)
        for each in site.functions:
            line = _line_of(each)
            assert ("yield" if kind != "task" else "(") in line, (text, line)
    schedulers = {file for file in policies if file.startswith("engine/schedulers/")}
    assert policies - schedulers <= {*DISPATCHER, STANDS_BY}
    assert len(schedulers) <= 1


def _line_of(place: InFunction) -> str:
    known = {each.name: each for each in functions_of(str(ROOT / place.file)).values()}
    return known[place.name].text.split("\n")[place.line]


def test_who_waits_behind_another_is_told_the_site_where_that_one_was_left_out() -> None:
    _, rows = serve([request("a", 8), request("b", 9), request("c", 9)], Bucketed())

    told = {row["subject"]: row for row in rows.tables["decisions"] if "behind" in row["reason"]}
    left_out = [row for row in rows.tables["decisions"] if row["verdict"] != "admitted"]
    heads = {row["subject"]: row["site"] for row in left_out}
    assert told
    assert all(row["site"] == heads[row["holder"]] for row in told.values())


def test_a_policy_of_another_package_is_named_by_its_module() -> None:
    _, rows = serve([request("a")], OfATest())

    first = rows.tables["decisions"][0]
    assert first["reason"] == "not yet"
    assert first["site"].startswith("tests/engine/test_sites.py: OfATest.schedule+1 [")


def test_of_a_policy_that_is_no_generator_no_site_is_known() -> None:
    _, rows = serve([request("a")], NoGenerator(), EngineConfig(max_idle_steps=2))

    assert [row["site"] for row in rows.tables["decisions"]] == [None]


def test_a_site_says_each_function_and_the_line_in_it(tmp_path: Path) -> None:
    assert _begun(SOURCE, tmp_path / "gone.py", is_there=False) == (
        "acme/policies.py: Policy.schedule+1 > Policy._admit+3 > Policy._admit.<locals>.inner+1"
    )


def test_the_digest_is_of_the_source_of_these_functions_alone(tmp_path: Path) -> None:
    first = _begun(SOURCE, tmp_path / "first.py")

    assert first.startswith("acme/policies.py: Policy.schedule+1 > _admit+3 > inner+1 [")
    elsewhere = "# moved down\n" + SOURCE.replace("yield 2", "yield 3")
    assert _begun(elsewhere, tmp_path / "elsewhere.py") == first
    assert _begun(SOURCE.replace("yield 1", "yield 3"), tmp_path / "in_it.py") != first


def _begun(source: str, file: Path, *, is_there: bool = True) -> str:
    """Where a plan stands that was begun, of a policy whose source may be gone by then."""
    file.write_text(source)
    spec = spec_from_file_location("acme.policies", file)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    if not is_there:
        file.unlink()
    plan = module.Policy().schedule(None)
    next(plan)
    return str(Sites().of_plan(plan))


def test_a_generator_that_has_ended_stands_nowhere() -> None:
    plan = (each for each in (1,))
    next(plan)
    assert Sites().of_plan(plan) is None
    assert list(plan) == []
    assert Sites().of_plan(plan) is None
    assert Sites().of_plan(None) is None


def test_a_function_has_its_class_in_its_name_where_another_one_is_called_so() -> None:
    found = functions_in(SOURCE)

    assert {name: each.name for name, each in found.items()} == {
        "Policy.schedule": "Policy.schedule", "Policy._admit": "_admit",
        "Policy._admit.<locals>.inner": "inner", "Other.schedule": "Other.schedule",
    }  # fmt: skip
    assert found["Policy._admit"].text.split("\n")[1] == "        def inner():"


def test_a_file_that_is_no_python_has_no_functions(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\xff\x00 def")
    assert functions_of(str(tmp_path / "a.py")) == {}
    assert functions_of(str(tmp_path / "b.py")) == {}


def test_what_is_no_site_is_read_as_none() -> None:
    texts = ("", "a", "a.py: b", "b+1", "a.py: b+1 [zz]", "a.py: b+1 > +2")

    assert [text for text in texts if Site.read(text) is not None] == []


@slow
@given(st.lists(st.builds(InFunction, FILES, NAMES, st.integers(0, 9999)), min_size=1, max_size=4),
       st.none() | st.binary(min_size=4, max_size=4).map(bytes.hex))  # fmt: skip
def test_a_site_is_read_as_it_was_written(functions: list[InFunction], digest: str | None) -> None:
    site = Site(tuple(functions), digest)

    assert Site.read(str(site)) == site
