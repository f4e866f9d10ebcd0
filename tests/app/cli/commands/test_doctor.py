"""`stepscope vllm doctor` and `sglang doctor`: what of an engine would be recorded, by what lies on
the disk."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from stepscope.ingest.attach.installed.engines import ENGINES
from stepscope.ingest.attach.installed.offered import InstalledEngine
from stepscope.ingest.attach.installed.sglang import ASKED
from stepscope.ingest.attach.installed.vllm import VLLM
from stepscope.ingest.attach.sglang.registering import HOOKS
from tests.app.cli.conftest import Command
from tests.looped import looped
from tests.packages import write_package
from tests.tiers import slow

PREEMPTIONS = next(part for part in VLLM.parts if part.instead)


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.name)
def engine(request: pytest.FixtureRequest) -> InstalledEngine:
    named: InstalledEngine = request.param
    return named


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("STEPSCOPE_TRACE", str(tmp_path / "traces"))
    for each in ENGINES:
        monkeypatch.delenv(each.allowed, raising=False)
    return folder


def everything(engine: InstalledEngine) -> list[str]:
    return [name for part in engine.parts for name in part.needs]


def install(
    engine: InstalledEngine,
    folder: Path,
    names: Iterable[str] | None = None,
    version: str | None = None,
) -> None:
    """An engine with these functions, which fails when it is imported, and stepscope's plug-in."""
    classes: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in everything(engine) if names is None else names:
        module, _, path = name.partition(":")
        owner, dot, method = path.partition(".")
        classes[module][owner if dot else ""].append(method if dot else path)
    # A package that is installed here as well is not looked at, whatever is gone.
    for package in {engine.name, *(re.split("[.:]", name)[0] for name in everything(engine))}:
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text("raise SystemExit('it was imported')\n")
    for module, owners in classes.items():
        file = folder.joinpath(*module.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(_class(name, methods) for name, methods in owners.items()))
    version = version or engine.tested[0]
    about = folder / f"{engine.name}-{version}.dist-info"
    about.mkdir()
    said = f"Metadata-Version: 2.1\nName: {engine.name}\nVersion: {version}\n"
    (about / "METADATA").write_text(said)
    write_package(folder, "beside", "", engine.plugins, "stepscope = beside:install")


def _class(name: str, functions: list[str]) -> str:
    if not name:
        return "".join(f"def {function}: ...\n" for function in functions)
    methods = (function.replace("(", "(self, ") for function in functions)
    return f"class {name}:\n" + "".join(f"    async def {each}: ...\n" for each in methods) + "\n"


def test_a_whole_installation_would_be_recorded(
    engine: InstalledEngine, stepscope: Command, packages: Path
) -> None:
    install(engine, packages)

    run = stepscope(engine.name, "doctor")

    assert run.code == 0
    assert f"{engine.tested[0]}, {packages / engine.name}" in run.out
    assert run.out.count("  yes  ") == len(engine.parts)
    assert run.out.endswith(f"{engine.title} would be recorded\n")


@slow
def test_a_name_that_is_gone_is_named_with_what_is_not_recorded_without_it(
    engine: InstalledEngine, stepscope: Command, packages: Path
) -> None:
    for number in range(max(len(part.needs) for part in engine.parts)):
        gone = {name for part in engine.parts for name in part.needs[number : number + 1]}
        folder = packages / str(number)
        folder.mkdir()
        install(engine, folder, [name for name in everything(engine) if name not in gone])

        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setenv("PYTHONPATH", str(folder))
            run = stepscope(engine.name, "doctor", "--format", "json")

        told = json.loads(run.out)
        assert run.code == 1
        missing = {part.name: sorted(gone & set(part.needs)) for part in engine.parts}
        assert {part: sorted(names) for part, names in told["missing"].items()} == {
            part: names for part, names in missing.items() if names
        }
        assert all(f"not recorded: {part}" in told["troubles"] for part in told["missing"])


def test_functions_that_take_something_else_are_as_good_as_gone(
    engine: InstalledEngine, stepscope: Command, packages: Path
) -> None:
    taken = {name for name in everything(engine) if not name.endswith("()")}
    install(engine, packages, [re.sub(r"\(\w+", "(other", each) if each in taken else each
                       for each in everything(engine)])  # fmt: skip

    told = json.loads(stepscope(engine.name, "doctor", "--format", "json").out)

    lost = {part.name: taken & set(part.needs) for part in engine.parts}
    assert {part: set(names) for part, names in told["missing"].items()} == {
        part: names for part, names in lost.items() if names
    }


