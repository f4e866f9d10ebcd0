"""What holds in every sound run, whatever its settings, told in plain Python from its rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

from tests.random_configurations.tables import Row, Tables, grouped

ENDS = {"finish", "abort", "reject"}


def broken(tables: Tables) -> list[str]:
    """Return a line for everything that does not hold; none where all is well."""
    return [line for holds in INVARIANTS for line in holds(tables)]


def _one_row_each(tables: Tables) -> Iterator[str]:
    rows = Counter((row["rank"], row["step"], row["request"]) for row in tables["batch_rows"])
    for (rank, step, request), times in rows.items():
        if times > 1:
            yield f"{request} is {times} times in step {step} of rank {rank}"


def _steps_add_up(tables: Tables) -> Iterator[str]:
    tokens: Counter[tuple[int, int]] = Counter()
    for row in tables["batch_rows"]:
        tokens[row["rank"], row["step"]] += row["num_tokens"]
    heads = {rank for rank, _ in tokens}  # a worker has steps, and leaves their rows to its head
    for step in (row for row in tables["steps"] if row["rank"] in heads):
        of_rows = tokens[step["rank"], step["step"]]
        told = (step["num_prefill_tokens"] or 0) + (step["num_decode_tokens"] or 0)
        if of_rows != told:
            yield f"step {step['step']} tells of {told} tokens, its rows of {of_rows}"
        budget, reserved = step["token_budget"] or told, step["reserved_tokens"] or 0
        if told > budget or (step["num_prefill_tokens"] or 0) > budget - reserved:
            yield f"step {step['step']} has {told} tokens, more than its budget"


def _one_owner_each(tables: Tables) -> Iterator[str]:
    users: defaultdict[tuple[int, str, int], Counter[str]] = defaultdict(Counter)
    for row in tables["allocations"]:
        key = row["rank"], row["resource"], row["id"]
        if row["op"] == "claim" and users[key]:
            yield f"{row['owner']} claims {key}, which {list(users[key])} have"
        if row["op"] == "release" and not users[key][row["owner"]]:
            yield f"{row['owner']} releases {key}, which it does not have"
        users[key] += Counter({row["owner"]: -1 if row["op"] == "release" else 1})
    for key, owners in users.items():
        if left := owners.keys() & tables.arrivals.keys():
            yield f"{sorted(left)} still have {key} at the end"


def _one_end_each(tables: Tables) -> Iterator[str]:
    for request, events in tables.events.items():
        ends = [row["event"] for row in events if row["event"] in ENDS]
        if len(ends) != 1:
            yield f"{request} ends so: {ends}"


def _whole_outputs(tables: Tables) -> Iterator[str]:
    known = (row for row in tables["outputs"] if not row["is_placeholder"])
    outputs = grouped(known, lambda row: row["request"])
    for request, arrived in tables.arrivals.items():
        positions = [row["position"] for row in outputs.get(request, ())]
        if positions != list(range(len(positions))):
            yield f"tokens of {request} are at {positions}"
        end = tables.events[request][-1]
        is_cut = end["event"] == "finish" and end["cause"] is None
        wanted = arrived["max_tokens"]
        if len(positions) > wanted or (is_cut and len(positions) < wanted):
            yield f"{request} asked for {wanted} tokens and got {len(positions)}"


def _as_alone(tables: Tables) -> Iterator[str]:
    if _may_corrupt(tables):
        return
    for row in tables["outputs"]:
        if row["digest"] != row["solo_digest"] and not row["is_placeholder"]:
            yield f"token {row['position']} of {row['request']} is not what it is alone"


def _may_corrupt(tables: Tables) -> bool:
    """Whether parts of a MIX may start apart, on a device where nothing holds the first back."""
    settings = tables.config.get("settings", {})
    sound = {"all-free", "barrier", "reserve-group"}
    return settings.get("late_part") == "corrupts" and settings["admission"] not in sound


def _one_block_at_a_time(tables: Tables) -> Iterator[str]:
    for core, spans in grouped(tables["core_spans"], lambda row: row["core"]).items():
        in_order = sorted(spans, key=_began)
        for one, other in pairwise(in_order):
            if one["end_ns"] is None or one["end_ns"] > other["ts_ns"]:
                yield f"core {core} runs task {other['task']} beside task {one['task']}"


def _began(span: Row) -> tuple[int, int]:
    return span["ts_ns"], span["end_ns"] or 0


INVARIANTS: tuple[Callable[[Tables], Iterator[str]], ...] = (
    _one_row_each, _steps_add_up, _one_owner_each, _one_end_each, _whole_outputs, _as_alone,
    _one_block_at_a_time,
)  # fmt: skip
