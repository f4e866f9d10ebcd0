"""BAT014: few of many drafted tokens are accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.rules.bat.bat014_drafts_rejected import DraftsRejected
from tests.analyzers.engine_reports import log_of, vllm
from tests.looped import looped


def drafts(second: int, accepted: int, drafted: int) -> str:
    """A SpecDecoding line of vLLM."""
    return (
        f"(APIServer pid=7) INFO 03-11 06:{second // 60:02}:{second % 60:02} [metrics.py:101] "
        f"SpecDecoding metrics: Mean acceptance length: {1 + 4 * accepted / max(drafted, 1):.2f}, "
        f"Accepted: {accepted} tokens, Drafted: {drafted} tokens"
    )


def test_drafts_that_are_rejected_over_all_reports_are_found(tmp_path: Path) -> None:
    lines = [drafts(10 * n, 5 + n % 2, 500) for n in range(4)]

    (found,) = DraftsRejected().check(log_of(tmp_path, vllm(0, 1, 0, 9.0), *lines))

    assert (found.evidence["accepted"], found.evidence["drafted"]) == (22, 2_000)
    assert "(1.1%)" in found.message


@looped(
    "lines",
    [
        pytest.param([drafts(10 * n, 300, 500) for n in range(4)], id="most are accepted"),
        pytest.param([drafts(10 * n, 1, 100) for n in range(4)], id="few were drafted"),
        pytest.param([drafts(0, 1, 900), drafts(10, 200, 400)], id="accepted on the whole"),
    ],
)
def test_drafts_that_pay_or_are_few_are_clean(tmp_path: Path, lines: list[str]) -> None:
    result = check(log_of(tmp_path, *lines), (DraftsRejected(),))

    assert (result.findings, result.not_applicable) == ((), ())


def test_an_engine_without_speculation_is_not_judged(tmp_path: Path) -> None:
    result = check(log_of(tmp_path, vllm(0, 1, 0, 9.0)), (DraftsRejected(),))

    assert result.not_applicable == ("BAT014",)
