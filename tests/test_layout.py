"""The house itself: what is packaged, what may import what, where tests lie.

`tests/` has the folders of the code: `tests/ingest/derive/` tests `ingest/derive/`. Folders of a
room's tests that no folder of the room is like are in OWN_TESTS, with the reason; those beside the
rooms (`docs`, `fuzz`, `vllm` ...) test the whole.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
from setuptools import find_packages

from stepscope.ingest.readers import READERS
from tests.conftest import ROOT
from tests.house import ROOMS, imports, modules, rings, without_code
from tests.looped import looped
from tests.tiers import slow

OWN_TESTS = {
    "tests/analyzers/invariants": "what holds for every rule, whatever it is given",
    "tests/analyzers/proof": "what rules say of the engine's scenarios and faults",
    "tests/analyzers/real": "what rules say of the files of other people's programs",
    "tests/analyzers/samples": "what rules say of recordings that the project made",
    "tests/app/both_fronts": "what the terminal and the page have to say alike",
    "tests/app/cli/gate_story": "the gate of docs/ci.md on the commits of an engine's repository",
    "tests/app/mcp/questions": "what an assistant is asked, and what is true of it",
    "tests/app/web/in_browser": "the page as a browser shows it, where there is one",
    "tests/app/web/in_browser/asked": "what the page asks for, and what if nothing comes",
    "tests/app/web/in_browser/own": "what a user puts on the page, and opens from it",
    "tests/app/web/in_browser/looks": "what of the page is seen: texts, charts, light and dark",
    "tests/ingest/recording/versions": "recordings of every format, and what makes them",
}
"""Folders of tests that are of no one folder of the code, and what they test instead."""


def locked(file: str) -> set[str]:
    """Names of the packages of which a file says the version that is tested."""
    lines = (ROOT / file).read_text("utf-8").splitlines()
    return {normalised(line.split("==")[0]) for line in lines if "==" in line}


def normalised(name: str) -> str:
    """A package's name as the index and `uv` spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def folders_with_code() -> set[str]:
    inits = [path for room in ROOMS for path in (ROOT / room).rglob("__init__.py")]
    names = {"stepscope." + ".".join(path.parent.relative_to(ROOT).parts) for path in inits}
    return {"stepscope", *names}


def test_every_package_that_we_need_is_locked_to_the_version_that_is_tested() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    needed = project["dependencies"] + project["optional-dependencies"]["web"]

    names = {normalised(re.split(r"[><=; ]", each)[0]) for each in needed}
    assert names <= locked("requirements.lock")


@looped("file", ["requirements.lock", "requirements-dev.lock"])
def test_every_locked_package_has_hashes_and_no_index_is_named(file: str) -> None:
    text = (ROOT / file).read_text("utf-8")

    packages = re.split(r"^(?=\S+==)", text, flags=re.MULTILINE)[1:]
    assert len(packages) == len(re.findall(r"==", text)) > 40
    assert [each for each in packages if "--hash=sha256:" not in each] == []
    assert "://" not in text


def test_make_and_the_action_install_locked_packages_by_their_hashes() -> None:
    for file in ("Makefile", "action.yml"):
        installs = re.findall(r".*requirements(?:-dev)?\.lock", (ROOT / file).read_text("utf-8"))
        installs = [line for line in installs if "pip" in line]
        assert installs
        assert all("--require-hashes" in line for line in installs), installs


