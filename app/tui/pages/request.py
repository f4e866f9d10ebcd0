"""A request in full: what it got, its life in true order, and why it waited each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import work
from textual.app import ComposeResult
from textual.message import Message

from stepscope.app.kept.flags import Flag
from stepscope.app.present.blocks import Paragraph, Tone
from stepscope.app.present.inspected.request_page import NO_REQUESTS, request_blocks
from stepscope.app.timeline import Hit
from stepscope.app.timeline.flags.flag_walk import flag_of_request
from stepscope.app.tui.actions import SCROLLS, actions
from stepscope.app.tui.pages.page import Opened, Page, Who
from stepscope.app.tui.widgets.latest import Latest
from stepscope.app.tui.widgets.prose import Prose, Shown
from stepscope.ingest.errors import StepscopeError

KEYS = (
    *actions(
        ("move(1)", "l,right,full_stop", "l .", "next request, in order of arrival", "request"),
        ("move(-1)", "h,left,comma", "h ,", "previous request", "request"),
        ("jump", "enter", "enter", "go to its arrival in the timeline", "go to it"),
        ("scroll(1)", "j,down", "j", "a line down", "scroll"),
        ("scroll(-1)", "k,up", "k", "a line up", "scroll"),
    ),
    *SCROLLS,
)


class RequestPage(Page):
    """Everything about the request that was asked for last, the first that came without one."""

    ACTIONS = KEYS
    SCOPED_CSS = False
    DEFAULT_CSS = "#request-words { height: 100%; width: 100%; }"
    HITS = frozenset({"request"})

    @dataclass
    class Described(Message):
        """A request was looked up, or it is said why not."""

        who: Who | None
        blocks: Sequence[Shown]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.opened: Opened | None = None
        self.who: Who | None = None
        self._latest: Latest[Who | None] = Latest(self._look_up)

    def compose(self) -> ComposeResult:
        """Lay out the words."""
        yield Prose(id="request-words")

    def flag_place(self, opened: Opened) -> Flag:
        """Where the lane of the request begins, where it has one."""
        own = flag_of_request(opened.view, *self.who) if self.who else None
        return own or super().flag_place(opened)

    def show(self, opened: Opened) -> None:
        """Show the request that is asked for."""
        is_new = self.opened is not opened or opened.request != self.who or self.who is None
        self.opened = opened
        if is_new:
            self._latest.ask(opened.request)

    def asked(self, opened: Opened) -> Who | None:
        """The request that is shown."""
        del opened
        return self.who

    @work(thread=True)
    def _look_up(self, who: Who | None) -> None:
        if self.opened:
            try:
                self.post_message(self.Described(*self._described(self.opened, who)))
            except StepscopeError as error:
                self.post_message(self.Described(who, [Paragraph(str(error))]))
            except Exception as error:
                # A traceback over the screen would tell a user nothing.
                what = f"cannot tell of the request: {type(error).__name__}: {error}"
                told = Paragraph(f"{what}; report this as a bug")
                self.post_message(self.Described(who, [told]))

    def _described(self, opened: Opened, who: Who | None) -> tuple[Who | None, Sequence[Shown]]:
        blamed = opened.blamed()
        if who is None and blamed.names_requests:
            rank, request = blamed.requests.row(0)[:2]
            who = rank, request
        if who is None:
            return None, [Paragraph(NO_REQUESTS, Tone.MUTED)]
        first_ns = opened.view.timeline.bounds[0]
        return who, list(request_blocks(opened.trace, blamed, who, first_ns, opened.slo))

    def on_request_page_described(self, event: Described) -> None:
        """Show what was found, unless another request is wanted by now."""
        event.stop()
        if self._latest.is_wanted() and self.opened:
            self.who = self.opened.request = event.who
            self.query_one(Prose).show(event.blocks)

    def action_move(self, by: int) -> None:
        """Go to the request that came after or before."""
        if self.opened is None or self.who is None:
            return
        every = self.opened.blamed().requests.select("rank", "request").rows()
        here = every.index(self.who) if self.who in every else 0
        if 0 <= here + by < len(every):
            self.opened.request = every[here + by]
            self._latest.ask(self.opened.request)

    def action_jump(self) -> None:
        """Go to its arrival in the timeline."""
        if self.opened is None or self.who is None:
            return
        rank, request = self.who
        timeline = self.opened.view.timeline
        lane = timeline.lane_of_request(rank, request)
        span = None if lane is None else timeline.next_span(lane, timeline.bounds[0] - 1)
        if span:
            ends = span.start_ns, span.end_ns
            self.post_message(self.Visited(Hit("arrival", request, lane, *ends)))

    def action_scroll(self, lines: int) -> None:
        """Scroll the words."""
        self.query_one(Prose).scroll_relative(y=lines, animate=False)
