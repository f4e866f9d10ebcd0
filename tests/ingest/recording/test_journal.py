"""What can be read of a journal that was cut, torn, overwritten or lost in part."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.ingest.errors import TraceError
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording import background, segments
from stepscope.ingest.recording.forms.rows import row_struct
from stepscope.ingest.recording.segments import HEADER_BYTES
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from tests.tiers import slow

NUM_ROWS = 100
ROW_BYTES = row_struct(BY_NAME["lifecycle"].columns[1:]).size
SEGMENT = Path("journal.rank=0") / "lifecycle-000000.seg"
STRINGS = Path("journal.rank=0") / "strings-000000.seg"
END = HEADER_BYTES + NUM_ROWS * ROW_BYTES


@pytest.fixture(scope="module")
def unclosed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of 100 rows as SIGKILL leaves it."""
    folder = tmp_path_factory.mktemp("journal")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "SMALLEST_BYTES", 16 << 10)
        with Recorder(folder / "recording.trace", producer="engine") as rec:
            for row in range(NUM_ROWS):
                rec.lifecycle(step=row, ts_ns=row, request=f"request {row}", event="arrive")
            shutil.copytree(rec.path, folder / "killed.trace")
    return folder / "killed.trace"


@pytest.fixture
def trace(unclosed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(unclosed, tmp_path / "run.trace"))


def rows_of(trace: Path) -> list[int]:
    rows = Trace.open(trace).lifecycle.collect()
    assert rows["request"].to_list() == [f"request {row}" for row in rows["ts_ns"]]
    return list(rows["ts_ns"])


def discarded(trace: Path) -> int:
    recovered = Trace.open(trace).manifest.recovered
    assert recovered is not None
    return int(recovered["0"]["discarded_bytes"])


def test_an_unclosed_trace_opens_whole_and_says_so(trace: Path) -> None:
    opened = Trace.open(trace)

    assert rows_of(trace) == list(range(NUM_ROWS))
    assert opened.manifest.closed is False
    assert opened.manifest.recovered == {
        "0": {"rows": {"lifecycle": NUM_ROWS}, "discarded_bytes": 0, "notes": [], "live": False}
    }
    assert "recovered 100 rows" in repr(opened)


def test_opening_an_unclosed_trace_changes_nothing_on_disk(trace: Path) -> None:
    before = {file: file.read_bytes() for file in trace.rglob("*") if file.is_file()}

    Trace.open(trace).lifecycle.collect()

    assert {file: file.read_bytes() for file in trace.rglob("*") if file.is_file()} == before


