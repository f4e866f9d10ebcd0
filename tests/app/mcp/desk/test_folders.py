"""Nothing is read that does not lie below a folder that was named, by whatever name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepscope.app.mcp.desk.folders import Folders
from stepscope.ingest.errors import ConfigError, StepscopeError, TraceError
from tests.looped import looped

OUTSIDE = "it is not below a folder that was named at start"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder that may be read, with a file, beside one that may not."""
    for name in ("runs", "runs/deep", "secret"):
        (tmp_path / name).mkdir()
    (tmp_path / "runs" / "a.json").write_text("{}")
    (tmp_path / "runs" / "deep" / "b.json").write_text("{}")
    (tmp_path / "secret" / "s.json").write_text("{}")
    return tmp_path


@looped("name", ["runs/a.json", "a.json", "./a.json", "deep/b.json"])
def test_a_file_inside_is_found_by_its_name(tree: Path, name: str) -> None:
    place = Folders([tree / "runs"]).place(name)

    assert place.path == tree / "runs" / Path(name.removeprefix("runs/"))
    assert place.name in {"runs/a.json", "runs/deep/b.json"}


def test_an_absolute_path_that_is_inside_is_taken(tree: Path) -> None:
    assert Folders([tree / "runs"]).place(str(tree / "runs" / "a.json")).name == "runs/a.json"


@looped(
    "name",
    ["../secret/s.json", "runs/../../secret/s.json", "deep/../../secret/s.json", "..",
     "/etc/passwd", "/", "//etc/passwd", "/proc/self/environ", "~/.ssh/id_rsa"],
)  # fmt: skip
def test_what_is_outside_is_refused(tree: Path, name: str) -> None:
    with pytest.raises(StepscopeError) as refused:
        Folders([tree / "runs"]).place(name)

    assert OUTSIDE in str(refused.value) or "there is no such file" in str(refused.value)


def test_a_refusal_does_not_tell_whether_something_is_there(tree: Path) -> None:
    folders = Folders([tree / "runs"])
    said = []
    for name in ("s.json", "nothing.json"):
        with pytest.raises(ConfigError) as refused:
            folders.place(str(tree / "secret" / name))
        said.append(str(refused.value))

    assert said[0] == said[1]


@looped("name", ["", "a\0b", "x" * 5_000, "x" * 300, "a/" * 1_000])
def test_what_is_no_name_of_a_file_is_one_line(tree: Path, name: str) -> None:
    with pytest.raises(StepscopeError):
        Folders([tree / "runs"]).place(name)


@looped("target", ["secret/s.json", "secret", "/etc/passwd", "/etc"])
def test_a_link_that_leads_out_is_refused(tree: Path, target: str) -> None:
    link = tree / "runs" / "link"
    link.unlink(missing_ok=True)
    link.symlink_to(tree / target)

    with pytest.raises(ConfigError, match=OUTSIDE):
        Folders([tree / "runs"]).place("link")


def test_a_file_below_a_link_that_leads_out_is_refused(tree: Path) -> None:
    (tree / "runs" / "link").symlink_to(tree / "secret")

    with pytest.raises(ConfigError, match=OUTSIDE):
        Folders([tree / "runs"]).place("link/s.json")


def test_a_link_that_stays_inside_is_followed(tree: Path) -> None:
    (tree / "runs" / "link").symlink_to(tree / "runs" / "deep")

    assert Folders([tree / "runs"]).place("link/b.json").path == tree / "runs" / "deep" / "b.json"


def test_a_folder_with_a_link_in_it_that_leads_out_is_refused(tree: Path) -> None:
    (tree / "runs" / "deep" / "steps").mkdir()
    (tree / "runs" / "deep" / "steps" / "0.parquet").symlink_to(tree / "secret" / "s.json")

    with pytest.raises(ConfigError, match="leads out"):
        Folders([tree / "runs"]).place("deep")


def test_a_link_in_circles_is_one_line(tree: Path) -> None:
    (tree / "runs" / "round").symlink_to(tree / "runs" / "round")

    with pytest.raises(StepscopeError):
        Folders([tree / "runs"]).place("round")


@looped("where", ["pipe", "deep/pipe"])
def test_a_pipe_is_not_waited_for(tree: Path, where: str) -> None:
    os.mkfifo(tree / "runs" / where)

    with pytest.raises(ConfigError, match="neither a file nor a folder of files"):
        Folders([tree / "runs"]).place(where.partition("/")[0])


def test_what_is_inside_and_is_not_there_is_said_so(tree: Path) -> None:
    with pytest.raises(TraceError, match="there is no such file"):
        Folders([tree / "runs"]).place("nothing.json")


def test_two_folders_of_one_name_are_told_apart(tree: Path) -> None:
    (tree / "secret" / "runs").mkdir()
    (tree / "secret" / "runs" / "c.json").write_text("{}")
    folders = Folders([tree / "runs", tree / "secret" / "runs"])

    assert list(folders.by_name) == ["runs", "runs-2"]
    assert folders.place("runs-2/c.json").path == tree / "secret" / "runs" / "c.json"


@looped("name", ["nothing", "runs/a.json"])
def test_a_folder_that_is_none_is_refused_at_start(tree: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        Folders([tree / name])
