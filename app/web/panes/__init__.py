"""The panes below the timeline: a line here gives one its tab, key, address and line of help.

The pane `name` is the function `name_pane` in `name.py` beside this, a `Pane` (`pane.py`).
"""

from __future__ import annotations

from stepscope.app.present.tab import Tab

PANES: tuple[Tab, ...] = (
    Tab("overview", "batches over the whole trace"),
    Tab("findings", "what the rules found"),
    Tab("step", "step detail"),
    Tab("blame", "where each request's time went"),
    Tab("request", "a request's life"),
    Tab("area", "sums of the marked range"),
    Tab("sql", "ask the tables a question", "SQL"),
    Tab("table", "the rows of the trace"),
    Tab("flags", "the flags that were put", key="Y"),
)
"""In the order of their tabs."""
OPEN_FIRST = "findings"
"""The pane that is open where an address names none."""
OF_TWO: dict[str, Tab] = {
    each.name: each
    for each in (
        Tab("overview", "what differs"),
        Tab("findings", "findings of both"),
        Tab("step", "steps of both beside each other"),
        Tab("blame", "each request in both"),
        Tab("flags", "the flags of both", key="Y"),
    )
}
"""The panes of two traces side by side, by name, in the order of their tabs."""