@given(size=st.integers(0, 16 << 10))
@settings(max_examples=40)
def test_a_cut_segment_keeps_exactly_the_rows_before_the_cut(unclosed: Path, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(shutil.copytree(unclosed, Path(folder) / "run.trace"))
        with (trace / SEGMENT).open("r+b") as file:
            file.truncate(size)

        kept = rows_of(trace)

        assert kept == list(range(min(NUM_ROWS, max(0, size - HEADER_BYTES) // ROW_BYTES)))


@slow
@given(garbage=st.binary(min_size=1, max_size=3 * ROW_BYTES), at=st.integers(0, 2 * ROW_BYTES))
@settings(max_examples=40)
def test_garbage_after_the_last_row_is_discarded_and_counted(
    unclosed: Path, garbage: bytes, at: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(shutil.copytree(unclosed, Path(folder) / "run.trace"))
        with (trace / SEGMENT).open("r+b") as file:
            file.seek(END + at)
            file.write(garbage)

        assert rows_of(trace) == list(range(NUM_ROWS))
        assert bool(discarded(trace)) == bool(garbage.strip(b"\0"))


@slow
# Up to the marker; once its low bytes stand and the rest is zero, the row is whole.
@given(torn=st.integers(1, ROW_BYTES - 4), row=st.integers(0, NUM_ROWS - 1))
@settings(max_examples=40)
def test_a_torn_row_is_discarded_wherever_it_was_torn(unclosed: Path, torn: int, row: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(shutil.copytree(unclosed, Path(folder) / "run.trace"))
        with (trace / SEGMENT).open("r+b") as file:
            file.seek(HEADER_BYTES + row * ROW_BYTES + torn)
            file.write(bytes(ROW_BYTES - torn))

        assert rows_of(trace) == [each for each in range(NUM_ROWS) if each != row]


@slow
@given(garbage=st.binary(min_size=1, max_size=200))
@settings(max_examples=40)
def test_garbage_appended_to_the_file_is_discarded(unclosed: Path, garbage: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(shutil.copytree(unclosed, Path(folder) / "run.trace"))
        with (trace / SEGMENT).open("ab") as file:
            file.write(garbage)

        assert rows_of(trace) == list(range(NUM_ROWS))


@given(
    name=st.sampled_from(["manifest.json", str(SEGMENT), str(STRINGS), "journal.rank=0/tally"]),
    at=st.integers(0, 4096),
    garbage=st.binary(min_size=1, max_size=64),
    keep=st.integers(0, 16 << 10),
)
@settings(max_examples=80)
def test_whatever_is_damaged_it_opens_or_says_why(
    unclosed: Path, name: str, at: int, garbage: bytes, keep: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(shutil.copytree(unclosed, Path(folder) / "run.trace"))
        with (trace / name).open("r+b") as file:
            file.seek(at)
            file.write(garbage)
            file.truncate(max(keep, at))

        # Anything but a TraceError fails the test.
        with suppress(TraceError):
            opened = Trace.open(trace)
            assert len(opened.lifecycle.collect()) <= NUM_ROWS
            assert repr(opened)


def test_lost_strings_are_named_and_the_numbers_kept(trace: Path) -> None:
    (trace / STRINGS).unlink()

    opened = Trace.open(trace)

    rows = opened.lifecycle.collect()
    assert rows["ts_ns"].to_list() == list(range(NUM_ROWS))
    assert rows["request"].str.starts_with("lost-").all()
    assert rows["request"].n_unique() == NUM_ROWS
    assert "strings are lost" in repr(opened)


def test_an_empty_strings_file_loses_no_row(trace: Path) -> None:
    (trace / STRINGS).write_bytes(b"")

    assert Trace.open(trace).num_rows("lifecycle") == NUM_ROWS


def test_a_missing_manifest_is_named_and_nothing_else_is_lost(trace: Path) -> None:
    (trace / "manifest.json").unlink()

    opened = Trace.open(trace)

    assert rows_of(trace) == list(range(NUM_ROWS))
    assert (opened.manifest.producer, opened.manifest.closed) == ("unknown", False)
    assert "manifest.json is missing" in repr(opened)


def test_an_empty_manifest_counts_as_missing(trace: Path) -> None:
    (trace / "manifest.json").write_bytes(b"")

    assert rows_of(trace) == list(range(NUM_ROWS))
    assert "manifest.json is missing" in repr(Trace.open(trace))


def test_a_damaged_header_discards_the_segment_and_says_so(trace: Path) -> None:
    with (trace / SEGMENT).open("r+b") as file:
        file.write(b"nonsense")

    opened = Trace.open(trace)

    assert not opened.has("lifecycle")
    assert discarded(trace) == (trace / SEGMENT).stat().st_size
    assert "lifecycle-000000.seg: the header is damaged" in repr(opened)


def test_a_file_that_was_made_and_not_begun_is_no_loss(trace: Path) -> None:
    (trace / SEGMENT).with_name("lifecycle-000001.seg").write_bytes(bytes(16 << 10))
    (trace / SEGMENT).with_name("steps-000000.seg").write_bytes(b"")

    assert rows_of(trace) == list(range(NUM_ROWS))
    assert discarded(trace) == 0


def test_an_unclosed_trace_can_be_saved_and_is_then_whole(trace: Path, tmp_path: Path) -> None:
    save_trace(Trace.open(trace), tmp_path / "saved.trace")

    assert rows_of(tmp_path / "saved.trace") == list(range(NUM_ROWS))
    assert not list((tmp_path / "saved.trace").glob("journal*"))


def test_a_trace_is_readable_while_it_is_recorded(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(background, "WORTH_BYTES", 1 << 60)
        patch.setattr(segments, "SMALLEST_BYTES", 16 << 10)
        with Recorder(tmp_path / "run.trace", producer="engine") as rec:
            for row in range(500):
                rec.lifecycle(step=row, ts_ns=row, request=f"request {row}", event="arrive")
                if row % 100 == 0:
                    assert rows_of(rec.path) == list(range(row + 1))


def test_an_absurdly_large_segment_is_not_read(trace: Path) -> None:
    with (trace / SEGMENT).open("r+b") as file:
        file.truncate(1 << 40)

    assert not Trace.open(trace).has("lifecycle")
    assert discarded(trace) == 1 << 40


@pytest.mark.parametrize("name", ["journal.rank=99999999999999999999", "journal.rank=-1"])
def test_a_folder_that_is_no_rank_is_passed_over(trace: Path, name: str) -> None:
    (trace / name).mkdir()

    assert rows_of(trace) == list(range(NUM_ROWS))


def test_folders_where_files_belong_cost_only_themselves(trace: Path) -> None:
    for name in ("steps-000000.seg", "strings-000009.seg"):
        (trace / SEGMENT).with_name(name).mkdir()

    assert rows_of(trace) == list(range(NUM_ROWS))
    assert "steps-000000.seg: cannot be read: Is a directory" in repr(Trace.open(trace))
