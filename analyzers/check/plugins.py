"""Rules that other packages bring, each an entry point of the group `stepscope.rules`.

    [project.entry-points."stepscope.rules"]
    queue-too-long = "acme.rules:QueueTooLong"

It names a rule or its class: a frozen dataclass as ours are, whose module's docstring is its page.
One that cannot be a rule is refused in a line that names its package, and no rule runs: a check
that leaves out what somebody installed to be checked would call clean what nobody looked at.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import msgspec

from stepscope.analyzers.findings.finding import Severity
from stepscope.analyzers.findings.rule import CONDITION, Particular, Rule
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.schema import BY_NAME

GROUP = "stepscope.rules"
LETTERS = 3
"""Of a code, those that its family begins with."""
_CODE, _NAME = re.compile(r"[A-Z]{3}[0-9]{3}"), re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_SHOWN_CHARS = 200


def installed(ours: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules of other packages, in the order of their codes.

    Raises ConfigError, naming the package, for what cannot be loaded or is no rule, and for a code
    or a name that `ours` or another package has; codes that begin as ours do are kept for ours.
    """
    whose = {rule.name: "stepscope" for rule in ours}
    families = {rule.code[:LETTERS] for rule in ours}
    found = []
    for point in _declared():
        rule = _loaded(point)
        if rule.code[:LETTERS] in families:
            raise _refused(
                point, f"{rule.code} begins as codes of stepscope do: take other letters"
            )
        for taken in sorted({rule.code, rule.name} & whose.keys()):
            raise _refused(point, f"{taken} is taken by {whose[taken]}")
        whose |= dict.fromkeys((rule.code, rule.name), _package(point))
        found.append(rule)
    return tuple(sorted(found, key=lambda rule: rule.code))


def _declared() -> list[EntryPoint]:
    """What installed packages declare, in an order that does not hang on where they lie."""
    try:
        return sorted(entry_points(group=GROUP), key=lambda each: (_package(each), each.name))
    except Exception as error:
        what = f"what is installed cannot be read: {_said(error)}"
        raise ConfigError(what, todo="an entry_points.txt of a package is damaged") from None


def _loaded(point: EntryPoint) -> Rule:
    try:
        given = point.load()
        rule: Rule = given() if isinstance(given, type) else given
        why = next(_lacks(rule), None)
    except (Exception, SystemExit) as error:
        why = _said(error)
    if why:
        raise _refused(point, why)
    return rule


def _lacks(rule: Any) -> Iterator[str]:
    """Why something is no rule."""
    if not getattr(getattr(rule, "__dataclass_params__", None), "frozen", False):
        yield "it is no frozen dataclass"
    if not (isinstance(rule.code, str) and _CODE.fullmatch(rule.code)):
        yield f"{rule.code!r} is no code: three letters and three digits"
    if not (isinstance(rule.name, str) and _NAME.fullmatch(rule.name)):
        yield f"{rule.name!r} is no name: words joined by hyphens"
    if not isinstance(rule.severity, Severity):
        yield f"{rule.severity!r} is no Severity"
    if unknown := [need for need in rule.needs if not _is_in_schema(need)]:
        yield f"it needs {unknown[0]!r}, which no trace has"
    if not getattr(sys.modules.get(type(rule).__module__), "__doc__", None):
        yield "its module has no docstring, which is its page"
    if not callable(rule.check):
        yield "it has no check(trace)"
    if isinstance(rule, Particular) and not (rule.applies.__doc__ or "").startswith(CONDITION):
        yield f"the docstring of its applies does not begin with {CONDITION.strip()!r}"
    stated = {field.name: getattr(rule, field.name) for field in dataclasses.fields(rule)}
    msgspec.convert(stated, type(rule))  # as its thresholds are, when a project states them


def _is_in_schema(need: str) -> bool:
    table, _, column = need.partition(".")
    return table in BY_NAME and (not column or column in BY_NAME[table].names)


def _refused(point: EntryPoint, why: str) -> ConfigError:
    package = _package(point)
    what = f"its rule {point.name} ({point.value}) cannot be used: {why}"
    return ConfigError(what, where=package, todo=f"mend or uninstall {package}")


def _said(error: BaseException) -> str:
    """What an error says, in one line; its own text may fail, too."""
    try:
        said = str(error)
    except Exception:
        said = "it cannot say what"
    return f"{type(error).__name__}: {said}".partition("\n")[0][:_SHOWN_CHARS]


def _package(point: EntryPoint) -> str:
    return (point.dist and point.dist.name) or "a package without a name"
