"""What a path, a pattern or a URL names: jobs, traces, and files that are looked at anyway."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.fleet.found_traces import Found, found_traces
from stepscope.ingest.errors import ConfigError
from tests.analyzers.fleet.at_hand import Here, imported, rows
from tests.analyzers.fleet.test_importing import quickly
from tests.ingest.derive.collectives.rank_jobs import Look, job, write_job
from tests.looped import looped
from tests.tiers import slow


@pytest.fixture
def runs(tmp_path: Path, sample_traces: Path) -> Path:
    """A job of two ranks, a recording, a log, and a file that is nothing."""
    folder = tmp_path / "runs"
    (folder / "deep").mkdir(parents=True)
    write_job(folder / "deep" / "job", job(2, num_steps=2), Look(), Look())
    shutil.copytree(sample_traces / "vllm_crowd.trace", folder / "deep" / "run.trace")
    (folder / "deep" / "server.log").write_text("INFO engine\n")
    (folder / "nothing").touch()
    return folder


def names(found: list[Found], runs: Path) -> dict[str, int]:
    """The traces by their names in the folder, and of how many files a job is."""
    return {
        os.path.relpath(each.name, runs): len(each.places) if each.is_job else 0 for each in found
    }


EVERY = {"deep/job": 2, "deep/run.trace": 0, "deep/server.log": 0, "nothing": 0}


def test_a_folder_is_looked_through(runs: Path) -> None:
    assert names(found_traces([str(runs)]), runs) == EVERY


def test_a_pattern_is_looked_through(runs: Path) -> None:
    found = found_traces([str(runs / "deep" / "[jr]*")])

    assert names(found, runs) == {"deep/job": 2, "deep/run.trace": 0}


def test_a_file_of_a_job_that_is_named_is_a_trace_by_itself(runs: Path) -> None:
    found = found_traces([str(runs / "**" / "rank*.json")])

    assert names(found, runs) == {"deep/job/rank0.json": 0, "deep/job/rank1.json": 0}


def test_a_url_names_the_same(runs: Path) -> None:
    pytest.importorskip("fsspec")
    found = found_traces([f"file://{runs}"])

    assert {each.name.partition(f"{runs}/")[2] for each in found} == set(EVERY)
    assert [len(each.places) for each in found if each.is_job] == [2]


def test_what_a_url_names_is_fetched_and_read(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    file = runs / "deep" / "server.log"

    imported(tmp_path / "archive", f"file://{file}")

    (failure,) = rows(tmp_path / "archive", "failures", "path", "reason")
    assert failure["path"] == f"file://{file}"
    assert "format is not known" in failure["reason"]


@pytest.fixture
def store(runs: Path) -> Iterator[Any]:
    """The same files in a store that is no folder of this machine."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.put(str(runs), "/fleet", recursive=True)
    yield memory
    memory.rm("/fleet", recursive=True)


@slow
@pytest.mark.usefixtures("store")
def test_what_is_in_a_store_gives_the_same_rows(runs: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    imported(here, runs)
    imported(there, "memory://fleet")

    said = ("key", "place", "code", "message", "evidence")
    assert rows(there, "findings", *said) == rows(here, "findings", *said)
    counted = ("key", "num_files", "num_failed", "findings", "config_digest")
    assert rows(there, "traces", *counted) == rows(here, "traces", *counted)
    assert rows(there, "failures", "reason") == rows(here, "failures", "reason")
    assert rows(there, "findings")


def test_what_a_store_does_not_give_is_named_and_hinders_no_other(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given(does: Callable[..., Any]) -> Callable[..., Any]:
        def refused(files: Any, name: str, *more: Any, **named: Any) -> Any:
            if name.endswith("rank0.json"):
                raise PermissionError("Access Denied")
            return does(files, name, *more, **named)

        return refused

    for name in ("cat_file", "get_file"):
        monkeypatch.setattr(type(store), name, given(getattr(type(store), name)))

    imported(tmp_path / "archive", "memory://fleet/deep/job")

    (failure,) = rows(tmp_path / "archive", "failures", "path", "reason")
    assert failure["path"].endswith("rank0.json")
    assert failure["reason"] == "it cannot be fetched: PermissionError: Access Denied"
    (trace,) = rows(tmp_path / "archive", "traces", "num_files", "num_failed")
    assert trace == {"num_files": 2, "num_failed": 1}


def test_what_is_named_twice_is_found_once(runs: Path) -> None:
    assert names(found_traces([str(runs), str(runs / "deep")]), runs) == EVERY


def test_links_to_folders_are_not_followed(runs: Path) -> None:
    (runs / "deep" / "loop").symlink_to(runs)

    assert names(found_traces([str(runs)]), runs) == EVERY


def test_a_file_that_leads_nowhere_is_named_as_one_that_cannot_be_read(
    runs: Path, tmp_path: Path
) -> None:
    (runs / "lost").symlink_to(runs / "gone")
    os.mkfifo(runs / "pipe")

    imported(tmp_path / "archive", runs, pool=Here(quickly))

    reasons = {
        Path(row["path"]).name: row["reason"] for row in rows(tmp_path / "archive", "failures")
    }
    assert reasons["lost"] == "no such file or directory"
    assert reasons["pipe"] == "it is no file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_named_and_hinders_no_other(runs: Path) -> None:
    (runs / "deep").chmod(0)

    found = found_traces([str(runs)])

    (runs / "deep").chmod(0o755)
    assert names(found, runs) == {"deep": 0, "nothing": 0}
    assert found[0].why == "cannot be read: Permission denied"


def test_an_archive_among_what_is_imported_is_left_out(runs: Path) -> None:
    archive = runs / "deep" / "archive"
    imported(archive, runs, pool=Here(quickly))

    assert names(found_traces([str(runs)]), runs) == EVERY
    with pytest.raises(ConfigError, match="it is an archive"):
        found_traces([str(archive)])


@looped("pattern", ["none/*.json", "empty"])
def test_what_names_nothing_is_said(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()

    with pytest.raises(ConfigError, match="nothing is found there"):
        found_traces([pattern])
