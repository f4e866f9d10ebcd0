"""Profiles and logs read with nothing but `json` and `re`, to count by hand what rules say."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

Event = dict[str, Any]
TAG = re.compile(r"execute_(?:\d+_)?context_(\d+)\(.*?\)_generation_(\d+)\((?:sq)?(\d+).*\)")
TOLD = re.compile(r"execute_|ProfilerStep|record_param_comms|nccl", re.IGNORECASE)
NS = 1_000  # times are in microseconds


@cache
def events(file: Path) -> list[Event]:
    """The events of a profile that tell of steps or collectives; all of it has to be JSON."""
    found = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    return [event for event in found if event["ph"] == "X" and TOLD.search(event["name"])]


def steps(profile: list[Event]) -> list[Event]:
    """The events that name a step, in order of time; each step once."""
    tagged = [event for event in profile if TAG.fullmatch(event["name"])]
    named = [event for event in profile if event["name"].startswith("ProfilerStep#")]
    found = tagged or [event for event in named if event.get("cat") != "gpu_user_annotation"]
    return sorted(found, key=lambda event: float(event["ts"]))


def generation(tag: str) -> tuple[int, int]:
    """The rows of a step that decode, by its tag, and their tokens."""
    found = TAG.fullmatch(tag)
    assert found
    return int(found[2]), int(found[3])


def kernels(profile: list[Event], word: str) -> dict[int, list[Event]]:
    """The kernels with a word in their name, in order of time, by stream."""
    found: dict[int, list[Event]] = {}
    for event in sorted(profile, key=lambda event: float(event["ts"])):
        if event.get("cat", "").lower() == "kernel" and word in event["name"].lower():
            found.setdefault(event["args"]["stream"], []).append(event)
    return found


def span_ns(event: Event) -> tuple[int, int]:
    """When an event began and ended."""
    began = round(event["ts"] * NS)
    return began, began + round(event["dur"] * NS)
