"""A fleet goes into its archive once, whatever dies, fails or is there twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from stepscope.analyzers.fleet.archive.opened import digest_of
from stepscope.analyzers.fleet.handing_out import MOST_TRIES
from stepscope.analyzers.fleet.messages import (
    Answer,
    Died,
    Failed,
    Job,
    OneRank,
    OneTrace,
    Outcome,
    PartMade,
    Task,
    ToDigest,
)
from stepscope.analyzers.fleet.rank_columns import packed
from stepscope.analyzers.fleet.work import carried_out
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.readers.rank_folder import RankRead
from tests.analyzers.fleet.at_hand import Here, imported, rows
from tests.ingest.derive.collectives.rank_jobs import Look, job, write_job


def quickly(task: Task) -> Answer:
    """Read no trace: a file that says `bad` cannot be read, any other tells its words."""
    if isinstance(task, ToDigest):
        return carried_out(task)
    if isinstance(task, Job):
        names = " ".join(part.name for part in task.parts if part.part)
        return Outcome({"trace": task.name, "producer": names}, ())
    path = Path(task.place.path.decode())
    said = "a folder" if path.is_dir() else path.read_text(errors="replace")
    if said.startswith("bad"):
        return Failed("it is bad")
    if isinstance(task, OneRank):
        return PartMade(packed(RankRead(path.name), ()))
    return Outcome({"trace": task.name, "producer": said}, ())


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return written(tmp_path / "files", a="one", b="two", c="three")


def written(folder: Path, **said: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in said.items():
        (folder / name).write_text(text)
    return folder


def told(archive: Path) -> dict[str, str]:
    found = rows(archive, "traces", "trace", "producer")
    assert len({row["trace"] for row in found}) == len(found)
    return {Path(row["trace"]).name: row["producer"] for row in found}


def read_by(pool: Here) -> list[str]:
    return [Path(task.name).name for task in pool.tasks if isinstance(task, OneTrace | Job)]


def test_each_file_is_imported_once(archive: Path, files: Path) -> None:
    imported(archive, files, pool=Here(quickly))

    again = imported(archive, files, pool=(second := Here(quickly)))

    assert told(archive) == {"a": "one", "b": "two", "c": "three"}
    assert (read_by(second), again.num_known) == ([], 3)


def test_a_file_is_known_by_its_content(archive: Path, files: Path) -> None:
    imported(archive, files, pool=Here(quickly))
    (files / "a").rename(files / "renamed")
    written(files, b="changed")

    tally = imported(archive, files, pool=(pool := Here(quickly)))

    assert (read_by(pool), tally.num_known) == (["b"], 2)


def test_of_files_that_are_alike_the_first_is_imported(archive: Path, files: Path) -> None:
    tally = imported(archive, written(files, b="one"), pool=Here(quickly))

    assert (told(archive), tally.num_copies) == ({"a": "one", "c": "three"}, 1)


def test_what_another_version_read_is_read_again_in_place(
    archive: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(archive, files, pool=Here(quickly))
    monkeypatch.setattr("stepscope.analyzers.fleet.messages.code_version", lambda *_: "newer")

    imported(archive, files, pool=(pool := Here(quickly)))

    assert read_by(pool) == ["a", "b", "c"]
    assert len(told(archive)) == len(rows(archive, "files")) == 3


def test_a_file_that_cannot_be_read_is_named_and_hinders_no_other(
    archive: Path, files: Path
) -> None:
    tally = imported(archive, written(files, b="bad"), pool=Here(quickly))

    assert told(archive) == {"a": "one", "c": "three"}
    (failure,) = rows(archive, "failures", "path", "reason")
    assert failure == {"path": str(files / "b"), "reason": "it is bad"}
    assert tally.failed == [(str(files / "b"), "it is bad")]


def test_it_is_tried_again_only_where_that_is_asked_for(archive: Path, files: Path) -> None:
    imported(archive, written(files, b="bad"), pool=Here(quickly))

    imported(archive, files, pool=(plain := Here(quickly)))
    imported(archive, files, pool=(asked := Here(quickly)), again=True)

    assert (read_by(plain), read_by(asked)) == ([], ["b"])
    assert len(rows(archive, "failures")) == 1


def test_a_file_that_was_mended_has_failed_no_more(archive: Path, files: Path) -> None:
    imported(archive, written(files, b="bad"), pool=Here(quickly))

    imported(archive, written(files, b="good"), pool=Here(quickly))

    assert (told(archive)["b"], rows(archive, "failures")) == ("good", [])


def deadly(times: int) -> Any:
    """The process that reads b dies so often."""
    left = [times]

    def does(task: Task) -> Answer:
        if isinstance(task, OneTrace) and task.name.endswith("b") and left[0]:
            left[0] -= 1
            return Died("was ended by SIGKILL")
        return quickly(task)

    return does


def test_a_file_whose_worker_died_is_tried_again(archive: Path, files: Path) -> None:
    tally = imported(archive, files, pool=Here(deadly(MOST_TRIES - 1)))

    assert told(archive)["b"] == "two"
    assert (tally.num_deaths, tally.failed) == (MOST_TRIES - 1, [])


def test_a_file_that_ends_whoever_reads_it_is_named_in_the_end(archive: Path, files: Path) -> None:
    imported(archive, files, pool=(pool := Here(deadly(99))))

    (failure,) = rows(archive, "failures")
    assert failure["reason"] == (
        f"the process that read it was ended by SIGKILL, each of {MOST_TRIES} times"
    )
    assert read_by(pool).count("b") == MOST_TRIES
    assert told(archive) == {"a": "one", "c": "three"}


def test_a_file_that_takes_too_long_is_not_tried_again(archive: Path, files: Path) -> None:
    def late(task: Task) -> Answer:
        is_late = isinstance(task, OneTrace) and task.name.endswith("a")
        return Died("took longer than 9 s", is_final=True) if is_late else quickly(task)

    imported(archive, files, pool=(pool := Here(late)))

    assert read_by(pool).count("a") == 1
    assert rows(archive, "failures")[0]["reason"] == "the process that read it took longer than 9 s"


def test_a_run_that_ends_in_the_middle_goes_on_where_it_was(archive: Path, files: Path) -> None:
    def ends(task: Task) -> Answer:
        if isinstance(task, OneTrace) and task.name.endswith("c"):
            raise KeyboardInterrupt
        return quickly(task)

    with pytest.raises(KeyboardInterrupt):
        imported(archive, files, pool=Here(ends, room=1))

    imported(archive, files, pool=(pool := Here(quickly)))

    assert read_by(pool) == ["c"]
    assert told(archive) == {"a": "one", "b": "two", "c": "three"}


def test_an_archive_is_the_same_in_whatever_order_files_are_read(
    tmp_path: Path, files: Path
) -> None:
    folders = [tmp_path / "one at a time", tmp_path / "many at once", tmp_path / "in two runs"]
    imported(folders[0], files, pool=Here(quickly, room=1))
    imported(folders[1], files, pool=Here(quickly, room=9))
    imported(folders[2], files / "b", pool=Here(quickly))
    imported(folders[2], files, pool=Here(quickly))

    assert len({digest_of(each) for each in folders}) == 1


def test_a_worker_of_another_version_makes_no_rows(archive: Path, files: Path) -> None:
    def strange(task: Task) -> Answer:
        if isinstance(task, OneTrace):
            task = replace_settings(task)
        return carried_out(task)

    with pytest.raises(ConfigError, match="another version"):
        imported(archive, files, pool=Here(strange))

    assert rows(archive, "files") == []


def replace_settings(task: OneTrace) -> OneTrace:
    other = msgspec.structs.replace(task.settings, version="older")
    return msgspec.structs.replace(task, settings=other)


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    return write_job(tmp_path / "job", job(3, num_steps=2), *[Look()] * 3)


def test_the_files_of_a_job_are_read_apart_and_are_one_trace(archive: Path, ranks: Path) -> None:
    def one_fails(task: Task) -> Answer:
        if isinstance(task, OneRank) and task.place.path.endswith(b"rank1.json"):
            return Failed("it is bad")
        return quickly(task)

    tally = imported(archive, ranks, pool=Here(one_fails))

    assert told(archive) == {"job": "rank0.json rank2.json"}
    (failure,) = rows(archive, "failures", "trace", "path")
    assert failure == {"trace": str(ranks), "path": str(ranks / "rank1.json")}
    assert tally.sent_bytes == sum(row["sent_bytes"] or 0 for row in rows(archive, "files"))
    assert not list((archive / "parts").iterdir())


def test_a_job_that_was_left_in_the_middle_reads_the_other_ranks_alone(
    archive: Path, ranks: Path
) -> None:
    def ends(task: Task) -> Answer:
        if isinstance(task, OneRank) and task.place.path.endswith(b"rank2.json"):
            raise KeyboardInterrupt
        return quickly(task)

    with pytest.raises(KeyboardInterrupt):
        imported(archive, ranks, pool=Here(ends, room=1))

    imported(archive, ranks, pool=(pool := Here(quickly)))

    read = [task.place.path[-10:] for task in pool.tasks if isinstance(task, OneRank)]
    assert read == [b"rank2.json"]
    assert told(archive) == {"job": "rank0.json rank1.json rank2.json"}


def test_a_job_that_has_grown_is_another_trace(archive: Path, ranks: Path) -> None:
    imported(archive, ranks, pool=Here(quickly))
    (ranks / "rank3.json").write_text((ranks / "rank0.json").read_text())

    tally = imported(archive, ranks, pool=Here(quickly))

    assert (tally.num_checked, tally.num_known) == (1, 0)
    assert [row["num_files"] for row in rows(archive, "traces")] == [3, 4]


def test_a_job_that_cannot_be_joined_is_named_as_a_whole(archive: Path, ranks: Path) -> None:
    def no_join(task: Task) -> Answer:
        return Failed("too large") if isinstance(task, Job) else quickly(task)

    imported(archive, ranks, pool=Here(no_join))

    (failure,) = rows(archive, "failures", "path", "reason")
    assert failure == {"path": str(ranks), "reason": "too large"}
    assert rows(archive, "traces") == []
