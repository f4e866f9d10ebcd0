"""Rewritings of a profile after which it says the same: its bytes, its letters, its order."""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

from tests.ingest.zstd_frames import framed
from tests.metamorphic.documents import (
    Document,
    Event,
    each_time,
    exact,
    number,
    text_of,
    written,
)

COMPACT = {"separators": (",", ":")}
PRETTY = {"indent": 1}
LONG = "x" * 100_000


def plain(document: Document) -> bytes:
    """As profilers write it."""
    return text_of(document.top()).encode()


def gzipped(document: Document) -> bytes:
    return gzip.compress(plain(document))


def gzipped_in_members(document: Document) -> bytes:
    content = plain(document)
    return b"".join(gzip.compress(content[at : at + 9_999]) for at in range(0, len(content), 9_999))


def zstandard_frames(document: Document) -> bytes:
    content = plain(document)
    half = len(content) // 2
    frames = (content[:half], content[half:])
    return b"".join(framed(frame) for frame in frames)


def pretty(document: Document) -> bytes:
    return text_of(document.top(), **PRETTY).encode()


def compact(document: Document) -> bytes:
    return text_of(document.top(), **COMPACT).encode()


def lines_of_windows(document: Document) -> bytes:
    return text_of(document.top(), indent="\t").replace("\n", "\r\n").encode()


def much_space(document: Document) -> bytes:
    spaced = text_of(document.top(), separators=(" ,\n\t ", " :\r\n "))
    return f"\n\n  {spaced}\t\n".encode()


def marked_as_utf8(document: Document) -> bytes:
    return b"\xef\xbb\xbf" + plain(document)


def unescaped(document: Document) -> bytes:
    return text_of(document.top(), ensure_ascii=False).encode()


def escaped(document: Document) -> bytes:
    """Each letter of what names are as `\\u0061`, also of keys; of surrogates in either case."""
    text = re.sub(
        r'"(ph|name|cat|ts|dur|pid|tid|id|args|correlation)": ',
        lambda match: "".join(f"\\u{ord(letter):04X}" for letter in match[1]).join(('"', '": ')),
        text_of(document.top()),
    )
    return text.encode()


def keys_reversed(document: Document) -> bytes:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(each) for each in value] if isinstance(value, list) else value

    return text_of(turned(document.top())).encode()


def events_shuffled(document: Document) -> bytes:
    """Slices that begin and end in one moment keep their order: nothing else tells theirs."""
    random = Random(7)  # the same order each time
    places: dict[Any, list[Event]] = defaultdict(list)
    for event in document.events:
        places[event.get("pid"), event.get("tid"), written(event.get("ts", ""))].append(event)
    groups = list(places.values())
    random.shuffle(groups)
    document.events[:] = [event for group in groups for event in group]
    return plain(document)


def metadata_last(document: Document) -> bytes:
    document.events.sort(key=lambda event: event.get("ph") == "M")
    return plain(document)


def exponents(document: Document) -> bytes:
    return plain(each_time(document, lambda value: number(f"{value:e}")))


def exponents_below_zero(document: Document) -> bytes:
    return plain(each_time(document, lambda value: number(f"{value.scaleb(4):f}E-04")))


def times_as_strings(document: Document) -> bytes:
    return plain(each_time(document, lambda value: f"{value:f}"))


def times_with_zeros(document: Document) -> bytes:
    """Seventeen more decimals, all of them 0."""

    def longer(value: Decimal) -> str:
        return number(f"{value:f}{'' if '.' in f'{value:f}' else '.'}{17 * '0'}")

    return plain(each_time(document, longer))


def correlations(document: Document, spelled: Callable[[int], Any]) -> bytes:
    for event in document.events:
        for key in ("correlation", "External id"):
            if isinstance((event.get("args") or {}).get(key), int):
                event["args"][key] = spelled(event["args"][key])
    return plain(document)


def correlations_as_floats(document: Document) -> bytes:
    return correlations(document, lambda value: number(f"{value}.0"))


def correlations_as_strings(document: Document) -> bytes:
    return correlations(document, str)


def numbers_of_tracks_as_strings(document: Document) -> bytes:
    for event in document.events:
        event.update({key: str(event[key]) for key in ("pid", "tid", "id") if key in event})
    return plain(document)


def much_before_the_events(document: Document) -> bytes:
    document.before["otherData"] = {"log": LONG, '"traceEvents"': ['"traceEvents": [']}
    return plain(document)


def fields_behind_the_events(document: Document) -> bytes:
    top = {"traceEvents": document.events, **document.after, **document.before}
    return text_of(top).encode()


def unknown_fields(document: Document) -> bytes:
    for at, event in enumerate(document.events):
        event |= {"tts": at, "cname": "olive", "sf": at, "x": {"ts": 5, "args": {"ph": "X"}}}
    return plain(document)


def units_of_the_screen(document: Document) -> bytes:
    """`displayTimeUnit` says how a viewer writes times, not what they are."""
    document.before["displayTimeUnit"] = "ns"
    return plain(document)


def begins_and_ends(document: Document) -> bytes:
    """Slices of threads on which all nest, as a begin and an end each."""
    threads: dict[Any, list[Event]] = defaultdict(list)
    for event in document.events:
        threads[event.get("pid"), event.get("tid")].append(event)
    for events in threads.values():
        slices = [event for event in events if event.get("ph") == "X"]
        if len(slices) == len([event for event in events if event.get("ph") not in ("M", "s")]):
            _halved(document, slices)
    return plain(document)


def _halved(document: Document, slices: list[Event]) -> None:
    """Replace slices by their halves, each within what is around it; those that overlap stay."""
    halves: list[Event] = []
    opened: list[tuple[Decimal, Event]] = []
    inwards = sorted(slices, key=lambda event: (exact(event["ts"]), -exact(event["dur"])))
    for event in inwards:
        begins, ends = exact(event["ts"]), exact(event["ts"]) + exact(event["dur"])
        if ends == begins:
            return
        while opened and opened[-1][0] <= begins:
            halves.append(opened.pop()[1])
        if opened and opened[-1][0] < ends:
            return
        halves.append({**event, "ph": "B"})
        del halves[-1]["dur"]
        end = {key: event[key] for key in ("pid", "tid")}
        opened.append((ends, {**end, "ph": "E", "ts": number(f"{ends:f}")}))
    halves += [end for _, end in reversed(opened)]
    there = {id(event) for event in slices}
    document.events[:] = [event for event in document.events if id(event) not in there] + halves


SAME: tuple[Callable[[Document], bytes], ...] = (
    gzipped, gzipped_in_members, zstandard_frames, pretty, compact, lines_of_windows, much_space,
    marked_as_utf8, unescaped, escaped, keys_reversed, events_shuffled, metadata_last, exponents,
    exponents_below_zero, times_as_strings, times_with_zeros, correlations_as_floats,
    correlations_as_strings, numbers_of_tracks_as_strings, much_before_the_events,
    fields_behind_the_events, unknown_fields, units_of_the_screen, begins_and_ends,
)  # fmt: skip
