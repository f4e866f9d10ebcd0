"""Names of attributes in spans that `stepscope otel` writes, which the reader knows again.

What has a name among OpenTelemetry's conventions, or those of engines (`gen_ai.*`), goes by that;
what has none is below `stepscope.`. Of a request's span: `rank`, and what it `came_to`; its events
are named for what happened, as in `lifecycle`, and a column of that table is an attribute of its
name. Of a phase's span: `phase`, and `is_open` where it had not ended, as then its end is the last
moment that was recorded. Of the resource: the clock, and how many requests there were.
"""

from __future__ import annotations

PREFIX = "stepscope."
SCOPE = "stepscope"
REQUEST = "gen_ai.request.id"
RANK = f"{PREFIX}rank"
PHASE = f"{PREFIX}phase"
IS_OPEN = f"{PREFIX}is_open"
CAME_TO = f"{PREFIX}came_to"
CLOCK = f"{PREFIX}clock.kind"
EPOCH = f"{PREFIX}clock.epoch_ns"
ZERO = f"{PREFIX}clock.zero_ns"
"""The Unix time that the trace's zero has in this file: not its own where the clock has no date."""
TOLD = f"{PREFIX}lifecycle"
"""How much of `lifecycle` there is, as a manifest says it."""
CLOSED = f"{PREFIX}closed"
NUM_REQUESTS = f"{PREFIX}num_requests"
