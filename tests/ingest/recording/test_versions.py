"""Recordings of every format that main ever wrote open, with the rows that were recorded."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.ingest import opening
from stepscope.ingest.errors import NewerFormat
from stepscope.ingest.live.growing_trace import GrowingTrace
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.closing import close_recording
from stepscope.ingest.recording.segments import HEADER_BYTES, SMALLEST_BYTES, Header
from stepscope.ingest.schema import FORMAT_VERSION, TABLES
from stepscope.ingest.storage import store
from stepscope.ingest.storage.cache import users_cache
from stepscope.ingest.trace import Trace
from tests.ingest.recording.versions.record import PROFILE, Row

VERSIONS = Path(__file__).parent / "versions"


def archived(*kinds: str) -> list[str]:
    """Return `FORMAT/COMMIT/KIND` of each recording of these kinds: kill, close or cache."""
    names = []
    for archive in sorted(VERSIONS.glob("format-*.tar.xz")):
        with tarfile.open(archive) as members:
            names += [
                f"{archive.name.partition('.')[0]}/{each.name}"
                for each in members
                if each.isdir() and each.name.partition("/")[2] in kinds
            ]
    return names


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("versions")
    for archive in VERSIONS.glob("format-*.tar.xz"):
        with tarfile.open(archive) as members:
            members.extractall(folder / archive.name.partition(".")[0], filter="data")
    return folder


@pytest.fixture(params=archived("kill"))
def killed_folder(request: pytest.FixtureRequest, unpacked: Path) -> Path:
    """A killed recording of a version, and `rows.json`."""
    return unpacked / str(request.param)


def recorded(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "rows.json").read_text())
    return found


def in_order(rows: list[Row]) -> list[Row]:
    """Sort rows by time and by the request of a batch's row, which share a time."""
    return sorted(rows, key=lambda row: (row["ts_ns"], str(row.get("request"))))


def check_rows(frames: dict[str, pl.DataFrame], expected: dict[str, Any]) -> None:
    """Compare every table with what was recorded, and columns of later days with null."""
    assert {name for name, frame in frames.items() if frame.height} == {*expected["columns"]}
    for name, rows in expected["rows"].items():
        frame = frames[name]
        read = in_order(frame.to_dicts())
        of_row = [
            {column: row[column] for column in given}
            for row, given in zip(read, in_order(rows), strict=True)
        ]
        assert of_row == in_order(rows), name
        assert set(frame["rank"]) == {0}, name
        later = [column for column in frame.columns if column not in expected["columns"][name]]
        assert all(frame[column].null_count() == frame.height for column in later), name


def tables_of(trace: Trace) -> dict[str, pl.DataFrame]:
    return {table.name: trace.table(table.name).collect() for table in TABLES}


@pytest.mark.parametrize("name", archived("kill", "close"))
def test_a_recording_of_every_version_has_the_rows_that_were_recorded(
    unpacked: Path, name: str
) -> None:
    expected = recorded(unpacked / name)

    trace = Trace.open(unpacked / name / "run.trace")

    check_rows(tables_of(trace), expected)
    assert trace.manifest.dropped == expected["dropped"]
    assert trace.manifest.closed == name.endswith("close")
    assert trace.manifest.config == {"block_size": 16}
    for found in (trace.manifest.recovered or {}).values():
        assert found["discarded_bytes"] == 0
        assert not [note for note in found["notes"] if "damaged" in note or "lost" in note]


def test_a_killed_recording_of_every_version_can_be_closed(
    killed_folder: Path, tmp_path: Path
) -> None:
    trace = Path(shutil.copytree(killed_folder / "run.trace", tmp_path / "run.trace"))
    expected = recorded(killed_folder)

    closed = close_recording(trace)

    assert not any(writer.has_journal for writer in closed)
    check_rows(tables_of(Trace.open(trace)), expected)
    assert Trace.open(trace).manifest.dropped == expected["dropped"]


def test_a_killed_recording_of_every_version_can_be_followed(killed_folder: Path) -> None:
    expected = recorded(killed_folder)

    taken = GrowingTrace(killed_folder / "run.trace").take()

    assert not [note for note in taken.notes if "damaged" in note]
    check_rows({name: pl.concat(frames) for name, frames in taken.rows.items()}, expected)
    assert taken.dropped == expected["dropped"]


@pytest.mark.parametrize("name", archived("cache"))
def test_a_cache_entry_of_another_version_is_never_read_and_can_be_cleared(
    unpacked: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(unpacked / name, tmp_path / "cache"))
    entries = folder / "cache"
    entries.mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("STEPSCOPE_CACHE", str(entries))
    monkeypatch.setattr(opening, "WORTH_BYTES", 0)
    before = {entry.name for entry in entries.iterdir()}

    trace = Trace.open(folder / "profile.json")

    names = [event["name"] for event in PROFILE["traceEvents"]]
    assert trace.spans.collect()["name"].to_list() == names
    assert trace.cached_as
    after = {entry.name for entry in entries.iterdir()}
    assert after == before | {f"{trace.cached_as}.trace"}
    cache = users_cache()
    assert cache
    assert {entry.folder.name for entry in cache.entries()} == after
    del trace
    assert cache.clear()[0] == len(after)


