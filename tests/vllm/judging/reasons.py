"""Holds each reason to wait against what the scheduler's own call came to, as its witness saw it.

The witness wraps what `schedule` calls, and reads its variables where it ends; from these it is
told here anew what each request was short of. Nothing of the adapter's is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stepscope.app.debug.session import Session
from stepscope.ingest.trace import Trace
from tests.vllm.judging.state import MOST_TOLD, Step, settings, steps_of

Row = dict[str, Any]
GRAMMAR = ("WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR", "WAITING_FOR_FSM")
PASSED_BY = ("grammar", "lora")
"""Who is short of these is passed by, and the next in line is looked at."""


def unfounded(trace: Trace, lines: Sequence[Row], rank: int = 0) -> list[str]:
    """Requests that wait for something else than what their scheduler was short of.

    Every one that waits is held against it, so that none that waits for KV blocks is missed either.
    """
    session, found = Session(trace, rank), []
    short = Short(settings(trace))
    for step in steps_of(session, lines):
        session.goto(step=step.number)
        told = {left.request: left.resource for left in session.left_out() if not left.is_running}
        found += [
            f"step {step.number}: {name} waits for {told.get(name)}, the scheduler says {true}"
            for name, true in short.of(step).items()
            if told.get(name) != true
        ]
        found += [f"step {step.number}: {each}" for each in miscounted(step.line)]
        if len(found) > MOST_TOLD:
            break
    return found


def miscounted(line: Row) -> list[str]:
    """Tries for KV blocks that ended otherwise than the blocks needed and free then make them."""
    return [
        f"{each['request']} needed {each['needed']} of {each['free']} KV blocks, {each['spare']}"
        f" to spare, and {'had' if each['had'] else 'had not'} them"
        for each in line["tried"]
        if each["needed"] is not None
        and each["had"] != (each["needed"] + each["spare"] <= each["free"])
    ]


class Short:
    """What each request that waits is short of, step by step.

    Who was passed by stays so until the scheduler looks again.
    """

    def __init__(self, engine: Row) -> None:
        self._engine = engine
        self._passed: dict[str, str] = {}

    def of(self, step: Step) -> dict[str, str | None]:
        """By request, in the order of the line."""
        line = step.line
        found: dict[str, str | None] = dict(self._looked_at(line))
        waiting = line["waiting"]
        self._passed = {name: self._passed[name] for name in waiting if name in self._passed}
        for name in line["looked"]:
            self._passed.pop(name, None)
        self._passed |= {name: why for name, why in found.items() if why and why in PASSED_BY}
        head = next((name for name in waiting if name not in self._passed), None)
        if head is not None and head not in found:
            found[head] = self._of_head(line)
        return {name: found.get(name) or self._passed.get(name, "queue") for name in waiting}

    def _looked_at(self, line: Row) -> Iterator[tuple[str, str]]:
        refused = {each["request"] for each in line["tried"] if each["is_new"] and not each["had"]}
        for name in dict.fromkeys(line["looked"]):
            if name not in line["waiting"]:
                continue
            if name in refused:
                yield name, "kv-block"
            elif line["status"][name] in GRAMMAR:
                yield name, "grammar"
            elif self._has_no_place_for(line["adapters"].get(name), line["loras"]):
                yield name, "lora"
            else:
                yield name, "token-budget"

    def _has_no_place_for(self, adapter: int | None, loaded: Sequence[int]) -> bool:
        is_full = len(loaded) == self._engine.get("max_loras")
        return adapter is not None and is_full and adapter not in loaded

    def _of_head(self, line: Row) -> str | None:
        if line["preempted"]:
            return "preemption"
        if line["budget"] <= 0:
            return "token-budget"
        return "seat" if len(line["running"]) >= self._engine["max_num_seqs"] else None
