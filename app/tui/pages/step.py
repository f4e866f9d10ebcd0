"""A step in detail: who was in the batch, who was left out and why, and what the engine held."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message

from stepscope.app.debug import Position, Session
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.shown.sought_hits import NO_TIMES, Sought, go_to_next
from stepscope.app.debug.shown.value_over_run import ValueOverRun
from stepscope.app.debug.shown.why_blocks import target_of
from stepscope.app.palette import HIT_GLYPH
from stepscope.app.present.where import of_rank, step_of, when
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.keymap import STOPS
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.actions import actions, of_keymap
from stepscope.app.tui.pages.page import Opened, Page
from stepscope.app.tui.pages.step_blocks import left_blocks, right_blocks, step_line
from stepscope.app.tui.pages.step_view import StepView, look_at_step
from stepscope.app.tui.pages.value_line import value_blocks
from stepscope.app.tui.screens.ask import AskScreen, what_to_draw, where_to_stop
from stepscope.app.tui.widgets.latest import Latest
from stepscope.app.tui.widgets.prose import Prose
from stepscope.app.tui.widgets.step_bar import StepBar
from stepscope.app.units import duration
from stepscope.app.widths import fit

Query = tuple[Position, str | None]


CALLED = {"break": "break", "value": "value", "next-hit": "hit(1)", "previous-hit": "hit(-1)"}
"""The methods here for the actions of the keymap that ask about the whole run."""
_IN_TIME = actions(
    ("event(-1)", "h,left,comma", "h ,", "previous event", "event"),
    ("event(1)", "l,right,full_stop", "l .", "next event", "event"),
    ("change(-1)", "I", "I", "previous change: a decision, an event, a block"),
    ("change(1)", "i", "i", "next change: a decision, an event, a block"),
    ("prove", "o", "o", "go to the row that proves why the request waits"),
    ("return", "b", "b", "go back to where that was asked"),
)
_ELSEWHERE = actions(
    ("move(1)", "j,down", "j", "next request", "request"),
    ("move(-1)", "k,up", "k", "previous request", "request"),
    ("edge(0)", "g,home", "g", "first step"),
    ("edge(-1)", "G,end", "G", "last step"),
    (
        "app.page('timeline')",
        "enter",
        "enter",
        "show this moment in the timeline",
        "in timeline",
    ),
)
KEYS = (*_IN_TIME, *of_keymap(STOPS, CALLED.__getitem__), *_ELSEWHERE)


class StepPage(Page):
    """Shows the position of a session; the session moves, the page follows."""

    ACTIONS = KEYS
    SCOPED_CSS = False
    DEFAULT_CSS = """
    #step-panes { height: 1fr; }
    #step-left { width: 1fr; height: 100%; }
    #step-right { width: 1fr; height: 100%; border-left: solid $border; }
    """
    HITS = frozenset({"step"})

    @dataclass
    class Seen(Message):
        """A position was looked up."""

        view: StepView

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.session: Session | None = None
        self._own: Session | None = None
        self.timeline: Timeline | None = None
        self._whose = ""
        self.step: StepView | None = None
        self.request: str | None = None
        self._came_from: list[Position] = []
        self._debugger: Debugger | None = None
        self._navigator: Navigator | None = None
        self.sought: Sought | None = None
        self.value: ValueOverRun | None = None
        self._latest: Latest[Query] = Latest(self._look_up)

    def compose(self) -> ComposeResult:
        """Lay out the bar and the two panes."""
        yield StepBar(id="step-bar")
        with Horizontal(id="step-panes"):
            yield Prose(id="step-left")
            yield Prose(id="step-right")

    def show(self, opened: Opened) -> None:
        """Move the session to the cursor and look there, or say why there is none to move."""
        self.timeline = opened.view.timeline
        self._whose = of_rank(opened.models.composition)
        if opened.session is not self.session:
            self.session = opened.session
            # The threads move a session of their own; what both read is never written to.
            self._own = copy.copy(opened.session)
            session = opened.session
            self._debugger = Debugger(opened.trace, session=session) if session else None
        self._navigator = opened.view
        if self.session:
            if self.session.position.ts_ns != opened.view.cursor_ns:
                self.session.goto(ts_ns=opened.view.cursor_ns)
            self._look()
        elif text := opened.failed.get("step through"):
            self.query_one(StepBar).number = fit(text, self.size.width or len(text))

    def now_ns(self, opened: Opened) -> int:
        """Where the session stands: something happened there, maybe later than the cursor."""
        return self.session.position.ts_ns if self.session else opened.view.cursor_ns

    def _look(self) -> None:
        if self.session:
            self._latest.ask((self.session.position, self.request))

    @work(thread=True)
    def _look_up(self, query: Query) -> None:
        if self._own:
            tables = self._debugger.tables if self._debugger else None
            self.post_message(self.Seen(look_at_step(self._own, *query, tables)))
            self._own.moments.ready()  # the key that goes to the next event waits for nothing

    def on_step_page_seen(self, event: Seen) -> None:
        """Show what was found, unless the session has moved on."""
        event.stop()
        if self._latest.is_wanted():
            self.step = event.view
            self._draw()

    def on_resize(self) -> None:
        """Fit the maps to the new width."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        view = self.step
        if view is None or self.timeline is None:
            return
        bar = self.query_one(StepBar)
        moments, step = view.moments, view.position.step
        index = None if step is None else moments.place_of(step)
        number = step_of(step, index, len(moments.steps))
        bar.number = f"{number}{self._whose} · {when(view.position.ts_ns, self.timeline)}"
        bar.about = self._told_of_hits() + step_line(view) + _took(view.detail.step)
        right = self.query_one("#step-right", Prose)
        self.query_one("#step-left", Prose).show(left_blocks(view), keep_place=True)
        drawn = value_blocks(self.value, view.position.ts_ns, right.room) if self.value else []
        right.show([*drawn, *right_blocks(view, right.room)], keep_place=True)

    # ── keys and mouse ───────────────────────────────────────────────────────────────────────

    def action_event(self, by: int) -> None:
        """Go to the next or the previous event."""
        if self.session:
            moved = self.session.next("event") if by > 0 else self.session.back("event")
            if moved:
                self._moved(self.session)

    def action_change(self, by: int) -> None:
        """Go behind the next or the previous change: many may bear one time."""
        if self.session and (self.session.next("seq") if by > 0 else self.session.back("seq")):
            self._moved(self.session)

    def action_prove(self) -> None:
        """Go to the row that proves the first link that is told elsewhere than here."""
        view = self.step
        for link in view.chain.links if view and view.chain else ():
            to = target_of(link.proof)
            if view and to and to.seq != view.position.seq:
                self.action_at_change(to.seq)
                return

    def action_at_change(self, seq: int) -> None:
        """Go behind a change, and remember from where."""
        if self.session:
            before = self.session.position
            if self.session.goto(seq=seq):
                self._came_from.append(before)
                self._moved(self.session)

    def action_return(self) -> None:
        """Go back to where a row was asked for."""
        if self.session and self._came_from:
            self.session.position = self._came_from.pop()
            self._moved(self.session)

    def action_break(self) -> None:
        """Ask for a condition to look for; without one nothing is looked for any more."""
        if self._debugger:
            before = self.sought.wanted if self.sought else ""
            self.app.push_screen(AskScreen(where_to_stop(self._debugger), before), self._look_for)

    def _look_for(self, found: Sought | Literal[""] | None) -> None:
        if found is None or self._navigator is None:
            return
        self.sought = found or None
        self._navigator.hits_ns = found.ts_ns if found else NO_TIMES
        self._draw()

    def action_value(self) -> None:
        """Ask for a value to draw over the run; without one none is drawn any more."""
        if self._debugger:
            before = self.value.wanted if self.value else ""
            self.app.push_screen(AskScreen(what_to_draw(self._debugger), before), self._draw_value)

    def _draw_value(self, value: ValueOverRun | Literal[""] | None) -> None:
        if value is not None:
            self.value = value or None
            self._draw()

    def action_at_time(self, ts_ns: int) -> None:
        """Go to a time of the run."""
        if self.session and self.session.goto(ts_ns=ts_ns):
            self._moved(self.session)

    def action_hit(self, by: int) -> None:
        """Go to the next hit of what is looked for, or to the one before."""
        if self._debugger is None or self.session is None:
            return
        if self.sought is None:
            self.action_break()
        elif go_to_next(self._debugger, self.sought, by):
            self._moved(self.session)
        else:
            which = "after" if by > 0 else "before"
            self.notify(f"{self.sought.wanted} has no hit {which} this", markup=False)

    def _told_of_hits(self) -> str:
        if self.sought is None or self._debugger is None:
            return ""
        return f"{HIT_GLYPH} {self.sought.told(self._debugger.here)} · "

    def action_edge(self, index: int) -> None:
        """Go to the first or the last step."""
        if self.session and self.session.moments.steps:
            self.session.goto(step=self.session.moments.steps[index])
            self._moved(self.session)

    def _moved(self, session: Session) -> None:
        self.post_message(self.Moved(session.position.ts_ns))

    def action_move(self, by: int) -> None:
        """Follow the next or the previous request."""
        requests = self.step.requests if self.step else []
        if requests:
            here = (
                requests.index(self.request) if self.request in requests else (-1 if by > 0 else 0)
            )
            self.action_follow(min(max(here + by, 0), len(requests) - 1))

    def action_scroll(self, lines: int) -> None:
        """Scroll both panes."""
        for pane in self.query(Prose):
            pane.scroll_relative(y=lines, animate=False)

    def action_follow(self, index: int) -> None:
        """Follow a request from here on, through all steps."""
        if self.step:
            self.request = self.step.requests[index]
            self._look()

    def let_go(self) -> bool:
        """Follow no request; False if none was followed."""
        had, self.request = self.request is not None, None
        if had:
            self._look()
        return had


def _took(step: Mapping[str, Any]) -> str:
    """How long a step took, and what of that the CPU was in it and the GPU busy with it."""
    took, cpu, busy = (step.get(name) for name in ("dur_ns", "cpu_dur_ns", "gpu_busy_ns"))
    if took is None:
        return ""
    if cpu is None or busy is None:
        return f" · took {duration(took)}"
    return f" · took {duration(took)} (CPU {duration(cpu)}, GPU busy {duration(busy)})"
