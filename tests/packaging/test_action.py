"""The GitHub action and the pre-commit hook: what they declare, and what they run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from junitparser import JUnitXml
from pre_commit.clientlib import load_manifest

from stepscope.app.check_config import load_config
from stepscope.app.cli.commands.check import check
from stepscope.app.cli.commands.diff import diff
from stepscope.app.cli.commands.record import record
from stepscope.app.cli.commands.summary import summary
from stepscope.app.cli.commands.trend import trend
from tests.conftest import ROOT
from tests.docs.command_server import ready_commands
from tests.tiers import slow

SCRIPT = ROOT / ".github" / "scripts" / "check.sh"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPSCOPE = Path(sys.executable).with_name("stepscope")


@dataclass(frozen=True)
class Ran:
    """What the script left behind."""

    code: int
    out: str
    err: str
    outputs: dict[str, str]
    summary: str


Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def ready() -> Iterator[Path]:
    """A `stepscope` for the script that costs no imports."""
    with ready_commands() as folder:
        yield folder / "stepscope"


@pytest.fixture
def workspace(tmp_path: Path, sample_traces: Path) -> Path:
    """A checkout with one trace that has conflicts and one that has none."""
    folder = tmp_path / "workspace"
    (folder / ".git").mkdir(parents=True)
    for name in ("before", "after"):
        shutil.copytree(
            sample_traces / f"mix-admission-{name}.trace", folder / "out" / f"{name}.trace"
        )
    return folder


@pytest.fixture
def run(ready: Path, workspace: Path) -> Run:
    """Run the script as the runner would, with these inputs and no others."""
    return partial(run_script, ready, workspace)


def run_script(stepscope: Path, workspace: Path, **inputs: str) -> Ran:
    output, summary = workspace / "outputs.txt", workspace / "summary.md"
    inputs_of_action = ("TRACE", "SELECT", "IGNORE", "REQUIRE", "FAIL_ON", "BASELINE", "AGAINST",
                        "SARIF", "JUNIT")  # fmt: skip
    given = {**dict.fromkeys(inputs_of_action, ""), **inputs}
    environment = {
        "PATH": os.environ["PATH"], "STEPSCOPE": str(stepscope),
        "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary), **given,
    }  # fmt: skip
    done = subprocess.run(
        ["bash", SCRIPT], cwd=workspace, env=environment, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    lines = output.read_text().splitlines()
    outputs = dict(line.split("=", 1) for line in lines)
    return Ran(
        done.returncode,
        done.stdout,
        done.stderr,
        outputs,
        summary.read_text() if summary.exists() else "",
    )


def test_the_action_is_one_that_github_takes() -> None:
    schema = json.loads((ROOT / "tests" / "schemas" / "github-action.json").read_text())

    jsonschema.Draft7Validator(schema).validate(ACTION)


def test_every_input_reaches_the_script_by_its_environment() -> None:
    install, check = ACTION["runs"]["steps"]

    stated = " ".join([*install["env"].values(), *check["env"].values()])
    assert set(re.findall(r"inputs\.([a-z-]+)", stated)) == set(ACTION["inputs"])
    read = set(re.findall(r"\b([A-Z_]{5,})\b", SCRIPT.read_text())) - {"GITHUB_OUTPUT"}
    assert read == set(check["env"]) - {"SCRIPT"}


def test_no_input_is_written_into_a_script() -> None:
    assert not any("${{" in step["run"] for step in ACTION["runs"]["steps"])


def test_findings_become_annotations_a_summary_a_sarif_file_and_a_failure(
    run: Run, workspace: Path
) -> None:
    ran = run(TRACE="out/before.trace", SARIF="check.sarif", JUNIT="check.xml")

    assert ran.code == 1
    assert ran.out.startswith("::error title=COR001 mix-on-occupied-group ×")
    assert ran.outputs == {"exit-code": "1", "sarif": "check.sarif"}
    assert "COR001" in ran.summary
    (result, *_) = json.loads((workspace / "check.sarif").read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert place == "out/before.trace/manifest.json"
    assert (workspace / "check.xml").read_text().startswith("<?xml")


def test_a_clean_trace_passes(run: Run) -> None:
    ran = run(TRACE="out/after.trace")

    assert (ran.code, ran.out) == (0, "")
    assert ran.outputs == {"exit-code": "0"}
    assert "nothing found" in ran.summary


@slow
def test_options_reach_the_command(run: Run) -> None:
    assert run(TRACE="out/before.trace", IGNORE="COR").code == 0
    assert run(TRACE="out/before.trace", SELECT="STV").code == 0
    assert run(TRACE="out/before.trace", FAIL_ON="never").code == 0
    assert run(TRACE="out/after.trace", REQUIRE="COR001,STV001").code == 0
    assert run(TRACE="out/before.trace", BASELINE="absent.json").code == 2
    assert run(TRACE="out/before.trace", AGAINST=" out/before.trace\n").code == 0
    assert run(TRACE="out/before.trace", AGAINST="out/after.trace").code == 1


def test_a_required_rule_that_is_not_applicable_fails_the_run(run: Run) -> None:
    ran = run(TRACE="out/after.trace", REQUIRE="EQV001", SARIF="check.sarif")

    assert (ran.code, ran.outputs["exit-code"]) == (1, "1")
    assert ran.out.startswith("::error title=not judged::out/after.trace: EQV001 is required")
    assert "EQV001 is required" in ran.summary


def test_what_no_rule_could_judge_is_an_error_and_no_pass(run: Run) -> None:
    ran = run(TRACE="out/after.trace", SELECT="EQV", SARIF="check.sarif")

    # No `sarif` to upload: code scanning would take its alerts for fixed.
    assert (ran.code, ran.outputs) == (3, {"exit-code": "3"})
    assert ran.out.startswith("::error title=no rule could judge what ran::out/after.trace: ")
    assert "no rule could judge what ran" in ran.summary


def test_traces_are_named_line_by_line_and_by_pattern(run: Run, workspace: Path) -> None:
    (workspace / "out" / "before.trace").rename(workspace / "out" / "with space.trace")

    ran = run(TRACE="  out/*.trace\n\n out/with space.trace \r\n")

    assert ran.code == 1
    assert "out/with space.trace" in ran.out
    assert "after.trace" in ran.summary.replace("&#46;", ".")


@slow
@pytest.mark.parametrize("trace", ["out/absent.trace", "absent/*.trace"])
def test_a_trace_that_was_not_made_fails_the_run(run: Run, trace: str) -> None:
    ran = run(TRACE=f"out/after.trace\n{trace}", SARIF="check.sarif")

    assert ran.code == 3
    assert ran.outputs == {"exit-code": "3"}
    assert len(ran.err.splitlines()) == 1


def test_no_trace_at_all_is_wrong_usage(run: Run) -> None:
    assert run(TRACE="\n  \n").code == 2


def test_a_name_is_never_run(run: Run, workspace: Path) -> None:
    name = "$(touch owned);`touch owned`.trace"
    (workspace / "out" / "before.trace").rename(workspace / "out" / name)

    ran = run(TRACE=f"out/{name}", SARIF="x\nexit-code=0")

    assert ran.code == 1
    assert not (workspace / "owned").exists()
    assert ran.outputs["exit-code"] == "1"


@slow
def test_the_hook_checks_each_trace_that_a_commit_touches(workspace: Path, tmp_path: Path) -> None:
    (hook,) = load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    assert (hook["language"], hook["entry"]) == ("python", "stepscope check")
    # As it is, but with the stepscope that is installed here: an environment needs a network.
    local = {**hook, "language": "system", "entry": f"{STEPSCOPE} check", "files": hook["files"]}
    config = {"repos": [{"repo": "local", "hooks": [local]}]}
    shutil.rmtree(workspace / ".git")
    (workspace / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    (workspace / "notes.txt").write_text("no trace")
    environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "pre-commit")}
    for command in (["git", "init", "--quiet"], ["git", "add", "."]):
        subprocess.run(command, cwd=workspace, check=True)

    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "run", "--all-files"],
        cwd=workspace, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip

    assert done.returncode == 1
    assert "COR001 mix-on-occupied-group" in done.stdout
    assert "2 traces: " in done.stdout


def documented(language: str) -> list[str]:
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_workflow_that_is_described_gives_the_action_what_it_takes() -> None:
    workflow, _, _, hooks = map(yaml.safe_load, documented("yaml"))

    steps = {
        step.get("uses", "").partition("@")[0]: step for step in workflow["jobs"]["check"]["steps"]
    }
    used = steps["OWNER/stepscope"]
    assert set(used["with"]) <= set(ACTION["inputs"])
    assert {name for name, each in ACTION["inputs"].items() if each["required"]} <= set(
        used["with"]
    )
    upload = steps["github/codeql-action/upload-sarif"]
    (output,) = re.findall(r"steps\.stepscope\.outputs\.(\w+)", upload["if"])
    assert output in ACTION["outputs"]
    (manifest,) = load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    assert hooks["repos"][0]["hooks"][0]["id"] == manifest["id"]


@slow
def test_the_job_that_is_described_for_gitlab_fails_and_writes_what_it_reports(
    workspace: Path,
) -> None:
    job = yaml.safe_load(documented("yaml")[1])["scheduler"]
    (command,) = (line for line in job["script"] if line.startswith("stepscope"))
    path = os.pathsep.join((str(STEPSCOPE.parent), os.environ["PATH"]))

    done = subprocess.run(
        ["bash", "-c", command], cwd=workspace, env={**os.environ, "PATH": path}, check=False,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (1, "")
    report = (workspace / job["artifacts"]["reports"]["junit"]).read_text(encoding="utf-8")
    assert "COR001" in report
    assert job["artifacts"]["paths"] == ["out"]


GATES = [
    (("before", "after"), {"failed": "out/before.trace", "passed": "out/after.trace"}),
    pytest.param(("after",), {"passed": "out/after.trace"}, marks=slow),
    ((), {"failed": "out/*.trace, of which there is none"}),
]


@slow
@pytest.mark.parametrize(("kept", "outcomes"), GATES)
def test_the_ten_lines_that_are_described_for_pytest_pass_where_every_trace_is_clean(
    workspace: Path, kept: tuple[str, ...], outcomes: dict[str, str]
) -> None:
    lines = documented("python")[0]
    (workspace / "tests").mkdir()
    (workspace / "tests" / "test_gate.py").write_text(lines)
    for trace in (workspace / "out").iterdir():
        if trace.stem not in kept:
            shutil.rmtree(trace)

    command = "tests/test_gate.py --junitxml=stepscope.xml -p no:cacheprovider -p no:dash"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *command.split()], cwd=workspace, check=False,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip

    assert done.returncode == ("failed" in outcomes), done.stdout + done.stderr
    report = JUnitXml.fromfile(str(workspace / "stepscope.xml"))
    ran = {
        case.name: "passed" if case.is_passed else "failed" for suite in report for case in suite
    }
    assert ran == {
        f"test_the_scheduler_does_what_it_should[{trace}]": how for how, trace in outcomes.items()
    }
    assert ("COR001 mix-on-occupied-group" in done.stdout) is ("before" in kept)
    assert len([line for line in lines.splitlines() if line]) < 10


def test_the_settings_that_are_described_are_settings(tmp_path: Path) -> None:
    (settings,) = documented("toml")
    (tmp_path / "stepscope.toml").write_text(settings)

    config = load_config(tmp_path)

    assert config.fail_on == "warning"
    assert config.rules()


@slow
def test_every_input_and_option_is_described() -> None:
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")

    assert [name for name in ACTION["inputs"] if f"`{name}`" not in text] == []
    commands = (*check.params, *diff.params, *summary.params, *trend.params, *record.params)
    options = {option for parameter in commands for option in parameter.opts}
    of_others = {"--record", "--stepscope-record", "--body-file", "--junitxml"}
    named = set(re.findall(r"--[a-z][a-z-]+", text)) - of_others
    assert named <= options
