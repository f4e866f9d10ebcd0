"""The server as the official SDK has it: what it offers, and how an answer becomes a message."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from stepscope.app.mcp import own_resources
from stepscope.app.mcp.answering.marked_text import marked
from stepscope.app.mcp.answering.sent_page import SCHEMA, Page
from stepscope.app.mcp.calls import Calls
from stepscope.app.mcp.instructions import INSTRUCTIONS
from stepscope.app.mcp.tools import TOOLS
from stepscope.app.mcp.tools.tool import Arguments, Tool
from stepscope.app.own_version import own_version
from stepscope.ingest.errors import StepscopeError

NAME = "stepscope"
PAGE_OF_RESOURCES = 50
READS = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
NO_SUCH_RESOURCE = -32002
"""What the protocol has for a resource that is not there."""
Context = ServerRequestContext[Any]


def server_of(calls: Calls) -> Server[Any]:
    """The server whose calls these are answered by."""

    async def list_tools(
        _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in TOOLS])

    async def call_tool(_ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            page, is_error = await calls.answer(params.name, params.arguments or {})
        except KeyError:
            raise MCPError(
                types.INVALID_PARAMS, f"there is no tool {marked(params.name, 80)}"
            ) from None
        return _result(page, is_error)

    async def list_resources(
        _ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        pages = await calls.run(own_resources.pages)
        first = _first(params, len(pages))
        shown = pages[first : first + PAGE_OF_RESOURCES]
        end = first + len(shown)
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=each.uri, name=each.name, description=each.about,
                               mime_type=own_resources.MARKDOWN)
                for each in shown
            ],
            next_cursor=str(end) if end < len(pages) else None,
        )  # fmt: skip

    async def list_templates(
        _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(uri_template=each.uri, name=each.name,
                                       description=each.about, mime_type=own_resources.MARKDOWN)
                for each in own_resources.TEMPLATES
            ]
        )  # fmt: skip

    async def read_resource(
        _ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text = await calls.run(lambda: own_resources.text_at(uri))
        except StepscopeError as error:
            raise MCPError(NO_SUCH_RESOURCE, marked(str(error)), {"uri": marked(uri)}) from None
        contents = types.TextResourceContents(uri=uri, text=text, mime_type=own_resources.MARKDOWN)
        return types.ReadResourceResult(contents=[contents])

    return Server(
        NAME,
        version=own_version(),
        title="stepscope",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=input_schema(tool.takes),
        output_schema=SCHEMA,
        annotations=READS,
    )


def input_schema(takes: type[Arguments]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, with the object itself at its root."""
    (_,), parts = msgspec.json.schema_components([takes])
    schema: dict[str, Any] = dict(parts[takes.__name__])
    schema.pop("title", None)
    return schema


def _result(page: Page, is_error: bool) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=page.text)],
        structured_content=page.values,
        is_error=is_error,
    )


def _first(params: types.PaginatedRequestParams | None, number: int) -> int:
    cursor = params.cursor if params is not None else None
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 6 and int(cursor) < number):
        raise MCPError(types.INVALID_PARAMS, "the cursor is none of this list")
    return int(cursor)
