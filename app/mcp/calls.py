"""A call of a tool, from its arguments as they came to the page that goes back."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from stepscope.app.failures import told
from stepscope.app.mcp.answering.cursor import first_of, mark_of
from stepscope.app.mcp.answering.marked_text import marked
from stepscope.app.mcp.answering.sent_page import Page, page_of, refused
from stepscope.app.mcp.desk.folders import Folders
from stepscope.app.mcp.desk.one_at_a_time import OneAtATime
from stepscope.app.mcp.tools import TOOLS
from stepscope.app.mcp.tools.tool import Tool
from stepscope.ingest.errors import ConfigError, StepscopeError

if TYPE_CHECKING:
    from stepscope.app.mcp.desk.held_traces import HeldTraces
    from stepscope.ingest.trace import Trace

MOST_OF_AN_ERROR = 1_000
PAGES = ("cursor", "limit")
"""Arguments that say which page is wanted, and not of what."""


class Calls:
    """Answers calls, one at a time, over what lies below some folders."""

    def __init__(self, folders: Folders, open_trace: Callable[[Path], Trace]) -> None:
        self._folders = folders
        self._open_trace = open_trace
        self._turns = OneAtATime()
        self._turns.first(lambda: self._held)

    async def answer(self, name: str, arguments: Mapping[str, Any]) -> tuple[Page, bool]:
        """The page that a call is answered with, and whether it says what was wrong.

        Raises KeyError where there is no such tool.
        """
        tool = {each.name: each for each in TOOLS}[name]
        try:
            return await self._turns.run(lambda: self.page(tool, arguments)), False
        except Exception as error:  # whatever it is, a client is told in a line
            return refused(self._said(error)), True

    async def run(self, work: Callable[[], Any]) -> Any:
        """Run something else in its turn."""
        return await self._turns.run(work)

    def page(self, tool: Tool, arguments: Mapping[str, Any]) -> Page:
        """The page itself; raises StepscopeError, and whatever a bug raises."""
        try:
            asked = msgspec.convert(dict(arguments), tool.takes)
        except msgspec.ValidationError as error:
            raise ConfigError(f"the arguments of {tool.name}: {error}") from None
        answer = tool.answers(self._held, asked)
        names = (getattr(asked, each, "") for each in ("trace", "a", "b"))
        files = [self._held.trace(each).identity for each in names if each]
        about = {name: value for name, value in arguments.items() if name not in PAGES}
        mark = mark_of(tool.name, repr(sorted(about.items())), *files)
        return page_of(answer, first_of(asked.cursor, mark, len(answer.rows)), asked.limit, mark)

    @cached_property
    def _held(self) -> HeldTraces:
        # Whoever only asks which tools there are does not wait for what they need.
        from stepscope.app.mcp.desk.held_traces import HeldTraces  # noqa: PLC0415 - as above

        return HeldTraces(self._folders, self._open_trace)

    def _said(self, error: Exception) -> str:
        if os.environ.get("STEPSCOPE_DEBUG") and not isinstance(error, StepscopeError):
            traceback.print_exception(error, file=sys.stderr)
        said, _ = told(error)
        for name, folder in self._folders.by_name.items():
            said = said.replace(str(folder), name)
        return marked(said, MOST_OF_AN_ERROR)
