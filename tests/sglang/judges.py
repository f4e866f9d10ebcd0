"""Holds what a trace says of each step against what SGLang's scheduler held, by its witness."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import polars as pl

from stepscope.app.debug.session import Session
from stepscope.ingest.trace import Trace

Row = dict[str, Any]
MOST_TOLD = 5


def steps_of(session: Session, lines: Sequence[Row]) -> Iterator[tuple[Row, Row, Row | None]]:
    """Each step of the trace, what was held when its batch was formed, and the line before that."""
    steps = session.trace.steps.sort("step").collect().rows(named=True)
    formed = [line for line in lines if line["after"] == "schedule"]
    before = [None, *formed]
    return zip(steps, formed, before, strict=False)


def num_missing(trace: Trace, lines: Sequence[Row]) -> int:
    """How many of the scheduler's batches the trace has not, or has and they were not."""
    num_formed = len([line for line in lines if line["after"] == "schedule"])
    return abs(trace.num_rows("steps") - num_formed)


def differences(trace: Trace, lines: Sequence[Row]) -> list[str]:
    """What the trace says otherwise than the scheduler, at the first steps at which it does."""
    session, owners = Session(trace), Owners(trace)
    size = trace.manifest.config["page_size"]
    found: list[str] = []
    for step, line, _ in steps_of(session, lines):
        session.goto(step=step["step"])
        said, true = _said(session, step, owners.at(step["formed_ns"])), _true(line, size)
        found += [
            f"step {step['step']}: {name}: the trace says {said[name]}, the scheduler {true[name]}"
            for name in true
            if said[name] != true[name]
        ]
        if len(found) > MOST_TOLD:
            break
    return found


def _said(session: Session, step: Row, owners: dict[int, set[str]]) -> Row:
    state = session.state
    return {
        "waiting": list(state.waiting or ()),
        "running": sorted(state.running or ()),
        "batch": [(entry.request, entry.num_tokens) for entry in state.batch or ()],
        "owners": owners,
        "num_waiting": step["num_waiting"],
        "num_running": step["num_running"],
        "free": step["kv_blocks_free"],
        "cached": step["kv_blocks_cached"],
        "held": step["kv_blocks_total"] - step["kv_blocks_free"],
        "ratio": step["reserve_ratio"],
    }


def _true(line: Row, size: int) -> Row:
    owners: dict[int, set[str]] = defaultdict(set)
    for request, pages in line["pages"].items():
        for page in pages:
            owners[page].add(request)
    return {
        "waiting": line["waiting"],
        "running": line["running"],
        "batch": list(line["batch"].items()),
        "owners": dict(owners),
        "num_waiting": len(line["waiting"]),
        "num_running": len(line["running"]),
        "free": line["total"] // size,
        "cached": line["evictable"] // size,
        # Whoever has the pages that are neither free nor evictable is named.
        "held": len(owners),
        "ratio": line["ratio"],
    }


def wrong_tokens(trace: Trace, lines: Sequence[Row]) -> list[str]:
    """Requests that were given another number of tokens by a step than the trace says."""
    ended = [line for line in lines if line["after"] == "outputs"]
    given = trace.outputs.group_by("source_step", "request").agg(pl.len()).collect()
    told: dict[int, Row] = defaultdict(dict)
    for step, request, number in given.rows():
        told[step][request] = number
    true = ({name: number for name, number in line["given"].items() if number} for line in ended)
    pairs = zip(trace.steps.sort("step").collect()["step"], true, strict=False)
    return [f"step {step}: {told[step]}, {line}" for step, line in pairs if told[step] != line]


def wrong_drafts(trace: Trace, lines: Sequence[Row]) -> list[str]:
    """Rows of decodes of which the trace says another number of drafts that were right."""
    told: dict[int, Row] = defaultdict(dict)
    drafted = trace.batch_rows.filter(pl.col("num_draft") > 0).collect()
    for step, request, number in drafted.select("step", "request", "num_accepted").rows():
        told[step][request] = number
    true = [line["right"] for line in lines if line["after"] == "outputs"]
    pairs = zip(trace.steps.sort("step").collect()["step"], true, strict=False)
    return [f"step {step}: {told[step]}, {line}"
            for step, line in pairs if step in told and told[step] != line]  # fmt: skip


