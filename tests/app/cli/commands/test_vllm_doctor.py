"""`stepscope vllm doctor`: what of a vLLM would be recorded, by what lies on the disk."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from stepscope.ingest.attach.vllm.installed.doctor import PARTS, TESTED, Part
from tests.app.cli.conftest import Command
from tests.packages import write_package

EVERYTHING = [name for part in PARTS for name in part.needs]


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("STEPSCOPE_TRACE", str(tmp_path / "traces"))
    monkeypatch.delenv("VLLM_PLUGINS", raising=False)
    return folder


def install(folder: Path, names: Iterable[str] = EVERYTHING, version: str = TESTED[0]) -> None:
    """A vLLM with these functions, which fails when it is imported, and stepscope's plug-in."""
    classes: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in names:
        module, _, path = name.partition(":")
        owner, dot, method = path.partition(".")
        classes[module][owner if dot else ""].append(method if dot else path)
    for package in ("vllm", "uvicorn"):
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text("raise SystemExit('it was imported')\n")
    for module, held in classes.items():
        file = folder.joinpath(*module.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(_class(name, methods) for name, methods in held.items()))
    about = folder / f"vllm-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
    write_package(folder, "beside", "", "vllm.general_plugins", "stepscope = beside:install")


def _class(name: str, functions: list[str]) -> str:
    if not name:
        return "".join(f"def {function}: ...\n" for function in functions)
    methods = (function.replace("(", "(self, ") for function in functions)
    return f"class {name}:\n" + "".join(f"    async def {each}: ...\n" for each in methods) + "\n"


def test_a_whole_installation_would_be_recorded(stepscope: Command, packages: Path) -> None:
    install(packages)

    run = stepscope("vllm", "doctor")

    assert run.code == 0
    assert f"{TESTED[0]}, {packages / 'vllm'}" in run.out
    assert run.out.count("  yes  ") == len(PARTS)
    assert run.out.endswith("vLLM would be recorded\n")


@pytest.mark.parametrize("gone", EVERYTHING)
def test_a_name_that_is_gone_is_named_with_what_is_not_recorded_without_it(
    gone: str, stepscope: Command, packages: Path
) -> None:
    install(packages, [name for name in EVERYTHING if name != gone])

    run = stepscope("vllm", "doctor", "--format", "json")

    told = json.loads(run.out)
    assert run.code == 1
    assert told["missing"] == {part.name: [gone] for part in PARTS if gone in part.needs}
    assert all(f"not recorded: {part}" in told["troubles"] for part in told["missing"])


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_function_that_takes_something_else_is_as_good_as_gone(
    part: Part, stepscope: Command, packages: Path
) -> None:
    taken = [name for name in part.needs if not name.endswith("()")]
    install(packages, [re.sub(r"\(\w+", "(other", each) if each in taken else each
                       for each in EVERYTHING])  # fmt: skip

    told = json.loads(stepscope("vllm", "doctor", "--format", "json").out)

    assert set(told["missing"].get(part.name, ())) == set(taken)


def test_another_version_is_a_note_and_no_trouble(stepscope: Command, packages: Path) -> None:
    install(packages, version="9.9.1+cpu")

    run = stepscope("vllm", "doctor")

    assert run.code == 0
    assert f"note: stepscope was tried with vLLM {', '.join(TESTED)}; of 9.9.1+cpu" in run.out


def test_without_vllm_it_says_what_to_install(stepscope: Command) -> None:
    run = stepscope("vllm", "doctor")

    assert run.code == 1
    assert "trouble: vLLM is not installed there: pip install vllm" in run.out
    assert "records" not in run.out


def test_a_module_that_is_no_python_counts_as_missing(stepscope: Command, packages: Path) -> None:
    install(packages)
    (packages / "vllm/v1/core/sched/scheduler.py").write_bytes(b"class Scheduler(:\x00")

    told = json.loads(stepscope("vllm", "doctor", "--format", "json").out)

    assert "preemptions" in told["missing"]
    assert "KV blocks and who holds them" in told["records"]


def test_a_list_of_plugins_without_ours_is_a_trouble(
    stepscope: Command, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(packages)
    monkeypatch.setenv("VLLM_PLUGINS", "other,\x1b[31mred")

    run = stepscope("vllm", "doctor")

    assert run.code == 1
    assert "so vLLM does not load stepscope" in run.out
    assert "\x1b" not in run.out


@pytest.mark.parametrize(
    ("value", "told"),
    [("", "is not set, so nothing is recorded"), ("file", "which is a file: name a folder")],
)
def test_a_folder_that_cannot_be_recorded_into_is_a_trouble(
    value: str, told: str, stepscope: Command, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(packages)
    (packages / "file").touch()
    monkeypatch.chdir(packages)
    monkeypatch.setenv("STEPSCOPE_TRACE", value)

    run = stepscope("vllm", "doctor")

    assert run.code == 1
    assert told in run.out


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is refused to root")
def test_a_folder_that_is_not_ours_to_write_is_a_trouble(
    stepscope: Command, packages: Path, tmp_path: Path
) -> None:
    install(packages)
    (tmp_path / "traces").mkdir(mode=0o500)

    assert "nothing can be written into" in stepscope("vllm", "doctor").out


def test_a_full_disk_is_a_trouble(
    stepscope: Command, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(packages)
    monkeypatch.setattr("stepscope.ingest.attach.vllm.installed.doctor.LEAST_FREE_BYTES", 2**62)

    run = stepscope("vllm", "doctor")

    assert run.code == 1
    assert "bytes are free" in run.out


def test_an_environment_is_asked_by_its_folder(
    stepscope: Command, packages: Path, tmp_path: Path
) -> None:
    install(packages)
    (tmp_path / "env/bin").mkdir(parents=True)
    (tmp_path / "env/bin/python").symlink_to(sys.executable)

    run = stepscope("vllm", "doctor", "--python", tmp_path / "env")

    assert f"{tmp_path / 'env/bin/python'}" in run.out


@pytest.mark.parametrize("named", ["nowhere", "folder", "text"])
def test_what_is_no_python_is_wrong_usage(
    named: str, stepscope: Command, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (packages / "folder").mkdir()
    (packages / "text").write_text("#!/bin/sh\necho '{'\n")
    (packages / "text").chmod(0o700)
    monkeypatch.chdir(packages)

    run = stepscope("vllm", "doctor", "--python", packages / named)

    assert run.code == 2
    assert run.err.count("\n") == 1
    assert run.out == ""
