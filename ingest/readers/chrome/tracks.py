"""Names for the tracks of a Chrome JSON file: `process / thread`, readable and unique."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

GPU_CATEGORIES = ("kernel", "Kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")
NAMING = {
    "process_name": "name",
    "process_labels": "labels",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}
NOWHERE = "global"
HARDWARE, COMMUNICATION = "Ascend Hardware", ("Communication", "HCCL")
"""Processes of msprof: the streams of an NPU, and the operations of HCCL on it."""
Said = Mapping[tuple[str, str | None, str | None], str]


def with_tracks(templates: pl.DataFrame, metadata: pl.DataFrame) -> pl.DataFrame:
    """Add `process` and `track` to templates: names, each process's and each track's its own.

    Names come from the file's metadata events (name, pid, tid, args); a process without one is
    called by its pid, the tracks of a device "GPU 0 / stream 7". Names and counters take no track.
    """
    said = _said(metadata)
    threads = _distinct(templates.filter(~pl.col("ph").is_in(["M", "C"])), "pid", "tid")
    pids = _distinct(templates.filter(pl.col("ph") != "M"), "pid")
    on_gpu = set(_distinct(templates.filter(pl.col("cat").is_in(GPU_CATEGORIES)), "pid", "tid"))
    gpu_pids = {pid for pid, _ in on_gpu}
    processes = _unique((pid, _process(pid, said, pid in gpu_pids)) for (pid,) in pids)
    processes |= _on_one_device(processes, said)
    tracks = _unique(
        ((pid, tid), _track(processes[pid], _thread(pid, tid, said, (pid, tid) in on_gpu)))
        for pid, tid in threads
    )
    by_pid = _frame(("pid", "process"), processes.items())
    by_thread = _frame(("pid", "tid", "track"), ((*place, name) for place, name in tracks.items()))
    return templates.join(
        by_pid, on="pid", how="left", nulls_equal=True, maintain_order="left"
    ).join(by_thread, on=["pid", "tid"], how="left", nulls_equal=True, maintain_order="left")


def _on_one_device(processes: Mapping[str | None, str], said: Said) -> dict[str | None, str]:
    """Processes of HCCL's operations under the name of the NPU that they ran on (see `ascend`)."""
    devices = {
        said.get(("process_labels", pid, None), ""): name
        for pid, name in processes.items()
        if said.get(("process_name", pid, None)) == HARDWARE
    }
    beside = [pid for pid in processes if said.get(("process_name", pid, None)) in COMMUNICATION]
    labels = {pid: said.get(("process_labels", pid, None), "") for pid in beside}
    only = next(iter(devices.values())) if len(devices) == 1 else None
    found = {pid: devices.get(labels[pid], only) for pid in beside}
    return {pid: name for pid, name in found.items() if name}


def _distinct(events: pl.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return events.select(columns).unique(maintain_order=True).rows()


def _frame(columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=dict.fromkeys(columns, pl.String), orient="row")


def _said(metadata: pl.DataFrame) -> Said:
    """What the metadata events say: by (name of the event, pid, tid of a thread's)."""
    said = {}
    for name, pid, tid, args in metadata.select("name", "pid", "tid", "args").iter_rows():
        if name in NAMING and (text := _argument(args, NAMING[name])):
            said[name, pid, tid if name.startswith("thread") else None] = text
    return said


def _argument(args: str | None, name: str) -> str:
    try:
        fields: Any = json.loads(args or "{}", strict=False)
    except (ValueError, RecursionError):
        return ""
    text = fields.get(name, "") if isinstance(fields, dict) else ""
    return str(text).encode("utf-8", "replace").decode().strip()


def _process(pid: str | None, said: Said, is_gpu: bool) -> str:
    name = said.get(("process_name", pid, None), "")
    labels = said.get(("process_labels", pid, None), "")
    named = f"{name} {labels}".strip() if labels not in name else name
    return named or _called("GPU" if is_gpu else "process", pid) or NOWHERE


def _thread(pid: str | None, tid: str | None, said: Said, is_gpu: bool) -> str:
    return said.get(("thread_name", pid, tid)) or _called("stream" if is_gpu else "thread", tid)


def _called(what: str, number: str | None) -> str:
    if not number:
        return ""
    return f"{what} {number}" if number.lstrip("-").isdigit() else number


def _track(process: str, thread: str) -> str:
    return f"{process} / {thread}" if thread and thread != process else process


def _unique(named: Iterable[tuple[Any, str]]) -> dict[Any, str]:
    """Names by key, as given where only one key has it, else with the key's number behind it."""
    names = dict(named)
    num_wanting = Counter(names.values())
    taken: set[str] = set()
    for key, name in names.items():
        number = key[-1] if isinstance(key, tuple) else key
        unique = f"{name} {number}" if num_wanting[name] > 1 else name
        attempt = 2
        while unique in taken:
            unique = f"{name} {number} #{attempt}"
            attempt += 1
        taken.add(unique)
        names[key] = unique
    return names
