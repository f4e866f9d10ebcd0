"""The range of time that a front shows, and the ways to move it."""

from __future__ import annotations

from dataclasses import dataclass

MIN_SPAN_NS = 1_000
"""The narrowest view: about a nanosecond a pixel."""
MAX_SPAN_NS = 2**62
"""The widest view, 146 years: differences of times in it still fit an int64."""
ZOOM, PAN = 1.5, 0.2
"""How many times less a key shows when it zooms in, and the share of the view by which it pans."""
WHEEL = 1.25
"""How many times less a notch of the wheel shows."""
FRAMED_SHARE, MOMENT_SHARE = 0.2, 0.02
"""Share of the view that something takes that was jumped to; without a length, so much of the trace
is shown around it."""


@dataclass(frozen=True, slots=True)
class Viewport:
    """The half-open range of time [t0, t1) in ns that is shown; every move gives a new one."""

    t0: int
    t1: int

    @property
    def span_ns(self) -> int:
        """Width of the view in time."""
        return self.t1 - self.t0

    @property
    def centre_ns(self) -> int:
        """Time in the middle of the view."""
        return self.t0 + self.span_ns // 2

    def zoom(self, factor: float, at: int | None = None) -> Viewport:
        """Show `factor` times less time (more, below 1); the time `at` keeps its place on screen.

        Without `at`, the centre stays. `factor` is positive.
        """
        assert factor > 0
        span_ns = _within(round(min(self.span_ns / factor, float(MAX_SPAN_NS))))
        anchor = self.centre_ns if at is None else at
        # The view may already be as narrow or wide as it gets; then nothing moves.
        t0 = anchor - (anchor - self.t0) * span_ns // max(self.span_ns, 1)
        return Viewport(t0, t0 + span_ns)

    def pan(self, fraction: float) -> Viewport:
        """Move by a fraction of the view's width; to later times when positive."""
        shift = round(self.span_ns * fraction)
        return Viewport(self.t0 + shift, self.t1 + shift)

    def centre(self, ts_ns: int) -> Viewport:
        """The same width with `ts_ns` in the middle."""
        t0 = ts_ns - self.span_ns // 2
        return Viewport(t0, t0 + self.span_ns)

    def fit(self, t0: int, t1: int, margin: float = 0.05) -> Viewport:
        """Show [t0, t1) with a margin on both sides, a fraction of it."""
        span_ns = _within(round((t1 - t0) * (1 + 2 * margin)))
        start = t0 + (t1 - t0) // 2 - span_ns // 2
        return Viewport(start, start + span_ns)

    @classmethod
    def framing(cls, start_ns: int, end_ns: int, bounds: tuple[int, int]) -> Viewport:
        """Show [start_ns, end_ns) in the middle, with what was around it, within `bounds`."""
        length_ns = end_ns - start_ns
        whole_ns = (bounds[1] - bounds[0]) * MOMENT_SHARE
        half_ns = max(round((length_ns / FRAMED_SHARE if length_ns > 0 else whole_ns) / 2), 1)
        middle = (start_ns + end_ns) // 2
        return cls(middle - half_ns, middle + half_ns).clamp(bounds)

    def clamp(self, bounds: tuple[int, int]) -> Viewport:
        """The nearest view that lies within `bounds`; a view that is wider shows them all."""
        first, last = bounds
        span_ns = min(_within(self.span_ns), last - first)
        t0 = max(first, min(self.t0, last - span_ns))
        return Viewport(t0, t0 + span_ns)


def _within(span_ns: int) -> int:
    return max(MIN_SPAN_NS, min(span_ns, MAX_SPAN_NS))
