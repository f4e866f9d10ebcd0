"""A person at the prompt: Tab, the arrows, Ctrl-C and Ctrl-D do what people expect of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from stepscope.app.cli.prompt.loop import Loop
from stepscope.app.cli.prompt.printing import AsText
from stepscope.app.cli.prompt.typing import Words, converse, history
from stepscope.app.debug.commands.answer import Answer
from stepscope.app.debug.debugger import Debugger
from tests.app.debug.small_traces import a_fight_for_a_block

UP, CTRL_C, CTRL_D = "\x1b[A", "\x03", "\x04"


class Heard(AsText):
    """Keeps the lines that were answered."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def answered(self, line: str, answer: Answer) -> None:
        self.lines.append(line)


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path))
    return tmp_path


@pytest.fixture
def typed() -> Iterator[Callable[[str], list[str]]]:
    """Type keys at a prompt over a small trace, and get the lines that were answered."""
    with create_pipe_input() as source:

        def type_keys(keys: str) -> list[str]:
            heard = Heard()
            source.send_text(keys)
            converse(Loop(Debugger(a_fight_for_a_block()), heard), source, DummyOutput())
            return heard.lines

        yield type_keys


Typed = Callable[[str], list[str]]


def test_an_empty_line_repeats_the_last_move(typed: Typed) -> None:
    assert typed(f"step\r\r\rwhere\r\r{CTRL_D}") == ["step", "step", "step", "where"]


def test_ctrl_c_drops_what_was_begun_and_ctrl_d_leaves(typed: Typed) -> None:
    assert typed(f"goto 9{CTRL_C}goto 2\r{CTRL_D}") == ["goto 2"]


def test_quit_leaves(typed: Typed) -> None:
    assert typed("step\rquit\rstep\r") == ["step", "quit"]


def test_tab_offers_what_the_trace_has_with_what_it_means() -> None:
    words = Words(Debugger(a_fight_for_a_block()))

    command = [*words.get_completions(Document("wher"), CompleteEvent())]
    column = [*words.get_completions(Document("break steps: num_w"), CompleteEvent())]

    assert [(each.text, each.start_position) for each in command] == [("where", -4)]
    assert command[0].display_meta_text == "say where it is"
    assert [each.text for each in column] == ["num_waiting"]


def test_what_was_typed_is_there_in_the_next_session(typed: Typed) -> None:
    typed(f"goto 3\r{CTRL_D}")

    assert typed(f"{UP}\r{CTRL_D}") == ["goto 3"]


def test_a_history_that_cannot_be_kept_lasts_as_long_as_the_session(
    own_folder: Path, typed: Typed
) -> None:
    (own_folder / "debug_history").mkdir()

    assert typed(f"step\r{UP}\r{CTRL_D}") == ["step", "step"]
    assert list(history().load_history_strings()) == []
