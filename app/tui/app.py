"""`stepscope tui`: the application, which reads the trace, switches pages and passes on actions."""

from __future__ import annotations

from pathlib import Path

from textual import on
from textual.app import App, ComposeResult
from textual.widgets import ContentSwitcher, Static

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.summary.slo import Slo
from stepscope.app.present.where import step_of, when
from stepscope.app.timeline import Hit
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui import pages, theme
from stepscope.app.tui.actions import bindings, everywhere
from stepscope.app.tui.pages.loading import Opening
from stepscope.app.tui.pages.page import Opened, Page, page_of
from stepscope.app.tui.pages.step import StepPage
from stepscope.app.tui.pages.timeline import WIDE, TimelinePage
from stepscope.app.tui.picture_file import saved_new
from stepscope.app.tui.plot.minimap import Minimap
from stepscope.app.tui.screens.explain import ExplainScreen
from stepscope.app.tui.screens.help import HelpScreen
from stepscope.app.tui.screens.search import SearchScreen
from stepscope.app.tui.widgets.footer import Footer
from stepscope.app.tui.widgets.tabs import Tabs
from stepscope.app.tui.widgets.top_bar import TopBar
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace

LEAST_WIDTH = 50
LEAST_HEIGHT, HIGH = 12, 34


class StepscopeApp(App[None]):
    """Shows a trace on its pages; without a result it runs the rules itself, in a thread.

    `page` is the one that is open first, by its name: the first of them by default. Latencies are
    held against the `slo`.
    """

    TITLE = "stepscope"
    CSS_PATH = "stepscope.tcss"
    ENABLE_COMMAND_PALETTE = False
    # Textual declares these as lists of the instance, not of the class.
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (LEAST_WIDTH, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - Textual's lists
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (LEAST_HEIGHT, "-low"), (HIGH, "-high")]  # noqa: RUF012 - Textual's lists

    def __init__(
        self, trace: Trace, result: CheckResult | None, page: str = "", slo: Slo | None = None
    ) -> None:
        super().__init__()
        self.slo = slo
        self.trace = trace
        self.result = result
        self.opened: Opened | None = None
        self.tabs = pages.PAGES
        self.shared = everywhere(self.tabs)
        self.first_page = page or self.tabs[0].name
        for each in bindings(self.shared):
            self.bind(each.key, each.action, description=each.description)
        self.register_theme(theme.STEPSCOPE)
        self.theme = theme.STEPSCOPE.name

    def compose(self) -> ComposeResult:
        """Lay out what every page shares, and the pages."""
        yield TopBar(id="top")
        yield Tabs(self.tabs, id="tabs")
        with ContentSwitcher(id="pages", initial="opening"):
            yield Opening(self.trace, id="opening")
            for tab in self.tabs:
                yield page_of(tab)
        too_small = f"stepscope needs a terminal of {LEAST_WIDTH} x {LEAST_HEIGHT} at least"
        yield Static(too_small, id="too-small", markup=False)
        yield Footer(self.shared, id="footer")

    def on_mount(self) -> None:
        """Begin to read."""
        top = self.query_one(TopBar)
        top.trace_name = self.trace.name
        manifest = self.trace.manifest
        top.variant = " · ".join(part for part in (manifest.scenario, manifest.variant) if part)
        self.query_one(Opening).read()

    @property
    def view(self) -> Navigator | None:
        """What is being looked at, as soon as the trace is laid out."""
        return self.opened.view if self.opened else None

    # ── what was read ────────────────────────────────────────────────────────────────────────

    @on(Opening.Progressed)
    def _show_progress(self, event: Opening.Progressed) -> None:
        self.query_one(TopBar).progress = event.text

    @on(Opening.Opened)
    def _take_models(self, event: Opening.Opened) -> None:
        models = event.models
        view = Navigator(
            models.timeline,
            composition=models.composition,
            collapsed=set(models.timeline.collapsed_at_first),
        )
        self.opened = Opened(self.trace, models, view, slo=self.slo)
        if self.result is not None:
            self._take(self.result)
        self.action_page(self.first_page)
        if self.result is None:
            self.query_one(Opening).check()

    @on(Opening.Stepped)
    def _take_session(self, event: Opening.Stepped) -> None:
        if self.opened:
            self.opened.session = event.session
            self._show_page()

    @on(Opening.Checked)
    def _take_result(self, event: Opening.Checked) -> None:
        self._take(event.result)
        self._show_page()

    @on(Opening.Failed)
    def _say_what_failed(self, event: Opening.Failed) -> None:
        if self.opened is None:
            return
        self.opened.failed[event.work] = str(event.error)
        if event.work == "check":
            self.query_one(TopBar).progress = "not checked"
            self.opened.view.without_findings = str(event.error)
        self._show_page()

    def _take(self, result: CheckResult) -> None:
        self.result = self.query_one(TopBar).result = result
        if self.opened:
            self.opened.result = result
            self.opened.view.findings = result.findings
            self.opened.view.without_findings = result.coverage.without_findings

    # ── pages ────────────────────────────────────────────────────────────────────────────────

    @property
    def page(self) -> str:
        """The page that is open."""
        return self.query_one(ContentSwitcher).current or "opening"

    @property
    def open_page(self) -> Page:
        """The page that is open, once the trace is laid out."""
        page = self.query_one(f"#{self.page}")
        assert isinstance(page, Page)
        return page

    def action_page(self, name: str) -> None:
        """Open a page."""
        if self.opened is None:
            return
        self.query_one(ContentSwitcher).current = name
        self.query_one(Tabs).page = name
        self.query_one(Footer).own = self.open_page.ACTIONS
        self.open_page.focus()
        self._show_page()

    def _show_page(self) -> None:
        """Bring the open page and the top bar up to what is being looked at."""
        if self.opened:
            self.open_page.show(self.opened)
            self._show_place(self.opened)

    def _show_place(self, opened: Opened) -> None:
        at, steps = opened.step_index, opened.models.composition.step
        step = step_of(None if at is None else int(steps[at]), at, len(steps)) if len(steps) else ""
        ts_ns = self.open_page.now_ns(opened)
        self.query_one(TopBar).place = f"{step}  {when(ts_ns, opened.view.timeline)}".lstrip()
        self.query_one(Tabs).legend = self.open_page.legend(opened)

    # ── actions ──────────────────────────────────────────────────────────────────────────────

    def action_step(self, by: int) -> None:
        """Go to the next or the previous step."""
        if self.view and not self.open_page.walk(by) and self.view.next_step(by):
            self._show_page()

    def action_finding(self, by: int) -> None:
        """Go to the next or the previous finding, in the timeline."""
        if self.view and self.view.next_finding(by):
            self._show_finding()

    def action_at_step(self, step: int) -> None:
        """Show a step in detail."""
        stand = self.opened and self.query_one(StepPage).stand_of(self.opened)
        if stand:
            try:
                position = stand.at_step(step)
            except ConfigError as error:  # a finding may name a step that no row tells of
                self.notify(str(error), severity="warning", markup=False)
                return
            self._move_to(position.ts_ns)
            self.action_page("step")

    def action_at_change(self, seq: int) -> None:
        """Go behind a change, on the step page."""
        if self.opened and self.opened.session:
            self.action_page("step")
            page = self.query_one(StepPage)
            page.action_at_change(seq)

    def action_at_span(self, lane: int, since_ns: int) -> None:
        """Frame the span that a lane shows at a time from the first moment of the trace."""
        if self.view:
            since_ns += self.view.timeline.bounds[0]
            self.view.visit_span(lane, since_ns)
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
            self._show_page()

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

    def action_help(self) -> None:
        """Open the help."""
        pages = [each for each in self.query() if isinstance(each, Page)]
        self.push_screen(HelpScreen(self.page, pages, self.shared))

    def action_clear(self) -> None:
        """Let go of the mark, the selection, the filter, or the request that is followed."""
        if self.opened and not self.open_page.let_go() and self.opened.view.clear():
            self._show_page()

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
        self._show_page()

    def _move_to(self, ts_ns: int) -> None:
        if self.view:
            self.view.move_to(ts_ns)
            self._show_page()

    # ── what the pages say ───────────────────────────────────────────────────────────────────

    @on(Page.Changed)
    def _follow_change(self) -> None:
        if self.opened:
            self._show_place(self.opened)

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
