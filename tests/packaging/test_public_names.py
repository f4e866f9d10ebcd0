"""`import stepscope` offers the few names that users need, and loads nothing before it is used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stepscope
from tests.conftest import ROOT
from tests.house import imported, modules
from tests.looped import looped
from tests.tiers import slow

SOURCE = ROOT / "src" / "stepscope" / "__init__.py"


def loaded_by(code: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(run.stdout.split())


@looped("name", stepscope.__all__)
def test_every_name_that_is_offered_is_there_and_says_what_it_is(name: str) -> None:
    assert getattr(stepscope, name).__doc__


def test_importing_it_loads_nothing_of_ours() -> None:
    ours = {name for name in loaded_by("import stepscope") if name.startswith("stepscope")}

    assert ours == {"stepscope"}


def test_a_recorder_is_imported_without_polars_or_a_rule() -> None:
    loaded = loaded_by("import stepscope; stepscope.Recorder")

    assert "stepscope.ingest.recorder" in loaded
    assert not {"polars", "stepscope.analyzers"} & loaded


def test_whoever_looks_around_sees_these_names_and_no_others() -> None:
    assert [name for name in dir(stepscope) if not name.startswith("_")] == stepscope.__all__


def test_a_name_that_it_does_not_offer_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="module 'stepscope' has no attribute 'Tarce'"):
        _ = stepscope.Tarce  # type: ignore[attr-defined]  # which holds that it is told, too


def test_type_checkers_see_exactly_what_is_offered() -> None:
    typed = next(node for node in ast.parse(SOURCE.read_text()).body if isinstance(node, ast.If))
    seen = [each for each in typed.body if isinstance(each, ast.ImportFrom)]
    homes = {name.name: each.module for each in seen for name in each.names}

    assert homes == {name: f"stepscope.{home}" for name, home in vars(stepscope)["_HOMES"].items()}
    assert sorted(homes) == sorted(stepscope.__all__)


def test_its_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"(?:^(?: {4}.*)?\n)+", stepscope.__doc__ or "", re.MULTILINE)[:1]

    exec(re.sub(r"^ {4}", "", example, flags=re.MULTILINE), {})  # noqa: S102 - our own code

    assert stepscope.Trace.open("run.trace").num_rows("steps") == 1


@slow
def test_none_of_our_modules_takes_a_name_from_the_front_door() -> None:
    offered = {f"stepscope.{name}" for name in stepscope.__all__}
    takers = {
        name: taken
        for name, file in modules(ROOT).items()
        if (taken := imported(file.read_text()) & offered)
    }

    assert takers == {}
