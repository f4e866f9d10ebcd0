"""What was read is kept: the same tables and manifest, and nothing that goes wrong is an error."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from stepscope.ingest import cache as cache_module
from stepscope.ingest import opening
from stepscope.ingest.cache import Cache, users_cache
from stepscope.ingest.errors import ConfigError, SchemaMismatch, TraceError, UnknownFormat
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers import reader_of
from stepscope.ingest.readers.kineto import KinetoReader
from stepscope.ingest.schema import TABLES
from stepscope.ingest.spool import Spooled
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import slice_
from tests.ingest.log_files import LOGS
from tests.ingest.test_kineto_folder import rank_file
from tests.ingest.test_kineto_real_files import FILES
from tests.ingest.test_swimlane import folder as swimlane


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache of the test's own, in which even the smallest file is kept."""
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(opening, "WORTH_BYTES", 0)
    found = users_cache()
    assert found is not None
    return found


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A file of one event."""
    return kineto_file(tmp_path / "small.json", "a")


def kineto_file(file: Path, name: str) -> Path:
    events = str([slice_(name, 1, 2)]).replace("'", '"')
    file.write_text(f'{{"schemaVersion": 1, "traceEvents": {events}}}')
    return file


def names(trace: Trace) -> list[str]:
    return trace.spans.collect()["name"].to_list()


def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, whoever reads a file fails."""

    def fail(*_: object) -> NoReturn:
        raise AssertionError("read again")

    monkeypatch.setattr(KinetoReader, "read", fail)


def assert_equal(trace: Trace, other: Trace) -> None:
    assert trace.manifest == other.manifest
    assert trace.manifest.to_json() == other.manifest.to_json()
    assert trace.name == other.name
    for table in TABLES:
        assert_frame_equal(trace.table(table.name).collect(), other.table(table.name).collect())


def assert_kept_as_read(path: Path, kept: Cache) -> None:
    fresh = Trace.open(path, cached=False)
    Trace.open(path)
    assert len(kept.entries()) == 1

    assert_equal(Trace.open(path), fresh)


# -- the same ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["torch_profiler_cpu.json.gz", "torch_executor_cpu.json.gz", "perfetto_two_ranks.pftrace"],
)
def test_a_sample_is_kept_as_it_was_read(sample_traces: Path, name: str, kept: Cache) -> None:
    assert_kept_as_read(sample_traces / name, kept)


@pytest.mark.parametrize("name", FILES)
def test_a_real_profile_is_kept_as_it_was_read(shared_data: Path, name: str, kept: Cache) -> None:
    assert_kept_as_read(shared_data / "kineto" / f"{name}.json.gz", kept)


@pytest.mark.parametrize("kind", ["swimlane", "logs", "requests"])
def test_every_other_real_file_is_kept_as_it_was_read(
    shared_data: Path, kind: str, kept: Cache
) -> None:
    for path in sorted((shared_data / kind).iterdir()):
        assert_kept_as_read(path, kept)
        kept.clear()


def test_a_log_of_many_ranks_keeps_the_order_of_its_rows(tmp_path: Path, kept: Cache) -> None:
    log = tmp_path / "server.txt"
    log.write_text("".join(LOGS.values()))

    assert_kept_as_read(log, kept)
    assert Trace.open(log).steps.collect()["rank"].n_unique() > 2


def test_a_folder_of_ranks_is_kept_as_it_was_read(tmp_path: Path, kept: Cache) -> None:
    ranks = tmp_path / "ranks"
    ranks.mkdir()
    rank_file(ranks, "a.json.gz", 0)
    rank_file(ranks, "b.json", 1, late_us=3)

    assert_kept_as_read(ranks, kept)


def test_what_was_left_out_of_a_damaged_file_is_still_said(small: Path, kept: Cache) -> None:
    small.write_bytes(small.read_bytes()[:-2] + b", {")

    assert_kept_as_read(small, kept)
    assert not Trace.open(small).manifest.closed


