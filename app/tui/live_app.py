"""What the application does with a recording that goes on, and with a file that has changed."""

from __future__ import annotations

from abc import abstractmethod

from textual import on
from textual.app import App

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.summary.slo import Slo
from stepscope.app.live.carried_over import carried, first_view, newest
from stepscope.app.live.follower import Follower
from stepscope.app.live.words import STEPS_ARE_NOT_WALKED, Following
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.pages.loading import Opening
from stepscope.app.tui.pages.page import Live, Opened
from stepscope.app.tui.widgets.live_strip import LiveStrip
from stepscope.app.tui.widgets.top_bar import TopBar
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace

NOTHING_FOLLOWED = "nothing is recorded here any more: there is nothing to follow"


class LiveApp(App[None]):
    """Follows a recording, pauses, and reads anew what lies on the disk."""

    trace: Trace
    result: CheckResult | None
    opened: Opened | None
    slo: Slo | None
    follower: Follower | None

    @abstractmethod
    def show_page(self) -> None:
        """Bring the open page and the top bar up to what is being looked at."""

    @abstractmethod
    def take(self, result: CheckResult) -> None:
        """Show what was found."""

    @property
    def strip(self) -> LiveStrip:
        """The line that tells of it."""
        return self.query_one(LiveStrip)

    @on(LiveStrip.Renewed)
    def _take_look(self, event: LiveStrip.Renewed) -> None:
        """Show what is new where one looks, or at the end, where the newest is followed."""
        if self.follower is None or event.follower is not self.follower:
            return
        look, models, before = event.look, event.models, self.opened
        findings = None if look.result is None else look.result.findings
        if before is None:
            view = Navigator(
                models.timeline, findings, composition=models.composition,
                collapsed=set(models.timeline.collapsed_at_first),
            )  # fmt: skip
            view.look_at(first_view(models.timeline))
            view.cursor_ns = models.timeline.bounds[1] - 1
        else:
            view = carried(
                before.view, models.timeline, models.composition, findings,
                is_newest=self.strip.following is Following.NEWEST,
            )  # fmt: skip
        self.trace, self.strip.came = look.trace, look.came
        self.opened = Opened(
            look.trace, models, view, slo=self.slo, live=Live(look.status, look.came)
        )
        self.opened.request = before.request if before else None
        self.opened.failed["step through"] = STEPS_ARE_NOT_WALKED
        if look.result is not None:
            self.take(look.result)
        if before is None:
            self.begin()
        else:
            self.show_page()

    @abstractmethod
    def begin(self) -> None:
        """Open the first page."""

    def keep_to_newest(self) -> None:
        """Go on following the newest step only while the end is in view."""
        if self.opened and self.strip.following is Following.NEWEST:
            view = self.opened.view
            if view.viewport.t1 < view.timeline.bounds[1]:
                self.strip.following = Following.HERE

    def action_follow(self) -> None:
        """Keep the newest step in view, or no longer."""
        if self.opened is None or self.follower is None:
            self.notify(NOTHING_FOLLOWED, markup=False)
            return
        if self.strip.following is Following.NEWEST:
            self.strip.following = Following.HERE
            return
        self.strip.following = Following.NEWEST
        view = self.opened.view
        view.clear()
        view.look_at(newest(view.viewport, view.timeline))
        view.cursor_ns = view.timeline.bounds[1] - 1
        self.show_page()

    def action_pause(self) -> None:
        """Take nothing new, or go on."""
        if self.follower is None:
            self.notify(NOTHING_FOLLOWED, markup=False)
            return
        is_paused = self.strip.following is Following.PAUSED
        self.strip.following = Following.HERE if is_paused else Following.PAUSED
        self.strip.ask()

    def action_reload(self) -> None:
        """Read all that lies on the disk by now, and look where one looked."""
        opening = self.query_one(Opening)
        self.query_one(TopBar).progress = "reading"
        opening.reread(self.trace)

    @on(Opening.Reread)
    def _take_reread(self, event: Opening.Reread) -> None:
        if isinstance(event.read, StepscopeError):
            self.query_one(TopBar).progress = ""
            self.notify(str(event.read), severity="warning", markup=False)
            return
        self.follower = None
        self.strip.forget()
        self.trace, self.result = event.read, None
        self.query_one(TopBar).result = None
        self.query_one(Opening).read()
