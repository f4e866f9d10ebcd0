"""At random moments, blame names the cause that a query over the decisions names, and both fronts
name the devices that a query over the spans names.

The rows are fetched by `Trace.sql`, as `stepscope sql` does, and looked through in plain Python.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

from stepscope.analyzers.latency.causes import CAUSES, QUEUE
from stepscope.app.present.blocks import Fact, Table
from stepscope.app.present.summary.profile import profile_parts
from stepscope.app.timeline.lanes.tracks import COLLECTIVES, STREAMS
from stepscope.ingest.schema import ON_DEVICE, WHAT_BLOCKS
from tests.app.both_fronts.looked import Looked
from tests.app.both_fronts.test_same_everywhere import ENDS, is_workload, requests_of
from tests.tiers import slow

Row = dict[str, Any]
LACKED = {
    "kv-block": {"no-blocks"}, "kv-token": {"no-blocks"}, "seat": {"no-seat"}, "slot": {"no-seat"},
    "token-budget": {"no-budget", "chunk"}, "bucket": {"bucket"}, "phase": {"phase"},
    "queue": {each.name for each in CAUSES if each.group == QUEUE},
}  # fmt: skip
"""What blame may say of who was left out for want of something; behind a head, what that lacked."""


def decisions_of(run: Looked) -> dict[str, list[Row]]:
    """What was decided about each request, in order."""
    found: dict[str, list[Row]] = defaultdict(list)
    query = "select * from decisions where subject_kind = 'request' and ts_ns is not null"
    for row in sorted(run.rows(query), key=lambda row: (row["ts_ns"], row["seq"] or 0)):
        found[row["subject"]].append(row)
    return found


def causes_of(run: Looked) -> dict[str, list[tuple[int, int, str]]]:
    found: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for row in run.blamed.intervals.to_dicts():
        if row["rank"] == run.session.rank and row["ns"]:
            found[row["request"]].append((row["from_ns"], row["to_ns"], row["cause"]))
    return found


def check_causes(run: Looked) -> int:
    """Whoever was put off, and has not moved since, waits for what the decision says."""
    decided, causes, told = decisions_of(run), causes_of(run), requests_of(run)
    asked = random.Random(run.trace.name)
    put_off = [row for rows in decided.values() for row in rows if row["verdict"] == "deferred"]
    held = 0
    for row in asked.sample(put_off, min(len(put_off), 200)):
        request, ts_ns = row["subject"], row["ts_ns"]
        if request not in told:
            continue
        later = [each["ts_ns"] for each in decided[request] if each["ts_ns"] > ts_ns]
        later += [when for when, _ in told[request].events if when > ts_ns]
        later += [first for first, _ in told[request].batches if first > ts_ns]
        same = [each for each in decided[request] if each["ts_ns"] == ts_ns]
        if not later or min(later) <= ts_ns + 1 or row is not same[-1]:
            continue
        moment = asked.randrange(ts_ns, min(later))
        if told[request].at(moment) not in ("waiting", "out"):
            continue
        said = {cause for first, last, cause in causes[request] if first <= moment < last}
        assert said <= wanted(row), (run.trace.name, request, moment, said, row)
        held += bool(said)
    return held


def wanted(row: Row) -> set[str]:
    resource = row["resource"]
    if resource is None:
        return {"parked"} if row["reason"] is not None else {"other"}
    return LACKED.get(resource, {resource} if resource in WHAT_BLOCKS else {"other"})


def check_latencies(run: Looked) -> int:
    """All causes of a request together are the time that a query says it was there."""
    query = "select rank, request, event, ts_ns from lifecycle where request is not null"
    times: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for row in run.rows(query):
        times[row["request"]].append((row["event"], row["ts_ns"]))
    held = 0
    for row in run.blamed.requests.to_dicts():
        events = times.get(row["request"], [])
        came = [when for event, when in events if event in ("receive", "arrive")]
        ended = [when for event, when in events if event in ENDS or event == "deliver"]
        if row["rank"] == run.session.rank and came and ended and row["outcome"]:
            spent = sum(row[cause.column] for cause in CAUSES)
            assert spent == row["latency_ns"] == max(ended) - min(came), (run.trace.name, row)
            held += 1
    return held


@slow
def test_who_was_put_off_waits_in_scenarios_for_what_a_query_says(scenario_run: Looked) -> None:
    check_causes(scenario_run)
    check_latencies(scenario_run)


@slow
def test_who_was_put_off_waits_in_real_files_for_what_a_query_says(real_runs: list[Looked]) -> None:
    runs = [run for run in real_runs if not is_workload(run)]

    assert sum(map(check_causes, runs)) > 100
    assert sum(map(check_latencies, runs)) > 100


@slow
def test_devices_are_called_in_both_fronts_as_a_query_says(profiles: list[Looked]) -> None:
    assert sum(check_devices(run) for run in profiles) > 2


@slow
def test_causes_and_devices_of_the_samples_are_those_of_a_query(
    sample_profiles: list[Looked], sample_run: Looked
) -> None:
    check_causes(sample_run)
    assert check_latencies(sample_run) > 1
    assert sum(check_devices(run) for run in sample_profiles) > 0


def check_devices(run: Looked) -> int:
    """The devices that both fronts name are those on which something ran."""
    rows = run.trace.sql("select distinct rank, track, category from spans").to_dicts()
    ran = [row for row in rows if (row["category"] or "").lower() in ON_DEVICE and row["track"]]
    named = {row["track"].split(" / ")[0] for row in ran}
    shown = {
        lane.group.split(" / ")[0]
        for lane in run.timeline.lanes
        if lane.section in (STREAMS, COLLECTIVES)
    }
    assert named <= shown | {""}, run.trace.name
    assert devices_told(run) == named, run.trace.name
    return len(named)


def devices_told(run: Looked) -> set[str]:
    """The devices that a summary names: one in a fact, several in the rows of a table."""
    blocks = [block for part in profile_parts(run.trace) for block in part.blocks]
    alone = {value for each in blocks if isinstance(each, Fact) and each.label == "device"
             for value in each.values}  # fmt: skip
    tables = [each for each in blocks if isinstance(each, Table) and each.columns[0] == "device"]
    return alone | {str(row[0]).split(" · ")[-1] for each in tables for row in each.rows}
