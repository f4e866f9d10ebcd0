"""Rules that other packages bring, each an entry point of the group `stepscope.rules`.

    [project.entry-points."stepscope.rules"]
    queue-too-long = "acme.rules:QueueTooLong"

It names a rule or its class: a frozen dataclass as ours are, whose module's docstring is its page.
One that cannot be a rule is refused in a line that names its package. A check of all rules does
not run then: it would call clean what nobody looked at. Who only looks at a trace goes on without.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any

import msgspec

from stepscope.analyzers.findings.finding import Severity
from stepscope.analyzers.findings.rule import CONDITION, Particular, Rule
from stepscope.analyzers.views.known import CLOCK
from stepscope.ingest.entry_points import declared, package_of, refused, said
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.schema import BY_NAME

GROUP = "stepscope.rules"
LETTERS = 3
"""Of a code, those that its family begins with."""
_CODE, _NAME = re.compile(r"[A-Z]{3}[0-9]{3}"), re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Installed:
    """Rules of other packages in the order of their codes, and why others cannot be used."""

    rules: tuple[Rule, ...]
    refused: tuple[ConfigError, ...]


def installed(ours: Sequence[Rule]) -> Installed:
    """Find the rules of other packages.

    What cannot be loaded or is not a rule is refused, and so is a code or a name that `ours` or
    another package has; each message names the package. Codes of our families are for ours alone.
    """
    whose = {rule.name: "stepscope" for rule in ours}
    families = {rule.code[:LETTERS] for rule in ours}
    found: list[Rule] = []
    errors: list[ConfigError] = []
    try:
        points = declared(GROUP)
    except ConfigError as error:
        return Installed((), (error,))
    for point in points:
        try:
            rule = _loaded(point)
            _check_free(rule, point, families, whose)
        except ConfigError as error:
            errors.append(error)
            continue
        whose |= dict.fromkeys((rule.code, rule.name), package_of(point))
        found.append(rule)
    return Installed(tuple(sorted(found, key=lambda rule: rule.code)), tuple(errors))


def _check_free(rule: Rule, point: EntryPoint, families: set[str], whose: dict[str, str]) -> None:
    if rule.code[:LETTERS] in families:
        why = f"{rule.code} begins as codes of stepscope do: take other letters"
        raise refused(point, "rule", why)
    for taken in sorted({rule.code, rule.name} & whose.keys()):
        raise refused(point, "rule", f"{taken} is taken by {whose[taken]}")


def _loaded(point: EntryPoint) -> Rule:
    try:
        given = point.load()
        rule: Rule = given() if isinstance(given, type) else given
        why = next(_lacks(rule), None)
    except (Exception, SystemExit) as error:
        why = said(error)
    if why:
        raise refused(point, "rule", why)
    return rule


def _lacks(rule: Any) -> Iterator[str]:
    """Why something is no rule."""
    if not getattr(getattr(rule, "__dataclass_params__", None), "frozen", False):
        yield "it is not a frozen dataclass"
    if not (isinstance(rule.code, str) and _CODE.fullmatch(rule.code)):
        yield f"{rule.code!r} is not the code of a rule: three letters and three digits"
    if not (isinstance(rule.name, str) and _NAME.fullmatch(rule.name)):
        yield f"{rule.name!r} is not the name of a rule: words joined by hyphens"
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
    if need == CLOCK:
        return True
    return table in BY_NAME and (not column or column in BY_NAME[table].names)
