"""Collectives out of a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.ingest.kineto_files import open_events, rows, slice_


def call(ts: float, args: dict[str, Any] | None = None) -> dict[str, Any]:
    known = {"Collective name": "allreduce", "Process Group Name": "0", "dtype": "BFloat16"}
    said = known | (args or {})
    return slice_("record_param_comms", ts, 5, cat="cpu_op", args=said)


def kernel(ts: float, name: str, args: dict[str, Any] | None = None) -> dict[str, Any]:
    said = {"stream": 7} | (args or {})
    return slice_(name, ts, 20, cat="kernel", pid=0, tid=7, args=said)


def test_without_kernels_a_collective_lasts_as_long_as_its_call(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path, call(10, {"In msg nelems": 8, "Process Group Ranks": "[0, 1, 2]"})
    )

    columns = ("op", "num_elements", "num_bytes", "group", "expected_ranks", "dur_ns", "inferred")
    assert rows(trace, "collectives", *columns) == [
        ("allreduce", 8, 16, "0", "0,1,2", 5000, "record_param_comms")
    ]
    assert trace.manifest.tables["collectives"] == "inferred"


def test_a_collective_lasts_until_its_kernel_ends(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path,
        call(10, {"External id": 4}),
        call(50, {"External id": 5}),
        kernel(30, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", {"External id": 4}),
    )

    assert rows(trace, "collectives", "ts_ns", "dur_ns", "stream") == [
        (10_000, 40_000, "7"),
        (50_000, None, None),
    ]


def test_waits_are_no_collectives(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path, call(10, {"Collective name": "wait"}), call(20, {"Collective name": "broadcast"})
    )

    assert rows(trace, "collectives", "op", "ordinal") == [("broadcast", 0)]


def test_ordinals_count_per_group_unless_the_profile_numbers_them(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path,
        call(10),
        call(20, {"Process Group Name": "tp", "Seq": 41}),
        call(30),
        call(40, {"Process Group Name": "tp", "Seq": 42}),
    )

    assert rows(trace, "collectives", "group", "ordinal") == [
        ("0", 0), ("tp", 41), ("0", 1), ("tp", 42),
    ]  # fmt: skip


def test_kernels_serve_where_there_are_no_calls(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path,
        kernel(10, "ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclDevComm*)"),
        kernel(40, "ncclDevKernel_Broadcast_RING_LL(ncclDevComm*)"),
        kernel(70, "ncclUnknown"),
    )

    assert rows(trace, "collectives", "op", "ordinal", "stream", "dur_ns") == [
        ("reducescatter", 0, "7", 20_000),
        ("broadcast", 1, "7", 20_000),
    ]


def test_absurd_arguments_are_left_out(tmp_path: Path) -> None:
    trace = open_events(
        tmp_path,
        call(10, {"In msg nelems": 10**30, "Process Group Ranks": "[0, ...]", "dtype": 7}),
        call(20, {"Collective name": 17}),
        slice_("record_param_comms", 30, 5, args=["Collective name"]),
    )

    assert rows(trace, "collectives", "num_elements", "expected_ranks", "dtype") == [
        (None, None, None)
    ]
