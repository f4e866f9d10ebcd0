"""The scenario `slot-recycling` by its commands: its table, and what is found without a fault."""

from __future__ import annotations

import json
from pathlib import Path

from tests.app.cli.conftest import Command
from tests.looped import looped
from tests.tiers import slow

LARGE = ("--set", "slots=4", "--set", "requests=8", "--set", "max_cap=48")


@slow
@looped("size", [(), LARGE], ids=["small", "large"])
@looped(("variant", "found"), [("before", {"KVB006"}), ("after", set())])
def test_no_rule_finds_anything_but_the_bytes_that_the_mirror_copies(
    stepscope: Command, tmp_path: Path, variant: str, found: set[str], size: tuple[str, ...]
) -> None:
    out = tmp_path / "run.trace"
    stepscope("record", "slot-recycling", "--variant", variant, *size, "-o", out)

    run = stepscope("check", "--format", "json", out)

    assert run.code == 0
    assert {each["code"] for each in json.loads(run.out)["findings"]} == found


@slow
def test_the_table_tells_the_bytes_of_an_admission(stepscope: Command, tmp_path: Path) -> None:
    run = stepscope("record", "slot-recycling", "--variant", "all", *LARGE, "-o", tmp_path / "f")

    before, after = (run.out.splitlines()[line].split() for line in (2, 3))
    assert before[:8] == ["before", "host-mirror", "65", "8", "4", "4", "60", "208"]
    assert (before[9], after[9]) == ("33,554,432", "4,194,304")
