"""A trace on disk: saved whole, the same bytes for the same rows, damage said."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Severity
from stepscope.analyzers.rules.trc.trc001_not_closed import NotClosed
from stepscope.analyzers.views.partial import partial
from stepscope.app.cli.commands.info import as_text
from stepscope.ingest import frames
from stepscope.ingest.errors import (
    NewerFormat,
    SchemaMismatch,
    TraceError,
    UnknownFormat,
    WriteError,
)
from stepscope.ingest.frames import polars_schema
from stepscope.ingest.manifest import Manifest, ReadReport
from stepscope.ingest.schema import COUNTERS
from stepscope.ingest.storage import saving, store
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from tests.looped import looped
from tests.traces import trace_of


def some_trace(rows: int = 50) -> Trace:
    return trace_of(
        steps=[{"step": row, "kind": "decode", "rank": row % 3} for row in range(rows)],
        spans=[{"track": "gpu", "name": "k", "args": '{"a": 1}'}],
        ranks=(0, 1, 2),
        scenario="fcfs-preemption",
        report=ReadReport(read={"X": 51}),
    )


def test_what_is_saved_is_what_was_there(tmp_path: Path) -> None:
    trace = some_trace()

    save_trace(trace, tmp_path / "out.trace")

    back = Trace.open(tmp_path / "out.trace")
    assert back.manifest == trace.manifest
    assert back.name == "out.trace"
    assert back.steps.sort("ts_ns").collect().equals(trace.steps.collect())
    assert back.spans.collect().equals(trace.spans.collect())


def test_a_file_per_table_and_rank_is_readable_by_itself(tmp_path: Path) -> None:
    save_trace(some_trace(), tmp_path / "out.trace")

    files = sorted(str(f.relative_to(tmp_path / "out.trace")) for f in tmp_path.rglob("*.parquet"))
    assert files == [
        "spans/rank=0/000000-000000.parquet",
        "steps/rank=0/000000-000000.parquet",
        "steps/rank=1/000000-000000.parquet",
        "steps/rank=2/000000-000000.parquet",
    ]
    alone = pl.read_parquet(tmp_path / "out.trace" / files[2], hive_partitioning=False)
    assert alone["rank"].unique().to_list() == [1]


def test_the_same_trace_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.trace", "b.trace"):
        save_trace(some_trace(3_000), tmp_path / name)

    a, b = (
        {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}
        for folder in (tmp_path / "a.trace", tmp_path / "b.trace")
    )
    assert a == b


def test_a_trace_can_be_saved_over_itself(tmp_path: Path) -> None:
    save_trace(some_trace(), tmp_path / "out.trace")

    save_trace(Trace.open(tmp_path / "out.trace"), tmp_path / "out.trace")

    assert Trace.open(tmp_path / "out.trace").num_rows("steps") == 50
    assert [file.name for file in tmp_path.iterdir()] == ["out.trace"]


@pytest.mark.parametrize("name", ["thesis.tex", "folder"])
def test_what_is_no_trace_is_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("mine")

    with pytest.raises(WriteError, match="something that is not a trace has this name"):
        save_trace(some_trace(), tmp_path / name)

    assert (tmp_path / "folder" / "thesis.tex").read_text() == "mine"
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_a_save_that_fails_leaves_the_old_trace_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_trace(some_trace(10), tmp_path / "out.trace")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving, "write_parquet", fail)
    with pytest.raises(WriteError, match=r"out.trace: cannot be written: No space left"):
        save_trace(some_trace(20), tmp_path / "out.trace")

    assert Trace.open(tmp_path / "out.trace").num_rows("steps") == 10
    assert [file.name for file in tmp_path.iterdir()] == ["out.trace"]


def test_a_folder_named_like_a_partition_confuses_nobody(tmp_path: Path) -> None:
    save_trace(some_trace(), tmp_path / "date=2026-11-21" / "x=[*]?" / "out.trace")

    found = Trace.open(tmp_path / "date=2026-11-21" / "x=[*]?" / "out.trace")

    assert found.num_rows("steps") == 50


@looped("size", [0, 3, 100, -20])
def test_a_cut_parquet_file_costs_its_rows_alone_and_is_named(tmp_path: Path, size: int) -> None:
    save_trace(some_trace(), tmp_path / "out.trace")
    file = tmp_path / "out.trace" / "steps" / "rank=1" / "000000-000000.parquet"
    file.write_bytes(file.read_bytes()[:size])

    trace = Trace.open(tmp_path / "out.trace")

    assert trace.steps.collect()["rank"].unique().sort().to_list() == [0, 2]
    assert trace.num_rows("spans") == 1
    assert trace.manifest.tables["steps"] == "partial"
    assert trace.manifest.tables["spans"] == "complete"
    assert not trace.manifest.closed
    (damage,) = (trace.manifest.recovered or {}).values()
    assert damage["discarded_bytes"] == file.stat().st_size
    assert "steps/rank=1/000000-000000.parquet" in damage["notes"][0]
    text = as_text(trace)
    assert "steps/rank=1/000000-000000.parquet" in text
    assert "ended before it was finished" not in text
    (found,) = check(trace, [NotClosed()]).findings
    assert found.severity is Severity.WARNING
    assert "steps/rank=1/000000-000000.parquet" in found.message


def test_a_trace_whose_parquet_files_are_all_broken_opens_without_rows(tmp_path: Path) -> None:
    save_trace(some_trace(), tmp_path / "out.trace")
    for file in (tmp_path / "out.trace").rglob("*.parquet"):
        file.write_bytes(b"")

    trace = Trace.open(tmp_path / "out.trace")

    assert not any(trace.rows_by_table().values())
    assert trace.manifest.scenario == "fcfs-preemption"
    assert len((trace.manifest.recovered or {})["0"]["notes"]) == 2


def test_a_column_that_this_version_does_not_know_is_left_out_and_said(tmp_path: Path) -> None:
    save_trace(some_trace(), tmp_path / "out.trace")
    file = tmp_path / "out.trace" / "steps" / "rank=1" / "000000-000000.parquet"
    pl.read_parquet(file, hive_partitioning=False).with_columns(mood=1).write_parquet(file)

    trace = Trace.open(tmp_path / "out.trace")

    assert trace.steps.collect().equals(some_trace().steps.sort("rank", "ts_ns").collect())
    assert trace.manifest.closed
    assert any("steps.mood" in line for line in partial(trace))
    assert "steps.mood" in as_text(trace)


@looped("share", [0.02, 0.3, 0.6, 0.9, 0.99])
def test_of_a_manifest_that_is_cut_off_what_it_says_before_is_used(
    tmp_path: Path, share: float
) -> None:
    config = {"engine": {"max_num_seqs": 8}, "budget": 512}
    trace = some_trace().replacing({}, replace(some_trace().manifest, report=None, config=config))
    save_trace(trace, tmp_path / "out.trace")
    file = tmp_path / "out.trace" / "manifest.json"
    whole = Trace.open(tmp_path / "out.trace").manifest
    text = file.read_text()
    file.write_text(text[: int(share * len(text))])

    cut = Trace.open(tmp_path / "out.trace")

    assert cut.num_rows("steps") == 50
    assert not cut.manifest.closed
    assert set(cut.manifest.tables.values()) <= {"partial", "complete"}
    for name in ("producer", "scenario", "ranks"):
        if f'"{name}": ' in text[: max(0, int((share - 0.1) * len(text)))]:
            assert getattr(cut.manifest, name) == getattr(whole, name)
    assert cut.manifest.producer in {"test", "unknown"}
    assert cut.manifest.config.items() <= whole.config.items()
    assert "manifest.json" in as_text(cut)
    assert any("manifest.json" in f.message for f in check(cut, [NotClosed()]).findings)


def test_a_number_at_the_end_of_a_cut_manifest_is_not_taken_for_whole(tmp_path: Path) -> None:
    save_trace(some_trace(), tmp_path / "out.trace")
    file = tmp_path / "out.trace" / "manifest.json"
    file.write_text('{"producer": "engine", "config": {"seed": 7, "budget": 51')

    config = Trace.open(tmp_path / "out.trace").manifest.config

    assert config == {"seed": 7}


def test_a_cut_manifest_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    save_trace(some_trace(), tmp_path / "out.trace")
    file = tmp_path / "out.trace" / "manifest.json"
    file.write_text('{"format_version": 99, "producer": "engine", "con')

    with pytest.raises(NewerFormat, match="upgrade stepscope"):
        Trace.open(tmp_path / "out.trace")


def test_a_parquet_file_of_another_shape_is_named(tmp_path: Path) -> None:
    save_trace(some_trace(), tmp_path / "out.trace")
    file = tmp_path / "out.trace" / "steps" / "rank=1" / "000000-000000.parquet"
    pl.DataFrame({"step": ["one"], "ts_ns": [1], "kind": ["x"]}).write_parquet(file)

    with pytest.raises(SchemaMismatch, match=r"rank=1/.*parquet: column 'step' is String"):
        Trace.open(tmp_path / "out.trace")


def test_columns_that_an_older_version_did_not_write_are_null(tmp_path: Path) -> None:
    save_trace(some_trace(), tmp_path / "out.trace")
    file = tmp_path / "out.trace" / "steps" / "rank=1" / "000000-000000.parquet"
    pl.read_parquet(file, hive_partitioning=False).drop("tag", "inferred").write_parquet(file)

    assert Trace.open(tmp_path / "out.trace").steps.collect()["tag"].null_count() == 50


@pytest.mark.parametrize("name", ["0-x.parquet", "9-1.parquet", "0-99999999999.parquet"])
def test_a_parquet_file_with_an_absurd_name_is_refused(tmp_path: Path, name: str) -> None:
    save_trace(some_trace(), tmp_path / "out.trace")
    file = tmp_path / "out.trace" / "steps" / "rank=1" / "000000-000000.parquet"
    file.rename(file.with_name(name))

    with pytest.raises(TraceError, match="number of segments in the name"):
        Trace.open(tmp_path / "out.trace")


def test_a_directory_without_a_manifest_opens_and_says_so(tmp_path: Path) -> None:
    save_trace(some_trace(), tmp_path / "out.trace")
    (tmp_path / "out.trace" / "manifest.json").unlink()

    found = Trace.open(tmp_path / "out.trace")

    assert found.num_rows("steps") == 50
    assert found.manifest.ranks == (0, 1, 2)
    assert "manifest.json is missing" in repr(found)


@pytest.mark.parametrize("few", [2, 3])
@pytest.mark.parametrize("is_in_memory", [True, False])
def test_text_of_a_few_values_is_written_and_found_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int, is_in_memory: bool
) -> None:
    monkeypatch.setattr(frames, "FEW", few)
    monkeypatch.setattr(store, "ROW_GROUP_ROWS", 4)
    monkeypatch.setattr(store, "SINK_ROWS", 4)
    names = ["z", "z", "z", "z", "a", "m", "a", "m", None, "m", "z", "a"]
    rows = pl.DataFrame({"ts_ns": range(12), "name": names, "value": 1.0})
    few_names = rows.with_columns(pl.col("name").cast(pl.Enum(["z", "a", "m"])))
    file = tmp_path / "counters" / "rank=0" / "000000-000000.parquet"

    store.sink_parquet(COUNTERS, few_names if is_in_memory else few_names.lazy(), file)

    found = pl.scan_parquet(file)
    assert pl.read_parquet_schema(file) == polars_schema(COUNTERS)
    assert found.collect()["name"].to_list() == names
    for name in ("a", "m", "z", "b"):
        for chosen in (pl.col("name") == name, pl.col("name") < name, pl.col("name") > name):
            expected = rows.filter(chosen)["ts_ns"].to_list()
            assert found.filter(chosen).collect()["ts_ns"].to_list() == expected


@pytest.mark.parametrize("name", ["manifest.json", "manifest.rank=3.json"])
def test_a_trace_of_nothing_but_an_empty_manifest_opens_and_says_that_it_is_missing(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).touch()

    manifest = Trace.open(tmp_path).manifest

    assert (manifest.producer, manifest.closed) == ("unknown", False)
    assert manifest.report == ReadReport(notes=(f"{name} is missing",))


def test_a_folder_with_a_file_that_is_called_like_a_manifest_is_no_trace(tmp_path: Path) -> None:
    folder = tmp_path / "images.trace"
    folder.mkdir()
    (folder / "manifest_list.json").write_text("[1]")

    with pytest.raises(UnknownFormat):
        Trace.open(folder)
    with pytest.raises(WriteError, match="something that is not a trace"):
        save_trace(some_trace(), folder)


def test_what_cannot_be_said_in_a_manifest_is_no_trace_and_leaves_nothing(tmp_path: Path) -> None:
    around: list[object] = []
    around.append(around)
    trace = some_trace().replacing({}, Manifest("engine", config={"around": around}))

    with pytest.raises(WriteError, match="cannot be written: Circular reference"):
        save_trace(trace, tmp_path / "out.trace")

    assert not [*tmp_path.iterdir()]


@pytest.fixture
def almost_no_room() -> Iterator[None]:
    """No file may grow beyond a few bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("almost_no_room")
