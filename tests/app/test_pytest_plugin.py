"""The pytest plugin, in a pytest of its own, as an engine's project would run it."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from stepscope.app.pytest_plugin import assert_clean, assert_same_schedule
from stepscope.ingest.errors import ConfigError, TraceError
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import life, part
from tests.tiers import slow
from tests.traces import trace_of

pytest_plugins = ["pytester"]

# Plugins of other projects that are installed here, and that would only cost time.
OTHERS = ("dash", "hypothesispytest", "syrupy", "textual-snapshot", "platformdirs")

# Two tasks on one core, which overlap when the second starts before 9 µs: COR002.
ENGINE = """
from stepscope.app.pytest_plugin import assert_clean

def run(recorder, start_ns):
    recorder.core_spans(
        ts_ns=0, task=1, block=0, shape="AIV", group=2, core=1, core_kind="AIV1", slot="running",
        ready_ns=0, dispatch_ns=0, end_ns=9_000,
    )
    recorder.core_spans(
        ts_ns=start_ns, task=2, block=0, shape="AIV", group=2, core=1, core_kind="AIV1",
        slot="running", ready_ns=0, dispatch_ns=start_ns, end_ns=start_ns + 5_000,
    )
"""

TESTS = (
    ENGINE
    + """
def test_sound(stepscope_recorder):
    run(stepscope_recorder, 10_000)
    assert_clean(stepscope_recorder)

def test_double_booked(stepscope_recorder):
    run(stepscope_recorder, 5_000)
    assert_clean(stepscope_recorder)

def test_double_booked_and_known(stepscope_recorder):
    run(stepscope_recorder, 5_000)
    assert_clean(stepscope_recorder, ignore=["COR002"])
"""
)


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """Someone else's tests, which record an engine."""
    (pytester.path / ".git").mkdir()
    pytester.makepyfile(test_engine=TESTS)
    return pytester


