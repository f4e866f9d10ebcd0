"""What the application does with flags: puts one where a page says, lists them, goes there."""

from __future__ import annotations

from textual import on

from stepscope.app.kept.flags import Flag, Flags
from stepscope.app.present.spans.flag_words import (
    FORM,
    GONE,
    PLACEHOLDER,
    came_of,
    first_line,
    place_for,
)
from stepscope.app.timeline.flags.flag_at import FlagAt, FlagsOnLanes, PlacedFlags
from stepscope.app.timeline.flags.flag_walk import (
    flag_at_time,
    flag_there,
    go_to_flag,
    next_flag,
)
from stepscope.app.tui.pages.page import Page
from stepscope.app.tui.pages.timeline import TimelinePage
from stepscope.app.tui.screens.ask import AskScreen, Question
from stepscope.app.tui.screens.flags import FlagChoice, FlagsScreen
from stepscope.app.tui.shell import Shell

LOOK_EVERY_S = 1.0
"""How often it is looked whether somebody else put a flag on the trace."""


class FlaggingApp(Shell):
    """Keeps the flags of a trace in what is looked at, and changes them as keys and mouse say."""

    _kept: Flags | None = None
    _placed: FlagsOnLanes | None = None

    def on_mount(self) -> None:
        """Begin to look for flags that others put."""
        self.set_interval(LOOK_EVERY_S, self._take_others)

    def flags_here(self) -> PlacedFlags | None:
        """The flags on the lanes that there are by now; None before there are any."""
        return self.own_flags()

    def own_flags(self) -> FlagsOnLanes | None:
        """The same as those of one trace, on which others can be put."""
        if self.opened is None:
            return None
        if self._kept is None:
            self._kept = Flags(self.trace.path)
        lanes = self.opened.view.timeline.lanes
        if self._placed is None or self._placed.lanes is not lanes:
            self._placed = FlagsOnLanes(self._kept, lanes)
        return self._placed

    def forget_flags(self) -> None:
        """Another trace is looked at."""
        self._kept = self._placed = None

    def show_page(self) -> None:
        """Show the flags of by now with the rest."""
        if self.opened and (flags := self.flags_here()):
            self.opened.view.flags = flags.now
        super().show_page()

    def _take_others(self) -> None:
        flags = self.flags_here()
        if self.opened and flags and flags.now is not self.opened.view.flags:
            self.show_page()

    # ── keys and mouse ───────────────────────────────────────────────────────────────────────

    def action_flag(self) -> None:
        """Ask for the note of a flag where the open page says, or of the one that is there."""
        if self.opened and self.own_flags():
            self.show_page()
            flag = self.open_page.flag_place(self.opened)
            self._ask(flag, flag_there(self.opened.view, flag))

    def action_flags(self) -> None:
        """List the flags."""
        if self.opened and (flags := self.flags_here()):
            self.push_screen(
                FlagsScreen(flags, self.opened.view.timeline, self._kept), self._follow_choice
            )

    def action_next_flag(self, by: int) -> None:
        """Go to the next flag or the one before, in the timeline."""
        if self.opened:
            self.show_page()
            if next_flag(self.opened.view, by):
                self._show_timeline()
            else:
                self.notify("there is no flag " + ("after" if by > 0 else "before") + " this")

    @on(TimelinePage.FlagWanted)
    def _put_at_time(self, event: TimelinePage.FlagWanted) -> None:
        if self.opened and self.own_flags():
            self._ask(flag_at_time(self.opened.view, event.ts_ns), event.flag)

    @on(Page.FlagChosen)
    def _go_to_chosen(self, event: Page.FlagChosen) -> None:
        self._go(event.flag)

    def _follow_choice(self, choice: FlagChoice | None) -> None:
        if choice is None:
            self.show_page()
            return
        what, flag = choice
        self._go(flag)
        if what == "change":
            self._ask(Flag(flag.ts_ns), flag)

    def _ask(self, flag: Flag, was: FlagAt | None) -> None:
        """Ask for a name and a note, and keep them."""
        flags = self.own_flags()
        if self.opened is None or flags is None:
            return
        if flags.failed:
            self.notify(flags.failed, severity="warning", markup=False)
            return
        name = was.name if was else ""
        place = place_for(flag, self.opened.view.timeline)
        gone = f"\n{GONE}" if was else "\nAn empty line puts none."
        asked = Question(
            PLACEHOLDER,
            f"{f'flag @{name}' if was else f'a flag at {place}'}\n\n{FORM}{gone}",
            lambda line: (flags.flags.typed(line, flag, name),),
        )

        def came(given: tuple[str | None] | str | None) -> None:
            if given is None:
                return
            if given == "":
                given = (flags.flags.typed("", flag, name),)
            if said := came_of(given[0] or None, name):
                self.notify(said, markup=False)
            self.show_page()

        self.push_screen(AskScreen(asked, first_line(flags.flags, was)), came)

    def _go(self, flag: FlagAt) -> None:
        if self.opened:
            go_to_flag(self.opened.view, flag)
            self._show_timeline()

    def _show_timeline(self) -> None:
        self.action_page("timeline")
        self.query_one(TimelinePage).reveal()
