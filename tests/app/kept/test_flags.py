"""Flags outlive a process, nothing is lost where several write them, and what is wrong is told."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path

import pytest

from stepscope.app.kept.flags import (
    LONGEST_NOTE,
    MOST,
    Flag,
    Flags,
    line_of,
    read_line,
)
from stepscope.ingest.errors import ConfigError, WriteError
from tests.tiers import sampled

HERE = Flag(300, "all wait here", ("requests", "", "req-1"))
RUN = Path("run.trace")
TOGETHER, EACH = 4, 12


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path))
    return tmp_path


def test_a_flag_is_there_in_the_next_process_and_in_no_other_trace() -> None:
    Flags(RUN).add("storm", HERE)

    assert Flags(RUN).get("storm") == HERE
    assert not Flags(Path("other.trace")).all


def test_a_flag_that_somebody_else_put_is_seen_without_opening_anew() -> None:
    mine, theirs = Flags(RUN), Flags(RUN)
    assert not mine.all

    theirs.add("storm", HERE)

    assert mine.get("storm") == HERE


def test_a_flag_that_was_dropped_is_gone() -> None:
    flags = Flags(RUN)
    flags.put("storm", HERE)
    flags.drop("storm")

    assert not Flags(RUN).all


def test_a_flag_without_a_name_has_the_next_that_is_free() -> None:
    flags = Flags(RUN)
    flags.add("flag-2", HERE)

    assert [flags.add("", HERE) for _ in range(3)] == ["flag-1", "flag-3", "flag-4"]


def test_a_new_flag_takes_nobodys_name_and_the_debuggers_takes_the_place_of_the_old() -> None:
    flags = Flags(RUN)
    flags.put("storm", HERE)

    with pytest.raises(ConfigError, match="there is a flag @storm already"):
        flags.add("storm", Flag(7))
    flags.put("storm", Flag(7))

    assert flags.get("storm") == Flag(7)


def test_a_flag_is_given_another_name_and_note_and_stays_where_it_is() -> None:
    flags = Flags(RUN)
    flags.put("storm", HERE)
    flags.put("other", HERE)

    assert flags.change("storm", "calm", "over") == "calm"
    assert flags.change("calm", "", "over again") == "calm"
    with pytest.raises(ConfigError, match="there is a flag @other already"):
        flags.change("calm", "other", "")
    with pytest.raises(ConfigError, match="no flag is called 'storm'"):
        flags.change("storm", "x", "")

    assert {*flags.all} == {"other", "calm"}
    assert flags.get("calm") == Flag(300, "over again", HERE.lane)


def _put_many(number: int) -> None:
    flags = Flags(RUN)
    for at in range(EACH):
        flags.add(f"own-{number}-{at}", HERE)
        flags.add("", HERE)


@pytest.mark.parametrize("kind", sampled(["processes", "threads"], ["threads"]))
def test_of_several_who_write_at_once_nobody_loses_a_flag(kind: str) -> None:
    make = threading.Thread if kind == "threads" else multiprocessing.get_context("spawn").Process
    writers = [make(target=_put_many, args=(number,)) for number in range(TOGETHER)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()

    named = {f"own-{number}-{at}" for number in range(TOGETHER) for at in range(EACH)}
    unnamed = {f"flag-{at}" for at in range(1, TOGETHER * EACH + 1)}
    assert {*Flags(RUN).all} == named | unnamed


def test_marks_of_the_debugger_that_were_kept_before_are_flags(state: Path) -> None:
    Flags(RUN).put("storm", HERE)
    next(state.rglob("*.json")).write_text('{"old": [1, 3, null, 300]}')

    assert Flags(RUN).get("old") == Flag(300, rank=1, step=3)


def test_a_damaged_file_is_one_line_with_its_name_and_is_not_written_over(state: Path) -> None:
    Flags(RUN).put("storm", HERE)
    file = next(state.rglob("*.json"))
    file.write_text("{")

    with pytest.raises(ConfigError, match=f"{file.name}: flags cannot be read"):
        Flags(RUN).get("storm")
    with pytest.raises(ConfigError, match="flags cannot be read"):
        Flags(RUN).put("storm", HERE)
    assert file.read_text() == "{"


def test_where_nothing_can_be_written_it_is_said(state: Path) -> None:
    (state / "marks").write_text("a file")

    with pytest.raises(WriteError, match=r"flags cannot be kept: .*set STEPSCOPE_STATE"):
        Flags(RUN).put("storm", HERE)


def test_where_it_is_turned_off_flags_live_as_long_as_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for value in ("off", "OFF"):
        monkeypatch.setenv("STEPSCOPE_STATE", value)
        flags = Flags(RUN)
        flags.put("storm", HERE)

        assert flags.get("storm") == HERE
        assert flags.file is None, value


def test_a_line_is_a_name_and_a_note() -> None:
    lines = {
        "": ("", ""),
        "  all  wait here ": ("", "all wait here"),
        "@storm": ("storm", ""),
        "@storm all @wait <b>here</b>": ("storm", "all @wait <b>here</b>"),
    }
    named = [parts for parts in lines.values() if parts[0]]

    assert {line: read_line(line) for line in lines} == lines
    assert [read_line(line_of(*parts)) for parts in named] == named


def test_what_cannot_be_a_name_is_said() -> None:
    for line in ("@", "@a/b", "@-x", f"@{'x' * 65}", "@ü"):
        with pytest.raises(ConfigError, match="cannot be the name of a flag"):
            read_line(line)


def test_a_trace_has_so_many_flags_and_a_note_so_many_characters() -> None:
    flags = Flags(None)
    with pytest.raises(ConfigError, match="401 characters is not kept"):
        flags.put("a", Flag(1, "x" * (LONGEST_NOTE + 1)))
    for at in range(MOST):
        flags.put(f"own-{at}", HERE)
    with pytest.raises(ConfigError, match="1,000 flags at most"):
        flags.put("one-more", HERE)
    assert len(flags.all) == MOST
