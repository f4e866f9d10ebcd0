"""What a kept result is known by."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.storage import cache_key
from stepscope.ingest.storage.cache_key import BLOCK_BYTES, code_version, key_of


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of which only a sample is digested."""
    monkeypatch.setattr(cache_key, "WHOLE_BYTES", BLOCK_BYTES)
    file = tmp_path / "large.json"
    file.write_bytes(bytes(200 * BLOCK_BYTES))
    return file


def key(*files: Path) -> str:
    found = key_of(files[0], files, DEFAULTS)
    assert found is not None
    return found


def overwrite(file: Path, at: int, mtime_ns: int) -> None:
    """Change a byte; whoever does it hides when."""
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(b"x")
    os.utime(file, ns=(mtime_ns, mtime_ns))


def test_a_large_file_is_known_by_when_it_was_changed(large: Path) -> None:
    before = key(large)
    mtime_ns = large.stat().st_mtime_ns
    overwrite(large, 0, mtime_ns)
    overwritten = key(large)
    os.utime(large, ns=(mtime_ns, mtime_ns + 1))

    assert len({before, overwritten, key(large)}) == 3


def test_the_first_and_last_bytes_of_a_large_file_count(large: Path) -> None:
    mtime_ns = large.stat().st_mtime_ns
    found = {key(large)}
    for at in (0, BLOCK_BYTES - 1, large.stat().st_size - 1):
        overwrite(large, at, mtime_ns)
        found.add(key(large))

    assert len(found) == 4


def test_little_of_a_large_file_is_read(large: Path) -> None:
    places = list(cache_key._places(large.stat().st_size, 64))

    assert len(places) == 64
    assert places[0] == 0
    assert places[-1] == large.stat().st_size - BLOCK_BYTES


def test_a_small_file_is_known_by_all_of_its_content_and_not_by_its_time(tmp_path: Path) -> None:
    file = tmp_path / "small.json"
    file.write_bytes(bytes(3 * BLOCK_BYTES))
    before = key(file)
    os.utime(file, (0, 0))
    touched = key(file)
    overwrite(file, BLOCK_BYTES + 77, 0)

    assert before == touched != key(file)


def test_files_beside_count_by_name_and_by_being_there(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in "abc")
    first.write_bytes(b"1")
    alone = key(first, second)
    second.write_bytes(b"")
    both = key(first, second)
    second.rename(third)

    assert len({alone, both, key(first, third)}) == 3


def test_content_that_moves_from_one_file_to_the_next_is_another(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"12")
    second.write_bytes(b"3")
    before = key(first, second)
    first.write_bytes(b"1")
    second.write_bytes(b"23")

    assert key(first, second) != before


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert key(tmp_path / "pipe", tmp_path) != key(tmp_path / "gone", tmp_path)


def test_the_limits_count(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")

    assert key(tmp_path / "a") != key_of(tmp_path / "a", [tmp_path / "a"], Limits(rows=1))


def test_code_that_changes_is_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version() -> str:
        code_version.cache_clear()
        return code_version()

    ours = version()
    monkeypatch.setattr(cache_key, "_CODE", tmp_path)
    (tmp_path / "compiled.so").write_text("without its sources")
    none = version()
    (tmp_path / "readers").mkdir()
    (tmp_path / "readers" / "kineto.py").write_text("x = 1")
    first = version()
    (tmp_path / "readers" / "kineto.py").write_text("x = 2")
    second = version()
    (tmp_path / "readers" / "_scan.c").write_text("int x;")
    third = version()
    code_version.cache_clear()

    assert none == ""
    assert len({ours, first, second, third}) == 4


def test_without_its_sources_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_key, "code_version", lambda: "")

    assert key_of(tmp_path, [], DEFAULTS) is None
