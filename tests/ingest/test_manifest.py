"""The manifest: what it says survives, and what it does not know is refused."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Lock

import pytest

from stepscope.ingest.errors import TraceError
from stepscope.ingest.manifest import (
    ClockInfo,
    Manifest,
    ReadReport,
    Writer,
    manifest_name,
    read_manifest,
    write_manifest,
)
from stepscope.ingest.storage.joined_manifest import merged
from tests.looped import looped

FULL = Manifest(
    "vllm",
    "0.9",
    ClockInfo("virtual", 17),
    (0, 3),
    {"budget": 512},
    {"requests": []},
    "mix-admission",
    "before",
    {"steps": "complete"},
    closed=False,
    recovered={"0": {"rows": {"steps": 3}, "discarded_bytes": 4, "notes": []}},
    dropped={"steps": 1},
    report=ReadReport({"X": 3}, {"torn": 1}, {"end": 2}, {"steps": 5}, ("a note",)),
)


@pytest.mark.parametrize("manifest", [FULL, Manifest("test")])
def test_it_survives_the_way_to_disk_and_back(tmp_path: Path, manifest: Manifest) -> None:
    write_manifest(manifest, tmp_path / "manifest.json")

    assert read_manifest(tmp_path / "manifest.json") == manifest
    assert [file.name for file in tmp_path.iterdir()] == ["manifest.json"]


def test_every_rank_and_part_has_a_file_of_its_own() -> None:
    assert [manifest_name(Writer(rank)) for rank in (0, 3)] == [
        "manifest.json",
        "manifest.rank=3.json",
    ]


@looped(
    ("text", "why"),
    [
        ("", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "a manifest is a JSON object"),
        ("{}", "'producer' is missing"),
        ('{"producer": 3}', "'producer' has the wrong type"),
        ('{"producer": "x", "clock": {"kind": "sundial"}}', "'clock' has the wrong type"),
        ('{"producer": "x", "ranks": []}', "'ranks' has the wrong type"),
        ('{"producer": "x", "dropped": {"steps": "some"}}', "'dropped' has the wrong type"),
        ('{"producer": "x", "format_version": 99}', "upgrade stepscope"),
        ('{"producer": "x", "format_version": "one"}', "'format_version' is not a number"),
    ],
)
def test_what_is_no_manifest_is_refused_in_one_line(text: str, why: str) -> None:
    with pytest.raises(TraceError, match=why) as refused:
        Manifest.from_json(text, "a.trace/manifest.json")

    assert str(refused.value).startswith("a.trace/manifest.json: ")
    assert "\n" not in str(refused.value)


def test_what_a_later_version_adds_is_ignored() -> None:
    said = json.loads(Manifest("x").to_json()) | {"mood": "sunny"}

    assert Manifest.from_json(json.dumps(said)) == Manifest("x")


def test_ranks_are_merged_with_the_lowest_speaking_for_what_they_share() -> None:
    one = Manifest("a", ranks=(0,), tables={"steps": "complete"}, dropped={"steps": 1})
    two = Manifest(
        "b",
        ranks=(1,),
        tables={"steps": "partial", "spans": "complete"},
        closed=False,
        recovered={"1": {"rows": {}}},
        dropped={"steps": 2, "spans": 3},
        report=ReadReport(notes=("stopped",)),
    )

    both = merged([two, one])

    assert (both.producer, both.ranks, both.closed) == ("a", (0, 1), False)
    assert both.tables == {"steps": "partial", "spans": "complete"}
    assert both.dropped == {"steps": 3, "spans": 3}
    assert both.recovered == {"1": {"rows": {}}}
    assert both.report == ReadReport(notes=("stopped",))


def test_what_any_writer_did_not_find_in_its_engine_is_said_of_all() -> None:
    engine = Manifest("vllm", config={"seed": 7, "not_found": ["scheduler.schedule"]})
    front = Manifest("vllm", config={"not_found": ["OutputProcessor.process_outputs", 3]})

    both = merged([engine, front]).config

    assert both["seed"] == 7
    assert both["not_found"] == ["scheduler.schedule", "OutputProcessor.process_outputs", "3"]


def test_a_table_is_whole_where_the_recording_was_closed_and_says_so_of_each_table() -> None:
    tables = {"tasks": "complete", "core_spans": "ordered"}
    closed, torn = (Manifest("engine", tables=tables, closed=each) for each in (True, False))

    assert (closed.is_whole("tasks"), torn.is_whole("tasks")) == (True, False)
    assert not closed.is_whole("tasks", "core_spans")
    assert not closed.is_whole("steps")


def test_times_of_a_table_are_measured_unless_only_their_order_is_right() -> None:
    manifest = Manifest("engine", tables={"tasks": "inferred", "core_spans": "ordered"})

    assert [manifest.is_measured(each) for each in ("tasks", "core_spans", "steps")] == [
        True, False, True,
    ]  # fmt: skip


def test_what_json_has_no_form_for_is_written_as_its_text(tmp_path: Path) -> None:
    manifest = Manifest("engine", config={"path": tmp_path, "lone": "a \ud800", "lock": Lock()})

    write_manifest(manifest, tmp_path / "manifest.json")

    found = read_manifest(tmp_path / "manifest.json").config
    assert (found["path"], found["lone"]) == (str(tmp_path), "a ?")
    assert found["lock"].startswith("<unlocked")


def test_what_is_nested_without_end_is_no_manifest() -> None:
    within: list[object] = []
    within.append(within)
    deep: list[object] = []
    for _ in range(3_000):
        deep = [deep]

    for around in (within, deep):
        with pytest.raises(ValueError, match=r"too deeply|Circular"):
            Manifest("engine", config={"around": around}).to_json()
