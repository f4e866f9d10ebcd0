"""Numbers as people read them: durations, moments, counts, and the ticks of a time ruler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepscope.ingest.times import MS, SECOND, US

DAY = 86_400 * SECOND
UNITS = ((SECOND, "s"), (MS, "ms"), (US, "µs"), (1, "ns"))


def duration(ns: int) -> str:
    """A duration in its natural unit, three or four digits long: `3.04 µs`, `812 ns`."""
    scale, unit = next((each for each in UNITS if abs(ns) >= each[0]), UNITS[-1])
    value = ns / scale
    decimals = 0 if scale == 1 or abs(value) >= 1000 else 3 - len(str(int(abs(value))))
    return f"{value:,.{max(decimals, 0)}f} {unit}"


def length(ns: int) -> str:
    """How long something took that may have gone on for days."""
    return f"{ns / DAY:,.1f} days" if ns > 2 * DAY else duration(ns)


def moment(ns: int, resolution_ns: int) -> str:
    """A time since the trace began, in ms or s, with as many digits as the resolution deserves."""
    scale, unit = UNITS[0] if abs(ns) >= UNITS[0][0] else UNITS[1]
    decimals = _decimals(scale, resolution_ns)
    return f"{ns / scale:,.{decimals}f} {unit}"


def count(number: int | float) -> str:
    """A number with thousands separated; fractions with up to three digits."""
    if isinstance(number, int) or float(number).is_integer():
        return f"{int(number):,}"
    return f"{number:,.3g}"


def amount(value: float, unit: str) -> str:
    """What a counter says, in its unit."""
    return duration(round(value)) if unit == "ns" else f"{value:,.6g} {unit}".strip()


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
    step = 1
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
