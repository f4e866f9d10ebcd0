"""What two runs were given: configuration and requests, as far as their traces say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analyzers.views.known import knows
from stepscope.ingest.trace import Trace

MANIFEST = ("producer", "scenario", "variant")
ASKED = ("prompt_len", "max_tokens", "priority", "deadline_ns")
Key = tuple[str, ...]
IN_SETTINGS: tuple[Key, ...] = (("given",), ("device", "groups"))
"""What a run was given is in its settings, too, which say what came of it; so are core groups."""


@dataclass(frozen=True, slots=True)
class Input:
    """Something that the runs were not given alike; None where one was not given it at all."""

    what: str
    a: Any
    b: Any


def inputs(a: Trace, b: Trace) -> Iterator[Input]:
    """What was different before the first step: producer and variant, settings, requests."""
    for name in MANIFEST:
        yield from _different(name, getattr(a.manifest, name), getattr(b.manifest, name))
    ours, theirs = (dict(_flat(each.manifest.config)) for each in (a, b))
    for key in dict.fromkeys((*ours, *theirs)):
        yield from _different(".".join(key), ours.get(key), theirs.get(key))
    asked = [
        name for name in ASKED if knows(a, f"lifecycle.{name}") == knows(b, f"lifecycle.{name}")
    ]
    came, others = _asked(a, asked), _asked(b, asked)
    if came and others:  # a trace without arrivals does not say who came
        yield from _requests(came, others)


def _different(what: str, a: Any, b: Any) -> Iterator[Input]:
    if a != b:
        yield Input(what, a, b)


def _flat(config: Mapping[str, Any], above: Key = ()) -> Iterator[tuple[Key, Any]]:
    """The leaves of a configuration; what is deeper than a few levels is a leaf as a whole."""
    for name, value in config.items():
        if (*above, name) in IN_SETTINGS:
            continue
        if isinstance(value, dict) and value and len(above) < 8:
            yield from _flat(value, (*above, name))
        else:
            yield (*above, name), value


def _requests(ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[Input]:
    if missing := ours.keys() - theirs.keys():
        yield Input("requests only in A", _some(missing), None)
    if missing := theirs.keys() - ours.keys():
        yield Input("requests only in B", None, _some(missing))
    for name in sorted(ours.keys() & theirs.keys()):
        if ours[name] != theirs[name]:
            yield Input(f"request {name}", ours[name], theirs[name])
            return


def _some(names: set[str], most: int = 6) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def _asked(trace: Trace, names: list[str]) -> dict[str, Any]:
    """What each request asked for, by id: as the workload has it, else as it arrived.

    `names` are the columns of an arrival that both runs recorded.
    """
    listed = (trace.manifest.workload or {}).get("requests")
    if isinstance(listed, list) and listed:
        return {
            str(each["id"]): {name: value for name, value in each.items() if name != "id"}
            for each in listed
            if isinstance(each, dict) and "id" in each
        }
    deadline = pl.col("deadline_ns") - pl.col("ts_ns")  # clocks of two runs begin anywhere
    asked = ["request", *(deadline if name == "deadline_ns" else name for name in names)]
    came = trace.lifecycle.filter(pl.col("event") == "arrive", pl.col("request").is_not_null())
    return {row[0]: row[1:] for row in came.select(asked).collect().iter_rows()}
