"""A trace as Perfetto's protobuf: nested tracks, units of counters, every nanosecond.

The format: https://perfetto.dev/docs/reference/trace-packet-proto
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.arrows import End, details, touching
from stepscope.ingest.writers.perfetto_packets import BEGIN, INSTANT, Packets
from stepscope.ingest.writers.perfetto_tracks import TrackTree
from stepscope.ingest.writers.shown import Shown, draft, in_order, rows

BOOTTIME, REALTIME = 6, 1  # ClockSnapshot.Clock.clock_id
_RANK = pl.concat_str(pl.lit("rank "), pl.col("rank"))
_TRACK = pl.coalesce(pl.concat_str(_RANK, pl.lit(" / "), pl.col("track")), _RANK).alias("track")
_HALF = (
    "half", "ts_ns", "track", "name", "category", "args", "form", "step", "correlation", "span",
)  # fmt: skip


class PerfettoWriter:
    """Perfetto's own format, which https://ui.perfetto.dev opens."""

    endings = (".pftrace", ".pftrace.gz")

    def write(self, trace: Trace, out: Path) -> None:
        """Write the trace; see `write_perfetto`."""
        write_perfetto(trace, out)


def write_perfetto(trace: Trace, out: str | Path) -> None:
    """Write a trace to `out`, gzipped when it ends in `.gz`; the same trace gives the same bytes.

    It shows what `write_chrome` shows: a process per rank, and tracks below it as their names
    nest ("core group 0 / core 3" is a track in a track), counters with their units, arrows,
    slices that never ended. What Perfetto has no field for (steps, asynchronous spans, names and
    ids of arrows) is kept in debug annotations whose names begin with "stepscope.". Times are
    the trace's, but counted from the first one when that is negative. Raises `WriteError`.
    """
    shown = Shown.of(trace, _TRACK)
    zero_ns = min([0, *shown.times().sort().head(1)])
    with draft(Path(out)) as file:
        packets = Packets(file)
        _write_head(trace, zero_ns, packets)
        _write_events(shown.moved(zero_ns), trace.manifest.ranks, packets)


def _write_head(trace: Trace, zero_ns: int, packets: Packets) -> None:
    manifest = trace.manifest
    epoch_ns = manifest.clock.epoch_ns + zero_ns
    said = {
        "producer": manifest.producer,
        "producer_version": manifest.producer_version,
        "clock": manifest.clock.kind,
        "epoch_ns": epoch_ns,
    }
    metadata = {"name": "stepscope", "json_value": msgspec.json.encode(said).decode()}
    packets.first(chrome_events={"metadata": [metadata]})
    if epoch_ns > 0:
        zero = {"clock_id": BOOTTIME, "timestamp": 0}
        clocks = [zero, {"clock_id": REALTIME, "timestamp": epoch_ns}]
        packets.packet(clock_snapshot={"clocks": clocks, "primary_trace_clock": BOOTTIME})


def _write_events(shown: Shown, ranks: Sequence[int], packets: Packets) -> None:
    ends = touching(shown.flows, shown.slices)
    loose = ends.filter(pl.col("span").is_null())
    counters = shown.counters.select("track", "name", "unit").unique().rows()
    tracks = {*shown.slices["track"].unique(), *loose["track"].unique()}
    tree = TrackTree(ranks, tracks, counters)
    for descriptor in tree.descriptors:
        packets.packet(track_descriptor=descriptor)
    _write_slices(shown.slices, ends, tree, packets)
    for *counter, ts_ns, value in rows(shown.counters, ("track", "name", "unit", "ts_ns", "value")):
        packets.sample(ts_ns, tree.uuid(tuple(counter)), value)
    _write_loose(loose, tree, packets)


def _write_slices(
    slices: pl.DataFrame, ends: pl.DataFrame, tree: TrackTree, packets: Packets
) -> None:
    arrows = ends.drop_nulls("span").rows_by_key("span", named=True, include_key=True)
    for half, ts_ns, track, name, category, args, form, step, correlation, span in rows(
        in_order(slices), _HALF
    ):
        if half == "end":
            packets.end(ts_ns, tree.uuid(track))
            continue
        kind = INSTANT if half == "instant" else BEGIN
        ours, fields = _arrows(arrows[span]) if span in arrows else ({}, {})
        if form == "async":
            ours["form"] = {"string_value": form}
        if step is not None:
            ours["step"] = {"int_value": step}
        if correlation is not None and correlation >= 0:
            fields["correlation_id"] = correlation
        packets.begin(ts_ns, (tree.uuid(track), kind, name, category), args, ours, fields)


def _write_loose(ends: pl.DataFrame, tree: TrackTree, packets: Packets) -> None:
    """Instants for those ends of arrows that touch no slice, so that they can be shown."""
    for end in ends.iter_rows(named=True):
        ours, fields = _arrows([end])
        ours["form"] = {"string_value": "flow"}
        event = tree.uuid(end["track"]), INSTANT, end["name"] or "flow", end["category"]
        packets.begin(end["ts_ns"], event, None, ours, fields)


def _arrows(ends: Sequence[End]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The annotation and the fields of an event that arrows touch."""
    text = details(ends)
    last = [end["arrow"] for end in ends if end["is_last"] and end["end"] == "finish"]
    others = [end["arrow"] for end in ends if end["arrow"] not in last]
    fields = {"flow_ids": others, "terminating_flow_ids": last}
    return {"flows": {"legacy_json_value": text}} if text else {}, fields
