"""What the application is made of: it reads the trace, and switches between pages that show it."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.filter import ANSIToTruecolor, LineFilter
from textual.widgets import ContentSwitcher, Static

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.summary.slo import Slo
from stepscope.app.live.carried_over import carried
from stepscope.app.live.follower import Follower
from stepscope.app.live.opener import Opener
from stepscope.app.present.tab import Tab
from stepscope.app.present.where import step_of, when
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui import pages, theme
from stepscope.app.tui.actions import bindings, everywhere
from stepscope.app.tui.light_ground import LightGround
from stepscope.app.tui.live_app import LiveApp
from stepscope.app.tui.pages.loading import PLAIN, Opening
from stepscope.app.tui.pages.page import Opened, Page, page_of
from stepscope.app.tui.pages.timeline import WIDE
from stepscope.app.tui.widgets.footer import Footer
from stepscope.app.tui.widgets.live_strip import LiveStrip
from stepscope.app.tui.widgets.tabs import Tabs
from stepscope.app.tui.widgets.top_bar import TopBar
from stepscope.app.units import clock_of, in_every_thread
from stepscope.ingest.trace import Trace

LEAST_WIDTH = 50
LEAST_HEIGHT, HIGH = 12, 34


class Shell(LiveApp):
    """Shows a trace on its pages; without a result it runs the rules itself, in a thread.

    `page` is the one that is open first, by its name: the first of them by default. Latencies are
    held against the `slo`. A `follower` follows a recording that is in progress; what lies on the
    disk is read anew, and other traces are opened, by the `opener`.
    """

    TITLE = "stepscope"
    CSS_PATH = "stepscope.tcss"
    ENABLE_COMMAND_PALETTE = False
    # Textual declares these as lists of the instance, not of the class.
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (LEAST_WIDTH, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - Textual's lists
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (LEAST_HEIGHT, "-low"), (HIGH, "-high")]  # noqa: RUF012 - Textual's lists

    def __init__(
        self,
        trace: Trace,
        result: CheckResult | None,
        page: str = "",
        slo: Slo | None = None,
        *,
        follower: Follower | None = None,
        opener: Opener = PLAIN,
    ) -> None:
        super().__init__()
        self.follower = follower
        self._opener = opener
        self.slo = slo
        self.trace = trace
        self.result = result
        self.opened: Opened | None = None
        self.tabs = self.pages()
        self.shared = everywhere(self.tabs)
        self.first_page = page or self.tabs[0].name
        for each in bindings(self.shared):
            self.bind(each.key, each.action, description=each.description)
        for is_light in (False, True):
            self.register_theme(theme.theme(is_light=is_light))
        self.theme = theme.DARK
        self._light_ground = LightGround()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What lines go through when they are drawn: on a light ground all colours are others.

        All colours here are of 24 bits; to look for others takes a tenth of the time of a frame.
        """
        filters = [
            each for each in super().get_line_filters() if not isinstance(each, ANSIToTruecolor)
        ]
        return [self._light_ground, *filters] if self.theme == theme.LIGHT else filters

    def action_light(self) -> None:
        """Go over to the colours of a light ground, or of a dark one."""
        self.theme = theme.DARK if self.theme == theme.LIGHT else theme.LIGHT

    def pages(self) -> tuple[Tab, ...]:
        """The pages that there are."""
        return pages.PAGES

    def compose(self) -> ComposeResult:
        """Lay out what every page shares, and the pages."""
        yield TopBar(id="top")
        yield Tabs(self.tabs, id="tabs")
        yield LiveStrip(self.trace.path, self.follower, id="live")
        with ContentSwitcher(id="pages", initial="opening"):
            yield Opening(self.trace, self._opener, id="opening")
            for tab in self.tabs:
                yield page_of(tab)
        too_small = f"stepscope needs a terminal of {LEAST_WIDTH} x {LEAST_HEIGHT} at least"
        yield Static(too_small, id="too-small", markup=False)
        yield Footer(self.shared, id="footer")

    def on_mount(self) -> None:
        """Begin to read."""
        self.name_trace()
        self.begin_to_read()

    def name_trace(self) -> None:
        """Say in the top bar what is looked at."""
        top = self.query_one(TopBar)
        top.trace_name = self.trace.name
        manifest = self.trace.manifest
        in_every_thread(has_times=manifest.clock.has_times)
        clock_of(has_times=manifest.clock.has_times)
        top.variant = " · ".join(part for part in (manifest.scenario, manifest.variant) if part)

    def on_unmount(self) -> None:
        """Leave the numbers of whatever comes after as they are."""
        in_every_thread(has_times=None)

    def begin_to_read(self) -> None:
        """Lay the trace out, or ask what is recorded by now."""
        if self.follower:
            self.strip.ask()
        else:
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
        models, before = event.models, self.opened
        if before is None:
            view = Navigator(
                models.timeline,
                composition=models.composition,
                collapsed=set(models.timeline.collapsed_at_first),
            )
        else:
            view = carried(before.view, models.timeline, models.composition, None, is_newest=False)
        self.opened = Opened(self.trace, models, view, slo=self.slo)
        self.opened.request = before.request if before else None
        if self.result is not None:
            self.take(self.result)
        self.action_page(self.page if before else self.first_page)
        if self.result is None:
            self.query_one(Opening).check()

    @on(Opening.Stepped)
    def _take_session(self, event: Opening.Stepped) -> None:
        if self.opened:
            self.opened.session = event.session
            self.show_page()

    @on(Opening.Checked)
    def _take_result(self, event: Opening.Checked) -> None:
        self.take(event.result)
        self.show_page()

    @on(Opening.Failed)
    def _say_what_failed(self, event: Opening.Failed) -> None:
        if self.opened is None:
            return
        self.opened.failed[event.work] = str(event.error)
        if event.work == "check":
            self.query_one(TopBar).progress = "not checked"
            self.opened.view.without_findings = str(event.error)
        self.show_page()

    def take(self, result: CheckResult) -> None:
        """Show what was found."""
        top = self.query_one(TopBar)
        self.result = top.result = result
        top.progress = ""
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
        self.show_page()

    def show_page(self) -> None:
        """Bring the open page and the top bar up to what is being looked at."""
        if self.opened:
            self.open_page.show(self.opened)
            self.show_place(self.opened)

    def begin(self) -> None:
        """Open the first page."""
        self.action_page(self.first_page)

    def show_place(self, opened: Opened) -> None:
        """Say in the top bar where one is."""
        self.keep_to_newest()
        at, steps = opened.step_index, opened.models.composition.step
        step = step_of(None if at is None else int(steps[at]), at, len(steps)) if len(steps) else ""
        ts_ns = self.open_page.now_ns(opened)
        self.query_one(TopBar).place = f"{step}  {when(ts_ns, opened.view.timeline)}".lstrip()
        self.query_one(Tabs).legend = self.open_page.legend(opened)
