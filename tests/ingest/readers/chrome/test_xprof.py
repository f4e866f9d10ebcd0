"""Chrome JSON of XProf's trace viewer: the same devices and steps as in the XPlane beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import open_bytes, rows
from tests.ingest.readers.xplane.files import two_steps
from tests.ingest.real_files import OWN_PROFILES, profile, shared_file

STEP_COLUMNS = ("step", "tag", "inferred", "ts_ns", "dur_ns", "cpu_dur_ns", "gpu_ts_ns",
                "gpu_dur_ns", "gpu_busy_ns")  # fmt: skip
Json = dict[str, Any]


def viewed(xplane: Trace) -> bytes:
    """What XProf's viewer is given of a profile: planes as processes, lines as threads."""
    pids: dict[str, int] = {}
    tids: dict[str, int] = {}
    events: list[Json] = []
    for track, name, ts_ns, dur_ns, args in rows(
        xplane, "spans", "track", "name", "ts_ns", "dur_ns", "args"
    ):
        plane, _, line = track.partition(" / ")
        own = events.append
        if plane not in pids:
            pids[plane] = len(pids) + 1
            own({"ph": "M", "pid": pids[plane], "name": "process_name", "args": {"name": plane}})
        place = {"pid": pids[plane], "tid": tids.setdefault(track, len(tids) + 1)}
        if place["tid"] == len(tids):
            own({"ph": "M", **place, "name": "thread_name", "args": {"name": line}})
        said = {key: str(value) for key, value in json.loads(args or "{}").items()}
        said.pop("correlation", None)
        own({"ph": "X", **place, "ts": ts_ns / 1e3, "dur": dur_ns / 1e3, "name": name,
             "args": said})  # fmt: skip
    head = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}}
    return json.dumps(head | {"traceEvents": [*events, {}]}).encode()


def both(folder: Path, xplane: Trace) -> tuple[Trace, Trace]:
    return xplane, open_bytes(folder, viewed(xplane), "a.trace.json")


def test_steps_and_what_they_launched_are_those_of_the_xplane(tmp_path: Path) -> None:
    xplane, chrome = both(tmp_path, open_bytes(tmp_path, two_steps(), "a.xplane.pb"))

    assert rows(chrome, "steps", *STEP_COLUMNS) == rows(xplane, "steps", *STEP_COLUMNS)
    columns = ("name", "category", "step")
    assert {row for row in rows(chrome, "spans", *columns) if row[1] == "kernel"} == {
        row for row in rows(xplane, "spans", *columns) if row[1] == "kernel"
    }


def test_a_host_thread_without_numbers_of_steps_has_none(tmp_path: Path) -> None:
    _, chrome = both(tmp_path, open_bytes(tmp_path, two_steps(marked=False), "a.pb"))

    assert not chrome.has("steps")
    assert "kernel" in rows(chrome, "spans", "category")


def test_events_with_a_category_are_left_as_they_are(tmp_path: Path) -> None:
    event = {"ph": "X", "pid": "/device:GPU:0", "tid": "Steps", "ts": 1, "dur": 2, "name": "7",
             "cat": "mine", "args": {}}  # fmt: skip
    trace = open_bytes(tmp_path, json.dumps({"traceEvents": [event]}).encode(), "a.json")

    assert rows(trace, "spans", "category") == ["mine"]


@pytest.mark.parametrize("name", ["jax_cpu", "jax_conv_mi300"])
def test_a_real_profile_has_the_same_work_in_both_forms(tmp_path: Path, name: str) -> None:
    """A device's work keeps its category; what the host ran has none in the viewer's form."""
    file = profile(name) if name in OWN_PROFILES else shared_file(f"foreign/{name}.xplane.pb")
    xplane, chrome = both(tmp_path, Trace.open(file))

    where, category = ("/host", "null") if name == "jax_cpu" else ("/device:", "category")
    query = (
        f"select {category} as category, name, count(*) as num, sum(dur_ns) as ns from spans"  # noqa: S608 - no text of others
        f" where track like '{where}%' group by category, name order by category, name"
    )
    assert xplane.sql(query).rows()
    assert chrome.sql(query).rows() == xplane.sql(query).rows()
