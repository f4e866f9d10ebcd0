"""For an engine's own tests: a recorder to record with, and an assertion that a trace is clean.

    from stepscope.app.pytest_plugin import assert_clean

    def test_the_scheduler_starves_no_one(stepscope_recorder):
        engine = Engine(recorder=stepscope_recorder)
        engine.run(40, requests)
        assert_clean(stepscope_recorder, ignore=["KVB003"])

Pytest finds this file by itself where stepscope is installed. It imports nothing of ours until a
test asks for something, and it keeps nothing between tests, so that tests may run side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from stepscope.app.check_config import CheckConfig
    from stepscope.ingest.recorder import Recorder
    from stepscope.ingest.trace import Trace


@pytest.fixture
def stepscope_recorder(tmp_path: Path) -> Iterator[Recorder]:
    """A recorder of `recorded.trace` in the test's `tmp_path`, closed when the test ends."""
    from stepscope.ingest.recorder import Recorder

    with Recorder(tmp_path / "recorded.trace", producer="pytest") as recorder:
        yield recorder


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
