"""`stepscope rules`: a rule is begun with one command."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.analyzers.check.registry import RULES
from tests.app.cli.conftest import Command
from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The parts of a checkout that a new rule touches."""
    for folder in ("analyzers", "tests/analyzers"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    return tmp_path


@looped("words", [("rules",), ("explain",)], ids=" ".join)
def test_rules_are_listed_with_their_severity_those_of_most_engines_first(
    stepscope: Command, words: tuple[str, ...]
) -> None:
    run = stepscope(*words)

    listed = [(line.split()[0], line.split()[1]) for line in run.out.splitlines()]
    assert sorted(listed) == sorted((rule.code, str(rule.severity)) for rule in RULES)
    families = list(dict.fromkeys(code[:3] for code, _ in listed))
    assert families == ["STV", "BAT", "KVB", "BUF", "COL", "COR", "EQV", "TRC"]


def test_a_new_rule_goes_into_the_checkout_that_the_command_runs_from(stepscope: Command) -> None:
    run = stepscope("rules", "new", "COR001", "draft-never-accepted")

    assert run.code == 2
    assert "there is cor001_mix_on_occupied_group already" in run.err


@pytest.mark.parametrize("code", ["AAA001", "COR099", "ZZZ001"])
def test_a_new_rule_has_a_page_a_test_and_its_lines(
    stepscope: Command, checkout: Path, code: str
) -> None:
    run = stepscope("rules", "new", code, "draft-never-accepted", "--checkout", checkout)

    family = code[:3].lower()
    module = f"{code.lower()}_draft_never_accepted"
    assert run.code == 0
    assert (checkout / "analyzers" / "rules" / family / f"{module}.py").is_file()
    registry = (checkout / "analyzers" / "check" / "registry.py").read_text(encoding="utf-8")
    imported = re.findall(r"rules\.([\w.]+) import (\w+)", registry)
    assert (f"{family}.{module}", "DraftNeverAccepted") in imported
    assert imported == sorted(imported)
    assert registry.count("    DraftNeverAccepted(),\n") == 1


@slow
def test_a_new_rule_touches_what_contributing_names_and_runs_at_once(
    stepscope: Command, tmp_path: Path
) -> None:
    rooms = ["app", "analyzers", "engine", "ingest", "tests/analyzers"]
    copied = tmp_path / "stepscope"  # as it is imported
    for room in rooms:
        shutil.copytree(ROOT / room, copied / room, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "src/stepscope/__init__.py"):
        shutil.copy(ROOT / file, copied)
    before = contents(copied)

    stepscope("rules", "new", "BAT099", "draft-never-accepted", "--checkout", copied)

    after = contents(copied)
    assert {path for path in after if after[path] != before.get(path)} == {
        "analyzers/rules/bat/bat099_draft_never_accepted.py",
        "analyzers/check/registry.py",
        "tests/analyzers/rules/bat/test_bat099_draft_never_accepted.py",
    }
    listed = subprocess.run(
        [sys.executable, "-P", "-m", "stepscope.app", "rules"], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "BAT099  warning  draft-never-accepted" in listed.stdout


def test_contributing_names_the_files_that_a_new_rule_touches() -> None:
    said = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

    assert "`analyzers/rules/abc/abc001_what_is_wrong.py`" in said
    assert "`RULES` in `analyzers/check/registry.py`" in said
    assert "`tests/analyzers/rules/abc/`" in said


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_first_rule_of_a_family_makes_its_folder(stepscope: Command, checkout: Path) -> None:
    run = stepscope("rules", "new", "ZZZ001", "draft-never-accepted", "--checkout", checkout)

    assert (checkout / "analyzers" / "rules" / "zzz" / "__init__.py").is_file()
    assert (checkout / "tests" / "analyzers" / "rules" / "zzz" / "__init__.py").is_file()
    assert "wrote analyzers/rules/zzz/__init__.py" in run.out


def test_what_it_writes_is_formatted_and_its_test_passes(
    stepscope: Command, checkout: Path
) -> None:
    stepscope("rules", "new", "BAT099", "draft-never-accepted", "--checkout", checkout)

    written = [
        checkout / "analyzers" / "rules" / "bat" / "bat099_draft_never_accepted.py",
        checkout / "tests" / "analyzers" / "rules" / "bat" / "test_bat099_draft_never_accepted.py",
        checkout / "analyzers" / "check" / "registry.py",
    ]
    for words in (["format", "--check"], ["check"]):
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *words, *written], cwd=checkout, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout
    space: dict[str, object] = {}
    exec(compile(ast.parse(written[0].read_text()), "rule", "exec"), space)  # noqa: S102 - what was just written
    imported = "from stepscope.analyzers.rules.bat.bat099_draft_never_accepted import"
    test = written[1].read_text().replace(f"{imported} DraftNeverAccepted", "")
    exec(compile(ast.parse(test), "test", "exec"), space)  # noqa: S102 - what was just written
    for name in [name for name in space if name.startswith("test_")]:
        space[name]()  # type: ignore[operator]  # a test is a function


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("cor1", "a-name"), "BAT014"),
        (("COR001", "something-else"), "cor001_mix_on_occupied_group already"),
        (("COR099", "mix-on-occupied-group"), "cor001_mix_on_occupied_group already"),
        (("COR099", "Name"), "hyphens"),
        (("COR099", "../../etc"), "hyphens"),
    ],
)
def test_a_code_or_name_that_cannot_be_is_refused(
    stepscope: Command, checkout: Path, words: tuple[str, str], why: str
) -> None:
    run = stepscope("rules", "new", *words, "--checkout", checkout)

    assert run.code == 2
    assert why in run.err


def test_a_folder_that_is_no_checkout_is_refused(stepscope: Command, tmp_path: Path) -> None:
    run = stepscope("rules", "new", "COR099", "a-name", "--checkout", tmp_path)

    assert (run.code, "not a checkout" in run.err) == (2, True)
