"""What was read is kept: the same tables and manifest, and nothing that goes wrong is an error."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from polars.testing import assert_frame_equal

from stepscope.ingest import opening
from stepscope.ingest.errors import SchemaMismatch, UnknownFormat
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers import reader_of
from stepscope.ingest.readers.chrome.reader import ChromeReader
from stepscope.ingest.schema import TABLES
from stepscope.ingest.storage.cache import Cache
from stepscope.ingest.storage.cached_tables import write_tables
from stepscope.ingest.storage.spool import Spooled
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import one_event
from tests.ingest.log_files import LOGS
from tests.ingest.readers.chrome.test_folder import rank_file
from tests.ingest.readers.chrome.test_real_files import FILES
from tests.ingest.readers.swimlane.test_reader import folder as swimlane
from tests.ingest.real_files import GLOO, SHARED, profile
from tests.tiers import slow


def names(trace: Trace) -> list[str]:
    return trace.spans.collect()["name"].to_list()


def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, whoever reads a file fails."""

    def fail(*_: object) -> NoReturn:
        raise AssertionError("read again")

    monkeypatch.setattr(ChromeReader, "read", fail)


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


@slow
@pytest.mark.parametrize(
    "name",
    [
        "torch_profiler_cpu.json.gz",
        "torch_executor_cpu.json.gz",
        "perfetto_two_ranks.pftrace",
        "torch_gloo_two_ranks",
    ],
)
def test_a_sample_is_kept_as_it_was_read(sample_traces: Path, name: str, kept: Cache) -> None:
    assert_kept_as_read(sample_traces / name, kept)


@slow
@pytest.mark.parametrize("name", FILES)
def test_a_real_profile_is_kept_as_it_was_read(name: str, kept: Cache) -> None:
    assert_kept_as_read(profile(name), kept)


@slow
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


@slow
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


@slow
def test_args_are_kept_as_they_were_packed(sample_traces: Path, kept: Cache) -> None:
    profile = sample_traces / "torch_profiler_cpu.json.gz"
    frames, _ = ChromeReader().read(profile, None)
    spans = frames["spans"]
    assert isinstance(spans, Spooled)

    trace = Trace.open(profile)

    files = sorted((kept.entries()[0].folder / "spans" / "packed=args").iterdir())
    assert [file.read_bytes() for file in files] == [*spans.parts]
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
    trace = Trace.open(one_event(tmp_path / "a.json", "a"), cached=False)
    frames = {"spans": trace.spans}
    config: Mapping[Any, Any] = {1: "one"}
    assert kept.unusable() is None

    manifest = replace(trace.manifest, config=dict(config))
    kept.keep(f"{'0' * 40}.trace", lambda folder: write_tables(folder, frames, manifest))

    assert list(kept.folder.iterdir()) == []


# -- not the same --------------------------------------------------------------------------------


@pytest.mark.usefixtures("kept")
def test_another_content_is_read_again(small: Path) -> None:
    Trace.open(small)
    before = small.stat()
    one_event(small, "b")
    os.utime(small, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert names(Trace.open(small)) == ["b"]


def test_other_limits_are_read_again(small: Path, kept: Cache) -> None:
    Trace.open(small)
    Trace.open(small, limits=Limits(depth=3))

    assert len(kept.entries()) == 2


@pytest.mark.usefixtures("kept")
def test_a_file_of_another_name_may_be_of_another_rank(tmp_path: Path) -> None:
    first = one_event(tmp_path / "rank-1.json", "a")
    second = one_event(tmp_path / "rank-2.json", "a")

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
    sample_traces: Path, tmp_path: Path
) -> None:
    (tmp_path / "apart").mkdir()
    own = [*sample_traces.iterdir(), *GLOO.iterdir(), profile("jax_cpu")]
    files = [*own, *(SHARED / "data").rglob("*")]
    formats = {}
    for number, file in enumerate(files):
        if file.is_file() and file.stat().st_size < 1 << 20:
            alone = shutil.copyfile(file, tmp_path / f"{number}-{file.name}")
            with suppress(UnknownFormat):
                formats[alone] = type(reader_of(alone))
            alone.rename(tmp_path / "apart" / alone.name)
    for file in formats:
        (tmp_path / "apart" / file.name).rename(file)

    assert len(set(formats.values())) >= 3
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
    read = ChromeReader.read

    def read_and_write(self: ChromeReader, path: Path, *rest: Any) -> Any:
        found = read(self, path, *rest)
        path.write_bytes(path.read_bytes() + b"\n")
        return found

    monkeypatch.setattr(ChromeReader, "read", read_and_write)
    Trace.open(small)

    assert kept.entries() == []
