"""The minimap: how busy the engine was over time, by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app import palette
from stepscope.app.timeline.lanes.collective_calls import CALLS
from stepscope.app.timeline.lanes.counters import Counter
from stepscope.app.timeline.lanes.lane import Ints, clipped, end_of, placeable
from stepscope.app.timeline.lanes.recomputed import with_recomputed
from stepscope.app.timeline.lanes.steps import (
    STATE_OF_PART,
    is_mixed_step,
    known_steps,
    tokens_of_parts,
)
from stepscope.app.timeline.lanes.tracks import SAYS
from stepscope.app.timeline.profile.gpu_load import BusyDevices
from stepscope.app.timeline.span_index import Section, SpanIndex
from stepscope.ingest.trace import Trace

Shares = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LoadOverTime:
    """Stacked shares 0..1 by state, `shares` [states, width]; `what` says of what they are.

    Cores and GPUs busy are a share of all of them; tokens, spans, requests and arrivals a share of
    the busiest pixel; a counter lies between its lowest value or 0 and its highest. Tokens of a
    mixed batch are `mixed`, whatever they are of; `is_mixed` [width] tells where any such step ran.
    """

    what: str
    states: tuple[int, ...]
    shares: Shares
    is_mixed: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    def widened(self, pixels: Ints) -> LoadOverTime:
        """The same with the given pixels, which may repeat."""
        is_mixed = self.is_mixed[pixels] if len(self.is_mixed) else self.is_mixed
        return LoadOverTime(self.what, self.states, self.shares[:, pixels], is_mixed)

    def mixed_runs(self, apart: int = 0) -> list[int]:
        """The pixels at which mixed steps begin to run, each more than `apart` after the last."""
        begins = np.flatnonzero(np.diff(self.is_mixed.astype(np.int8), prepend=0) > 0)
        runs: list[int] = []
        for pixel in begins.tolist():
            if not runs or pixel - runs[-1] > apart:
                runs.append(pixel)
        return runs


def load_of(
    trace: Trace,
    sections: Sequence[Section],
    counters: Sequence[Counter],
    devices: BusyDevices,
    edges: Ints,
) -> LoadOverTime:
    """Load over pixels: core groups if the trace has them, else GPUs, tokens, spans, requests, or
    the first counter.
    """
    by_name = {section.name: section for section in sections}
    load = _load_of(trace, by_name, counters, devices, edges)
    if "steps" not in by_name:
        return load
    index = by_name["steps"].index
    lanes = np.arange(len(index.offsets) - 1)
    is_mixed = np.asarray(index.marks(lanes, edges, (palette.MIXED,)).any(axis=0))
    return replace(load, is_mixed=is_mixed)


def _load_of(
    trace: Trace,
    by_name: Mapping[str, Section],
    counters: Sequence[Counter],
    devices: BusyDevices,
    edges: Ints,
) -> LoadOverTime:
    if "core groups" in by_name:
        return _busy(
            by_name["core groups"], edges, "cores busy", (palette.AIC, palette.AIV, palette.MIX)
        )
    if devices.num_devices:
        shares = devices.shares(edges).astype(np.float32)[None]
        return LoadOverTime("GPU busy", (palette.COUNTER,), shares)
    if "steps" in by_name and _has_tokens(trace):
        return _tokens(trace, edges)
    tracks = [section for name, section in by_name.items() if name in SAYS]
    if tracks or "requests" in by_name:
        of = _of_tracks(tracks, edges) if tracks else _of_requests(by_name["requests"].index, edges)
        return _scaled(of)
    if CALLS in by_name:
        return _busy(by_name[CALLS], edges, "collective calls", palette.OF_CALLS)
    return _of_counter(counters[0] if counters else None, edges)


def _of_counter(counter: Counter | None, edges: Ints) -> LoadOverTime:
    """What a counter's lane shows of it; nothing if there is none."""
    if counter is None:
        return LoadOverTime("no load", (), np.zeros((0, len(edges) - 1), np.float32))
    heights = counter.series(edges).heights()[None].astype(np.float32)
    return LoadOverTime(counter.name.label, (palette.COUNTER,), heights / np.float32(255))


def _scaled(load: LoadOverTime) -> LoadOverTime:
    """The same against the busiest pixel."""
    most = load.shares.sum(axis=0).max(initial=0.0)
    return LoadOverTime(load.what, load.states, load.shares / (most or 1.0))


def _busy(section: Section, edges: Ints, what: str, states: Sequence[int]) -> LoadOverTime:
    """Share of all lanes' time that is busy."""
    index = section.index
    lanes = np.arange(len(index.offsets) - 1)
    busy = index.busy(lanes, edges)
    shown = tuple(state for state in states if state in busy)
    whole = np.diff(edges) * len(lanes)
    shares = np.array([busy[state] / whole for state in shown], np.float32)
    return LoadOverTime(what, shown, shares.reshape(len(shown), len(edges) - 1))


