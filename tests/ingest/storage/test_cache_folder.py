"""The folder of what was read: damage, disks, links, room, and processes beside each other."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import polars as pl
import pytest

from stepscope.ingest.errors import ConfigError, TraceError
from stepscope.ingest.storage import cached_tables
from stepscope.ingest.storage.cache import Cache, users_cache
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import one_event
from tests.ingest.storage.test_cache import assert_equal, names
from tests.tiers import slow

# -- what goes wrong -----------------------------------------------------------------------------


@slow
def test_a_damaged_entry_is_dropped_and_read_again(small: Path, kept: Cache) -> None:
    fresh = Trace.open(small)
    files = [file for file in kept.entries()[0].folder.rglob("*") if file.is_file()]
    assert {file.suffix for file in files} == {".json", ".parquet"}

    for file in files:
        whole = file.read_bytes()
        for damaged in (b"", whole[: len(whole) // 2], _flipped(whole)):
            file.write_bytes(damaged)

            assert_equal(Trace.open(small), fresh)
            assert file.read_bytes() == whole

        file.unlink()
        assert_equal(Trace.open(small), fresh)
        assert file.read_bytes() == whole


@pytest.mark.parametrize("said", ["[]", "{}", '{"manifest.json": 3}', "null"])
def test_an_entry_that_says_nonsense_of_itself_is_listed_and_read_again(
    small: Path, kept: Cache, said: str
) -> None:
    fresh = Trace.open(small)
    entry = kept.entries()[0]
    (entry.folder / "sums.json").write_text(said)

    assert [listed.folder for listed in kept.entries()] == [entry.folder]
    assert_equal(Trace.open(small), fresh)


def test_an_entry_says_how_large_it_is(small: Path, kept: Cache) -> None:
    Trace.open(small)

    (entry,) = kept.entries()
    files = [file for file in entry.folder.rglob("*") if file.is_file()]
    assert entry.num_bytes == sum(file.stat().st_size for file in files)


def _flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_full_or_read_only_disk_is_no_matter(
    small: Path, kept: Cache, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(cached_tables, "sink_parquet", fail)

    assert names(Trace.open(small)) == ["a"]
    assert list(kept.folder.iterdir()) == []


@pytest.mark.usefixtures("kept")
def test_a_folder_that_cannot_be_made_is_no_matter(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", str(small / "cache"))

    assert names(Trace.open(small)) == ["a"]
    assert Cache(small / "cache").unusable() == os.strerror(errno.ENOTDIR)


def test_a_folder_where_others_may_write_is_not_used(small: Path, kept: Cache) -> None:
    kept.folder.mkdir()
    kept.folder.chmod(0o777)

    Trace.open(small)

    assert kept.unusable() == "others may write there"
    assert list(kept.folder.iterdir()) == []


def test_only_its_owner_may_look_into_the_cache(small: Path, kept: Cache) -> None:
    Trace.open(small)

    assert kept.folder.stat().st_mode & 0o077 == 0
    assert kept.entries()[0].folder.stat().st_mode & 0o077 == 0


def test_a_link_in_the_place_of_an_entry_is_not_followed(
    small: Path, tmp_path: Path, kept: Cache
) -> None:
    Trace.open(small)
    entry = kept.entries()[0].folder
    entry.rename(tmp_path / "target")
    entry.symlink_to(tmp_path / "target")

    assert names(Trace.open(small)) == ["a"]
    kept.clear()
    assert (tmp_path / "target" / "sums.json").is_file()


def test_a_reader_that_fails_keeps_nothing(tmp_path: Path, kept: Cache) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"traceEvents": [{"na')

    with pytest.raises(TraceError):
        Trace.open(file)

    assert kept.entries() == []


# -- room ----------------------------------------------------------------------------------------


def test_the_least_recently_used_goes_first(
    tmp_path: Path, kept: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [one_event(tmp_path / f"{name}.json", name) for name in "abcd"]
    for file in files[:3]:
        Trace.open(file)
    num_bytes = sum(entry.num_bytes for entry in kept.entries())
    for seconds, entry in enumerate(kept.entries()):
        os.utime(entry.folder, (seconds, seconds))
    first, second, third = (entry.folder for entry in kept.entries())
    Trace.open(files[_number_of(first, files)])  # used again
    monkeypatch.setenv("STEPSCOPE_CACHE_BYTES", str(num_bytes + 16))

    Trace.open(files[3])

    left = {entry.folder for entry in kept.entries()}
    assert first in left
    assert second not in left
    assert third in left


def _number_of(entry: Path, files: list[Path]) -> int:
    """Which file an entry was made of."""
    spans = next((entry / "spans").rglob("*.parquet"))
    return next(number for number, file in enumerate(files) if file.stem.encode() in _names(spans))


def _names(spans: Path) -> list[bytes]:
    return [name.encode() for name in pl.read_parquet(spans)["name"]]


def test_what_is_larger_than_the_cache_is_not_kept(
    small: Path, kept: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE_BYTES", "1KiB")

    Trace.open(small)

    assert list(kept.folder.iterdir()) == []


def test_what_a_trace_is_read_from_stays_while_it_is_open(small: Path, kept: Cache) -> None:
    Trace.open(small)
    trace = Trace.open(small)

    assert kept.clear() == (0, 0)
    assert names(trace) == ["a"]

    del trace
    assert kept.clear()[0] == 1


def test_what_a_killed_process_left_is_removed(small: Path, kept: Cache) -> None:
    Trace.open(small)
    for age_s, name in ((1, "young"), (7200, "old")):
        (kept.folder / f".{name}.tmp").mkdir()
        then = (kept.folder / f".{name}.tmp").stat().st_mtime - age_s
        os.utime(kept.folder / f".{name}.tmp", (then, then))

    Trace.open(one_event(small, "b"))

    assert sorted(path.name for path in kept.folder.glob(".*")) == [".young.tmp"]


@slow
def test_processes_that_read_the_same_file_at_once_keep_it_once(small: Path, kept: Cache) -> None:
    source = (
        "import sys; from pathlib import Path\n"
        "from stepscope.ingest import opening; from stepscope.ingest.trace import Trace\n"
        "opening.WORTH_BYTES = 0\n"
        "sys.stdin.read()\n"
        "for _ in range(8): print(*Trace.open(sys.argv[1]).spans.collect()['name'])\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", source, str(small)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    said = [process.communicate() for process in running]

    assert said == [("a\n" * 8, "")] * 3
    assert len(kept.entries()) == 1
    assert len(list(kept.folder.iterdir())) == 1


# -- where ---------------------------------------------------------------------------------------


def test_the_cache_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folder(**said: str) -> Path | None:
        for name in ("STEPSCOPE_CACHE", "XDG_CACHE_HOME", "STEPSCOPE_CACHE_BYTES"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        for name, value in said.items():
            monkeypatch.setenv(name, value)
        found = users_cache()
        return found.folder if found else None

    assert folder() == tmp_path / ".cache" / "stepscope"
    assert folder(XDG_CACHE_HOME="/somewhere") == Path("/somewhere/stepscope")
    assert folder(XDG_CACHE_HOME="relative") == tmp_path / ".cache" / "stepscope"
    assert folder(STEPSCOPE_CACHE="/there", XDG_CACHE_HOME="/somewhere") == Path("/there")
    assert folder(STEPSCOPE_CACHE="OFF") is None


def test_a_size_that_is_none_is_wrong_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", "/there")
    monkeypatch.setenv("STEPSCOPE_CACHE_BYTES", "much")

    with pytest.raises(ConfigError, match="write it like 2GiB"):
        users_cache()


@pytest.mark.usefixtures("kept")
def test_what_is_said_too_deeply_to_be_kept_is_read_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    deep = "[" * 800 + "]" * 800
    file.write_text(f'{{"said": {deep}, "traceEvents": [{{"ph": "X", "ts": 1, "dur": 2}}]}}')

    trace = Trace.open(file)

    assert trace.num_rows("spans") == 1
