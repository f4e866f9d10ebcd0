"""A test that goes over many small cases, as one item for pytest.

    @looped("rule", RULES, ids=lambda rule: rule.code)
    def test_a_rule_has_a_name(rule: Rule) -> None: ...

takes what `pytest.mark.parametrize` takes and is one test: an item costs pytest about a
millisecond on two workers, and most such cases take less. Every case runs, whatever became of the
others, and those that fail are raised together, each with its name. A case has its own `tmp_path`
and its own `monkeypatch`; other fixtures are shared by all. The test is skipped if every case is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet
from _pytest.outcomes import Failed, Skipped

Test = Callable[..., None]
Names = Callable[[Any], object] | Sequence[str]


def looped(
    argnames: str | Sequence[str], cases: Iterable[Any], ids: Names | None = None
) -> Callable[[Test], Test]:
    """Return a decorator that runs a test once per case.

    Raises:
        ValueError: there are no cases, or one has marks, which only an item of its own can have.
    """
    split = argnames.split(",") if isinstance(argnames, str) else argnames
    names = [name.strip() for name in split]
    listed = list(cases)
    rows = [_values(case, names) for case in listed]
    if not rows:
        raise ValueError("there are no cases: such a test would pass, whatever is wrong")

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        fixtures = [each for name, each in signature.parameters.items() if name not in names]

        @wraps(test)
        def run_every_case(**values: Any) -> None:
            failures: list[Exception] = []
            skips: list[Skipped] = []
            for number, row in enumerate(rows):
                try:
                    with _own_fixtures(values, number) as own:
                        test(**own, **dict(zip(names, row, strict=True)))
                except Skipped as skip:
                    skips.append(skip)
                except (Exception, Failed) as error:
                    failures.append(_named(error, _label(listed[number], row, ids, number)))
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(rows)} cases failed", failures)
            if len(skips) == len(rows):
                raise skips[-1]

        run_every_case.__signature__ = signature.replace(  # type: ignore[attr-defined]  # pytest asks for it
            parameters=fixtures
        )
        return run_every_case

    return decorate


def _values(case: Any, names: Sequence[str]) -> tuple[Any, ...]:
    if isinstance(case, ParameterSet):
        if case.marks:
            raise ValueError(f"a case has marks: {case}")
        return tuple(case.values)
    return tuple(case) if len(names) > 1 else (case,)


def _label(case: Any, row: tuple[Any, ...], ids: Names | None, number: int) -> str:
    if isinstance(case, ParameterSet) and case.id is not None:
        return str(case.id)
    if ids is None:
        return "-".join(map(repr, row))
    return "-".join(str(ids(value)) for value in row) if callable(ids) else ids[number]


@contextmanager
def _own_fixtures(values: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """Yield the fixtures of a case: `tmp_path` and `monkeypatch` are its own."""
    own = dict(values)
    if "tmp_path" in own:
        folder = Path(own["tmp_path"]) / str(number)
        folder.mkdir()
        own["tmp_path"] = folder
    with pytest.MonkeyPatch.context() as monkeypatch:
        if "monkeypatch" in own:
            own["monkeypatch"] = monkeypatch
        yield own


def _named(error: Exception | Failed, case: str) -> Exception:
    """Return the error as one that a group can contain, with the case in a note."""
    if not isinstance(error, Exception):  # `pytest.fail` and `pytest.raises` raise a BaseException
        error = AssertionError(str(error)).with_traceback(error.__traceback__)
    error.add_note(f"case: {case}")
    return error
