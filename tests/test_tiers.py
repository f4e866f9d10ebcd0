"""What the tests of both tiers are written with."""

from __future__ import annotations

import pytest

from stepscope.ingest.errors import ConfigError
from tests.tiers import QUICK, examples, failures, sampled


def test_each_case_that_fails_is_named_with_what_failed() -> None:
    def check(number: int) -> None:
        assert number != 2
        if number == 3:
            raise ConfigError("three")
        with pytest.raises(ZeroDivisionError):
            _ = 1 // (number - 4) if number == 4 else 1 // 0

    assert failures(check, ((number,) for number in range(2))) == {}
    found = failures(check, ((number,) for number in range(5)))
    assert list(found) == ["(2,)", "(3,)"]
    assert found["(3,)"] == "ConfigError: three"


def test_a_check_that_expects_an_error_fails_where_there_is_none() -> None:
    def check(number: int) -> None:
        with pytest.raises(ZeroDivisionError):
            _ = 1 // number

    assert list(failures(check, [(0,), (1,)])) == ["(1,)"]


def test_a_quick_case_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="not among the cases"):
        sampled(["a", "b"], ["c"])


def test_fewer_examples_are_drawn_where_slow_tests_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(QUICK, raising=False)
    assert examples(60) == 60
    monkeypatch.setenv(QUICK, "1")
    assert [examples(60), examples(12), examples(5)] == [20, 10, 5]
