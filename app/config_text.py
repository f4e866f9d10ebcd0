"""A configuration as TOML that could stand in `stepscope.toml`, with where each line comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator

from stepscope.analyzers.check.thresholds import thresholds
from stepscope.analyzers.findings.rule import Rule
from stepscope.app.check_config import CheckConfig

DEFAULT = "default"


def format_config(config: CheckConfig) -> str:
    """Every setting, and every threshold of the rules that are to run; raises ConfigError."""
    return "\n".join(
        [*_settings(config), *(line for r in config.rules() for line in _rule(r, config))]
    )


def _settings(config: CheckConfig) -> Iterator[str]:
    yield _line("select", list(config.select), config.origins.get("select"))
    yield _line("ignore", list(config.ignore), config.origins.get("ignore"))
    if config.require:
        yield _line("require", list(config.require), config.origins.get("require"))
    yield _line("fail-on", config.fail_on, config.origins.get("fail_on"))
    if config.baseline is not None:
        yield _line("baseline", str(config.baseline), config.origins.get("baseline"))


def _rule(rule: Rule, config: CheckConfig) -> Iterator[str]:
    yield f"\n[rules.{rule.code}]  # {rule.name}: {rule.severity}"
    for name, value in thresholds(rule).items():
        yield _line(name, value, config.origins.get(f"{rule.code}.{name}"))


def _line(name: str, value: object, origin: str | None) -> str:
    return f"{f'{name} = {_toml(value)}':<32}  # {origin or DEFAULT}"


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    return f'"{"".join(map(_char, value.encode(errors="replace").decode()))}"'


def _char(char: str) -> str:
    """A character of a string; what would end it, or steer a terminal, by its number."""
    return char if char.isprintable() and char not in '"\\' else f"\\U{ord(char):08X}"
