"""The line below the tabs where a recording is followed, or where the file on disk has changed.

It asks for what is new in a thread, one question at a time, and posts what came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from textual import work
from textual.message import Message
from textual.reactive import reactive
from textual.timer import Timer

from stepscope.app.live.carried_over import timeline_since
from stepscope.app.live.follower import Follower, Look, Status
from stepscope.app.live.found_so_far import Came
from stepscope.app.live.on_disk import OnDisk, begun_since
from stepscope.app.live.words import CHANGED, VANISHED, Following, begun, line, short
from stepscope.app.present.blocks import Tone
from stepscope.app.printable import plain
from stepscope.app.timeline import Composition
from stepscope.app.tui.ink import MUTED, PANEL, TONES, ink
from stepscope.app.tui.pages.loading import Models
from stepscope.app.tui.pages.overview_words import about
from stepscope.app.tui.widgets.text_bar import Bar, Piece
from stepscope.ingest.live.growing_trace import RecordingState

ASK_EVERY_S = 0.3
LOOK_AT_DISK_EVERY_S = 2.0


class LiveStrip(Bar):
    """How a recording goes on; hidden where nothing is followed and nothing has changed."""

    left_gives_way = False
    status: reactive[Status | None] = reactive(None, always_update=True)
    following: reactive[Following] = reactive(Following.NEWEST)
    said: reactive[str] = reactive("")

    @dataclass
    class Renewed(Message):
        """More was recorded, or found: what is to be shown."""

        follower: Follower
        look: Look
        models: Models

    @dataclass
    class Told(Message):
        """How it goes on, and a sentence on what lies on the disk."""

        status: Status | None
        said: str

    def __init__(
        self, path: Path | None, follower: Follower | None, *, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self.came: Sequence[Came] = ()
        self._follower = follower
        self._on_disk = OnDisk(path) if path else None
        self._shown: tuple[Follower, int] | None = None
        self._timer: Timer | None = None
        self.is_asking = False

    def on_mount(self) -> None:
        """Begin to ask."""
        self._appear()
        self._ask_again()

    def _ask_again(self) -> None:
        """Ask from now on as often as what is looked at may change."""
        if self._timer:
            self._timer.stop()
        every_s = ASK_EVERY_S if self._follower else LOOK_AT_DISK_EVERY_S
        has_news = self._follower or self._on_disk
        self._timer = self.set_interval(every_s, self.ask) if has_news else None

    def ask(self) -> None:
        """Ask what is new, unless that is being asked, or nobody wants to know."""
        if not self.is_asking and self.following is not Following.PAUSED:
            self.is_asking = True
            self._look()

    def forget(self) -> None:
        """Follow no longer: all that is on the disk was read anew."""
        self._follower = None
        self.status, self.said = None, ""
        if self._on_disk:
            self._on_disk = OnDisk(self._on_disk.path)
        self._appear()

    def look_at(self, path: Path, follower: Follower | None) -> None:
        """Look at what lies elsewhere from now on, or follow it."""
        self._on_disk = OnDisk(path)
        self.forget()
        self._follower, self.came, self.following = follower, (), Following.NEWEST
        self._appear()
        self._ask_again()

    def left(self) -> Sequence[Piece]:
        """What goes on, what matters most first."""
        if self.said:
            return [Piece(f" {plain(self.said)}", ink(TONES[Tone.WARNING], PANEL), "app.reload")]
        if self.status is None:
            return [Piece(" following …", ink(MUTED, PANEL))]
        pieces = line(self.status, self.following)
        return [
            Piece(f"{' · ' if at else ' '}{plain(text)}", ink(TONES[tone], PANEL))
            for at, (text, tone) in enumerate(pieces)
        ]

    def right(self) -> Sequence[Piece]:
        """The newest finding."""
        found = "" if self.status is None or self.said else short(self.came)
        return [Piece(f" {found} ", ink(TONES[Tone.WARNING], PANEL), "app.page('findings')")]

    @work(thread=True)
    def _look(self) -> None:
        """Ask in a thread; what came is posted."""
        follower = self._follower
        try:
            if follower is None:
                self.post_message(self.Told(None, self._on_the_disk()))
                return
            status = follower.refresh()
            said = ""
            if status.state is not RecordingState.RECORDING and (
                later := begun_since(follower.path)
            ):
                said = begun(later, "tui")
            if (follower, status.revision) != self._shown:
                look = follower.look()
                self._shown = follower, look.status.revision
                self.post_message(self.Renewed(follower, look, _models_of(look)))
            if follower is self._follower:
                self.post_message(self.Told(status, said))
        except OSError as error:
            self.post_message(self.Told(self.status, f"cannot be read: {error.strerror or error}"))
        finally:
            self.is_asking = False

    def _on_the_disk(self) -> str:
        if self._on_disk is None or not (self._on_disk.has_changed or self._on_disk.is_gone):
            return ""
        return VANISHED if self._on_disk.is_gone else CHANGED

    def on_live_strip_told(self, event: Told) -> None:
        """Show it."""
        event.stop()
        if self._follower or event.status is None:
            self.status, self.said = event.status, event.said
            self._appear()

    def _appear(self) -> None:
        self.display = bool(self._follower or self.said)


def _models_of(look: Look) -> Models:
    timeline = timeline_since(look.trace, look.status)
    composition = Composition.of(look.trace)
    return Models(timeline, composition, about(look.trace, composition))