def _of_tracks(sections: Sequence[Section], edges: Ints) -> LoadOverTime:
    """Time of spans by their shades, over all lanes of tracks."""
    shades = range(palette.SPAN, len(palette.STATES))
    loads = [_busy(section, edges, "spans", shades) for section in sections]
    num_lanes = [len(section.index.offsets) - 1 for section in sections]
    shares = np.zeros((len(shades), len(edges) - 1), np.float32)
    for load, lanes in zip(loads, num_lanes, strict=True):
        for state, share in zip(load.states, load.shares, strict=True):
            shares[state - palette.SPAN] += share * lanes
    shown = shares.any(axis=1)
    states = tuple(palette.SPAN + place for place in np.flatnonzero(shown).tolist())
    return LoadOverTime("spans", states, shares[shown])


def _of_requests(index: SpanIndex, edges: Ints) -> LoadOverTime:
    """How many requests there are in each state; where all that is told takes no time, arrivals."""
    whole = slice(0, len(index))
    starts, ends = index.starts[whole], index.ends(whole)
    if not (ends > starts).any():
        arrived = np.histogram(starts, edges)[0][None]
        return LoadOverTime("arrivals", (palette.WAITING,), arrived.astype(np.float32))
    shown = tuple(kind for kind in index.kinds.tolist() if kind != palette.NOTHING)
    one = np.ones(len(index))
    shares = [
        np.diff(_ramp(starts[of], one[of], edges) - _ramp(ends[of], one[of], edges))
        for of in (index.state == kind for kind in shown)
    ]
    share = np.array(shares) / np.diff(edges)
    return LoadOverTime("requests", shown, share.astype(np.float32))


def _has_tokens(trace: Trace) -> bool:
    tokens = trace.steps.select(pl.sum("num_prefill_tokens", "num_decode_tokens")).collect()
    return any(tokens.row(0))


def _tokens(trace: Trace, edges: Ints) -> LoadOverTime:
    """Tokens a second by what they were computed for, against the most that any pixel has.

    A step of which nobody knows how long it took has no tokens a second: the last of a log.
    """
    start = clipped(pl.col("ts_ns"))
    ended = end_of(pl.col("ts_ns"), pl.col("lasts_ns"), 0)
    is_mixed = is_mixed_step(*STATE_OF_PART)
    whole = pl.sum_horizontal(*STATE_OF_PART)
    steps = (
        with_recomputed(_lasting_steps(trace), trace)
        .drop_nulls("lasts_ns")
        .with_columns(tokens_of_parts())
        .select(
            pl.when(~is_mixed).then(pl.col(*STATE_OF_PART)).otherwise(0),
            mixed=pl.when(is_mixed).then(whole).otherwise(0),
            start=start,
            end=ended,
        )
        .collect()
    )
    states = {
        "prefill": palette.PREFILL,
        "decode": palette.DECODE,
        "mixed": palette.MIXED,
        "recompute": palette.RECOMPUTE,
    }
    shown = [name for name in states if name in ("prefill", "decode") or steps[name].sum()]
    shares = np.array(
        [_per_pixel(steps["start"], steps["end"], steps[name], edges) for name in shown]
    ) / np.diff(edges)
    named = tuple(states[name] for name in shown)
    return _scaled(LoadOverTime("tokens", named, shares.astype(np.float32)))


def _lasting_steps(trace: Trace) -> pl.LazyFrame:
    """Steps with `lasts_ns`; batches are looked at only where a step before the last needs it."""
    steps = placeable(trace, "steps").with_columns(lasts_ns="dur_ns")
    is_last = pl.col("ts_ns") == pl.col("ts_ns").max().over("rank", "pp_stage")
    lacks = steps.select((pl.col("dur_ns").is_null() & ~is_last).any()).collect().item()
    return known_steps(trace) if lacks else steps


def _per_pixel(start: pl.Series, end: pl.Series, tokens: pl.Series, edges: Ints) -> Floats:
    """Spread each step's tokens evenly over its time, and add them up in each pixel."""
    first, amount = start.to_numpy(), tokens.to_numpy().astype(np.float64)
    last = np.maximum(end.to_numpy(), first + 1)
    rate = amount / (last - first)
    return np.diff(_ramp(first, rate, edges) - _ramp(last, rate, edges))


def _ramp(times: Ints, rate: Floats, edges: Ints) -> Floats:
    """At each edge, the sum of rate * (edge - time) over the times before it."""
    order = np.argsort(times, kind="stable")
    times, rate = times[order], rate[order]
    before = np.searchsorted(times, edges)
    origin = edges[0]
    slope = np.concatenate(([0.0], np.cumsum(rate)))
    offset = np.concatenate(([0.0], np.cumsum(rate * (times - origin))))
    ramp: Floats = slope[before] * (edges - origin) - offset[before]
    return ramp
