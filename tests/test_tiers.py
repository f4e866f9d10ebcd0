"""What the tests of both tiers are written with."""

from __future__ import annotations

import pytest

from tests.tiers import QUICK, examples, sampled


def test_a_quick_case_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="not among the cases"):
        sampled(["a", "b"], ["c"])


def test_cases_that_are_not_quick_are_marked() -> None:
    assert sampled(["a", "b"], ["a"]) == ["a", pytest.param("b", marks=pytest.mark.slow)]


def test_fewer_examples_are_drawn_where_slow_tests_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(QUICK, raising=False)
    assert examples(60) == 60
    monkeypatch.setenv(QUICK, "1")
    assert [examples(60), examples(12), examples(5)] == [20, 10, 5]
