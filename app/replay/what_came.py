"""What came of a replay, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.replay.rank_by_rank import RankReplay, Replay
from stepscope.analyzers.replay.same_decisions import Divergence
from stepscope.analyzers.replay.served import Served
from stepscope.analyzers.replay.served_costs import ServedCosts
from stepscope.analyzers.replay.step_costs import FittedCosts
from stepscope.app.printable import plain
from stepscope.app.units import duration
from stepscope.app.widths import aligned
from stepscope.ingest.replay.script import StepCosts

MAX_ROWS = 12
NAMES = {"ttft": "TTFT", "tpot": "TPOT"}
Row = Mapping[str, Any]


def replay_lines(found: Replay) -> Iterator[str]:
    """What was replayed on what, where it first decided otherwise, and what came of that."""
    recorded = found.recorded.manifest
    producer = f"{recorded.producer} {recorded.producer_version}".strip()
    yield f"recorded  {plain(found.recorded.name)}, {plain(producer)}"
    said = found.ranks[0].said
    yield f"replayed  {found.engine} {plain(said['version'])}, {plain(said['scheduler'])}"
    for name, value in found.settings.items():
        yield f"  with {plain(name)} {plain(str(value))}"
    if unknown := said["unknown"]:
        yield f"  this version does not know {plain(', '.join(unknown))}: left out"
    for each in found.ranks:
        yield ""
        yield from _rank(each, several=len(found.ranks) > 1)
    if not found.is_same or found.ranks[0].compared is None:
        yield ""
        yield from served_lines(found.served, ("recorded", "replayed"))


def served_lines(found: Served, names: tuple[str, str]) -> Iterator[str]:
    """TTFT and TPOT in the engines of both runs, and by how much one is off the other."""
    rows = [
        (f"{NAMES[measure]} {statistic}", duration(round(one)), duration(round(other)),
         _share(found.error(measure, statistic)))
        for measure, each in found.times.items()
        for statistic, (one, other) in each.items()
    ]  # fmt: skip
    head = (f"in the engine, of {times(found.num_requests, 'request')}", *names, "")
    yield from aligned(head, rows, (False, True, True, True))
    off = [f"{NAMES[measure]} {share:.1%}" for measure, share in found.of_each.items()]
    if off:
        yield f"a request's own is off by, in the median: {', '.join(off)}"


def costs_line(found: FittedCosts) -> str:
    """The model of a step's costs, and its error."""
    return (
        f"a step takes {_model(found.costs)}{_pace(found.costs)}, fitted to"
        f" {found.num_steps:,} steps ({found.left_out:,} unlike all others left out); of"
        f" {found.num_held_out:,} others it is off by {found.median_error:.1%} in the median,"
        f" {found.p90_error:.1%} at the 90th percentile, {found.total_error:+.1%} in sum"
        f"{_noise(found)}"
    )


def _noise(found: FittedCosts) -> str:
    """What of the error is not the model's."""
    if found.noise is None:
        return ""
    return f"; two steps in a row with the same decodes differ by {found.noise:.1%} in the median"


def _pace(costs: StepCosts) -> str:
    """How much the pace of the machine changed."""
    factors = sorted(factor for _, factor in costs.pace)
    if not factors or factors[0] == factors[-1]:
        return ""
    return f", {factors[0]:.2g} to {factors[-1]:.2g} times as long as the machine's pace changed"


def _model(costs: StepCosts) -> str:
    return (
        f"{duration(round(costs.base_ns))} + {_us(costs.prefill_token_ns)} a token of prefill + "
        f"{_us(costs.decode_row_ns)} a decode + {_us(costs.context_token_ns)} a token of context"
    )


def _rank(found: RankReplay, *, several: bool) -> Iterator[str]:
    head = f"rank {found.rank}: " if several else ""
    if found.compared is None:
        yield from _of_requests(found, head)
        return
    divergence = found.compared.divergence
    if found.compared.not_compared:
        yield f"{head}not recorded, so not compared: {', '.join(found.compared.not_compared)}"
    if divergence is None:
        yield f"{head}the same decisions at every step: {times(found.compared.num_steps, 'step')}"
        return
    yield from _divergence(divergence, head)
    if (more := found.said.get("carried_on")) is None:
        why = "" if "diverged" in found.said else ": batches stay the same to the end"
        yield f"not carried on{why or ': too few steps to fit costs to'}"
        return
    yield f"from there on carried on for {times(more, 'step')} on a clock that is computed"
    if found.said.get("is_stuck"):
        yield "  it ended with requests that never ran: they do not fit"
    if isinstance(found.costs, FittedCosts):
        yield f"  {costs_line(found.costs)}"


def _of_requests(found: RankReplay, head: str) -> Iterator[str]:
    """Where no step was recorded: who was served how fast, of those that nothing was fitted to."""
    assert isinstance(found.costs, ServedCosts)
    costs = found.costs
    made = times(found.said["carried_on"], "step")
    yield f"{head}no step was recorded: {made} on a clock that is computed"
    yield (
        f"  a step takes {_model(costs.costs)}, fitted to {times(costs.num_fitted, 'request')},"
        f" the first that arrived; from their first to their last token it is off by"
        f" {costs.median_error:.1%} in the median, {costs.p90_error:.1%} at the 90th percentile"
    )
    yield "  what follows is of the others, which nothing was fitted to"


def _divergence(found: Divergence, head: str) -> Iterator[str]:
    yield f"{head}first divergence: step {found.step}, {found.stage}"
    for name, rows, others in (
        ("recorded", found.recorded, found.replayed), ("replayed", found.replayed, found.recorded)
    ):  # fmt: skip
        alone = [row for row in rows if row not in others]
        yield f"  {name}  {_rows(rows)}"
        if alone and len(alone) < len(rows):
            yield f"  {' ' * len(name)}  alone: {_rows(alone)}"


def _rows(rows: Sequence[Row]) -> str:
    said = [" ".join(plain(str(each)) for each in row.values()) for row in rows[:MAX_ROWS]]
    more = f" and {len(rows) - MAX_ROWS:,} more" if len(rows) > MAX_ROWS else ""
    return f"{', '.join(said)}{more}" or "nobody"


def _share(error: float | None) -> str:
    return "" if error is None else f"{error:+.1%}"


def _us(number: float) -> str:
    return f"{number / 1000:.3g} µs"
