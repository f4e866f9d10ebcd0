"""`stepscope tui A B`: the application over two traces, with one cursor and one range for both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual import on, work
from textual.app import ComposeResult
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import ContentSwitcher, Static

from stepscope.analyzers.summary.slo import Slo
from stepscope.app.paired.flags_of_both import FlagsOfBoth
from stepscope.app.paired.pair import Pair, pair_of
from stepscope.app.paired.standing import ALONE, Standing
from stepscope.app.present.spans.flag_words import PUT_ALONE
from stepscope.app.present.tab import Tab
from stepscope.app.timeline.keymap import PAIRED
from stepscope.app.tui import paired_pages
from stepscope.app.tui.actions import everywhere, of_keymap
from stepscope.app.tui.app import StepscopeApp
from stepscope.app.tui.ink import MUTED, PANEL, ink
from stepscope.app.tui.pages.loading import Models, Opening
from stepscope.app.tui.pages.overview_words import about
from stepscope.app.tui.pages.page import Opened, Page
from stepscope.app.tui.paired_pages.both_details import BothDetails, FindingsPage, TimelinePage
from stepscope.app.tui.paired_pages.delta_pages import BlamePage, DeltaPage, OverviewPage, StepPage
from stepscope.app.tui.paired_pages.plots import BothAxis, BothMinimap
from stepscope.app.tui.shell import LEAST_HEIGHT, LEAST_WIDTH
from stepscope.app.tui.widgets.footer import Footer
from stepscope.app.tui.widgets.live_strip import LiveStrip
from stepscope.app.tui.widgets.tabs import Tabs
from stepscope.app.tui.widgets.text_bar import Bar, Piece
from stepscope.app.tui.widgets.top_bar import TopBar
from stepscope.app.units import count, in_every_thread
from stepscope.app.widths import fit, fit_middle
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace

PAGE_TYPES: dict[str, type[Page]] = {
    "overview": OverviewPage,
    "timeline": TimelinePage,
    "findings": FindingsPage,
    "step": StepPage,
    "blame": BlamePage,
}
OF_ONE = (
    "follow",
    "pause",
    "reload",
    "request_here",
    "open_another",
    "flag",
)
"""Actions of one trace alone, which two together have no keys for."""


LONGEST_NAME = 16
"""Cells of the name of a trace at the top."""


class Relation(Bar):
    """How the two lie on each other, and where they diverge first, in the words of `diff`."""

    left_gives_way = False
    said: reactive[str] = reactive("")

    def left(self) -> Sequence[Piece]:
        """The sentence, as much of it as there is room for; a click goes to the divergence."""
        return [Piece(fit(f" {self.said}", self.size.width), ink(MUTED, PANEL), "app.divergence")]


class BothApp(StepscopeApp):
    """Goes where it is asked to go, in both traces at a time."""

    CSS = """
    BothMinimap, .-low BothMinimap { height: 3; }
    BothAxis { height: 2; }
    Relation { height: 1; background: $surface; }
    """

    @dataclass
    class Read(Message):
        """Both were laid out, checked and compared."""

        pair: Pair

    @dataclass
    class Exchanged(Message):
        """B can be A, summed up."""

        pair: Pair

    @dataclass
    class NotRead(Message):
        """They cannot be."""

        said: str

    @dataclass
    class Came(Message):
        """So far one has come."""

        said: str

    def __init__(self, traces: tuple[Trace, Trace], page: str = "", slo: Slo | None = None) -> None:
        super().__init__(traces[0], None, page, slo)
        self.traces = traces
        self.standing: Standing | None = None
        self._flags: FlagsOfBoth | None = None
        own = of_keymap(PAIRED, lambda action: action)
        self.shared = (
            *own, *(each for each in everywhere(self.tabs) if each.name not in OF_ONE),
        )  # fmt: skip
        for each in own:
            self.bind(each.keys, each.name, description=each.help)

    def pages(self) -> tuple[Tab, ...]:
        """Those that two traces have."""
        return paired_pages.PAGES

    def compose(self) -> ComposeResult:
        """The same parts as of one trace, with pages of two."""
        yield TopBar(id="top")
        yield Tabs(self.tabs, id="tabs")
        yield LiveStrip(None, None, id="live")
        yield Relation(id="relation")
        with ContentSwitcher(id="pages", initial="opening"):
            yield Opening(self.trace, id="opening")
            for tab in self.tabs:
                yield PAGE_TYPES[tab.name](id=tab.name)
        too_small = f"stepscope needs a terminal of {LEAST_WIDTH} x {LEAST_HEIGHT} at least"
        yield Static(too_small, id="too-small", markup=False)
        yield Footer(self.shared, id="footer")

    def begin_to_read(self) -> None:
        """Begin to read both."""
        top = self.query_one(TopBar)
        top.cuts_name = False
        top.trace_name, top.variant = _named(self.traces), ""
        self._read()

    @work(thread=True)
    def _read(self) -> None:
        self._sum_up(lambda: pair_of(self.traces, self._report, self.slo), self.Read)

    @work(thread=True)
    def _exchange(self, before: Pair) -> None:
        self._report("exchanging A and B")
        self._sum_up(before.swapped, self.Exchanged)

    def _sum_up(self, make: Callable[[], Pair], done: Callable[[Pair], Message]) -> None:
        """Make a pair and sum it up: here, and not when the first screen of it is drawn."""
        try:
            pair = make()
            self._report("summing up")
            _ = pair.summed
            self.post_message(done(pair))
        except StepscopeError as error:
            self.post_message(self.NotRead(str(error)))
        except Exception as error:
            # A traceback over the screen would tell a user nothing.
            said = (
                f"cannot compare the traces: {type(error).__name__}: {error}; report this as a bug"
            )
            self.post_message(self.NotRead(said))

    def _report(self, said: str) -> None:
        self.post_message(self.Came(said))

    @on(Came)
    def _show_came(self, event: Came) -> None:
        self.query_one(TopBar).progress = event.said
        self.query_one(Opening).update(f"{event.said} …")

    @on(NotRead)
    def _say_why_not(self, event: NotRead) -> None:
        self.query_one(TopBar).progress = "not compared"
        self.query_one(Opening).update(event.said)

    @on(Read)
    def _take_pair(self, event: Read) -> None:
        self.standing = Standing.first(event.pair)
        self._take_standing()
        self.begin()

    def _take_standing(self) -> None:
        """Show what is looked at by now: another alignment, or A and B exchanged."""
        standing = self.standing
        if standing is None:
            return
        a = standing.pair.sides[0]
        self._flags = standing.pair.flags(standing.alignment)
        models = Models(standing.timeline, a.composition, about(a.trace, a.composition))
        self.trace = a.trace
        has_times = any(each.manifest.clock.has_times for each in standing.pair.traces)
        in_every_thread(has_times=has_times)
        self.opened = Opened(a.trace, models, standing.view, result=standing.pair.results[0])
        top = self.query_one(TopBar)
        top.trace_name = _named(standing.pair.traces)
        top.progress = " · ".join(
            f"{letter} {count(sum(each.count for each in result.findings))}"
            for letter, result in zip("AB", standing.pair.results, strict=True)
        )
        top.progress = f"found {top.progress}"
        self.query_one(Relation).said = standing.said
        diverged = standing.pair.diverged_on_a(standing.alignment)
        for page in self.query_one(ContentSwitcher).children:
            if isinstance(page, DeltaPage):
                page.standing = standing
        for pane in self.query(BothDetails):
            pane.compare(standing)
        for minimap in self.query(BothMinimap):
            minimap.diverged = diverged
        for axis in self.query(BothAxis):
            axis.diverged = diverged

    # ── keys ─────────────────────────────────────────────────────────────────────────────────

    def action_divergence(self) -> None:
        """Go to the first step that differs, in the timeline, and say it in the words of `diff`."""
        if self.standing is None:
            return
        said = self.standing.pair.said
        if self.standing.diverged():
            self.action_page("timeline")
        self._say(said)

    def action_align(self) -> None:
        """Lay B on A by what comes next."""
        if self.standing:
            why = self.standing.next_alignment()
            self._take_standing()
            self.show_page()
            self._say(f"{why}; " * bool(why) + f"aligned by {self.standing.alignment.said}")

    def action_exchange(self) -> None:
        """Have B be A."""
        if self.standing:
            self._exchange(self.standing.pair)

    @on(Exchanged)
    def _take_exchanged(self, event: Exchanged) -> None:
        # Of a key that was pressed twice before anything came, the second asked for the same.
        if self.standing and self.standing.pair.swapped() is event.pair:
            self.standing.exchange()
            self._take_standing()
            self.show_page()

    def action_request(self, rank: int, request: str) -> None:
        """Lay B on A by a request's arrival, and look there."""
        if self.standing is None:
            return
        if why := self.standing.by_request(rank, request):
            self._say(why)
            return
        self._take_standing()
        self.action_page("timeline")
        self.query_one(TimelinePage).reveal()

    def action_at_step(self, step: int, rank: int | None = None) -> None:
        """Look at a step of A, in the timeline."""
        del rank
        if self.standing is None:
            return
        composition = self.standing.pair.sides[0].composition
        found = [at for at, each in enumerate(composition.step.tolist()) if each == step]
        if not found:
            self._say(f"A has no step {step:,}")
            return
        self._move_to(int(composition.formed_ns[found[0]]))
        self.action_page("timeline")

    def action_at_change(self, seq: int, rank: int | None = None) -> None:
        """Only of one trace."""
        del seq, rank
        self._say(f"the state behind a change {ALONE}")

    def _say(self, said: str) -> None:
        self.notify(said, markup=False)

    def action_follow(self) -> None:
        """Only of one trace."""
        self._say(f"a recording in progress {ALONE}")

    def action_open_another(self) -> None:
        """Only from one trace."""
        self._say("another trace is opened from one alone: open one of the two by itself")

    def flags_here(self) -> FlagsOfBoth | None:
        """The flags of both, as one lies on the other."""
        return self._flags

    def own_flags(self) -> None:
        """None: a flag is put on one trace."""

    def action_flag(self) -> None:
        """Only of one trace."""
        self._say(PUT_ALONE)

    def action_pause(self) -> None:
        """Only of one trace."""
        self.action_follow()

    def action_reload(self) -> None:
        """Only of one trace."""
        self._say(f"what lies on the disk anew {ALONE}")


def _named(traces: tuple[Trace, Trace]) -> str:
    """Which traces these are, in so few cells that both show."""
    names = (fit_middle(trace.name, LONGEST_NAME) for trace in traces)
    return " ".join(f"{letter} {name}" for letter, name in zip("AB", names, strict=True))
