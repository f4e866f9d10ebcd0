"""AIC, AIV and MIX are explained wherever a newcomer meets them first."""

from __future__ import annotations

from click.testing import CliRunner

from stepscope.app.cli.main import cli
from stepscope.app.palette import CORES, STATES
from stepscope.app.timeline import Timeline
from stepscope.app.tui.plot.lane_painter import section_legend
from stepscope.app.web.skeleton.page_header import AT_FIRST, _chip
from stepscope.app.web.wire import notes
from stepscope.ingest.trace import Trace
from tests.app.web.small_traces import loaded_of
from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow

EXPLAINED = ("AIC: cube core", "AIV: vector core", "MIX: both at once")


@looped("options", [["--help"], ["--list"]], ids=str)
def test_record_explains_the_cores_that_mix_admission_runs_on(options: list[str]) -> None:
    said = " ".join(CliRunner().invoke(cli, ["record", *options]).output.split())

    assert "cube core (AIC)" in said
    assert "vector cores (AIV)" in said
    assert "MIX task" in said


@slow
def test_both_fronts_explain_them_beside_the_lanes_of_core_groups() -> None:
    trace = Trace.open(ROOT / "sample_traces" / "mix-admission-before.trace")

    page = notes(loaded_of(trace))["core groups"]
    terminal = " ".join(section_legend("core groups", Timeline.of(trace)))

    assert all(words in page and words in terminal for words in EXPLAINED)


def test_the_legend_of_the_page_explains_them_where_the_pointer_rests() -> None:
    chips = {each.name: _chip(each, each.name, AT_FIRST) for each in STATES if each.name in CORES}
    titles = {name: vars(chip)["title"] for name, chip in chips.items()}

    assert titles["MIX"] == "MIX (both at once): click to hide or show"
    assert titles.keys() == CORES.keys()
