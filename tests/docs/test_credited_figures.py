"""Figures that are credited to one of the five reports stand in that report."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

from stepscope.analyzers.check.registry import RULES
from tests.conftest import ROOT
from tests.looped import looped

SEEDS = ROOT.parent / "shared" / "seeds"
OF_SCENARIO = {
    "mix_admission": "000",
    "mixed_batches": "001",
    "slot_recycling": "002",
    "ep_multiplexing": "003",
    "fcfs_preemption": "004",
}
FIGURE = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
QUOTE = re.compile(r"(?m)((?:^> .*\n?)+)")
CREDITED = re.compile(
    r"(?:as )?in the report [^;:.)]*|[Tt]he report on [^;]*|the report (?:had|says|measured)[^;.]*"
)
HAPPENED = re.compile(r"## What happened\n(.*?)\n\nOf gaps|## What happened\n(.*?)\n## ", re.DOTALL)

pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason="../shared/seeds is absent")


@cache
def report(number: str) -> str:
    [file] = SEEDS.glob(f"{number}_*.txt")
    return file.read_text(encoding="utf-8", errors="replace").replace(",", "")


def figures(text: str) -> set[str]:
    return {found.replace(",", "").rstrip(".") for found in FIGURE.findall(text)}


def stands(figure: str, number: str) -> bool:
    """Whether a report has a figure, or one that is rounded to it."""
    digits = len(figure.partition(".")[2])
    known = re.findall(r"\d+(?:\.\d+)?", report(number))
    return any(each == figure or f"{float(each):.{digits}f}" == figure for each in known)


def missing(text: str, *numbers: str) -> set[str]:
    return {each for each in figures(text) if not any(stands(each, one) for one in numbers)}


def docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


def credited(text: str) -> list[str]:
    """What a text says is a report's."""
    return CREDITED.findall(" ".join(text.split()))


def test_every_figure_of_a_quoted_requirement_is_the_reports() -> None:
    page = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
    parts = re.findall(r"(?ms)^## (00[0-4]):(.*?)(?=^## |\Z)", page)
    quotes = [(number, quote) for number, part in parts for quote in QUOTE.findall(part)]

    assert len(quotes) > 90
    for number, quote in quotes:
        assert not missing(quote, number), (number, quote)


@looped("name", OF_SCENARIO)
def test_every_figure_of_what_happened_in_a_scenario_is_its_reports(name: str) -> None:
    text = docstring(ROOT / "engine" / "scenarios" / f"{name}.py")
    happened = HAPPENED.search(f"{text}\n## ")
    assert happened

    told = [happened.group(1) or happened.group(2)]
    for part in (*told, *credited(text)):
        assert not missing(part, OF_SCENARIO[name]), part


def test_every_figure_that_a_rule_credits_to_a_report_stands_in_one() -> None:
    parts = [(rule.code, part) for rule in RULES for part in credited(docstring(module_of(rule)))]

    assert len({code for code, _ in parts}) > 2
    for code, part in parts:
        assert not missing(part, *OF_SCENARIO.values()), (code, part)


def module_of(rule: object) -> Path:
    return Path(str(sys.modules[type(rule).__module__].__file__))


def test_a_figure_that_no_report_has_is_found_out() -> None:
    assert missing("the worst stall fell from 145.7 s to 1.29 s", "001") == {"145.7", "1.29"}
    assert not missing("16 requests at 90 s, 16 at 181 s, others at 192 s", "004")
