"""The README says what is true: its code runs, its commands exist, its table is the registry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from stepscope.analyzers.check.registry import RULES
from stepscope.app.cli.main import COMMANDS
from stepscope.engine.faults import FAULTS
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.matrix import FIRES

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@dataclass
class Batch:
    """A batch of somebody's engine."""

    began_ns: int
    dur_ns: int
    kind: str
    requests: list[SimpleNamespace]


class Engine:
    """Somebody's engine: one request is prefilled, then decodes twice."""

    waiting = ("b",)
    running = ("a",)

    def steps(self) -> list[Batch]:
        kinds = (("prefill", 7), ("decode", 1), ("decode", 1))
        return [
            Batch(1_000 * n, 900, kind, [SimpleNamespace(id="a", phase=kind, num_tokens=tokens)])
            for n, (kind, tokens) in enumerate(kinds)
        ]


def test_the_ten_lines_record_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recording, asking = blocks("python")

    exec(recording, {"my_engine": Engine()})  # noqa: S102 - the README's own code
    exec(asking, {})  # noqa: S102 - the README's own code

    trace = Trace.open("run.trace")
    assert trace.steps.collect()["kind"].to_list() == ["prefill", "decode", "decode"]
    assert trace.batch_rows.collect()["num_tokens"].to_list() == [7, 1, 1]
    assert trace.manifest.closed


def test_every_command_in_the_readme_exists() -> None:
    named = set(re.findall(r"stepscope (\w+)", "\n".join(blocks("sh") + blocks("yaml"))))

    assert named
    assert named <= set(COMMANDS)


def test_the_readme_lists_exactly_the_rules_there_are() -> None:
    listed = re.findall(r"^\| ([A-Z]{3}\d{3}) ([\w-]+) \|", README, flags=re.MULTILINE)

    assert sorted(listed) == sorted((rule.code, rule.name) for rule in RULES)


def test_the_readme_lists_every_fault_with_the_rules_that_are_made_for_it() -> None:
    listed = re.findall(r"^\| ([\w-]+) \| ([\w-]+) \| ([A-Z0-9 ]+) \|$", README, flags=re.MULTILINE)
    made = [(fault.scenario, fault.name, " ".join(FIRES[fault.name])) for fault in FAULTS]

    assert sorted(listed) == sorted(made)


def test_every_picture_and_page_that_the_readme_links_is_there() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)

    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_make_target_in_the_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"make (\w+)", "\n".join(blocks("sh"))))

    assert targets == {"demo", "test"}
    targets |= set(re.findall(r"`make (\w+)`", README))
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)