def test_every_github_action_is_pinned_by_its_commit_with_the_version_beside_it() -> None:
    workflows = [*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / "action.yml"]
    used = [
        line.strip()
        for file in workflows
        for line in file.read_text("utf-8").splitlines()
        if "uses:" in line
    ]

    assert len(used) >= 6
    pinned = re.compile(r"- uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [line for line in used if not pinned.fullmatch(line)] == []


def test_every_folder_with_code_is_packaged_and_no_other() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        found = tomllib.load(file)["tool"]["setuptools"]["packages"]["find"]

    assert set(find_packages(str(ROOT / found["where"][0]))) == folders_with_code()


@looped("room", ROOMS)
def test_every_folder_that_holds_code_is_a_package(room: str) -> None:
    folders = {path.parent for path in (ROOT / room).rglob("*.py")}

    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_no_modules_import_each_other_in_a_ring() -> None:
    assert rings(imports(modules(ROOT))) == []


def test_an_import_that_is_late_or_for_types_alone_makes_a_ring_as_well(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    first, second = tmp_path / "app" / "first.py", tmp_path / "app" / "second.py"
    first.write_text("if TYPE_CHECKING:\n    from stepscope.app.second import Name\n")
    second.write_text("def late():\n    from stepscope.app import first\n")

    assert rings(imports(modules(tmp_path))) == [["stepscope.app.first", "stepscope.app.second"]]


def written(root: Path, *files: str) -> Path:
    """A tree with these files, which are empty."""
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    return root


def test_tests_lie_where_the_code_lies_or_their_folder_says_why_not() -> None:
    assert without_code(ROOT) == sorted(OWN_TESTS)


def test_a_folder_of_tests_that_no_code_lies_beside_is_found(tmp_path: Path) -> None:
    tree = written(tmp_path, "ingest/a/b.py", "tests/ingest/a/test_b.py", "tests/fuzz/test_c.py")
    assert without_code(tree) == []

    lost = written(tree, "tests/ingest/d/test_b.py")

    assert without_code(lost) == ["tests/ingest/d"]


def test_every_format_is_read_from_a_folder_whose_reader_has_the_same_place() -> None:
    folders = [folder for folder in (ROOT / "ingest" / "readers").iterdir() if folder.is_dir()]
    formats = {folder.name for folder in folders if (folder / "reader.py").exists()}

    assert sorted(READERS) == sorted(
        name for name in READERS if name.split(".")[1:-1] == ["reader"]
    )
    assert {name.partition(".")[0] for name in READERS} == formats


@looped("room", ROOMS)
def test_each_room_is_found_by_its_import_name(room: str) -> None:
    link = ROOT / "src" / "stepscope" / room

    assert link.readlink() == Path("..", "..", room)


@slow
def test_the_import_contract_holds() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert run.returncode == 0, run.stdout


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Names in a wheel that is built from what git would ship, without the network."""
    source = tmp_path_factory.mktemp("source")
    copy_project(source)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist"],
        cwd=source, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = (source / "dist").glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


def copy_project(to: Path) -> None:
    shown = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *ROOMS, "src",
         "pyproject.toml", "README.md", "LICENSE"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in shown.stdout.splitlines():
        if (ROOT / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name, follow_symlinks=False)


@slow
def test_the_wheel_holds_only_stepscope(wheel_names: list[str]) -> None:
    tops = {name.split("/")[0] for name in wheel_names}

    assert tops == {"stepscope", next(top for top in tops if top.endswith(".dist-info"))}


def test_the_wheel_holds_every_module_and_every_asset(wheel_names: list[str]) -> None:
    kinds = (".py", ".pyi", ".typed", ".tcss", ".css", ".js")
    expected = {
        "stepscope/" + path.relative_to(ROOT).as_posix()
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.suffix in kinds
    } | {"stepscope/__init__.py", "stepscope/py.typed"}

    assert expected - set(wheel_names) == set()


@looped(
    "name",
    [
        "ingest.readers.chrome._scan",
        "app.timeline.spans._pixels",
        "app.timeline.spans._spans",
    ],
)
def test_what_is_written_in_c_is_there_where_it_can_be_compiled(name: str) -> None:
    compiler = (sysconfig.get_config_var("CC") or "").split()[:1]
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not (compiler and shutil.which(compiler[0]) and header.exists()):
        pytest.skip("no C compiler, or no headers of Python")

    assert importlib.util.find_spec(f"stepscope.{name}") is not None


@slow
def test_without_a_compiler_the_wheel_is_built_without_what_is_written_in_c(tmp_path: Path) -> None:
    copy_project(tmp_path)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist"],
        cwd=tmp_path, check=True, capture_output=True, env={**os.environ, "CC": "/nowhere/cc"},
    )  # fmt: skip
    (wheel,) = (tmp_path / "dist").glob("*.whl")

    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".so")]
