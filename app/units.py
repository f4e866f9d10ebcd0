"""Numbers as people read them: durations, moments, counts, and the ticks of a time ruler.

A trace without a clock has an order but no times. While one is shown (`clock_of`), moments and
ticks are positions in the log, and distances are numbers of positions. `stated` formats durations
that the log itself states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from stepscope.ingest.times import MS, POSITION_NS, SECOND, US

DAY = 86_400 * SECOND
UNITS = ((SECOND, "s"), (MS, "ms"), (US, "µs"), (1, "ns"))


POSITION = "position"
"""The unit of a ruler without a clock."""
_HAS_TIMES: ContextVar[bool | None] = ContextVar("has_times", default=None)


def clock_of(*, has_times: bool) -> None:
    """Set, for this context, whether moments of the shown trace are times or positions."""
    _HAS_TIMES.set(has_times)


_in_threads: bool | None = None


def in_every_thread(*, has_times: bool | None) -> None:
    """Set the default for all threads of a process that shows one trace."""
    global _in_threads  # noqa: PLW0603 - what a thread begins with is the process's
    _in_threads = has_times


@contextmanager
def of_one_trace(*, has_times: bool | None = None) -> Iterator[None]:
    """Use a clock of its own within the block; None until a trace is opened."""
    before = _HAS_TIMES.set(has_times)
    try:
        yield
    finally:
        _HAS_TIMES.reset(before)


def one_has_a_clock(*, has_times: bool) -> None:
    """Set the clock of traces that are shown together: times if any of them has a clock."""
    clock_of(has_times=has_times or _HAS_TIMES.get() is True)


def shows_times() -> bool:
    """Whether the trace that is shown has a clock."""
    here = _HAS_TIMES.get()
    return (_in_threads if here is None else here) is not False


def duration(ns: int) -> str:
    """A duration in its natural unit, three or four digits long: `3.04 µs`, `812 ns`.

    Without a clock it is a distance in the order of the log, `7 positions`.
    """
    if shows_times():
        return stated(ns)
    places = round(ns / POSITION_NS)
    return f"{places:,} {POSITION}{'' if places == 1 else 's'}"


def stated(ns: int) -> str:
    """A duration that was recorded as such, with or without a clock: `3.04 µs`."""
    scale, unit = next((each for each in UNITS if abs(ns) >= each[0]), UNITS[-1])
    value = ns / scale
    decimals = 0 if scale == 1 or abs(value) >= 1000 else 3 - len(str(int(abs(value))))
    return f"{value:,.{max(decimals, 0)}f} {unit}"


def length(ns: int) -> str:
    """How long something took that may have gone on for days."""
    return f"{ns / DAY:,.1f} days" if ns > 2 * DAY and shows_times() else duration(ns)


def moment(ns: int, resolution_ns: int) -> str:
    """A time since the trace began, in ms or s, with as many digits as the resolution deserves.

    Without a clock it is the position in the order of the log, `position 7`.
    """
    if not shows_times():
        return f"{POSITION} {round(ns / POSITION_NS):,}"
    scale, unit = UNITS[0] if abs(ns) >= UNITS[0][0] else UNITS[1]
    decimals = _decimals(scale, resolution_ns)
    return f"{ns / scale:,.{decimals}f} {unit}"


def count(number: int | float) -> str:
    """A number with thousands separated; fractions with up to three digits."""
    if isinstance(number, int) or float(number).is_integer():
        return f"{int(number):,}"
    return f"{number:,.3g}"


def amount(value: float, unit: str) -> str:
    """A counter's value with its unit."""
    return stated(round(value)) if unit == "ns" else f"{value:,.6g} {unit}".strip()


def quantity(name: str, value: int | float | str) -> tuple[str, str]:
    """A name with its unit in it, and its value, as a label and a text: `held_ns` is a duration."""
    unit = next((each for each in ("_ns", "_share") if name.endswith(each)), "")
    label = name.removesuffix(unit).replace("_", " ")
    if isinstance(value, str):
        return label, value
    if unit == "_ns":
        return label, duration(round(value))
    return label, f"{value:.1%}" if unit == "_share" else count(value)


def tick_step(span_ns: int, most: int) -> int:
    """The smallest step of 1, 2 or 5 times a power of ten that makes at most `most` ticks."""
    step = 1 if shows_times() else POSITION_NS
    while True:
        for factor in (1, 2, 5):
            if span_ns <= step * factor * max(most, 1):
                return step * factor
        step *= 10


def ticks(start_ns: int, end_ns: int, most: int) -> Iterator[tuple[int, str]]:
    """Times between two others, evenly spaced and round, each with its label; unit on the first."""
    step = tick_step(end_ns - start_ns, most)
    times = range(-(-start_ns // step) * step, end_ns, step)
    yield from zip(times, tick_labels(times, step, end_ns), strict=True)


def tick_labels(times: Sequence[int], step: int, end_ns: int) -> Iterator[str]:
    """Label times that are `step` apart, in the unit of the end; it stands on the first."""
    if not shows_times():
        for place, at in enumerate(times):
            yield f"{'' if place else f'{POSITION} '}{at // POSITION_NS:,}"
        return
    scale, unit = next((each for each in UNITS if max(abs(end_ns), 1) >= each[0]), UNITS[-1])
    decimals = _decimals(scale, step)
    for place, at in enumerate(times):
        label = f"{at / scale:,.{decimals}f}"
        yield label if place else f"{label} {unit}"


def _decimals(scale: int, resolution_ns: int) -> int:
    decimals = 0
    while scale > resolution_ns * 10**decimals and decimals < 9:
        decimals += 1
    return decimals
