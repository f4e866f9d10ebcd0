"""What is put around an engine's functions: it tells, and never gets in the engine's way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stepscope.ingest.attach.hooks import Hooks
from stepscope.ingest.attach.late_imports import when_imported


class Engine:
    def half(self, number: int) -> int:
        return number // 2

    def break_down(self) -> None:
        raise KeyError("engine")


class Failing:
    def __init__(self) -> None:
        self.failures: list[Exception] = []
        self.hooks = Hooks(self.failures.append)
        self.num_calls = 0

    def fail(self, *_: object) -> None:
        self.num_calls += 1
        raise ValueError("ours")


def test_a_function_is_told_of_before_and_after_and_gives_what_it_gave() -> None:
    engine, told = Engine(), list[object]()
    Hooks(lambda _: None).around(
        engine, "half", before=told.append, after=lambda *a: told.append(a)
    )

    assert engine.half(6) == 3
    assert told == [6, (3, 6)]


def test_what_an_engine_lacks_is_missing_and_nothing_is_raised() -> None:
    hooks = Hooks(lambda _: None)

    hooks.around(Engine(), "third", before=print)

    assert hooks.missing == ["Engine.third"]


def test_a_failure_of_ours_reaches_no_engine_and_ends_all_telling() -> None:
    engine, failing = Engine(), Failing()
    failing.hooks.around(engine, "half", before=failing.fail)

    results = [engine.half(8), engine.half(8)]

    assert results == [4, 4]
    assert failing.num_calls == 1
    assert [str(error) for error in failing.failures] == ["ours"]


def test_what_the_engine_raises_stays_its_own() -> None:
    engine = Engine()
    Hooks(lambda _: None).around(engine, "break_down", after=print)

    with pytest.raises(KeyError, match="engine"):
        engine.break_down()


def test_a_module_is_acted_on_when_it_is_imported_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "late_one.py").write_text("value = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    seen: list[object] = []

    when_imported("late_one", lambda module: seen.append(module.value))
    before = list(seen)
    import late_one  # type: ignore[import-not-found]  # noqa: PLC0415 - that is what is tested

    assert (before, seen) == ([], [1])
    assert late_one.__loader__ is late_one.__spec__.loader
    sys.modules.pop("late_one")


def test_a_module_that_is_there_already_is_acted_on_at_once() -> None:
    seen: list[str] = []

    when_imported("json", lambda module: seen.append(module.__name__))

    assert seen == ["json"]
