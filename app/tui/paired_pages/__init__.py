"""The pages of two traces side by side: a line here gives one its tab, its key and its help."""

from __future__ import annotations

from stepscope.app.present.tab import Tab

PAGES: tuple[Tab, ...] = (
    Tab("overview", "what differs"),
    Tab("timeline", "both timelines"),
    Tab("findings", "findings of both"),
    Tab("step", "steps of both beside each other"),
    Tab("blame", "each request in both"),
)
"""In the order of their tabs; the first is open first."""