@pytest.fixture
def killed(unpacked: Path, tmp_path: Path) -> Path:
    """A killed recording of the current format."""
    recording = unpacked / f"format-{FORMAT_VERSION}" / "here" / "kill" / "run.trace"
    return Path(shutil.copytree(recording, tmp_path / "run.trace"))


def test_the_current_format_is_recorded_with_every_table_and_column(unpacked: Path) -> None:
    recording = unpacked / f"format-{FORMAT_VERSION}" / "here" / "kill"

    assert recorded(recording)["columns"] == {table.name: [*table.names] for table in TABLES}, (
        "a new table or column is a new version: count up FORMAT_VERSION, say in "
        "ingest/format_version.py what is new, and run tests/ingest/recording/versions/make.py"
    )


def test_the_header_of_every_table_fits() -> None:
    for table in TABLES:
        header = Header(table.name, table.columns, {"form": "slice"}, SMALLEST_BYTES)
        assert len(header.to_bytes()) == HEADER_BYTES


@pytest.mark.parametrize("file", ["journal.rank=0/steps-000000.seg", "journal.rank=0/tally"])
def test_a_later_version_in_a_header_is_refused_in_one_line(killed: Path, file: str) -> None:
    raw = (killed / file).read_bytes()
    text = f'"version": {FORMAT_VERSION}'.encode()
    assert text in raw[:HEADER_BYTES]
    (killed / file).write_bytes(raw.replace(text, f'"version": {FORMAT_VERSION + 1}'.encode()))

    check_is_refused(killed, file)


@pytest.mark.parametrize("name", ["steps-000000.seg", "strings-000000.seg", "tally"])
def test_a_later_magic_is_refused_in_one_line(killed: Path, name: str) -> None:
    file = killed / "journal.rank=0" / name
    raw = file.read_bytes()
    file.write_bytes(raw[:7] + b"9" + raw[8:])

    check_is_refused(killed, name)


def test_a_parquet_file_of_a_later_version_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "FORMAT_VERSION", FORMAT_VERSION + 1)
    with Recorder(tmp_path / "run.trace", producer="newer") as recorder:
        recorder.steps(step=1, ts_ns=1, kind="decode")

    check_is_refused(tmp_path / "run.trace", "000000-000000.parquet")


def test_a_manifest_of_a_later_version_is_refused_in_one_line(killed: Path) -> None:
    manifest = json.loads((killed / "manifest.json").read_text())
    manifest["format_version"] = FORMAT_VERSION + 1
    (killed / "manifest.json").write_text(json.dumps(manifest))

    check_is_refused(killed, "manifest.json")


def check_is_refused(trace: Path, file: str) -> None:
    """Opening and closing raise the same line, and nothing on disk changes."""
    before = {each: each.read_bytes() for each in trace.rglob("*") if each.is_file()}
    with pytest.raises(NewerFormat) as refused:
        Trace.open(trace)
    line = str(refused.value)
    assert file in line
    assert "upgrade" in line
    assert "damaged" not in line
    assert "\n" not in line
    if (trace / "journal.rank=0").exists():
        with pytest.raises(NewerFormat):
            close_recording(trace)
    assert {each: each.read_bytes() for each in trace.rglob("*") if each.is_file()} == before


def test_a_column_of_another_version_in_a_journal_is_left_out_and_said(killed: Path) -> None:
    expected = Trace.open(killed).steps.collect()
    file = killed / "journal.rank=0" / "steps-000000.seg"
    raw = file.read_bytes()
    assert b'["tag", "str"]' in raw[:HEADER_BYTES]
    file.write_bytes(raw.replace(b'["tag", "str"]', b'["mud", "str"]', 1))

    trace = Trace.open(killed)

    steps = trace.steps.collect()
    assert steps.drop("tag").equals(expected.drop("tag"))
    assert steps["tag"].null_count() == steps.height
    notes = (trace.manifest.recovered or {})["0"]["notes"]
    assert any("steps-000000.seg" in note and "mud" in note for note in notes)
    close_recording(killed)
    assert file.exists()  # the column can still be read by a version that knows it


@pytest.mark.parametrize("version", ["0", "true", '"x"', "1.5"])
def test_a_version_that_is_no_number_is_a_damaged_header(killed: Path, version: str) -> None:
    file = killed / "journal.rank=0" / "steps-000000.seg"
    raw = file.read_bytes()
    text = f'"version": {FORMAT_VERSION}'.encode()
    file.write_bytes(raw[:HEADER_BYTES].replace(text, f'"version": {version}'.encode())
                     .ljust(HEADER_BYTES, b"\0")[:HEADER_BYTES] + raw[HEADER_BYTES:])  # fmt: skip

    recovered = Trace.open(killed).manifest.recovered or {}
    assert "steps-000000.seg: the header is damaged" in recovered["0"]["notes"]


def test_a_tally_that_is_cut_or_overwritten_is_damaged_and_the_rows_are_read(killed: Path) -> None:
    tally = killed / "journal.rank=0" / "tally"
    raw = tally.read_bytes()
    for damaged in (raw[: len(raw) - 8], raw[:100], b"nonsense" + raw[8:]):
        tally.write_bytes(damaged)

        trace = Trace.open(killed)

        assert trace.steps.collect().height
        assert any("tally" in note for note in (trace.manifest.recovered or {})["0"]["notes"])
