"""What is in an archive is there once, whatever ended whoever wrote it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from stepscope.analyzers.fleet.archive import opened as opened_module
from stepscope.analyzers.fleet.archive import partitions
from stepscope.analyzers.fleet.archive.columns_of_rows import TABLES, FileRow, Record
from stepscope.analyzers.fleet.archive.merging_files import cared_for
from stepscope.analyzers.fleet.archive.opened import digest_of, opened
from stepscope.analyzers.fleet.archive.partitions import asked_of, files_of, scanned
from stepscope.analyzers.fleet.archive.row_journal import journals, records_of
from stepscope.ingest.errors import ConfigError, QueryError, TraceError, WriteError
from tests.looped import looped
from tests.tiers import slow

FIRST, LATER = date(2026, 10, 1), date(2026, 11, 1)


class Crash(BaseException):
    """The process ends here."""


def record(key: str, steps: int = 1, why: str = "") -> Record:
    file = FileRow(f"/runs/{key}", key, 10, why=why)
    row = None if why else {"steps": steps, "latency_mean_ns": 7}
    return Record(key, "v1", f"trace {key}", (file,), row)


def put(folder: Path, *records: Record, day: date = FIRST) -> None:
    with opened(folder, new=True, day=lambda: day) as archive:
        for each in records:
            archive.add(each)


def steps_of(folder: Path) -> dict[str, int]:
    found = scanned(folder)["traces"].select("key", "steps").collect().rows()
    assert len(dict(found)) == len(found), "a trace is there twice"
    return dict(found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def test_what_is_put_in_is_found_by_day(folder: Path) -> None:
    put(folder, record("a"))
    put(folder, record("b"), day=LATER)

    found = asked_of(folder, "select key from traces where date > '2026-10-15'")

    assert found["key"].to_list() == ["b"]


def test_days_that_are_not_asked_for_are_not_read(folder: Path) -> None:
    put(folder, record("a"))
    put(folder, record("b"), day=LATER)

    plan = scanned(folder)["traces"].filter(pl.col("date") > FIRST).explain()

    assert f"date={LATER}" in plan
    assert f"date={FIRST}" not in plan


def test_an_archive_below_a_folder_that_looks_like_a_partition_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "key=7" / "archive"
    put(folder, record("a"))

    assert asked_of(folder, "select key, date from traces").rows() == [("a", FIRST)]


def test_a_newer_record_stands_in_place_of_an_older_one(folder: Path) -> None:
    put(folder, record("a"), record("b"))
    put(folder, record("a", steps=2), day=LATER)

    assert steps_of(folder) == {"a": 2, "b": 1}


def test_tables_without_a_row_are_there(folder: Path) -> None:
    put(folder)

    assert {name: len(each.collect()) for name, each in scanned(folder).items()} == dict.fromkeys(
        TABLES, 0
    )


def crashing(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Let the process end before its change of that number to the archive's files."""
    left = [at]

    def counted(do: Callable[..., object]) -> Callable[..., object]:
        def changed(*arguments: object, **named: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Crash
            return do(*arguments, **named)

        return changed

    for module in (partitions, opened_module):
        monkeypatch.setattr(module, "written", counted(partitions.written))
    monkeypatch.setattr(Path, "unlink", counted(Path.unlink))
    monkeypatch.setattr(shutil, "rmtree", counted(shutil.rmtree))


@looped("at", range(12))
def test_a_process_that_ends_in_a_commit_loses_and_doubles_nothing(
    tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "archive"
    put(folder, record("a"), record("b"), record("c", why="bad"))
    with monkeypatch.context() as patch:
        crashing(patch, at)
        with suppress(Crash):
            put(folder, record("a", steps=2), record("d"), day=LATER)

    expected = {"a": 2, "b": 1, "d": 1}
    assert steps_of(folder) == expected
    put(folder)
    assert steps_of(folder) == expected
    assert len(scanned(folder)["failures"].collect()) == 1


@slow
@looped("at", range(8))
def test_a_process_that_ends_in_a_merge_loses_and_doubles_nothing(
    tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "archive"
    for key in "abc":
        put(folder, record(key))
    before = digest_of(folder)
    with monkeypatch.context() as patch:
        crashing(patch, at)
        with suppress(Crash):
            compact(folder)

    assert digest_of(folder) == before
    compact(folder)
    assert digest_of(folder) == before
    assert len(files_of(folder, "traces")) == 1


def compact(folder: Path, keep_days: int | None = None, day: date = LATER) -> tuple[int, int, int]:
    with opened(folder, new=False, day=lambda: day) as archive:
        return cared_for(archive, keep_days, day)


def test_a_merge_makes_one_file_a_day_of_each_table(folder: Path) -> None:
    for key in "abc":
        put(folder, record(key))
    put(folder, record("d"), day=LATER)

    assert compact(folder) == (8, 4, 0)
    assert steps_of(folder) == dict.fromkeys("abcd", 1)


def test_rows_can_be_put_in_behind_a_merge(folder: Path) -> None:
    for key in "ab":
        put(folder, record(key))
    compact(folder)
    put(folder, record("a", steps=5), record("c"))

    assert steps_of(folder) == {"a": 5, "b": 1, "c": 1}


def test_days_that_are_too_old_go_and_their_files_are_remembered(folder: Path) -> None:
    put(folder, record("a"), record("c", why="bad"))
    put(folder, record("b"), day=LATER)

    compact(folder, keep_days=30)

    assert steps_of(folder) == {"b": 1}
    with opened(folder, new=False) as archive:
        assert archive.known == dict.fromkeys("abc", "v1")


def test_a_day_that_is_just_as_old_stays(folder: Path) -> None:
    put(folder, record("a"))

    compact(folder, keep_days=31)
    assert steps_of(folder) == {"a": 1}
    compact(folder, keep_days=30)
    assert steps_of(folder) == {}


def test_what_is_not_the_archives_is_not_deleted(folder: Path, tmp_path: Path) -> None:
    put(folder, record("a"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (folder / "traces" / "date=2020-01-01").symlink_to(elsewhere)
    (folder / "traces" / "date=old").mkdir()
    (folder / "notes" / "date=2020-01-01").mkdir(parents=True)

    compact(folder, keep_days=0)

    assert (elsewhere / "file").exists()
    assert (folder / "traces" / "date=old").exists()
    assert (folder / "notes" / "date=2020-01-01").exists()


def test_of_a_journal_that_was_cut_off_what_is_whole_is_there(folder: Path) -> None:
    put(folder)
    with opened(folder, new=False) as archive:
        archive.add(record("a"))
        archive.add(record("b"))
        ((_, journal),) = journals(folder)
        written = journal.read_bytes()
    half = len(written) // 2
    for length in range(len(written) + 1):
        journal.write_bytes(written[:length])
        keys = [each.key for each in records_of(journal)]
        assert keys == (["a", "b"] if length == len(written) else ["a"] * (length >= half))


def test_two_processes_do_not_write_at_once(folder: Path) -> None:
    with opened(folder, new=True), pytest.raises(ConfigError, match="another stepscope fleet"):
        put(folder, record("a"))


def test_a_folder_of_somebody_else_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")

    with pytest.raises(ConfigError, match="something is in it"):
        put(tmp_path, record("a"))
    with pytest.raises(ConfigError, match="no archive"):
        compact(tmp_path, keep_days=0)
    assert [each.name for each in tmp_path.iterdir()] == ["letter.txt"]


def test_an_archive_of_a_later_version_is_left_alone(folder: Path) -> None:
    put(folder, record("a"))
    (folder / "fleet.json").write_text(json.dumps({"stepscope_fleet_archive": 99}))

    with pytest.raises(TraceError, match="upgrade"):
        asked_of(folder, "select * from traces")
    with pytest.raises(TraceError, match="upgrade"):
        put(folder, record("b"))


def test_a_query_names_what_was_meant(folder: Path) -> None:
    put(folder, record("a"))

    with pytest.raises(QueryError, match="did you mean traces"):
        asked_of(folder, "select * from trace")


def test_a_disk_that_is_full_is_said_in_a_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with opened(folder, new=True) as archive:
        archive.add(record("a"))
        with monkeypatch.context() as patch:
            patch.setattr("os.write", full)
            with pytest.raises(WriteError, match="No space left on device; make room"):
                archive.add(record("b"))

    assert steps_of(folder) == {"a": 1}
