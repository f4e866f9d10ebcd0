"""What is put around an engine's functions: it tells, and never gets in the engine's way."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
        engine, "half", ("number",), before=told.append, after=lambda *a: told.append(a)
    )

    assert engine.half(6) == 3
    assert told == [6, (3, 6)]


def test_what_an_engine_lacks_is_missing_and_nothing_is_raised() -> None:
    hooks = Hooks(lambda _: None)

    hooks.around(Engine(), "third", before=print)

    assert hooks.missing == ["Engine.third"]


def test_a_failure_of_ours_reaches_no_engine_and_ends_all_telling() -> None:
    engine, failing = Engine(), Failing()
    failing.hooks.around(engine, "half", ("number",), before=failing.fail)

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


class Changed:
    """An engine whose functions take more than was known, and less."""

    def finish(self, request: str, *, reason: str = "stop", late: bool = False) -> str:
        return f"{request} {reason} {late}"

    def free(self, block: int) -> int:
        return block


@pytest.mark.parametrize("call", [
    lambda engine: engine.finish("a", reason="length", late=True),
    lambda engine: engine.finish(late=True, reason="length", request="a"),
])  # fmt: skip
def test_ours_is_given_what_it_takes_however_it_was_passed(call: Callable[[Changed], str]) -> None:
    engine, told = Changed(), list[object]()
    Hooks(lambda _: None).around(
        engine, "finish", ("request", "reason", "cause?"), after=lambda *a: told.append(a)
    )

    assert call(engine) == "a length True"
    assert told == [("a length True", "a", "length", None)]


def test_of_a_class_the_object_comes_before_what_ours_takes() -> None:
    kind, told = type("Kind", (Changed,), dict(vars(Changed))), list[object]()
    Hooks(lambda _: None).around(kind, "finish", ("reason",), before=lambda *a: told.append(a))

    engine: Any = kind()
    engine.finish("a", reason="length")

    assert told == [(engine, "length")]


def test_a_function_without_a_parameter_that_ours_takes_is_missing_and_left_alone() -> None:
    engine, failing = Changed(), Failing()

    failing.hooks.around(engine, "free", ("ordered_blocks", "block"), before=failing.fail)

    assert engine.free(3) == 3
    assert (failing.hooks.missing, failing.num_calls) == (["Changed.free(ordered_blocks)"], 0)
