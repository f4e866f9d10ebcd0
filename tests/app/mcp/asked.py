"""Asking the tools as a client does, without the protocol between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stepscope.app.mcp.answering.sent_page import Page
from stepscope.app.mcp.calls import Calls
from stepscope.app.mcp.desk.folders import Folders
from stepscope.app.mcp.tools import TOOLS
from stepscope.ingest.trace import Trace

TOOLS_BY_NAME = {tool.name: tool for tool in TOOLS}


class Asked:
    """A server's calls over some folders."""

    def __init__(self, *folders: Path) -> None:
        self.calls = Calls(Folders(folders), Trace.open)

    def page(self, tool: str, **arguments: Any) -> Page:
        """The page; raises what is wrong."""
        return self.calls.page(TOOLS_BY_NAME[tool], arguments)

    def refusal(self, tool: str, **arguments: Any) -> str:
        """What a client is told is wrong; fails where there is an answer."""
        page, is_error = asyncio.run(self.calls.answer(tool, arguments))
        assert is_error, page.text
        return str(page.values["data"]["error"])

    def pages(self, tool: str, **arguments: Any) -> Iterator[Page]:
        """Every page of an answer, by its cursors."""
        cursor = ""
        while True:
            page = self.page(tool, **arguments, cursor=cursor)
            yield page
            if page.values["next"] is None:
                return
            cursor = page.values["next"]["cursor"]
