"""Make `perfetto_two_ranks.pftrace`: what an engine on Perfetto's SDK would write, made up.

    python sample_traces/make_perfetto.py

Two ranks of a decoder for 24 steps, written by the `perfetto` package's builder as the SDK
does: interned names, a clock that counts from packet to packet, defaults of a sequence, threads of
processes. In steps 7 and 8 rank 1 prefills, and so enters the all-reduce 3 ms late. The same bytes
each time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

OUT = Path(__file__).with_name("perfetto_two_ranks.pftrace")
NUM_STEPS, LATE_STEPS = 24, (7, 8)
EPOCH_NS = 1_760_000_000_000_000_000
BOOTTIME, REALTIME, STEADY = 6, 1, 64
BEGIN, END, COUNTER = (
    TrackEvent.TYPE_SLICE_BEGIN,
    TrackEvent.TYPE_SLICE_END,
    TrackEvent.TYPE_COUNTER,
)
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


class Rank:
    """A process: its main thread, a stream of its device, a counter, and the packets of these."""

    def __init__(self, number: int, file: IO[bytes]) -> None:
        self._builder = StreamingTraceProtoBuilder(file)
        self._number = number
        self._base = 100 * (number + 1)
        self._iids: dict[str, int] = {}
        self._now_ns = 1_000_000
        self._begin()

    def event(self, ts_ns: int, kind: int, track: int, name: str = "", **fields: Any) -> None:
        """Write an event of a track; a stamp is what has passed since the last one."""
        packet = self._packet(timestamp=ts_ns - self._now_ns, sequence_flags=2)
        self._now_ns = ts_ns
        packet.track_event.CopyFrom(TrackEvent(type=kind, **fields))
        if track:
            packet.track_event.track_uuid = self._base + track
        if name:
            packet.track_event.name_iid = self._iid(packet, name)
        self._builder.write_packet(packet)

    def _begin(self) -> None:
        clocks = [
            {"clock_id": BOOTTIME, "timestamp": self._now_ns},
            {"clock_id": REALTIME, "timestamp": EPOCH_NS + self._now_ns},
            {"clock_id": STEADY, "timestamp": self._now_ns, "is_incremental": True},
        ]
        packets: list[dict[str, Any]] = [
            {"sequence_flags": 1, "clock_snapshot": {"clocks": clocks}},
            {"trace_packet_defaults": {
                "timestamp_clock_id": STEADY,
                "track_event_defaults": {"track_uuid": self._base + 1},
            }},
        ]  # fmt: skip
        packets += [{"track_descriptor": each} for each in self._tracks()]
        for fields in packets:
            self._builder.write_packet(self._packet(**fields))

    def _tracks(self) -> Iterator[dict[str, Any]]:
        pid = self._base
        process = {"pid": pid, "process_name": f"rank {self._number}"}
        yield {"uuid": self._base, "process": process}
        thread = {"pid": pid, "tid": pid + 1, "thread_name": "engine"}
        yield {"uuid": self._base + 1, "parent_uuid": self._base, "thread": thread}
        yield {"uuid": self._base + 2, "parent_uuid": self._base, "name": "GPU"}
        yield {"uuid": self._base + 3, "parent_uuid": self._base + 2, "name": "stream 7"}
        free = {"unit_name": "blocks"}
        yield {
            "uuid": self._base + 4,
            "parent_uuid": self._base,
            "name": "KV free",
            "counter": free,
        }

    def _packet(self, **fields: Any) -> TracePacket:
        return TracePacket(trusted_packet_sequence_id=self._number + 1, **fields)

    def _iid(self, packet: TracePacket, name: str) -> int:
        if name not in self._iids:
            self._iids[name] = len(self._iids) + 1
            packet.interned_data.event_names.add(iid=self._iids[name], name=name)
        return self._iids[name]


def make(path: Path) -> None:
    """Write the file."""
    with path.open("wb") as file:
        ranks = [Rank(number, file) for number in (0, 1)]
        begin_ns = 2_000_000
        for step in range(1, NUM_STEPS + 1):
            late_ns = 3_000_000 if step in LATE_STEPS else 0
            together_ns = begin_ns + 1_400_000 + late_ns
            for number, rank in enumerate(ranks):
                _step(rank, number, step, begin_ns, together_ns, late_ns * number)
            begin_ns = together_ns + 900_000


def _step(
    rank: Rank, number: int, step: int, begin_ns: int, together_ns: int, late_ns: int
) -> None:
    """A step: its tag on the host, two kernels on the device, the second when all are there."""
    arrow = 1000 * number + step
    tag = "step[EXTEND bs=1 toks=3072]" if late_ns else "step[DECODE bs=16]"
    args = [{"name": "step", "int_value": step}]
    rank.event(begin_ns, COUNTER, 4, double_counter_value=4096 - 8 * step)
    rank.event(begin_ns, BEGIN, 0, tag, debug_annotations=args)
    rank.event(begin_ns + 100_000, BEGIN, 0, "launch", flow_ids=[arrow], correlation_id=arrow)
    rank.event(begin_ns + 130_000, END, 0)
    launched: dict[str, Any] = {"terminating_flow_ids": [arrow], "correlation_id": arrow}
    rank.event(begin_ns + 150_000, BEGIN, 3, "decoder_layer", **launched)
    rank.event(begin_ns + 1_150_000 + late_ns, END, 3)
    rank.event(begin_ns + 1_200_000 + late_ns, BEGIN, 3, ALL_REDUCE)
    rank.event(together_ns + 200_000, END, 3)
    rank.event(together_ns + 300_000, END, 0)


if __name__ == "__main__":
    sys.exit(make(OUT))
