"""The configuration of a scheduler that a trace's manifest tells, and what is set otherwise."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from stepscope.analyzers.replay import sglang_settings, vllm_settings
from stepscope.analyzers.replay.setting_values import refused
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.replay.sglang import building as sglang
from stepscope.ingest.replay.vllm import building as vllm
from stepscope.ingest.trace import Trace

Json = dict[str, Any]


def _any_request(_: Trace) -> None:
    """Nothing that requests ask for is refused."""


class Engine(NamedTuple):
    """How an engine's scheduler is configured.

    Its settings by name, those without which it is not built, what a manifest tells of them, and
    what is refused, of its configuration and of its requests. `changed` makes the recorded settings
    those that are asked for.
    """

    title: str
    known: tuple[str, ...]
    needed: tuple[str, ...]
    recorded: Callable[[Json], Json]
    refuse: Callable[[Json, str], None]
    changed: Callable[[Json, Mapping[str, Any], str], Json]
    refuse_requests: Callable[[Trace], None] = _any_request


ENGINES = {
    "vllm": Engine("vLLM", vllm.KNOWN, vllm_settings.NEEDED, vllm_settings.recorded,
                   vllm_settings.refuse_what_is_not_replayed, vllm_settings.changed),
    "sglang": Engine("SGLang", sglang.KNOWN, sglang_settings.NEEDED, sglang_settings.recorded,
                     sglang_settings.refuse_what_is_not_replayed, sglang_settings.changed,
                     sglang_settings.refuse_requests_that_are_not_replayed),
}  # fmt: skip


def engine_of(producer: str) -> str | None:
    """The engine that wrote a trace, None where it is none whose scheduler can be replayed."""
    return producer if producer in ENGINES else None


def config_of(engine: str, manifest: Manifest, settings: Mapping[str, Any], where: str) -> Json:
    """Give the scheduler's configuration, as it was recorded and with `settings` in place of it.

    Raises `ConfigError` where the trace does not tell all of it, and `NotReplayed` where it tells
    of what no replay can do.
    """
    of = ENGINES[engine]
    if engine_of(manifest.producer) not in (None, engine):
        raise ConfigError(f"it was written by {manifest.producer}, not by {engine}", where=where,
                          todo=f"replay it with --engine {manifest.producer}")  # fmt: skip
    of.refuse(manifest.config, where)
    config = of.changed(of.recorded(manifest.config), settings, where)
    if missing := [name for name in of.needed if config.get(name) is None]:
        raise ConfigError(
            f"it was written by {manifest.producer or 'nobody knows what'}, and tells of no"
            f" {of.title} scheduler its {', '.join(missing)}", where=where,
            todo=f"give each with --set NAME=VALUE, or record {of.title} itself (docs/replay.md)",
        )  # fmt: skip
    return config


def settings_of(texts: Iterable[str], engine: str) -> Json:
    """Read NAME=VALUE.

    Raises `ConfigError` for a name that no scheduler is configured by, and for a value that the
    setting does not take.
    """
    known, settings = ENGINES[engine].known, {}
    for text in texts:
        name, is_set, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not is_set:
            raise ConfigError(f"--set {text}: the value is missing", todo="write NAME=VALUE")
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise ConfigError(
                f"--set {text}: {engine}'s scheduler has no setting {name!r}",
                todo=f"did you mean {near[0]}?" if near else f"settings: {', '.join(known)}",
            )
        settings[name] = _value(value)
        if (takes := refused(name, settings[name])) is not None:
            raise ConfigError(f"--set {text}: {name} is no {value!r}", todo=f"give it {takes}")
    return settings


def _value(text: str) -> Any:
    """A number, true, false or null as JSON writes it; anything else is a text."""
    try:
        return json.loads(text.lower() if text.lower() in ("true", "false", "none") else text)
    except ValueError:
        return None if text.lower() == "none" else text
