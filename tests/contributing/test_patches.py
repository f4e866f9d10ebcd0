"""Adding a thing touches what CONTRIBUTING names and no more, and what was added runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from difflib import ndiff
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.conftest import ROOT
from tests.contributing.patch import PAGE, Patch
from tests.contributing.throwaway import PATCHES
from tests.looped import looped
from tests.tiers import slow

each_patch = looped("patch", PATCHES, ids=lambda patch: patch.name)


def added(patch: Patch) -> dict[str, list[str]]:
    """The lines that each file gets; none may be taken away."""
    found: dict[str, list[str]] = {}
    for file, text in patch.changed().items():
        old = (ROOT / file).read_text("utf-8") if (ROOT / file).exists() else ""
        lines = [line for line in ndiff(old.splitlines(), text.splitlines()) if line[0] in "+-"]
        assert not [line for line in lines if line[0] == "-"], file
        found[file] = [line[2:] for line in lines]
    return found


def is_new(file: str) -> bool:
    return not (ROOT / file).exists()


@each_patch
def test_a_patch_is_a_file_a_line_its_tests_and_at_most_a_line_of_docs(patch: Patch) -> None:
    files = added(patch)

    code = {name for name in files if not name.startswith("tests/") and name.endswith(".py")}
    new = {name for name in code if is_new(name) and not name.endswith("__init__.py")}
    (old,) = {name for name in code if not is_new(name)}
    docs = {name: lines for name, lines in files.items() if name.endswith(".md")}
    assert new == {patch.file}
    assert [line for line in files[old] if not line.startswith("from ")] == [f"    {patch.line}"]
    assert len(files[old]) <= 2
    assert sum(len(lines) for lines in docs.values()) <= 1
    rest = files.keys() - code - docs.keys()
    assert {name for name in rest if not name.startswith("tests/")} == set()
    assert [name for name in rest if not is_new(name)] == []


def folders(patch: Patch) -> set[Path]:
    """The folders that the section names, with the family of rules that the patch is of."""
    named = re.findall(r"`([a-z_]+/[\w/.]*)`", patch.section_text())
    own = re.sub(r"\babc(?=/|\d)", Path(patch.file).parent.name, "\n".join(named))
    return {Path(each).parent if "." in each else Path(each) for each in own.splitlines()}


@each_patch
def test_a_patch_touches_only_places_that_contributing_names(patch: Patch) -> None:
    _, seam = patch.seam()
    places = {*folders(patch), Path(seam).parent}

    touched = {Path(file) for file in (patch.file, *patch.tests)}
    lost = {file for file in touched if not {file.parent, file.parent.parent} & places}
    assert lost == set()
    assert not patch.document or patch.document[0] in patch.section_text()


def test_whatever_contributing_says_how_to_add_is_added_here() -> None:
    headings = re.findall(r"^## (Add.*)$", (ROOT / PAGE).read_text("utf-8"), re.MULTILINE)

    assert headings == [patch.section for patch in PATCHES]


@looped(
    "path",
    sorted(set(re.findall(r"`([a-z_]+/[\w/.]+)`", (ROOT / PAGE).read_text("utf-8")))),
)
def test_every_place_that_contributing_names_is_there(path: str) -> None:
    if "abc" in path:
        path = str(Path(path).parent).replace("abc", "bat")
    assert (ROOT / path).exists()


def copied(to: Path, changed: Mapping[str, str]) -> Path:
    """The tree by hard links, with the changed files over it."""
    shown = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    compiled = [str(file.relative_to(ROOT)) for file in (ROOT / "ingest").rglob("*.so")]
    for name in [*shown.stdout.splitlines(), *compiled]:
        source, target = ROOT / name, to / name
        if source.is_symlink() or source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(source, target)
    for name, text in changed.items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).unlink(missing_ok=True)
        (to / name).write_text(text, encoding="utf-8")
    return to


def _link(source: Path, target: Path) -> None:
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    try:
        target.hardlink_to(source)
    except OSError:  # another file system
        target.write_bytes(source.read_bytes())


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree with all patches in it."""
    changed = {file: text for patch in PATCHES for file, text in patch.changed().items()}
    return copied(tmp_path_factory.mktemp("tree") / "stepscope", changed)


def outcomes(tree: Path, names: Iterable[str]) -> dict[str, list[str]]:
    """What became of each of some tests, by its file, in one run over the tree."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=told.xml",
         *[name for name in names if not name.endswith("__init__.py")]],
        cwd=tree, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert run.returncode in {0, 1}, run.stdout + run.stderr
    told: dict[str, list[str]] = {}
    for case in ET.parse(tree / "told.xml").iter("testcase"):  # noqa: S314 - just written
        file = str(case.get("classname")).replace(".", "/") + ".py"
        marks = {each.tag for each in case} & {"failure", "error", "skipped"}
        told.setdefault(file, []).append(f"{case.get('name')} {'-'.join(marks) or 'passed'}")
    return told


def not_passed(told: Mapping[str, list[str]], names: Iterable[str]) -> dict[str, list[str]]:
    """Of files whose tests did not all pass, or that had none, what became of them."""
    by_file = {name: told.get(name.partition("::")[0], []) for name in names}
    return {
        name: lines
        for name, lines in by_file.items()
        if not lines or not all(line.endswith(" passed") for line in lines)
    }


@slow
def test_what_was_added_works(tree: Path) -> None:
    tests = [name for patch in PATCHES for name in patch.tests if not name.endswith("__init__.py")]

    assert not_passed(outcomes(tree, tests), tests) == {}


@slow
def test_what_was_added_holds_what_every_one_of_its_kind_holds(tree: Path) -> None:
    tests = [name for patch in PATCHES for name in patch.runs]

    told = outcomes(tree, tests)

    assert not_passed(told, tests) == {}
    names = "\n".join(line for lines in told.values() for line in lines)
    assert [name for name in ("Alone", "[size", "[.steps]") if name not in names] == []
