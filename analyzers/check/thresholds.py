"""The thresholds of rules, as a project states them: checked, and put into the rules."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from stepscope.analyzers.check.registry import by_code
from stepscope.analyzers.findings.rule import Rule
from stepscope.ingest.errors import ConfigError

Stated = Mapping[str, Mapping[str, Any]]


def thresholds(rule: Rule) -> dict[str, Any]:
    """The thresholds of a rule, by name, in the order in which it declares them."""
    fields = dataclasses.fields(rule)  # type: ignore[arg-type]  # a Protocol is no dataclass
    return {field.name: getattr(rule, field.name) for field in fields}


def checked(stated: Stated) -> dict[str, dict[str, Any]]:
    """What is stated for each rule, under its code.

    Raises ConfigError, naming near matches, for a rule or threshold that does not exist, and for a
    value of the wrong type.
    """
    found: dict[str, dict[str, Any]] = {}
    for entry, values in stated.items():
        rule = by_code(entry)
        tuned = _tuned(rule, values)
        kept = {name: value for name, value in thresholds(tuned).items() if name in values}
        found.setdefault(rule.code, {}).update(kept)
    return found


def tune(rules: Iterable[Rule], stated: Stated) -> tuple[Rule, ...]:
    """The rules with the thresholds that are stated for them; raises ConfigError as `checked`."""
    values = checked(stated)
    return tuple(_tuned(rule, values.get(rule.code, {})) for rule in rules)


def _tuned(rule: Rule, values: Mapping[str, Any]) -> Rule:
    known = thresholds(rule)
    for name, value in values.items():
        if name not in known:
            raise ConfigError(f"{rule.code} has no threshold {name!r}", todo=_near(name, known))
        if isinstance(value, int | float) and not 0 <= value < math.inf:
            raise ConfigError(
                f"{rule.code}.{name} is {value}, and has to be finite and not below 0"
            )
    try:
        return msgspec.convert({**known, **values}, type(rule))
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        raise ConfigError(f"{rule.code}.{where.rstrip('`')}: {what}") from None


def _near(name: str, known: Mapping[str, Any]) -> str:
    if near := get_close_matches(name, known, n=1, cutoff=0.5):
        return f"did you mean {near[0]}?"
    return f"it has {', '.join(known)}" if known else "it has none"
