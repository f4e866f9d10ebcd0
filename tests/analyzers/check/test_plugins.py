"""Rules of other packages: found where they are installed, and refused in one line if none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope.analyzers.check.registry import RULES, by_code, select
from stepscope.analyzers.check.run import check
from stepscope.ingest.errors import ConfigError
from tests.analyzers.check.rules_of_others import RULE, Install
from tests.packages import stepscope
from tests.traces import trace_of


def test_a_rule_of_an_installed_package_is_checked_explained_and_selected(
    install: Install, sample_traces: Path
) -> None:
    source = RULE.replace("int = 1_000_000_000", "int = 0")
    folder = install("acme-rules", source)
    trace = sample_traces / "fcfs-preemption-before.trace"

    checked = stepscope(folder, "check", "--format", "json", trace)
    selected = stepscope(folder, "check", "--select", "QUE", "--format", "json", trace)
    page = stepscope(folder, "explain", "QUE001")

    assert json.loads(checked.out)["counts"]["QUE001"] > 0
    assert list(json.loads(selected.out)["counts"]) == ["QUE001"]
    assert selected.code == 1
    assert page.out.startswith("# QUE001 slow-step\n\nerror · needs steps.dur_ns")
    assert "QUE001  error    slow-step" in stepscope(folder, "rules").out


@pytest.mark.parametrize("form", ["text", "sarif", "junit", "github"])
def test_every_format_tells_its_findings(install: Install, sample_traces: Path, form: str) -> None:
    folder = install("acme-rules", RULE.replace("int = 1_000_000_000", "int = 0"))
    trace = sample_traces / "fcfs-preemption-before.trace"

    run = stepscope(folder, "check", "--select", "QUE001", "--format", form, trace)

    assert (run.code, "QUE001" in run.out, run.err) == (1, True, "")


def test_rules_of_others_come_behind_ours_in_the_order_of_their_codes(install: Install) -> None:
    install("zeta", RULE.replace("QUE001", "AAA001"))
    install("acme", RULE.replace("slow-step", "slower-step"))

    assert [rule.code for rule in select()] == [*(rule.code for rule in RULES), "AAA001", "QUE001"]


def test_its_thresholds_are_stated_as_those_of_ours(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = install("acme", RULE)
    (tmp_path / "stepscope.toml").write_text("[rules.QUE001]\nmin_dur_ns = 7\n")
    monkeypatch.chdir(tmp_path)

    run = stepscope(folder, "check", "--select", "QUE001", "--show-config")

    assert (run.code, "min_dur_ns" in run.out, "7" in run.out) == (0, True, True)


def test_two_packages_with_one_code_are_refused_with_both_names(install: Install) -> None:
    install("acme", RULE)
    install("beta", RULE.replace("slow-step", "slower-step"))

    with pytest.raises(ConfigError, match=r"^beta: .* QUE001 is taken by acme; mend or uninstall"):
        select()


def test_findings_that_come_one_by_one_are_all_told(install: Install) -> None:
    head, _, _ = RULE.partition("        slow =")
    install("acme", f"{head}        yield finding(self, 'wrong', 'mend it')\n")

    result = check(trace_of(steps=[{"step": 1, "kind": "decode", "dur_ns": 1}]), select(["QUE"]))

    assert (len(result.findings), result.counts) == (1, {"QUE001": 1})


def test_who_asks_for_one_of_our_rules_is_answered_without_a_look_at_what_is_installed(
    install: Install,
) -> None:
    install("acme", "1 / 0")

    assert by_code("COR001") is RULES[0]
    assert select(["COR001", "mix-starved", "COR01"], ["COR012"])[0] is RULES[0]
    with pytest.raises(ConfigError, match="ZeroDivisionError"):
        select(["C"])
