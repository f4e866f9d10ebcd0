"""`stepscope tui`: the application, which reads the trace, switches pages and passes on actions."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widgets import ContentSwitcher, Static

from stepscope.analyzers.check.run import CheckResult
from stepscope.app.debug import Session
from stepscope.app.present.where import step_of, when
from stepscope.app.timeline import Hit
from stepscope.app.tui import theme
from stepscope.app.tui.actions import EVERYWHERE, bindings
from stepscope.app.tui.pages.blame import BlamePage
from stepscope.app.tui.pages.findings import FindingsPage
from stepscope.app.tui.pages.loading import Models, Opening
from stepscope.app.tui.pages.overview import OverviewPage
from stepscope.app.tui.pages.overview_words import verdict
from stepscope.app.tui.pages.step import StepPage
from stepscope.app.tui.pages.timeline import WIDE, TimelinePage
from stepscope.app.tui.plot.minimap import Minimap
from stepscope.app.tui.screens.explain import ExplainScreen
from stepscope.app.tui.screens.help import HelpScreen
from stepscope.app.tui.screens.search import SearchScreen
from stepscope.app.tui.view_state import ViewState
from stepscope.app.tui.widgets.footer import Footer
from stepscope.app.tui.widgets.prose import Paragraph
from stepscope.app.tui.widgets.state_legend import legend
from stepscope.app.tui.widgets.table import Table
from stepscope.app.tui.widgets.tabs import Tabs
from stepscope.app.tui.widgets.top_bar import TopBar
from stepscope.ingest.trace import Trace

LEAST_WIDTH = 50
LEAST_HEIGHT, HIGH = 12, 34


class StepscopeApp(App[None]):
    """Shows a trace on five pages; without a result it runs the rules itself, in a thread."""

    TITLE = "stepscope"
    CSS_PATH = "stepscope.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(EVERYWHERE)]
    # Textual declares these as lists of the instance, not of the class.
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (LEAST_WIDTH, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (LEAST_HEIGHT, "-low"), (HIGH, "-high")]  # noqa: RUF012

    def __init__(self, trace: Trace, result: CheckResult | None) -> None:
        super().__init__()
        self.trace = trace
        self.result = result
        self.models: Models | None = None
        self.session: Session | None = None
        self.register_theme(theme.STEPSCOPE)
        self.theme = theme.STEPSCOPE.name
        self.view: ViewState | None = None

    def compose(self) -> ComposeResult:
        """Lay out what every page shares, and the pages."""
        yield TopBar(id="top")
        yield Tabs(id="tabs")
        with ContentSwitcher(id="pages", initial="opening"):
            yield Opening(self.trace, id="opening")
            yield OverviewPage(id="overview")
            yield TimelinePage(self.trace, id="timeline")
            yield FindingsPage(self.trace, id="findings")
            yield StepPage(id="step")
            yield BlamePage(self.trace, id="blame")
        too_small = f"stepscope needs a terminal of {LEAST_WIDTH} x {LEAST_HEIGHT} at least"
        yield Static(too_small, id="too-small", markup=False)
        yield Footer(id="footer")

    def on_mount(self) -> None:
        """Begin to read."""
        top = self.query_one(TopBar)
        top.trace_name = self.trace.name
        manifest = self.trace.manifest
        top.variant = " · ".join(part for part in (manifest.scenario, manifest.variant) if part)
        self.query_one(Opening).read()

    # ── what was read ────────────────────────────────────────────────────────────────────────

    @on(Opening.Progressed)
    def _show_progress(self, event: Opening.Progressed) -> None:
        self.query_one(TopBar).progress = event.text

    @on(Opening.Opened)
    def _take_models(self, event: Opening.Opened) -> None:
        self.models = event.models
        self.view = ViewState(event.models.timeline)
        self.query_one(OverviewPage).show(event.models.about, event.models.composition)
        self.action_page("overview")
        if self.result is None:
            self.query_one(Opening).check()
        else:
            self._take(self.result)

    @on(Opening.Folded)
    def _take_session(self, event: Opening.Folded) -> None:
        if self.view:
            self.session = event.session
            self.query_one(StepPage).open(event.session, self.view.timeline)
            self._show_page()

    @on(Opening.Checked)
    def _take_result(self, event: Opening.Checked) -> None:
        self._take(event.result)

    @on(Opening.Failed)
    def _say_what_failed(self, event: Opening.Failed) -> None:
        said = str(event.error)
        if event.work == "fold":
            self.query_one(StepPage).say(said)
        elif self.view:
            self.query_one(TopBar).progress = "not checked"
            self.query_one(OverviewPage).show_verdict([Paragraph(said)])
            self.view.without_findings = said
            self._show_page()

    def _take(self, result: CheckResult) -> None:
        self.result = result
        self.query_one(TopBar).result = result
        self.query_one(OverviewPage).show_verdict(verdict(result))
        if self.view:
            self.view.findings = result.findings
            self.view.without_findings = result.coverage.without_findings
            self._show_page()

    # ── pages ────────────────────────────────────────────────────────────────────────────────

    @property
    def page(self) -> str:
        """The page that is open."""
        return self.query_one(ContentSwitcher).current or "opening"

    def action_page(self, name: str) -> None:
        """Open a page."""
        if self.view is None:
            return
        self.query_one(ContentSwitcher).current = name
        self.query_one(Tabs).page = self.query_one(Footer).page = name
        self.query_one(f"#{name}").focus()
        self._show_page()

    def _show_page(self) -> None:
        """Bring the open page and the top bar up to what is being looked at."""
        if self.view is None or self.models is None:
            return
        match self.page:
            case "overview":
                self.query_one(OverviewPage).point_at(self._step_index())
            case "timeline":
                self.query_one(TimelinePage).show(self.view)
            case "findings":
                self.query_one(FindingsPage).show(self.view)
            case "step":
                if self.session:
                    self.session.goto(ts_ns=self.view.cursor_ns)
                self.query_one(StepPage).show()
            case "blame":
                self.query_one(BlamePage).show()
        self._show_place()

    def _step_index(self) -> int | None:
        """Which of the overview's steps the cursor is in; None before the first."""
        if self.models is None or self.view is None or not len(self.models.composition.ts_ns):
            return None
        return self.models.composition.index_at(self.view.cursor_ns)

    def _show_place(self) -> None:
        if self.models is None or self.view is None:
            return
        at, steps = self._step_index(), self.models.composition.step
        step = step_of(None if at is None else int(steps[at]), at, len(steps)) if len(steps) else ""
        # The session stands where something happened, which may be later than the cursor.
        at_step = self.page == "step" and self.session is not None
        ts_ns = self.session.position.ts_ns if at_step and self.session else self.view.cursor_ns
        self.query_one(TopBar).place = f"{step}  {when(ts_ns, self.view.timeline)}".lstrip()
        self.query_one(Tabs).legend = legend(self.view) if self.page == "timeline" else ()

    # ── actions ──────────────────────────────────────────────────────────────────────────────

    def action_step(self, by: int) -> None:
        """Go to the next or the previous step."""
        if self.session is None or self.view is None:
            return
        self.session.goto(ts_ns=self.view.cursor_ns)
        if self.session.next() if by > 0 else self.session.back():
            self._move_to(self.session.position.ts_ns)

    def action_finding(self, by: int) -> None:
        """Go to the next or the previous finding, in the timeline."""
        if self.view and self.view.next_finding(by):
            self._show_finding()

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

    def action_help(self) -> None:
        """Open the help."""
        self.push_screen(HelpScreen(self.page))

    def action_clear(self) -> None:
        """Let go of the mark, the selection, the filter, or the request that is followed."""
        if self.page == "step" and self.query_one(StepPage).let_go():
            return
        if self.view and self.view.clear():
            self._show_page()

    def _show_finding(self) -> None:
        self.query_one(TimelinePage).show_details(shown=True)
        self.action_page("timeline")
        self.query_one(TimelinePage).reveal()

    def _go_to(self, hit: Hit | None) -> None:
        if hit is None or self.view is None:
            return
        self.view.visit(hit)
        if self.page != "step" or hit.kind != "step":
            self.action_page("timeline")
            self.query_one(TimelinePage).reveal()
        self._show_page()

    def _move_to(self, ts_ns: int) -> None:
        if self.view:
            self.view.move_to(ts_ns)
            self._show_page()

    # ── what the pages say ───────────────────────────────────────────────────────────────────

    @on(TimelinePage.Changed)
    def _follow_timeline(self) -> None:
        self._show_place()

    @on(OverviewPage.Moved)
    def _follow_overview(self, event: OverviewPage.Moved) -> None:
        if self.models:
            self._move_to(int(self.models.composition.formed_ns[event.index]))

    @on(StepPage.Moved)
    def _follow_session(self) -> None:
        if self.session:
            self._move_to(self.session.position.ts_ns)

    @on(FindingsPage.Opened)
    @on(Minimap.FindingChosen)
    def _open_finding(self, event: FindingsPage.Opened | Minimap.FindingChosen) -> None:
        self.action_jump(event.index)

    @on(BlamePage.Opened)
    def _open_request(self, event: BlamePage.Opened) -> None:
        if self.view:
            lane = self.view.timeline.lane_of_request(event.rank, event.request)
            self._go_to(Hit("request", event.request, lane, event.arrive_ns, event.arrive_ns))

    @on(Table.Chosen, "#finding-list")
    def _jump_to_row(self, event: Table.Chosen) -> None:
        self.action_jump(event.index)
