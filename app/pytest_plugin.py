"""For an engine's own tests: a recorder to record with, and assertions about what it recorded.

    from stepscope.app.pytest_plugin import assert_clean

    def test_the_scheduler_starves_no_one(stepscope_recorder):
        engine = Engine(recorder=stepscope_recorder)
        engine.run(40, requests)
        assert_clean(stepscope_recorder, ignore=["KVB003"])

With `--stepscope-record=DIR` the recordings of tests that fail are kept there, each under its
test's name. Pytest finds this file by itself where stepscope is installed. It imports nothing of
ours until a test asks for something, and it keeps nothing between tests, so that tests may run side
by side.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from stepscope.app.check_config import CheckConfig
    from stepscope.ingest.recorder import Recorder
    from stepscope.ingest.trace import Trace


_FAILED = pytest.StashKey[bool]()
MOST_OF_A_NAME = 120
"""Characters of a test's name in that of a folder: some file systems have no room for more."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Tell pytest of the option."""
    parser.getgroup("stepscope").addoption(
        "--stepscope-record", metavar="DIR", type=Path,
        help="Keep in DIR what the recorder of each test that fails has recorded.",
    )  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Take note of who failed, for what is kept of it."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture
def stepscope_recorder(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Recorder]:
    """A recorder of `recorded.trace` in the test's `tmp_path`, closed when the test ends."""
    from stepscope.ingest.recorder import Recorder

    with Recorder(tmp_path / "recorded.trace", producer="pytest") as recorder:
        yield recorder
    keep = request.config.getoption("--stepscope-record")
    if keep is not None and request.node.stash.get(_FAILED, False):
        _keep(recorder.path, keep, request.node)


def _keep(recorded: Path, folder: Path, test: pytest.Item) -> None:
    """Copy a recording, and say where it is; one of the same test is replaced."""
    import re
    import shutil
    import warnings

    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", test.nodeid).strip("-.")[-MOST_OF_A_NAME:]
    kept = folder / f"{name}.trace"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(recorded, kept)
    except OSError as error:
        why = error.strerror or "not every file could be copied"
        warnings.warn(f"stepscope: {kept} was not kept: {why}", stacklevel=1)
        return
    test.add_report_section("teardown", "stepscope", f"what it recorded is in {kept}")


def assert_clean(
    trace: Trace | Recorder | str | Path,
    *,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] | None = None,
    require: Iterable[str] | None = None,
    fail_on: str = "warning",
) -> None:
    """Assert that the rules find nothing at or above `fail_on` in a trace; else show what they do.

    A trace that holds nothing is not clean, nor is one of which no rule could judge what ran, or
    not every rule that `require` names could judge. A recorder is closed first. Thresholds,
    `select`, `ignore` and `require` come from `stepscope.toml` or `pyproject.toml` where they are
    not given. Raises `ConfigError` for a rule or a severity that does not exist, and `TraceError`
    where the trace cannot be read.
    """
    __tracebackhide__ = True
    from stepscope.app.check_config import load_config

    config = load_config().with_options(
        select=None if select is None else tuple(select),
        ignore=None if ignore is None else tuple(ignore),
        require=None if require is None else tuple(require),
        fail_on=fail_on,
    )
    if found := _findings(trace, config):
        raise AssertionError(found)


def assert_same_schedule(
    a: Trace | Recorder | str | Path, b: Trace | Recorder | str | Path
) -> None:
    """Assert that two runs decided the same at every step; else show where they first diverge.

    What is compared is what `stepscope diff` compares; times are not. One that ends before the
    other is not the same, nor are two that have nothing in common. A recorder is closed first.
    Raises `TraceError` where a trace cannot be read.
    """
    __tracebackhide__ = True
    from stepscope.app.replay.compared import compared

    both = compared((_opened(a), _opened(b)), rules=False, report=lambda *_: None)
    if both.where_they_diverge() != "":
        raise AssertionError("\n".join(both.lines()))


def _findings(trace: Trace | Recorder | str | Path, config: CheckConfig) -> str:
    """What fails, as `stepscope check` prints it; empty when nothing does."""
    from dataclasses import replace

    from stepscope.analyzers.check.run import check
    from stepscope.app.check_config import FAIL_ON
    from stepscope.app.formats import Checked, exit_code, failing, with_unmet
    from stepscope.app.present.report_text import format_result
    from stepscope.ingest.errors import ConfigError

    if config.fail_on not in FAIL_ON:
        raise ConfigError(f"there is no severity {config.fail_on!r}", todo=f"one of {FAIL_ON}")
    opened = _opened(trace)
    checked = with_unmet(Checked(check(opened, config.rules())), config.required())
    if not exit_code([checked], config.fail_on):
        return ""
    failed = tuple(failing(checked.result.findings, config.fail_on))
    result = replace(checked.result, findings=failed)
    return format_result(result, opened.start_ns(), unmet=checked.unmet)


def _opened(trace: Trace | Recorder | str | Path) -> Trace:
    from stepscope.ingest.recorder import Recorder
    from stepscope.ingest.trace import Trace

    if isinstance(trace, Trace):
        return trace
    if isinstance(trace, Recorder):
        trace.close()
        return Trace.open(trace.path)
    return Trace.open(trace)
