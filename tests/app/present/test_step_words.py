"""A step in words: the line in the terminal and the table in the page say its tokens alike."""

from __future__ import annotations

from stepscope.app.debug import Session
from stepscope.app.present.step_words import tokens
from stepscope.app.tui.pages.step_parts.step_blocks import step_line
from stepscope.app.tui.pages.step_parts.step_view import look_at_step
from tests.app.tui.stage import conflict_trace


def test_the_line_and_the_table_of_a_step_say_its_tokens_alike() -> None:
    session = Session(conflict_trace())

    session.goto(step=3)
    view = look_at_step(session, session.position, None)
    header = {row[0]: row[1] for row in view.detail.tables()[0].rows}

    assert header["tokens"] == tokens(view.detail.step)
    assert f"tokens: {header['tokens']}" in step_line(view)
