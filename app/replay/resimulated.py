"""A run of another engine on the reference engine: its requests and limits, at what its steps cost.

Who is chosen is up to the reference engine, which is not the one that was recorded. So it says what
arrivals, lengths and limits come to; `stepscope replay --python ENV` asks the real scheduler.
Where a trace tells no request, the batches stay as they were, and their times are foretold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from stepscope.analyzers.replay.recorded_settings import ENGINES, engine_of
from stepscope.analyzers.views.batches import tokens
from stepscope.analyzers.views.requests import REQUEST
from stepscope.app.replay.fidelity import SCENARIO, VARIANT
from stepscope.engine.executors.fit import Fit, fit, foretold
from stepscope.engine.executors.simulated import CostModel
from stepscope.engine.runs.rerun import Changes, run_to_its_end
from stepscope.engine.runs.scenario import PRODUCER, Options
from stepscope.engine.scenarios import scenario
from stepscope.engine.workloads.workload import RequestSpec, Workload
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.manifest import ClockInfo, Manifest
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace

TAKEN = {
    "max_num_seqs": "max_num_seqs", "max_num_batched_tokens": "budget",
    "long_prefill_token_threshold": "threshold", "block_size": "block_size",
    "num_blocks": "kv_blocks", "enable_prefix_caching": "prefix_cache",
}  # fmt: skip
"""Settings of vLLM, and what the scenario calls them."""


@dataclass(frozen=True, slots=True)
class Resimulated:
    """What came of it: `settings` are told by the trace or were given, `assumed` are by neither.

    `fitted` is None where other costs than the trace's own were given. `is_scheduled` tells whether
    requests were scheduled anew, and not only the times of the recorded batches foretold.
    """

    recorded: Trace
    replayed: Trace
    settings: Mapping[str, str]
    assumed: tuple[str, ...]
    fitted: Fit | None
    is_scheduled: bool
    stopped: str | None = None


def resimulated(trace: Trace, changes: Changes, out: Path) -> Resimulated:
    """Run the requests of a trace, or price its batches, and write the result to `out`.

    Raises ConfigError where no step tells what it cost, and for a setting that the scenario does
    not know.
    """
    if changes.without:
        raise ConfigError(f"no fault was switched on in {trace.name}: its engine is a real one")
    fitted = None if changes.cost else fit(trace)
    cost = changes.cost or (fitted.cost if fitted else CostModel())
    if not _has_requests(trace):
        if changes.settings or changes.variant:
            raise _without_requests(trace, "give no setting and no variant")
        save_trace(_priced(trace, cost), out)
        return Resimulated(trace, Trace.open(out), {}, (), fitted, is_scheduled=False)
    told = _told(trace)
    settings = {**told, **changes.settings}
    options = Options(settings=settings, workload=_workload(trace), cost=cost)
    result = run_to_its_end(scenario(SCENARIO), changes.variant or VARIANT, out, options)
    assumed = tuple(name for name in TAKEN.values() if name not in settings)
    return Resimulated(
        trace, Trace.open(out), settings, assumed, fitted, is_scheduled=True, stopped=result.stopped
    )


def resimulated_lines(found: Resimulated) -> Iterator[str]:
    """What was taken from the trace, what was not, and what its steps were taken to cost."""
    recorded = found.recorded
    yield f"recorded  {recorded.name}: {recorded.manifest.producer}"
    if found.is_scheduled:
        yield (
            "replayed  RE-SIMULATED: its arrivals, lengths and limits, scheduled by the reference "
            f"engine ({SCENARIO}), not by {recorded.manifest.producer}"
        )
        yield f"  with {', '.join(f'{key}={text}' for key, text in found.settings.items())}"
        if found.assumed:
            yield f"  not told, so as {SCENARIO} has them: {', '.join(found.assumed)}"
    else:
        yield "replayed  BATCHES PRICED: no request is told, so its batches stay as they were"
    if found.stopped:
        yield f"  it was given up: {found.stopped}"
    if found.fitted:
        yield f"  steps cost {found.fitted}"
        yield from (f"  warning: {doubt}" for doubt in found.fitted.doubts)


def told_settings(trace: Trace) -> dict[str, str]:
    """The settings that a re-simulation takes from a trace.

    Raises ConfigError where nothing but the recorded batches could be priced, or nothing at all.
    """
    if not _has_requests(trace):
        raise _without_requests(trace, "record it with arrivals and lengths of its requests")
    _workload(trace)
    fit(trace)
    return _told(trace)


def _without_requests(trace: Trace, todo: str) -> ConfigError:
    why = "its requests are not told, so only its own batches can be priced"
    return ConfigError(why, where=trace.name, todo=todo)


def _has_requests(trace: Trace) -> bool:
    arrived = trace.lifecycle.filter(event="arrive").select(pl.len())
    return bool(arrived.collect().item())


def _workload(trace: Trace) -> Workload:
    """Who arrived when, with which prompt; each gets as many tokens as it got, or may have."""
    ended = trace.lifecycle.filter(event="finish").group_by(REQUEST)
    got = tokens(trace).group_by(REQUEST).agg(num_tokens=pl.len())
    asked = (
        trace.lifecycle.filter(event="arrive")
        .join(ended.agg(num_ended=pl.col("num_generated").max()), on=REQUEST, how="left")
        .join(got, on=REQUEST, how="left")
        .with_columns(length=pl.coalesce("num_ended", "num_tokens", "max_tokens"))
        .sort("ts_ns", maintain_order=True)
        .collect()
    )
    if (num_ranks := asked["rank"].n_unique()) > 1:
        raise ConfigError(f"its requests came to {num_ranks} ranks, and one engine is simulated",
                          where=trace.name, todo="record or convert the ranks apart")  # fmt: skip
    if num := asked.filter(pl.any_horizontal(pl.col("prompt_len", "length").is_null())).height:
        raise ConfigError(
            f"of {num:,} of {asked.height:,} requests the length of prompt or output is not told",
            where=trace.name, todo="replay a trace that tells it",
        )  # fmt: skip
    began_ns = asked["ts_ns"].min() if trace.manifest.clock.kind != "virtual" else 0
    return Workload(
        RequestSpec(row["request"], row["ts_ns"] - began_ns, row["prompt_len"], row["length"],
                    priority=row["priority"] or 0)
        for row in asked.iter_rows(named=True)
    )  # fmt: skip


def _told(trace: Trace) -> dict[str, str]:
    """Limits that the manifest tells; a threshold of 0 is none, so it is the whole budget."""
    engine = engine_of(trace.manifest.producer)
    known = ENGINES[engine].recorded(dict(trace.manifest.config)) if engine else {}
    told = {ours: known[theirs] for theirs, ours in TAKEN.items() if known.get(theirs) is not None}
    if not told.get("threshold", True) and "budget" in told:
        told["threshold"] = told["budget"]
    return {name: str(value).lower() for name, value in told.items()}


def _priced(trace: Trace, cost: CostModel) -> Trace:
    manifest = replace(
        Manifest(PRODUCER), clock=ClockInfo("virtual"), config={"batches_of": trace.name}
    )
    return Trace.from_tables({"steps": foretold(trace, cost)}, manifest, name=trace.name)
