"""`stepscope tui`: the application, which goes where keys, links and pages ask it to go."""

from __future__ import annotations

from pathlib import Path

from textual import on

from stepscope.app.timeline import Hit
from stepscope.app.tui.opening_app import OpeningApp
from stepscope.app.tui.pages.overview import OverviewPage
from stepscope.app.tui.pages.page import Page
from stepscope.app.tui.pages.step import StepPage
from stepscope.app.tui.pages.timeline import TimelinePage
from stepscope.app.tui.picture_file import saved_new
from stepscope.app.tui.plot.minimap import Minimap
from stepscope.app.tui.screens.explain import ExplainScreen
from stepscope.app.tui.screens.help import HelpScreen
from stepscope.app.tui.screens.search import SearchScreen
from stepscope.ingest.errors import ConfigError


class StepscopeApp(OpeningApp):
    """Goes where it is asked to go, and opens what is asked for."""

    # ── actions ──────────────────────────────────────────────────────────────────────────────

    def action_step(self, by: int) -> None:
        """Go to the next or the previous step."""
        if self.view and not self.open_page.walk(by) and self.view.next_step(by):
            self.show_page()

    def action_finding(self, by: int) -> None:
        """Go to the next or the previous finding, in the timeline."""
        if self.view and self.view.next_finding(by):
            self._show_finding()

    def action_at_step(self, step: int, rank: int | None = None) -> None:
        """Show a step in detail, of a rank where that is not the usual one."""
        stand = self.opened and self.query_one(StepPage).stand_of(self.opened)
        if stand:
            try:
                position = stand.at_step(step, rank)
            except ConfigError as error:  # a finding may name a step that no row tells of
                self.notify(str(error), severity="warning", markup=False)
                return
            self._move_to(position.ts_ns)
            self._show_step()

    def action_at_change(self, seq: int, rank: int | None = None) -> None:
        """Go behind a change of a rank, by default that which one stands at, on the step page."""
        if self.opened and self.opened.session:
            self._show_step()
            self.query_one(StepPage).action_at_change(seq, rank)

    def _show_step(self) -> None:
        """Open the step page, in front of whatever was asked over it."""
        while self.screen.is_modal:
            self.pop_screen()
        self.action_page("step")

    def action_at_span(self, lane: int, since_ns: int) -> None:
        """Frame the span that a lane shows at a time from the first moment of the trace."""
        if self.view:
            since_ns += self.view.timeline.bounds[0]
            self.view.visit_span(lane, since_ns)
            self.action_page("timeline")
            self.query_one(TimelinePage).reveal()

    def action_at_time(self, since_ns: int, lane: int | None = None) -> None:
        """Go to a time from the first moment of the trace, at the same zoom, in the timeline."""
        if self.view is None:
            return
        ts_ns = since_ns + self.view.timeline.bounds[0]
        self.view.move_to(ts_ns)
        if lane is not None:
            self.view.expand_to(lane)
            self.view.select(lane, ts_ns)
        self.action_page("timeline")
        self.query_one(TimelinePage).reveal()

    def action_request(self, rank: int, request: str) -> None:
        """Show a request in full."""
        if self.opened:
            self.opened.request = rank, request
            self.action_page("request")

    def action_request_here(self) -> None:
        """Show the request in full that is in question on the page that is open."""
        who = self.open_page.asked(self.opened) if self.opened else None
        if who:
            self.action_request(*who)
        elif self.opened:
            self.action_page("request")

    def action_jump(self, index: int) -> None:
        """Go to a finding, in the timeline."""
        if self.view:
            self.view.jump(index)
            self._show_finding()

    def action_toggle_state(self, state: int) -> None:
        """Hide the spans of a state, or show them again."""
        if self.view:
            self.view.toggle_state(state)
            self.show_page()

    def action_search(self, text: str = "") -> None:
        """Ask for a name or a number and go there."""
        if self.view:
            self.push_screen(SearchScreen(self.view.timeline, text), self._go_to)

    def action_explain(self, code: str) -> None:
        """Open the page of a rule."""
        self.push_screen(ExplainScreen(code))

    def action_picture(self) -> None:
        """Save what is shown as SVG in the folder that one is in, and say what it is called."""
        try:
            file = saved_new(Path.cwd(), f"{self.trace.name}.svg", self.export_screenshot())
        except OSError as error:
            told = f"the picture cannot be written: {error.strerror or error}"
            self.notify(told, severity="warning", markup=False)
        else:
            self.notify(f"wrote {file}", markup=False)

    def action_rules(self) -> None:
        """Show on the overview the codes of rules about which nothing is said, or how many."""
        for overview in self.query(OverviewPage):
            is_open = self.page == overview.id
            overview.show_codes(shown=not (is_open and overview.shows_codes))
            if not is_open:
                self.action_page("overview")

    def action_help(self) -> None:
        """Open the help."""
        pages = [each for each in self.query() if isinstance(each, Page)]
        self.push_screen(HelpScreen(self.page, pages, self.shared))

    def action_clear(self) -> None:
        """Let go of the mark, the selection, the filter, or the request that is followed."""
        if self.opened and not self.open_page.let_go() and self.opened.view.clear():
            self.show_page()

    def _show_finding(self) -> None:
        self.query_one(TimelinePage).show_details(shown=True)
        self.action_page("timeline")
        self.query_one(TimelinePage).reveal()

    def _go_to(self, hit: Hit | None) -> None:
        if hit is None or self.view is None:
            return
        self.view.visit(hit)
        if self.opened and hit.kind == "request" and hit.lane is not None:
            self.opened.request = self.view.timeline.request_of(hit.lane)
        if hit.kind not in self.open_page.HITS:
            self.action_page("timeline")
            self.query_one(TimelinePage).reveal()
        self.show_page()

    def _move_to(self, ts_ns: int) -> None:
        if self.view:
            self.view.move_to(ts_ns)
            self.show_page()

    # ── what the pages say ───────────────────────────────────────────────────────────────────

    @on(Page.Changed)
    def _follow_change(self) -> None:
        if self.opened:
            self.show_place(self.opened)

    @on(Page.Moved)
    def _follow_move(self, event: Page.Moved) -> None:
        self._move_to(event.ts_ns)

    @on(Minimap.HitChosen)
    def _stand_at_hit(self, event: Minimap.HitChosen) -> None:
        self.query_one(StepPage).go_to_hit_at(event.ts_ns)
        self.action_page("step")

    @on(Page.FindingChosen)
    def _open_finding(self, event: Page.FindingChosen) -> None:
        self.action_jump(event.index)

    @on(Page.RequestChosen)
    def _open_request(self, event: Page.RequestChosen) -> None:
        self.action_request(event.rank, event.request)

    @on(Page.Visited)
    def _visit(self, event: Page.Visited) -> None:
        self._go_to(event.hit)
