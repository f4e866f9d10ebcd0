"""Lines of lanes as they were drawn last: a walk from lane to lane changes two of them."""

from __future__ import annotations

from textual.strip import Strip

from stepscope.app.tui.plot.lane_painter import LanePainter


class KeptStrips:
    """Gives the lines of a painter, and has it paint those alone that come to look otherwise."""

    def __init__(self) -> None:
        self._painter: LanePainter | None = None
        self._shared: tuple[object, ...] = ()
        self._strips: dict[int, tuple[tuple[object, ...], Strip]] = {}

    def begin(self, painter: LanePainter) -> None:
        """Forget all lines when something has changed that any of them may show."""
        # What is told apart by its id stays, so that nothing new comes to be at its place.
        self._painter = painter
        if (shared := painter.shared) != self._shared:
            self._shared = shared
            self._strips.clear()

    def strip(self, index: int) -> Strip | None:
        """A row by its number, as it was kept or painted now; None where nothing was begun."""
        if self._painter is None:
            return None
        own = self._painter.own(index)
        if (kept := self._strips.get(index)) is not None and kept[0] == own:
            return kept[1]
        strip = self._painter.strip(index)
        self._strips[index] = own, strip
        return strip
