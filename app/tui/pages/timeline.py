"""The timeline: map, ruler, lanes, details on the right, findings below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.reactive import reactive

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.present.about import how_many
from stepscope.app.timeline.flags.flag_at import FlagAt
from stepscope.app.timeline.keymap import TIMELINE
from stepscope.app.timeline.moves import MOVES
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.actions import SCROLLS, actions, of_keymap
from stepscope.app.tui.ink import ACCENT, MUTED, PANEL, TEXT, ink
from stepscope.app.tui.pages.finding_rows import FindingRows
from stepscope.app.tui.pages.page import Opened, Page
from stepscope.app.tui.plot.lane_list import Lanes
from stepscope.app.tui.plot.minimap import Minimap
from stepscope.app.tui.plot.time_axis import TimeAxis
from stepscope.app.tui.widgets.details_pane import Details
from stepscope.app.tui.widgets.state_legend import legend
from stepscope.app.tui.widgets.table import Table
from stepscope.app.tui.widgets.text_bar import Bar, Piece
from stepscope.ingest.trace import Trace

# From this width on the details stand beside the lanes, and are shown unless they are hidden.
WIDE = 110


class Beside(Horizontal):
    """Widgets side by side that cover it; it has no lines of its own to put together."""

    BLANK = True


class Below(Vertical):
    """Widgets one below the other that cover it; it has no lines of its own to put together."""

    BLANK = True


class Drawer(Bar):
    """The line over the findings; where details and findings share a place, it says which shows."""

    num_findings: reactive[str | None] = reactive(None)
    shows_details: reactive[bool] = reactive(default=False)

    def left(self) -> Sequence[Piece]:
        """How many findings there are."""
        number = "…" if self.num_findings is None else self.num_findings
        style = ink(MUTED if self.shows_details else TEXT, PANEL, bold=True)
        return [Piece(f" findings {number} ", style, "app.page('findings')")]

    def right(self) -> Sequence[Piece]:
        """The key that shows the details."""
        what = "hide details" if self.shows_details else "details"
        return [
            Piece(" enter", ink(ACCENT, PANEL, bold=True), "focused.details"),
            Piece(f" {what} ", ink(MUTED, PANEL), "focused.details"),
        ]


KEYS = (
    *of_keymap(TIMELINE, lambda action: f"move('{action}')"),
    *actions(
        ("details", "enter", "enter", "show or hide the details", "details"),
    ),
    *SCROLLS,
)


class TimelinePage(Page):
    """Draws a view state, and changes it as keys and mouse say."""

    @dataclass
    class FlagWanted(Message):
        """A flag is to be put at a time, or the one that is there is to be changed."""

        ts_ns: int
        flag: FlagAt | None

    ACTIONS = KEYS
    MINIMAP, AXIS, DETAILS = Minimap, TimeAxis, Details
    SCOPED_CSS = False
    DEFAULT_CSS = """
    #upper { height: 1fr; }
    #plot { width: 1fr; height: 100%; }
    Minimap { height: 3; }
    .-low Minimap { height: 2; }
    TimeAxis { height: 1; }
    Lanes { height: 1fr; }
    #details {
        display: none; width: 30%; min-width: 36; max-width: 50;
        height: 100%; border-left: solid $border;
    }
    .-details #details { display: block; }
    #finding-list { height: 9; }
    .-low #finding-list { height: 5; }
    .-narrow #upper { layout: vertical; }
    .-narrow #plot { width: 100%; height: 1fr; }
    .-narrow #details {
        width: 100%; max-width: 100%; height: 48%;
        border-left: none; border-top: solid $border;
    }
    .-narrow .-details #finding-list, .-narrow .-details Drawer { display: none; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.trace: Trace | None = None
        self.state: Navigator | None = None
        self._findings: Sequence[Finding] | None = None
        self._wants_details: bool | None = None

    def compose(self) -> ComposeResult:
        """Lay out the widgets."""
        with Beside(id="upper"):
            with Below(id="plot"):
                yield self.MINIMAP(id="minimap")
                yield self.AXIS(id="axis")
                yield Lanes(id="lanes")
            yield self.DETAILS(id="details")
        yield Drawer(id="drawer")
        yield Table(id="finding-list")

    # ── drawing ──────────────────────────────────────────────────────────────────────────────

    def show(self, opened: Opened) -> None:
        """Draw the state; its findings may have changed."""
        self.trace, state = opened.trace, opened.view
        table = self.query_one("#finding-list", Table)
        if self.state is not state or self._findings is not state.findings or not table.rows:
            self.state, self._findings = state, state.findings
            table.show(FindingRows(state))
        table.point_at(state.finding)
        self.draw()

    def draw(self) -> None:
        """Draw the state as it is now."""
        if self.state is None or self.trace is None or not self.is_mounted:
            return
        lanes = self.query_one(Lanes)
        lanes.show(self.state)
        self.query_one(TimeAxis).show(self.state, lanes.plot)
        self.query_one(Minimap).show(self.state, lanes.gutter_width)
        self.query_one(Details).look_up(self.state.selection, self.state.timeline, self.trace)
        drawer = self.query_one(Drawer)
        found = self.state.findings
        drawer.num_findings = None if found is None else how_many(found)
        drawer.shows_details = self.has_class("-details")

    def legend(self, opened: Opened) -> Sequence[Piece]:
        """The states that the trace has."""
        return legend(opened.view)

    def reveal(self) -> None:
        """Scroll to the selected lane and finding."""
        if self.state:
            lanes = self.query_one(Lanes)
            lanes.show(self.state)
            own = self.state.lane
            # Of a core, the whole group where there is room for it: its last row, then its first.
            group = [] if own is None else self.state.timeline.group_of(own)
            for lane in (*(each.id for each in (group[-1:] + group[:1])), own):
                lanes.reveal(self.state.row_of(lane))
            self.query_one("#finding-list", Table).point_at(self.state.finding)

    def changed(self, *, reveal: bool = False) -> None:
        """Draw what has changed, and tell whoever shows the same state elsewhere."""
        if reveal:
            self.reveal()
        self.draw()
        self.post_message(self.Changed())

    def on_resize(self) -> None:
        """Show the details where there is room for them, unless the user has decided."""
        if self._wants_details is None:
            self.set_class(self.size.width >= WIDE, "-details")

    # ── keys ─────────────────────────────────────────────────────────────────────────────────

    def action_move(self, name: str) -> None:
        """Change the state by one of its moves."""
        if self.state:
            MOVES[name](self.state)
            self.changed(reveal=True)

    def action_scroll(self, lines: int) -> None:
        """Scroll the text."""
        self.query_one("#details").scroll_relative(y=lines, animate=False)

    def action_details(self) -> None:
        """Show or hide the details."""
        self.show_details(not self.has_class("-details"))

    def show_details(self, shown: bool) -> None:
        """Give the details a place, or take it away."""
        self._wants_details = shown
        self.set_class(shown, "-details")

    @on(Lanes.Resized)
    def _fit(self) -> None:
        self.draw()

    @on(Details.Outlined)
    def _outline(self, event: Details.Outlined) -> None:
        event.stop()
        self.query_one(Lanes).outline(event.outlines)

    # ── mouse ────────────────────────────────────────────────────────────────────────────────

    @on(Lanes.Selected)
    def _select(self, event: Lanes.Selected) -> None:
        self._change(lambda state: state.select(event.lane, event.ts_ns))

    @on(Lanes.Zoomed)
    def _zoom(self, event: Lanes.Zoomed) -> None:
        self._change(lambda state: state.zoom(event.factor, event.ts_ns))

    @on(Lanes.Dragged)
    def _drag(self, event: Lanes.Dragged) -> None:
        self._change(lambda state: state.look_at(event.viewport))

    @on(Lanes.Marked)
    def _mark(self, event: Lanes.Marked) -> None:
        self._change(lambda state: state.set_mark(event.one_ns, event.other_ns, event.lanes))

    @on(Lanes.Collapsed)
    def _collapse(self, event: Lanes.Collapsed) -> None:
        self._change(lambda state: state.toggle_collapsed(event.key))

    @on(Minimap.FindingChosen)
    def _choose_mark(self, event: Minimap.FindingChosen) -> None:
        self.post_message(self.FindingChosen(event.index))

    @on(Minimap.FlagChosen)
    def _choose_flag_on_map(self, event: Minimap.FlagChosen) -> None:
        self.post_message(self.FlagChosen(event.flag))

    @on(TimeAxis.Clicked)
    def _click_ruler(self, event: TimeAxis.Clicked) -> None:
        if event.twice:
            self.post_message(self.FlagWanted(event.ts_ns, event.flag))
        elif event.flag:
            self.post_message(self.FlagChosen(event.flag))

    @on(Table.Chosen, "#finding-list")
    def _choose_row(self, event: Table.Chosen) -> None:
        self.post_message(self.FindingChosen(event.index))

    @on(Minimap.Chosen)
    def _look_there(self, event: Minimap.Chosen) -> None:
        self._change(lambda state: state.centre_on(event.ts_ns))

    def _change(self, change: Callable[[Navigator], None]) -> None:
        if self.state:
            change(self.state)
            self.changed()
