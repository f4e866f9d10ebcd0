"""The pages of the terminal front: a line here gives one its tab, its key and its line of help.

The page `name` is the widget `NamePage` in `name.py` beside this, a `Page` (`page.py`).
"""

from __future__ import annotations

from stepscope.app.present.tab import Tab

PAGES: tuple[Tab, ...] = (
    Tab("overview", "overview"),
    Tab("timeline", "timeline"),
    Tab("findings", "findings"),
    Tab("step", "step detail"),
    Tab("blame", "where each request's time went"),
    Tab("request", "a request's life"),
    Tab("area", "sums of the marked range"),
    Tab("sql", "ask the tables a question", "SQL"),
)
"""In the order of their tabs; the first is open first."""
