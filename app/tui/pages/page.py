"""What every page is: a widget with keys of its own, shown what is opened as it is opened."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, ClassVar

from textual.message import Message
from textual.widget import Widget

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.latency.blame import Blame, blame
from stepscope.analyzers.summary.slo import Slo
from stepscope.app.debug import Session
from stepscope.app.kept.flags import Flag
from stepscope.app.live.follower import Status
from stepscope.app.live.found_so_far import Came
from stepscope.app.live.words import STEPS_ARE_NOT_WALKED
from stepscope.app.present.tab import Tab
from stepscope.app.timeline import Hit
from stepscope.app.timeline.flags.flag_at import FlagAt
from stepscope.app.timeline.flags.flag_walk import flag_here
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.actions import Action, bindings
from stepscope.app.tui.pages.loading import Models
from stepscope.app.tui.widgets.text_bar import Piece
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace


@dataclass(frozen=True, slots=True)
class Live:
    """How a recording goes on that is followed, and what was found so far."""

    status: Status
    came: Sequence[Came]


Who = tuple[int, str]
"""A request: its rank and its id."""


@dataclass(slots=True)
class Opened:
    """A trace and all that pages show of it, as far as threads have come.

    `session` and `result` are None until they are there; `failed` says why one never will be, by
    what could not be done: "step through" or "check". `slo` is what latencies are held against, and
    `request` the one that was asked for last. `live` is there while a recording is followed.
    """

    trace: Trace
    models: Models
    view: Navigator
    session: Session | None = None
    result: CheckResult | None = None
    failed: dict[str, str] = field(default_factory=dict)
    slo: Slo | None = None
    request: Who | None = None
    live: Live | None = None
    _blamed: Blame | None = None
    _lock: Lock = field(default_factory=Lock)

    def blamed(self) -> Blame:
        """What each request's latency went to; the first who asks works it out, in a thread.

        Raises `StepscopeError` where a recording is followed, and rows may be left out.
        """
        if self.live:
            raise StepscopeError(STEPS_ARE_NOT_WALKED)
        with self._lock:
            if self._blamed is None:
                self._blamed = blame(self.trace)
            return self._blamed

    @property
    def step_index(self) -> int | None:
        """Which of the steps the cursor is in; None before the first."""
        composition = self.models.composition
        return composition.index_at(self.view.cursor_ns) if len(composition) else None


class Page(Widget, can_focus=True):
    """A page: its keys are made from `ACTIONS`, its tab and its place from the tuple of pages."""

    ACTIONS: ClassVar[tuple[Action, ...]] = ()
    HITS: ClassVar[frozenset[str]] = frozenset()
    """Kinds of hits of a search that the page shows itself, so that it stays open."""

    class Changed(Message):
        """What is looked at was changed here."""

    @dataclass
    class Moved(Message):
        """Another time is to be looked at."""

        ts_ns: int

    @dataclass
    class FindingChosen(Message):
        """A finding, by its place among all, is to be shown in the timeline."""

        index: int

    @dataclass
    class RequestChosen(Message):
        """A request is to be shown in full."""

        rank: int
        request: str

    @dataclass
    class Visited(Message):
        """Something with a place is to be shown in the timeline."""

        hit: Hit

    @dataclass
    class FlagChosen(Message):
        """A flag is to be shown in the timeline."""

        flag: FlagAt

    def __init_subclass__(cls, **options: Any) -> None:
        cls.BINDINGS = [*bindings(cls.ACTIONS)]
        super().__init_subclass__(**options)

    @abstractmethod
    def show(self, opened: Opened) -> None:
        """Show what is opened: called when the page comes up, and when anything has changed."""

    def now_ns(self, opened: Opened) -> int:
        """The time that the top bar tells."""
        return opened.view.cursor_ns

    def legend(self, opened: Opened) -> Sequence[Piece]:
        """What stands beside the tabs."""
        del opened
        return ()

    def walk(self, by: int) -> bool:
        """Go by a step as only this page does; False where it goes as all do."""
        del by
        return False

    def asked(self, opened: Opened) -> Who | None:
        """The request that is in question here: that of the finding or span that is selected."""
        view = opened.view
        found = view.selection.finding
        if found and found.request is not None:
            return found.rank or 0, found.request
        if view.span is not None:
            return view.timeline.request_in(view.span)
        return None if view.lane is None else view.timeline.request_of(view.lane)

    def flag_place(self, opened: Opened) -> Flag:
        """Where a flag is put that is asked for here: at what is selected on the timeline."""
        return flag_here(opened.view)

    def let_go(self) -> bool:
        """Let go of what is chosen on this page alone; False if there is nothing to let go of."""
        return False


def page_of(tab: Tab) -> Page:
    """Make the page of a tab, with the tab's name as its id."""
    module = importlib.import_module(f"stepscope.app.tui.pages.{tab.name}")
    page = getattr(module, f"{tab.name.capitalize()}Page")(id=tab.name)
    assert isinstance(page, Page)
    return page
