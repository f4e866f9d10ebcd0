"""What the application does to look at another trace: it asks which, opens it, and begins anew."""

from __future__ import annotations

from pathlib import Path

from textual import on
from textual.widgets import ContentSwitcher

from stepscope.app.kept import recent
from stepscope.app.tui.flagging_app import FlaggingApp
from stepscope.app.tui.pages.loading import Opening
from stepscope.app.tui.screens.open_another import OpenScreen
from stepscope.app.tui.widgets.top_bar import TopBar
from stepscope.ingest.errors import StepscopeError


class OpeningApp(FlaggingApp):
    """Opens another trace in place of the one that is looked at, once that is there."""

    def action_open_another(self) -> None:
        """Ask which trace to open."""
        if self.opened:
            self.push_screen(OpenScreen(recent.recent()), self._open)

    def _open(self, path: Path | None) -> None:
        if path is not None:
            self.query_one(TopBar).progress = "opening"
            self.query_one(Opening).open_another(path)

    @on(Opening.Another)
    def _take_another(self, event: Opening.Another) -> None:
        top = self.query_one(TopBar)
        top.progress = ""
        if isinstance(event.begun, StepscopeError):
            self.notify(str(event.begun), severity="warning", markup=False)
            return
        recent.opened(event.path)
        self.query_one(Opening).trace = self.trace = event.begun.trace
        self.follower = event.begun.follower
        self.result = top.result = None
        self.strip.look_at(event.path, self.follower)
        self.opened = None
        self.forget_flags()
        self.first_page = self.page
        self.query_one(ContentSwitcher).current = "opening"
        self.name_trace()
        self.begin_to_read()
