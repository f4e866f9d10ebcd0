"""The tools, in the order in which an assistant reads of them: a line in TOOLS makes one."""

from __future__ import annotations

from stepscope.app.mcp.tools.blame import BLAME
from stepscope.app.mcp.tools.check import CHECK
from stepscope.app.mcp.tools.diff import DIFF
from stepscope.app.mcp.tools.explain import EXPLAIN
from stepscope.app.mcp.tools.find import FIND
from stepscope.app.mcp.tools.open import OPEN
from stepscope.app.mcp.tools.sql import SQL
from stepscope.app.mcp.tools.state import STATE
from stepscope.app.mcp.tools.summary import SUMMARY
from stepscope.app.mcp.tools.tool import Tool
from stepscope.app.mcp.tools.traces import TRACES
from stepscope.app.mcp.tools.why import WHY

TOOLS: tuple[Tool, ...] = (
    TRACES,
    OPEN,
    SUMMARY,
    CHECK,
    EXPLAIN,
    BLAME,
    WHY,
    STATE,
    FIND,
    SQL,
    DIFF,
)
