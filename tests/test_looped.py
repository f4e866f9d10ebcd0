"""A looped test runs every case, names those that fail, and is skipped if all are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.looped import looped

seen: list[tuple[int, str]] = []


@looped("number,letter", [(1, "a"), (2, "b")])
def test_every_case_has_its_own_folder_and_patches(
    number: int, letter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.test_looped.seen", [*seen, (number, letter)])
    (tmp_path / "file").touch(exist_ok=False)

    assert seen == [(number, letter)]


def test_every_case_runs_and_those_that_fail_are_named() -> None:
    ran = []

    @looped("number", range(4), ids=lambda number: f"number {number}")
    def odd(number: int) -> None:
        ran.append(number)
        if number == 2:
            pytest.fail("it is two")
        assert number % 2, "it is even"

    with pytest.raises(ExceptionGroup, match="2 of 4 cases failed") as failed:
        odd()

    assert ran == [0, 1, 2, 3]
    notes = [(str(error).partition("\n")[0], error.__notes__) for error in failed.value.exceptions]
    assert notes == [("it is even", ["case: number 0"]), ("it is two", ["case: number 2"])]


def test_a_test_is_skipped_if_every_case_is() -> None:
    @looped("number", range(2))
    def skipped(number: int, first: int) -> None:
        if number >= first:
            pytest.skip(f"not {number}")

    skipped(first=1)
    with pytest.raises(pytest.skip.Exception, match="not 1"):
        skipped(first=0)


def test_a_loop_over_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="there are no cases"):
        looped("number", [])
