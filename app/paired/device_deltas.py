"""What devices did in two traces, held against each other: GPUs, steps, core groups.

Each figure is that of the summary of one trace (`analyzers/summary/`); here B less A is added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from stepscope.analyzers.summary.core_use import by_kind, core_use, kernels_on_cores
from stepscope.analyzers.summary.gpu_use import gpu_use, steps_by_kind
from stepscope.app.paired.delta_rows import Row, row, share_row, table_of, tables_of
from stepscope.app.present.blocks import Block
from stepscope.app.present.summary.profile import uses
from stepscope.app.printable import plain
from stepscope.ingest.trace import Trace

MOST_DEVICES, MOST_KERNELS = 16, 12
Traces = tuple[Trace, Trace]
Rows = dict[tuple[Any, ...], Mapping[str, Any]]


def device_deltas(traces: Traces) -> Iterator[Block]:
    """Tables of what the summaries of both say; what neither of them has is not there."""
    yield from _gpus(traces)
    yield from tables_of("steps of kind", _steps(traces))
    yield from _cores(traces)


def _gpus(traces: Traces) -> Iterator[Block]:
    a, b = (_by(gpu_use(trace), "rank", "device") for trace in traces)
    names = list(dict.fromkeys((*a, *b)))
    if not names:
        return
    sums = [_sums(each) for each in (a, b)]
    called = "GPU" if max(len(a), len(b)) == 1 else "all GPUs together"
    yield table_of(
        f"time of {called}",
        (
            (name, *row("_ns", *(each.get(name) for each in sums)))
            for name in dict.fromkeys((*sums[0], *sums[1]))
        ),
    )
    several = len({rank for rank, _ in names}) > 1
    shown = names[:MOST_DEVICES]
    rows = (
        (
            plain(f"rank {name[0]} · {name[1]}" if several else str(name[1])),
            *share_row(*(_part(each.get(name), "busy_ns", "window_ns") for each in (a, b))),
        )
        for name in shown
    )
    yield table_of("busy", rows, len(names) - len(shown))


def _sums(devices: Rows) -> dict[str, int]:
    """What all devices of a trace were in; empty where it has none."""
    found: dict[str, int] = {}
    for device in devices.values():
        for name, ns in (*uses(device), ("in all", device["window_ns"])):
            found[name] = found.get(name, 0) + ns
    return found


def _steps(traces: Traces) -> Iterator[Row]:
    a, b = (_by(steps_by_kind(trace), "kind") if trace.has("steps") else {} for trace in traces)
    has_steps = [trace.has("steps") for trace in traces]
    for kind in dict.fromkeys((*a, *b)):
        both = a.get(kind), b.get(kind)
        numbers = [
            (each["num"] if each else 0) if has else None
            for each, has in zip(both, has_steps, strict=True)
        ]
        yield f"{plain(str(kind[0]))}: number", *row("steps", *numbers)
        for name, column in (("mean", "mean_ns"), ("longest", "most_ns")):
            yield (
                f"{plain(str(kind[0]))}: {name}",
                *row("_ns", *(_whole(each, column) for each in both)),
            )
        busy = [_part(each, "busy_ns", "lasted_ns") for each in both]
        if busy != [None, None]:
            yield f"{plain(str(kind[0]))}: GPU busy", *share_row(*busy)


def _cores(traces: Traces) -> Iterator[Block]:
    """What cores of each kind did, and what kernels ran on them; nothing where no time is told."""
    are_timed = [
        trace.has("core_spans") and trace.manifest.is_measured("core_spans") for trace in traces
    ]
    if not any(are_timed):
        return
    kinds = [
        _by(by_kind(core_use(trace)), "core_kind") if timed else {}
        for trace, timed in zip(traces, are_timed, strict=True)
    ]
    yield from tables_of("cores", _of_kinds(*kinds))
    kernels = [
        {
            f"{each['kernel']} · {each['shape']}": each["run_ns"]
            for each in kernels_on_cores(trace).iter_rows(named=True)
        }
        if timed
        else None
        for trace, timed in zip(traces, are_timed, strict=True)
    ]
    names = sorted(
        {name for each in kernels if each for name in each},
        key=lambda name: (-max((each or {}).get(name, 0) for each in kernels), name),
    )
    rows = (
        (
            plain(name),
            *row("_ns", *(None if each is None else each.get(name, 0) for each in kernels)),
        )
        for name in names[:MOST_KERNELS]
    )
    yield from tables_of("run on cores", rows, len(names) - MOST_KERNELS)


def _of_kinds(a: Rows, b: Rows) -> Iterator[Row]:
    for kind in dict.fromkeys((*a, *b)):
        called, both = kind[0] or "of unknown kind", (a.get(kind), b.get(kind))
        for name in ("cores", "blocks"):
            yield f"{called} {name}", *row(name, *(_whole(each, f"num_{name}") for each in both))
        for name, column in (("running", "run_ns"), ("held", "held_ns")):
            yield (
                f"{called} {name}",
                *share_row(*(_part(each, column, "window_ns") for each in both)),
            )
        yield f"{called} held in all", *row("_ns", *(_whole(each, "held_ns") for each in both))


def _by(frame: pl.DataFrame, *names: str) -> Rows:
    """The rows of a frame by the values of some columns."""
    return {tuple(each[name] for name in names): each for each in frame.to_dicts()}


def _whole(found: Mapping[str, Any] | None, column: str) -> int | None:
    if found is None or found[column] is None:
        return None
    whole: int = round(found[column])
    return whole


def _part(found: Mapping[str, Any] | None, part: str, whole: str) -> float | None:
    """One column as a share of another; None where that is nothing, or not known."""
    known = found and found[part] is not None and found[whole]
    return found[part] / found[whole] if found and known else None