@pytest.mark.usefixtures("kept")
def test_the_second_open_reads_nothing(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Trace.open(small)
    unread(monkeypatch)

    assert names(Trace.open(small)) == ["a"]


def test_the_second_open_imports_no_reader(small: Path, kept: Cache) -> None:
    Trace.open(small)
    code = (
        "import sys; from stepscope.ingest import opening; from stepscope.ingest.trace import Trace"
        "; opening.WORTH_BYTES = 0; print(*Trace.open(sys.argv[1]).spans.collect()['name'])"
        "; print(*sys.modules)"
    )

    run = subprocess.run(
        [sys.executable, "-c", code, str(small)], capture_output=True, text=True, check=True
    )

    said, modules = run.stdout.splitlines()
    assert said == "a"
    assert len(kept.entries()) == 1
    assert not {"numpy", "msgspec", "stepscope.ingest.readers"} & set(modules.split())


def test_args_are_kept_as_they_were_packed(sample_traces: Path, kept: Cache) -> None:
    profile = sample_traces / "torch_profiler_cpu.json.gz"
    frames, _ = KinetoReader().read(profile, None)
    spans = frames["spans"]
    assert isinstance(spans, Spooled)

    trace = Trace.open(profile)

    files = sorted((kept.entries()[0].folder / "spans" / "packed=args").iterdir())
    assert [file.read_bytes() for file in files] == spans.parts
    assert trace.num_rows("spans") == trace.spans.collect().height == spans.rows.height
    with pytest.raises(SchemaMismatch, match="did you mean spans"):
        trace.num_rows("span")


def test_a_trace_of_our_own_is_not_kept_twice(sample_traces: Path, kept: Cache) -> None:
    Trace.open(sample_traces / "mix-admission-after.trace")

    assert kept.entries() == []


def test_a_small_file_is_read_each_time(
    small: Path, kept: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "WORTH_BYTES", small.stat().st_size + 1)

    Trace.open(small)

    assert kept.entries() == []


def test_a_manifest_that_json_would_change_is_not_kept(kept: Cache, tmp_path: Path) -> None:
    trace = Trace.open(kineto_file(tmp_path / "a.json", "a"), cached=False)
    frames = {"spans": trace.spans}
    config: Mapping[Any, Any] = {1: "one"}
    assert kept.unusable() is None

    kept.keep("0" * 40, frames, replace(trace.manifest, config=dict(config)))

    assert list(kept.folder.iterdir()) == []


# -- not the same --------------------------------------------------------------------------------


@pytest.mark.usefixtures("kept")
def test_another_content_is_read_again(small: Path) -> None:
    Trace.open(small)
    before = small.stat()
    kineto_file(small, "b")
    os.utime(small, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert names(Trace.open(small)) == ["b"]


def test_other_limits_are_read_again(small: Path, kept: Cache) -> None:
    Trace.open(small)
    Trace.open(small, limits=Limits(depth=3))

    assert len(kept.entries()) == 2


@pytest.mark.usefixtures("kept")
def test_a_file_of_another_name_may_be_of_another_rank(tmp_path: Path) -> None:
    first = kineto_file(tmp_path / "rank-1.json", "a")
    second = kineto_file(tmp_path / "rank-2.json", "a")

    assert Trace.open(first).manifest.ranks == (1,)
    assert Trace.open(second).manifest.ranks == (2,)


@pytest.mark.usefixtures("kept")
def test_a_copy_elsewhere_is_known(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Trace.open(small)
    (tmp_path / "elsewhere").mkdir()
    copy = shutil.copyfile(small, tmp_path / "elsewhere" / small.name)
    unread(monkeypatch)

    assert names(Trace.open(copy)) == ["a"]


def test_a_file_is_of_the_same_format_whatever_lies_beside_it(
    sample_traces: Path, shared_data: Path, tmp_path: Path
) -> None:
    (tmp_path / "apart").mkdir()
    formats = {}
    for number, file in enumerate([*sample_traces.iterdir(), *shared_data.rglob("*")]):
        if file.is_file() and file.stat().st_size < 1 << 20:
            alone = shutil.copyfile(file, tmp_path / f"{number}-{file.name}")
            with suppress(UnknownFormat):
                formats[alone] = type(reader_of(alone))
            alone.rename(tmp_path / "apart" / alone.name)
    for file in formats:
        (tmp_path / "apart" / file.name).rename(file)

    assert len(set(formats.values())) > 3
    assert {file: type(reader_of(file)) for file in formats} == formats


@pytest.mark.usefixtures("kept")
def test_a_file_that_comes_beside_the_records_is_read(tmp_path: Path) -> None:
    folder = swimlane(tmp_path, deps=None)
    without = Trace.open(folder / "chip_swimlane_records.json")
    swimlane(tmp_path)

    with_deps = Trace.open(folder / "chip_swimlane_records.json")

    assert not without.has("task_edges")
    assert with_deps.has("task_edges")


def test_a_file_that_grows_while_it_is_read_is_not_kept(
    small: Path, kept: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = KinetoReader.read

    def read_and_write(self: KinetoReader, path: Path, *rest: Any) -> Any:
        found = read(self, path, *rest)
        path.write_bytes(path.read_bytes() + b"\n")
        return found

    monkeypatch.setattr(KinetoReader, "read", read_and_write)
    Trace.open(small)

    assert kept.entries() == []


# -- what goes wrong -----------------------------------------------------------------------------


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

    monkeypatch.setattr(cache_module, "sink_parquet", fail)

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
    files = [kineto_file(tmp_path / f"{name}.json", name) for name in "abcd"]
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

    Trace.open(kineto_file(small, "b"))

    assert sorted(path.name for path in kept.folder.glob(".*")) == [".young.tmp"]


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