@looped("gone", [None, *PREEMPTIONS.instead])
def test_preemptions_are_seen_where_a_step_preempts_by_itself_and_what_it_calls_is_there(
    gone: str | None, stepscope: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    others = [name for name in everything(VLLM) if name not in PREEMPTIONS.needs]
    install(VLLM, tmp_path, [*others, *(name for name in PREEMPTIONS.instead if name != gone)])

    told = json.loads(stepscope("vllm", "doctor", "--format", "json").out)

    assert (PREEMPTIONS.name in told["records"]) == (gone is None)
    assert told["missing"] == ({} if gone is None else {PREEMPTIONS.name: [*PREEMPTIONS.needs]})


def test_another_version_is_a_note_and_no_trouble(
    engine: InstalledEngine, stepscope: Command, packages: Path
) -> None:
    install(engine, packages, version="9.9.1+cpu")

    run = stepscope(engine.name, "doctor")

    assert run.code == 0
    tried = f"{engine.title} {', '.join(engine.tested)}"
    assert f"note: stepscope was tried with {tried}; of 9.9.1+cpu" in run.out


def test_without_the_engine_it_says_what_to_install(
    engine: InstalledEngine, stepscope: Command
) -> None:
    run = stepscope(engine.name, "doctor")

    assert run.code == 1
    told = f"trouble: {engine.title} is not installed there: pip install {engine.name}"
    assert told in run.out
    assert "records" not in run.out


def test_a_module_that_is_no_python_counts_as_missing(
    engine: InstalledEngine, stepscope: Command, packages: Path
) -> None:
    install(engine, packages)
    broken = everything(engine)[0].partition(":")[0]
    packages.joinpath(*broken.split(".")).with_suffix(".py").write_bytes(b"class Scheduler(:\x00")

    told = json.loads(stepscope(engine.name, "doctor", "--format", "json").out)

    lost = {part.name for part in engine.parts if any(broken in name for name in part.needs)}
    assert set(told["missing"]) == lost
    assert set(told["records"]) == {part.name for part in engine.parts} - lost != set()


def test_a_list_of_plugins_without_ours_is_a_trouble(
    engine: InstalledEngine, stepscope: Command, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(engine, packages)
    monkeypatch.setenv(engine.allowed, "other,\x1b[31mred")

    run = stepscope(engine.name, "doctor")

    assert run.code == 1
    assert f"so {engine.title} does not load stepscope" in run.out
    assert "\x1b" not in run.out


def test_an_empty_list_of_plugins_is_what_the_engine_takes_it_for(
    engine: InstalledEngine, stepscope: Command, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(engine, packages)
    monkeypatch.setenv(engine.allowed, "")

    run = stepscope(engine.name, "doctor")

    assert run.code == (0 if engine.empty_is_all else 1)


@slow
def test_what_is_recorded_of_no_version_is_said(
    engine: InstalledEngine, stepscope: Command, packages: Path
) -> None:
    install(engine, packages)

    out = stepscope(engine.name, "doctor").out
    told = json.loads(stepscope(engine.name, "doctor", "--format", "json").out)

    assert engine.never
    assert tuple(told["never"]) == engine.never
    assert all(each in out for each in engine.never)


def test_every_function_of_sglang_that_is_hooked_is_asked_for() -> None:
    (sglang,) = (each for each in ENGINES if each.name == "sglang")
    hooked = set(everything(sglang)) - set(ASKED)
    asked = {name.partition("(")[0].replace(":", ".") for name in hooked}

    assert asked == set(HOOKS)


def test_a_folder_that_cannot_be_recorded_into_is_a_trouble(
    engine: InstalledEngine, stepscope: Command, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(engine, packages)
    (packages / "file").touch()
    monkeypatch.chdir(packages)
    runs = {}
    for value in ("", "file"):
        monkeypatch.setenv("STEPSCOPE_TRACE", value)
        runs[value] = stepscope(engine.name, "doctor")

    assert {run.code for run in runs.values()} == {1}
    assert "is not set, so nothing is recorded" in runs[""].out
    assert "which is a file: name a folder" in runs["file"].out


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is refused to root")
def test_a_folder_that_is_not_ours_to_write_is_a_trouble(
    engine: InstalledEngine, stepscope: Command, packages: Path, tmp_path: Path
) -> None:
    install(engine, packages)
    (tmp_path / "traces").mkdir(mode=0o500)

    assert "nothing can be written into" in stepscope(engine.name, "doctor").out


def test_a_full_disk_is_a_trouble(
    engine: InstalledEngine, stepscope: Command, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(engine, packages)
    monkeypatch.setattr("stepscope.ingest.attach.installed.doctor.LEAST_FREE_BYTES", 2**62)

    run = stepscope(engine.name, "doctor")

    assert run.code == 1
    assert "bytes are free" in run.out


def test_an_environment_is_asked_by_its_folder(
    engine: InstalledEngine, stepscope: Command, packages: Path, tmp_path: Path
) -> None:
    install(engine, packages)
    (tmp_path / "env/bin").mkdir(parents=True)
    (tmp_path / "env/bin/python").symlink_to(sys.executable)

    run = stepscope(engine.name, "doctor", "--python", tmp_path / "env")

    assert f"{tmp_path / 'env/bin/python'}" in run.out


@looped("named", ["nowhere", "folder", "text"])
def test_what_is_no_python_is_wrong_usage(
    engine: InstalledEngine, named: str, stepscope: Command, packages: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (packages / "folder").mkdir(exist_ok=True)
    (packages / "text").write_text("#!/bin/sh\necho '{'\n")
    (packages / "text").chmod(0o700)
    monkeypatch.chdir(packages)

    run = stepscope(engine.name, "doctor", "--python", packages / named)

    assert run.code == 2
    assert run.err.count("\n") == 1
    assert run.out == ""
