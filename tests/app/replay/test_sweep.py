from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.replay.own_engine import rerun
from stepscope.app.replay.sweep import axis_of, choices_of, sweep
from stepscope.app.replay.sweep_page import charts
from stepscope.app.replay.sweep_table import sweep_lines
from stepscope.engine.runs.rerun import Changes
from stepscope.engine.runs.scenario import Options
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.engine.recorded_once import RecordedOnce
from tests.tiers import slow


def quiet(*_: object) -> None:
    """Nobody watches."""


def again(trace: Trace, changes: Changes, out: Path) -> tuple[Trace, str | None]:
    found = rerun(trace, changes, out)
    return found.replayed, found.result.stopped


@pytest.fixture
def recorded(recorded_once: RecordedOnce) -> Trace:
    return recorded_once.trace("slot-recycling", "after")


def test_values_are_a_range_a_range_with_a_step_or_a_list() -> None:
    assert axis_of("slots=2..4") == ("slots", ("2", "3", "4"))
    assert axis_of("slots=2..9:4") == ("slots", ("2", "6"))
    assert axis_of("slots=-1..1") == ("slots", ("-1", "0", "1"))
    assert axis_of("share=0.5,0.7,0.5") == ("share", ("0.5", "0.7"))
    assert axis_of("path=a..b") == ("path", ("a..b",))


def test_a_range_of_nothing_or_of_too_much_is_refused() -> None:
    for text, why in {
        "slots": "NAME=FIRST..LAST",
        "=1..2": "NAME=FIRST..LAST",
        "slots=": "NAME=FIRST..LAST",
        "slots=4..2": "from 4 to 2 by 1 there is nothing",
        "slots=1..2:0": "there is nothing|from 1 to 2",
        "slots=1..1000": "1,000 runs are more than 200; .*slots=1..1000:100",
    }.items():
        with pytest.raises(ConfigError, match=why):
            axis_of(text)


def test_several_settings_make_every_combination() -> None:
    axes = [axis_of("a=1..2"), axis_of("b=x,y")]

    assert choices_of(axes) == [
        {"a": "1", "b": "x"}, {"a": "1", "b": "y"}, {"a": "2", "b": "x"}, {"a": "2", "b": "y"},
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="more than once"):
        choices_of([axes[0], axes[0]])
    with pytest.raises(ConfigError, match="10,000 runs are more than 200"):
        choices_of([axis_of("a=1..100"), axis_of("b=1..100")])


@slow
def test_each_run_is_what_record_makes_of_those_settings(
    recorded: Trace, recorded_once: RecordedOnce, tmp_path: Path
) -> None:
    choices = choices_of([axis_of("slots=1,3")])
    same = recorded_once.trace("slot-recycling", "after", Options(settings={"slots": "3"}))

    points = list(sweep(recorded, again, Changes(), choices, tmp_path / "swept", quiet))

    assert [dict(each.settings) for each in points] == [{}, {"slots": "1"}, {"slots": "3"}]
    three = Trace.open(tmp_path / "swept" / "slots=3.trace")
    assert three.steps.collect().equals(same.steps.collect())
    assert points[1].totals["makespan_ns"] > points[2].totals["makespan_ns"]
    assert points[0].totals["finished"] == 6


def test_a_choice_that_the_engine_refuses_is_said_and_the_others_go_on(
    recorded: Trace, tmp_path: Path
) -> None:
    axes = [axis_of("slots=0..1")]

    points = list(sweep(recorded, again, Changes(), choices_of(axes), tmp_path, quiet))
    lines = list(sweep_lines(points, axes))

    assert [bool(each.refused) for each in points] == [False, True, False]
    assert any(line.startswith("slots=0: refused: ") for line in lines)
    assert lines[2].split()[:3] == ["0", "-", "-"]  # not measured, so not a number


@slow
def test_a_chart_has_a_line_for_each_choice_of_the_second_setting(
    recorded: Trace, tmp_path: Path
) -> None:
    axes = [axis_of("slots=1..2"), axis_of("requests=2,4")]
    points = list(sweep(recorded, again, Changes(), choices_of(axes), tmp_path, quiet))

    figure = charts(points, axes, "<b>run</b>")

    lines = [each for each in figure.data if each.xaxis == "x"]
    assert [each.name for each in lines] == ["requests=2", "requests=4"]
    assert list(lines[0].x) == [1, 2]
    assert list(lines[1].y) == [4, 4]
    assert figure.layout.title.text == "&lt;b&gt;run&lt;/b&gt;"