def unexplained(trace: Trace, lines: Sequence[Row]) -> list[str]:
    """Requests that wait, or run and are not in the batch, of which the trace gives no reason."""
    session, found = Session(trace), []
    for step, _, _ in steps_of(session, lines):
        session.goto(step=step["step"])
        found += [
            f"step {step['step']}: {left}" for left in session.left_out() if not left.resource
        ]
    return found


def unfounded(trace: Trace, lines: Sequence[Row]) -> list[str]:
    """Reasons that what the scheduler held at that step does not bear out."""
    session, found = Session(trace), []
    for step, line, before in steps_of(session, lines):
        session.goto(step=step["step"])
        for left in session.left_out():
            holds = BORNE_OUT[left.resource or ""]
            if not holds(left, line, before or line):
                found.append(f"step {step['step']}: {left}")
    return found


def waited_for(trace: Trace, resource: str) -> dict[str, set[int]]:
    """The steps at which each request lacked something."""
    session, found = Session(trace), defaultdict(set)
    for step in trace.steps.sort("step").collect()["step"]:
        session.goto(step=step)
        for left in session.left_out():
            if left.resource == resource:
                found[left.request].add(step)
    return found


def reasons(trace: Trace) -> Counter[tuple[str, str]]:
    """How often each reason was told, with what it is short of."""
    told = trace.decisions.select("resource", "reason").collect().rows()
    return Counter(told)


def _is_short(left: Any, line: Row, before: Row) -> bool:
    """More is needed than there is, or the pool was full and is."""
    if left.needed is not None and left.available is not None:
        return bool(left.needed > left.available)
    return bool(line["is_full"] or before["is_full"] or line["is_extend"])


def _runs_all(_: Any, line: Row, before: Row) -> bool:
    """As many run as may, or the batch has as many prefills as it may."""
    is_all = line["most_running"] <= len(line["running"]) or not line["slots"]
    most = line["most_prefills"]
    return is_all or (most is not None and len(line["batch"]) >= most) or before["is_full"]


def _is_behind(left: Any, line: Row, _: Row) -> bool:
    queue = line["waiting"]
    return left.holder in queue and queue.index(left.holder) < queue.index(left.request)


def _is_spent(left: Any, line: Row, _: Row) -> bool:
    """The prefills of the batch and its own are more than a batch may have."""
    wanted = sum(line["batch"].values()) + line["queued"].get(left.request, 0)
    return bool(wanted >= line["most_prefill_tokens"])


def _lacks_adapter(left: Any, line: Row, _: Row) -> bool:
    """Its adapter is none of those in the batch and of those that run, or takes no more."""
    in_use, own = set(line["loras"]), line["lora_of"][left.request]
    if left.needed is not None:
        return own not in in_use and len(in_use) >= line["most_loras"]
    return own in line["draining"]


BORNE_OUT: dict[str, Callable[[Any, Row, Row], bool]] = {
    "kv-token": _is_short,
    "seat": _runs_all,
    "queue": _is_behind,
    "token-budget": _is_spent,
    "phase": lambda left, line, _: bool(line["decoding"]) and left.is_running == line["is_extend"],
    "preemption": lambda left, line, _: left.holder in line["batch"],
    "lora": _lacks_adapter,
    "grammar": lambda left, line, _: left.request in line["compiling"],
    "last-token": lambda left, line, _: left.request not in line["decoding"],
}
"""By what a request is short of, whether the scheduler's own state says so too."""


class Owners:
    """Everyone who holds each page, added up from the rows alone, in the order of time."""

    def __init__(self, trace: Trace) -> None:
        rows = trace.allocations.sort("ts_ns", maintain_order=True)
        self._rows = rows.select("ts_ns", "id", "op", "owner").collect().rows()
        self._place = 0
        self._owners: dict[int, set[str]] = defaultdict(set)

    def at(self, ts_ns: int) -> dict[int, set[str]]:
        """The owners by then; asked of ever later times."""
        while self._place < len(self._rows) and self._rows[self._place][0] <= ts_ns:
            _, page, op, owner = self._rows[self._place]
            if op == "claim":
                assert not self._owners[page], f"page {page} is claimed twice"
            change = self._owners[page].discard if op == "release" else self._owners[page].add
            change(owner)
            self._place += 1
        return {page: set(owners) for page, owners in self._owners.items() if owners}
