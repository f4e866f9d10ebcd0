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


def track_names(events: pl.DataFrame) -> pl.DataFrame:
    """Name every (pid, tid) at which something happens: columns pid, tid, process and track.

    Tracks are unique. Names come from the file's metadata events; a process without one is
    called by its pid, the tracks of a device "GPU 0 / stream 7".
    """
    said = _said(events.filter(pl.col("ph") == "M"))
    places = events.filter(pl.col("ph") != "M").select("pid", "tid").unique(maintain_order=True)
    of_gpu = events.filter(pl.col("cat").is_in(GPU_CATEGORIES))
    on_gpu = set(of_gpu.select("pid", "tid").unique().iter_rows())
    gpu_pids = {pid for pid, _ in on_gpu}
    process_of = _unique(
        (pid, _process(pid, said, pid in gpu_pids))
        for pid in places["pid"].unique(maintain_order=True)
    )
    track_of = _unique(
        ((pid, tid), _track(process_of[pid], _thread(pid, tid, said, (pid, tid) in on_gpu)))
        for pid, tid in places.iter_rows()
    )
    return places.with_columns(
        pl.Series("process", [process_of[pid] for pid in places["pid"]], pl.String),
        pl.Series("track", [track_of[place] for place in places.iter_rows()], pl.String),
    )


Said = Mapping[tuple[str, str | None, str | None], str]


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
