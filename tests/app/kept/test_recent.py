"""The traces that were opened last."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.kept.recent import MOST, opened, recent


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of states of its own."""
    folder = tmp_path / "state"
    monkeypatch.setenv("STEPSCOPE_STATE", str(folder))
    return folder


def traces(folder: Path, number: int) -> list[Path]:
    paths = [folder / f"{at}.trace" for at in range(number)]
    for path in paths:
        path.mkdir()
    return paths


def test_the_latest_comes_first_and_each_once(tmp_path: Path) -> None:
    one, two = traces(tmp_path, 2)
    for path in (one, two, one):
        opened(path)

    assert recent() == [one, two]


def test_what_is_gone_is_not_offered(tmp_path: Path) -> None:
    one, two = traces(tmp_path, 2)
    opened(one)
    opened(two)
    two.rmdir()

    assert recent() == [one]


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    paths = traces(tmp_path, MOST + 3)
    for path in paths:
        opened(path)

    assert recent() == paths[: -MOST - 1 : -1]


def test_a_damaged_list_is_an_empty_one(state: Path) -> None:
    state.mkdir()
    lists = {}
    for damaged in (b"", b"{", b"[1]", b'["\\u0000"]', b"\xff"):
        (state / "recent.json").write_bytes(damaged)
        lists[damaged] = recent()

    assert {damaged: paths for damaged, paths in lists.items() if paths} == {}


def test_where_nothing_is_kept_nothing_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_STATE", "off")
    opened(traces(tmp_path, 1)[0])

    assert recent() == []


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path, state: Path) -> None:
    state.write_text("a file")
    opened(traces(tmp_path, 1)[0])

    assert recent() == []