def run(inner: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run the tests in a process of their own, where a warning is an error."""
    without = [word for other in OTHERS for word in ("-p", f"no:{other}")]
    return inner.runpytest_subprocess("-W", "error", *without, *options)


def test_pytest_finds_the_plugin_by_itself() -> None:
    (plugin,) = entry_points(group="pytest11", name="stepscope")

    assert plugin.value == "stepscope.app.pytest_plugin"


@slow
def test_a_conflict_fails_the_test_and_is_shown_with_its_fix_and_every_recording_is_closed(
    project: pytest.Pytester,
) -> None:
    result = run(project, "--basetemp=kept")

    result.assert_outcomes(passed=2, failed=1)
    shown = result.stdout.str()
    assert "AssertionError: " in shown
    assert "COR002 core-double-booked" in shown
    assert "fix: " in shown
    assert ">       assert_clean(stepscope_recorder)" in shown
    assert "def _findings" not in shown
    manifests = [*(project.path / "kept").rglob("recorded.trace/manifest.json")]
    assert [json.loads(each.read_text())["closed"] for each in manifests] == [True] * 3


@slow  # as does the test of what is kept
def test_tests_that_run_side_by_side_do_not_meet(project: pytest.Pytester) -> None:
    result = run(project, "-n", "2")

    result.assert_outcomes(passed=2, failed=1)


@slow
def test_the_projects_thresholds_hold_in_its_tests(project: pytest.Pytester) -> None:
    (project.path / "stepscope.toml").write_text("[rules.COR002]\noverlap_ns = 4_001\n")

    run(project).assert_outcomes(passed=3)


@slow
def test_nothing_of_ours_is_imported_before_a_test_asks(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import sys\n"
        "def test_nothing():\n"
        "    ours = [name for name in sys.modules if name.startswith('stepscope.')]\n"
        "    assert sorted(ours) == ['stepscope.app', 'stepscope.app.pytest_plugin']\n"
        "    assert not {'polars', 'numpy', 'click', 'msgspec'} & set(sys.modules)\n"
    )

    run(pytester).assert_outcomes(passed=1)


@slow
def test_a_trace_is_asserted_on_as_it_is_by_path_or_by_its_recorder(
    tmp_path: Path, sample_traces: Path
) -> None:
    recorder = Recorder(tmp_path / "run.trace", producer="test")
    recorder.core_spans(**part(1, 1, 0, 9_000))

    assert_clean(trace_of(core_spans=[part(1, 1, 0, 9_000)]))
    assert_clean(str(sample_traces / "mix-admission-after.trace"))
    assert_clean(recorder)
    assert_clean(recorder.path)


def test_a_recording_into_which_nothing_was_written_is_not_clean(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "empty.trace", producer="test")

    with pytest.raises(AssertionError, match="nothing was read: no table has a row"):
        assert_clean(recorder)
    with pytest.raises(AssertionError, match="nothing was read"):
        assert_clean(recorder.path, fail_on="never")


def test_what_no_rule_could_judge_is_not_clean() -> None:
    spans = trace_of(core_spans=[part(1, 1, 0, 9_000)])

    with pytest.raises(AssertionError, match="no rule could judge what ran"):
        assert_clean(spans, select=["STV"])


def test_a_required_rule_that_is_not_applicable_fails_the_test() -> None:
    spans = trace_of(core_spans=[part(1, 1, 0, 9_000)])

    assert_clean(spans, require=["COR002"])
    with pytest.raises(AssertionError, match="STV001 is required, and not applicable"):
        assert_clean(spans, require=["COR002", "STV001"])
    with pytest.raises(ConfigError, match="STV001 cannot be required: --select"):
        assert_clean(spans, require=["STV001"], ignore=["STV"])


def test_warnings_are_not_clean_unless_they_are_asked_to_be(sample_traces: Path) -> None:
    trace = sample_traces / "fcfs-preemption-before.trace"

    with pytest.raises(AssertionError, match="KVB003 preempted-with-room") as caught:
        assert_clean(trace, select=["KVB003"])
    assert_clean(trace, select=["KVB003"], fail_on="error")

    assert "STV001" not in str(caught.value)


def test_only_what_fails_is_shown() -> None:
    spans = [part(1, 1, 0, 9_000), part(2, 1, 5_000, 8_000)]

    with pytest.raises(AssertionError) as caught:
        assert_clean(trace_of(core_spans=spans), fail_on="error")

    assert "COR002" in str(caught.value)
    assert "▲" not in str(caught.value)


def test_what_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no rule 'COR999'"):
        assert_clean(trace_of(), ignore=["COR999"])
    with pytest.raises(ConfigError, match="no severity 'fatal'"):
        assert_clean(trace_of(), fail_on="fatal")
    with pytest.raises(TraceError):
        assert_clean(tmp_path / "absent.trace")


def test_recordings_of_tests_that_fail_are_kept_where_it_is_asked_for(
    project: pytest.Pytester,
) -> None:
    result = run(project, "--stepscope-record=kept", "-n", "2")

    result.assert_outcomes(passed=2, failed=1)
    (kept,) = (project.path / "kept").iterdir()
    assert kept.name == "test_engine.py-test_double_booked.trace"
    assert Trace.open(kept).num_rows("core_spans") == 2
    assert "what it recorded is in" in result.stdout.str()


def test_a_folder_that_cannot_be_written_fails_no_test_and_is_said(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_engine=ENGINE + "def test_one(stepscope_recorder):\n    assert not 'sound'\n"
    )
    (pytester.path / "kept").write_text("a file")

    result = run(pytester, "--stepscope-record=kept", "-W", "default")

    result.assert_outcomes(failed=1, warnings=1)
    assert "was not kept: " in result.stdout.str()


def test_two_runs_that_decide_the_same_have_the_same_schedule() -> None:
    rows = life("r-1", 1, 2, 9)

    assert_same_schedule(trace_of(lifecycle=rows), trace_of(lifecycle=rows))


def test_two_runs_that_part_are_shown_where_they_do() -> None:
    a, b = (trace_of(lifecycle=life("r-1", 1, 2, end)) for end in (9, 7))

    with pytest.raises(AssertionError, match="they diverge in step 7"):
        assert_same_schedule(a, b)


def test_two_runs_with_nothing_in_common_are_not_the_same() -> None:
    with pytest.raises(AssertionError, match="no rows in common"):
        assert_same_schedule(trace_of(lifecycle=life("r-1", 1, 2, 9)), trace_of())
