"""A configuration as TOML that could stand in `stepscope.toml`, with where each line comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator

from stepscope.analyzers.rule import Rule
from stepscope.analyzers.thresholds import thresholds
from stepscope.app.check_config import CheckConfig
from stepscope.app.plain import plain

DEFAULT = "default"


def format_config(config: CheckConfig) -> str:
    """Every setting, and every threshold of the rules that are to run; raises ConfigError."""
    return "\n".join(
        [*_settings(config), *(line for r in config.rules() for line in _rule(r, config))]
    )


def _settings(config: CheckConfig) -> Iterator[str]:
    yield _line("select", list(config.select), config.origins.get("select"))
    yield _line("ignore", list(config.ignore), config.origins.get("ignore"))
    yield _line("fail-on", config.fail_on, config.origins.get("fail_on"))
    if config.baseline is not None:
        yield _line("baseline", str(config.baseline), config.origins.get("baseline"))


def _rule(rule: Rule, config: CheckConfig) -> Iterator[str]:
    yield f"\n[rules.{rule.code}]  # {rule.name}: {rule.severity}"
    for name, value in thresholds(rule).items():
        yield _line(name, value, config.origins.get(f"{rule.code}.{name}"))


def _line(name: str, value: object, origin: str | None) -> str:
    # What JSON writes is TOML as well: numbers, lists, and strings whose escapes TOML knows.
    stated = f"{name} = {json.dumps(value)}"
    return f"{plain(stated):<32}  # {origin or DEFAULT}"
