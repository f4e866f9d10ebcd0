"""Jobs of two ranks made of real files, whose second file is changed so that it is known how.

`sampled` are two of the 128 ranks of one job, of whose events others kept a sample. `mirrored` is
one file of a job of two taken for both ranks: what they did at one moment is known to the ns.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.metamorphic.documents import Event, exact, number, text_of

KINETO = ROOT.parent / "shared" / "data" / "kineto"
FILES = {
    "sampled": ("hta_sampled_rank-0", "hta_sampled_rank-1"),
    "mirrored": ("hta_nccl_data", "hta_nccl_data"),
}
_TELLS = re.compile(r"nccl|record_param_comms|ProfilerStep")
_ONE_IN = 16
Top = dict[str, Any]


def rank_files(job: str) -> tuple[Top, Top]:
    """What the files of both ranks hold, to be changed."""
    first, second = (json.loads(_text(name)) for name in FILES[job])
    second["distributedInfo"]["rank"] = 1
    return first, second


@cache
def _text(name: str) -> str:
    """A file with all that tells of collectives, and one in some of what else there is."""
    top = json.loads(gzip.decompress((KINETO / f"{name}.json.gz").read_bytes()), parse_float=number)
    events = top["traceEvents"]
    launched = {_correlation(event) for event in events if _TELLS.search(event["name"])} - {None}
    top["traceEvents"] = [
        event
        for at, event in enumerate(events)
        if event["ph"] == "M" or _TELLS.search(event["name"])
        or _correlation(event) in launched or not at % _ONE_IN
    ]  # fmt: skip
    return json.dumps(top)


def _correlation(event: Event) -> Any:
    return (event.get("args") or {}).get("correlation")


def opened(
    folder: Path, job: str, changed: Callable[[Top], object] | None = None,
    written: Callable[[Top], bytes] = lambda top: text_of(top).encode(),
) -> Trace:  # fmt: skip
    """A job whose second rank's file is changed, and both are written so."""
    folder.mkdir(exist_ok=True)
    tops = rank_files(job)
    if changed:
        changed(tops[1])
    for rank, top in enumerate(tops):
        (folder / f"rank{rank}.json").write_bytes(written(top))
    return Trace.open(folder)


def later(us: int) -> Callable[[Top], None]:
    """Set the clock of a file."""

    def change(top: Top) -> None:
        for event in top["traceEvents"]:
            if "ts" in event:
                event["ts"] = number(f"{exact(event['ts']) + us:f}")

    return change


def begins_a_step_later(top: Top) -> None:
    """Leave out what began before the second step."""
    tags = (e for e in top["traceEvents"] if e["name"].startswith("ProfilerStep"))
    _, second = sorted(exact(event["ts"]) for event in tags)[:2]
    top["traceEvents"] = [
        event for event in top["traceEvents"] if "ts" not in event or exact(event["ts"]) >= second
    ]


def lacks(place: int) -> Callable[[Top], None]:
    """Leave out the all-reduce at that place: its call and annotation, and the kernel of it."""

    def change(top: Top) -> None:
        named = [e for e in top["traceEvents"] if e["name"] == "nccl:all_reduce"]
        on_host, on_device = (
            sorted((e for e in named if e["cat"] == cat), key=lambda event: exact(event["ts"]))
            for cat in ("user_annotation", "gpu_user_annotation")
        )
        of_it = (_all_reduces(top)[place], kernels(top)[place], on_host[place], on_device[place])
        gone = {id(event) for event in of_it}
        top["traceEvents"] = [event for event in top["traceEvents"] if id(event) not in gone]

    return change


def swaps(place: int) -> Callable[[Top], None]:
    """Let a collective be as large as the one behind it, and the reverse."""

    def change(top: Top) -> None:
        one, other = (_all_reduces(top)[at]["args"] for at in (place, place + 1))
        for key in ("In msg nelems", "Out msg nelems"):
            one[key], other[key] = other[key], one[key]

    return change


def enters_later(us: int) -> Callable[[Top], None]:
    """Let the device come later to each all-reduce, and leave it when it did."""

    def change(top: Top) -> None:
        for event in kernels(top):
            event["ts"] = number(f"{exact(event['ts']) + us:f}")
            event["dur"] = number(f"{exact(event['dur']) - us:f}")

    return change


def _all_reduces(top: Top) -> list[Event]:
    called = (e for e in top["traceEvents"] if e["name"] == "record_param_comms")
    found = [e for e in called if e["args"].get("Collective name") == "allreduce"]
    return sorted(found, key=lambda event: exact(event["ts"]))


def kernels(top: Top) -> list[Event]:
    """The kernels of all-reduces, in order."""
    found = [e for e in top["traceEvents"] if re.match("nccl(Dev)?Kernel_AllReduce", e["name"])]
    return sorted(found, key=lambda event: exact(event["ts"]))
