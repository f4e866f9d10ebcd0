"""A step in detail: who was in the batch, who was left out and why, and what the engine held."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message

from stepscope.app.debug import Position, Session
from stepscope.app.debug.debugger.all_ranks import flag_of
from stepscope.app.debug.shown.why_blocks import target_of
from stepscope.app.kept.flags import Flag
from stepscope.app.present.where import step_of, when
from stepscope.app.timeline import Timeline
from stepscope.app.tui.pages.page import Opened, Who
from stepscope.app.tui.pages.step_parts.asking import AskingPage
from stepscope.app.tui.pages.step_parts.step_blocks import (
    left_blocks,
    right_blocks,
    step_line,
)
from stepscope.app.tui.pages.step_parts.step_keys import KEYS
from stepscope.app.tui.pages.step_parts.step_view import Stand, StepView, look_at_step
from stepscope.app.tui.pages.step_parts.value_line import value_blocks
from stepscope.app.tui.widgets.latest import Latest
from stepscope.app.tui.widgets.prose import Prose
from stepscope.app.tui.widgets.step_bar import StepBar
from stepscope.app.widths import fit

Query = tuple[Position, str | None]


class StepPage(AskingPage):
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
        self.timeline: Timeline | None = None
        self.step: StepView | None = None
        self.request: str | None = None
        self._latest: Latest[Query] = Latest(self._look_up)

    @property
    def session(self) -> Session | None:
        """The session of the rank that is stood at; None before there is one."""
        return self.stand.session if self.stand else None

    def compose(self) -> ComposeResult:
        """Lay out the bar and the two panes."""
        yield StepBar(id="step-bar")
        with Horizontal(id="step-panes"):
            yield Prose(id="step-left")
            yield Prose(id="step-right")

    def show(self, opened: Opened) -> None:
        """Move the session to the cursor and look there, or say why there is none to move."""
        self.timeline = opened.view.timeline
        self.navigator = opened.view
        if stand := self.stand_of(opened):
            stand.follow(opened.view.cursor_ns)
            self._look()
        elif text := opened.failed.get("step through"):
            self.query_one(StepBar).number = fit(text, self.size.width or len(text))

    def stand_of(self, opened: Opened) -> Stand | None:
        """Where the page stands in what is opened; None as long as that has no session."""
        session = opened.session
        if session is not (self.stand.first if self.stand else None):
            steps = opened.models.composition
            self.stand = Stand(opened.trace, session, steps) if session else None
        return self.stand

    def asked(self, opened: Opened) -> Who | None:
        """The request that is followed, where there is one."""
        rank = self.session.position.rank if self.session else 0
        return (rank, self.request) if self.request is not None else super().asked(opened)

    def flag_place(self, opened: Opened) -> Flag:
        """Where the session stands, to which the flag then leads in the debugger as well."""
        return flag_of(self.session.position) if self.session else super().flag_place(opened)

    def now_ns(self, opened: Opened) -> int:
        """Where the session stands: something happened there, maybe later than the cursor."""
        return self.session.position.ts_ns if self.session else opened.view.cursor_ns

    def _look(self) -> None:
        if self.stand:
            self._latest.ask((self.stand.lend(), self.request))

    @work(thread=True)
    def _look_up(self, query: Query) -> None:
        if self.stand:
            own = self.stand.own_of(query[0])
            tables, session_of = self.stand.debugger.tables, self.stand.own_of_rank
            self.post_message(self.Seen(look_at_step(own, *query, tables, session_of)))
            own.moments.ready()  # the key that goes to the next event waits for nothing

    def on_step_page_seen(self, event: Seen) -> None:
        """Show what was found, unless the session has moved on."""
        event.stop()
        if self._latest.is_wanted():
            self.step = event.view
            self.draw()

    def on_resize(self) -> None:
        """Fit the maps to the new width."""
        self.call_after_refresh(self.draw)

    def draw(self) -> None:
        """Draw what was looked up last, as far as it is there."""
        view = self.step
        if view is None or self.timeline is None or self.stand is None:
            return
        bar = self.query_one(StepBar)
        moments, step = view.moments, view.position.step
        index = None if step is None else moments.place_of(step)
        number = step_of(step, index, len(moments.steps))
        bar.number = f"{number}{self.stand.whose} · {when(view.position.ts_ns, self.timeline)}"
        bar.about = self.told_of_hits + step_line(view)
        left, right = (self.query_one(f"#step-{side}", Prose) for side in ("left", "right"))
        left.show(left_blocks(view, left.room), keep_place=True)
        drawn = value_blocks(self.value, view.position.ts_ns, right.room) if self.value else []
        right.show([*drawn, *right_blocks(view, right.room)], keep_place=True)

    # ── keys and mouse ───────────────────────────────────────────────────────────────────────

    def action_event(self, by: int) -> None:
        """Go to the next or the previous event."""
        if self.session:
            moved = self.session.next("event") if by > 0 else self.session.back("event")
            if moved:
                self.moved(self.session)

    def action_change(self, by: int) -> None:
        """Go behind the next or the previous change: many may bear one time."""
        if self.session and (self.session.next("seq") if by > 0 else self.session.back("seq")):
            self.moved(self.session)

    def action_prove(self) -> None:
        """Go to the row that proves the first link that is told elsewhere than here."""
        view = self.step
        for link in view.chain.links if view and view.chain else ():
            to = target_of(link.proof, view.chain.elsewhere if view and view.chain else None)
            if view and to and (to.rank is not None or to.seq != view.position.seq):
                self.action_at_change(to.seq, to.rank)
                return

    def action_rank(self) -> None:
        """Go over to the next rank."""
        if self.stand and (rank := self.stand.next_rank) is not None:
            self.move_in_rank(partial(self.stand.debugger.switch, rank), rank)

    def action_at_time(self, ts_ns: int) -> None:
        """Go to a time of the run."""
        if self.session and self.session.goto(ts_ns=ts_ns):
            self.moved(self.session)

    def walk(self, by: int) -> bool:
        """Go to the next or previous step of another rank; False where the rank is the usual."""
        stand = self.stand
        if stand is None or not stand.is_elsewhere:
            return False
        if stand.session.next("step") if by > 0 else stand.session.back("step"):
            self.moved(stand.session)
        return True

    def action_edge(self, index: int) -> None:
        """Go to the first or the last step."""
        if self.session and self.session.moments.steps:
            self.session.goto(step=self.session.moments.steps[index])
            self.moved(self.session)

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