def test_a_full_disk_is_no_damaged_trace_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match=r"out\.trace: cannot be written: the disk took no more"):
        save_trace(some_trace(3_000), tmp_path / "out.trace")

    assert not [*tmp_path.iterdir()]


TASK = {"step": 1, "task": 1, "shape": "AIC", "num_blocks": 1, "ts_ns": 1}


@looped(
    "times",
    [
        {"ready_ns": 10, "queued_ns": 12, "retired_ns": 40, "dequeued_ns": 30},
        {"ready_ns": 10, "queued_ns": 12, "retired_ns": None, "dequeued_ns": 30},
        {"ready_ns": None, "queued_ns": 12, "retired_ns": 40, "dequeued_ns": None},
        {"ready_ns": -(2**62), "queued_ns": 2**62, "retired_ns": 40, "dequeued_ns": 40},
    ],
)
def test_times_that_keep_pace_come_back_as_they_were_written(
    tmp_path: Path, times: dict[str, int | None]
) -> None:
    trace = trace_of(tasks=[{**TASK, **times}, {**TASK, "task": 2, "ready_ns": 3, "queued_ns": 3}])
    save_trace(trace, tmp_path / "out.trace")

    assert Trace.open(tmp_path / "out.trace").tasks.collect().equals(trace.tasks.collect())


def test_a_file_says_which_of_its_columns_are_less_another(tmp_path: Path) -> None:
    trace = trace_of(tasks=[{**TASK, "ready_ns": 10, "queued_ns": 12}])
    save_trace(trace, tmp_path / "out.trace")
    (file,) = (tmp_path / "out.trace" / "tasks").rglob("*.parquet")

    assert pl.read_parquet(file)["queued_ns - ready_ns"].to_list() == [2]
    assert "queued_ns" not in pl.read_parquet_schema(file)
