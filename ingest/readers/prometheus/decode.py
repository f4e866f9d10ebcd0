"""Decode samples of metrics and their times from scrapes (text) and from JSON.

vllm:num_requests_running{engine="0",model_name="m"} 3.0 [1787267980000]

A file has successive scrapes, each after a line with its time (`date`, `date +%s`, an HTTP header,
a comment) or with a time after each sample: milliseconds since 1970 in Prometheus' text format,
seconds in OpenMetrics. The formats: prometheus.io/docs/instrumenting/exposition_formats,
prometheus.io/docs/prometheus/latest/querying/api (the matrix of a range query), and
VictoriaMetrics' `/api/v1/export` (one object per line with `metric`, `values` and `timestamps`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from stepscope.ingest.readers.text.counter_rows import epoch_ns, is_number
from stepscope.ingest.readers.text.times import stamp_of
from stepscope.ingest.times import SECOND

_SAMPLE = re.compile(
    r"([a-zA-Z_:][\w:.]{0,255})?(\{[^}]{0,4096}\})?\s+([+-]?[\w.+-]{1,64})(?:\s+(-?\d{1,19}(?:\.\d{1,9})?))?"
    r"(?:\s+#.*)?\s*"
)
_LABEL = re.compile(r'([a-zA-Z_]\w{0,127})="((?:[^"\\]|\\.){0,1024})"')
_ABOUT = ("# HELP", "# TYPE", "# UNIT", "# EOF")
_NUMBER = re.compile(r"(?<![\w.])(\d{10}(?:\.\d{1,9})?|\d{13}|\d{16}|\d{19})(?![\w.])")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_CLOCK = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?: (?P<half>[AP]M))?(?: (?P<zone>[+-]\d{4}))?"
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})"
_DATES = (
    re.compile(rf"\b(?P<day>\d{{1,2}}) {_MONTH} (?P<year>\d{{4}}) {_CLOCK}"),
    re.compile(
        rf"\b{_MONTH} {{1,2}}(?P<day>\d{{1,2}}) {_CLOCK}(?: [A-Z]{{2,5}})? (?P<year>\d{{4}})"
    ),
)
"""Dates as `date`, `date -R` and HTTP headers write them."""
_TIME_NAMES = ("time", "timestamp", "ts", "date", "epoch", "scrape", "scraped", "now")
"""Words with which the time line of a scrape may begin."""
_LONGEST_TIME_LINE = 200


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a metric with its labels, and its time if the sample has one."""

    name: str
    labels: Mapping[str, str]
    value: float
    ts_ns: int | None = None


def is_about(line: str) -> bool:
    """Whether a line describes a metric or ends a scrape."""
    return line.startswith(_ABOUT)


def sample_of(line: str) -> Sample | None:
    """Return the sample on a line, or None."""
    match = _SAMPLE.fullmatch(line)
    if match is None or (match[1] is None and match[2] is None):
        return None
    if match[2] is None and (match[1] or "").lower() in _TIME_NAMES:
        return None
    said = match[2] or ""
    if _LABEL.sub("", said).strip("{}, "):
        return None
    labels = {name: _unescaped(value) for name, value in _LABEL.findall(said)}
    name = match[1] or labels.pop("__name__", "")
    value = _number(match[3])
    if not name or value is None:
        return None
    return Sample(name, labels, value, epoch_ns(float(match[4])) if match[4] else None)


def time_of(line: str) -> int | None:
    """Return the time on a line that is not a sample, or None."""
    if len(line) > _LONGEST_TIME_LINE:
        return None
    if match := _NUMBER.search(line):
        return epoch_ns(float(match[1]))
    for form in _DATES:
        if match := form.search(line):
            return _date_ns(match.groupdict())
    stamp = stamp_of(line)
    return None if stamp is None or stamp.is_uptime else stamp.ns


def _date_ns(said: Mapping[str, str | None]) -> int | None:
    parts = {name: int(said[name] or 0) for name in ("year", "day", "h", "m", "s")}
    hour = parts["h"] % 12 + 12 * (said["half"] == "PM") if said["half"] else parts["h"]
    zone = said["zone"]
    away = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:])) if zone else timedelta()
    try:
        moment = datetime(
            parts["year"], _MONTHS.index(said["month"] or "Jan") + 1, parts["day"], hour,
            parts["m"], parts["s"], tzinfo=timezone(-away if zone and zone[0] == "-" else away),
        )  # fmt: skip
    except ValueError:
        return None
    seconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    return seconds * SECOND if 0 <= seconds < 1 << 33 else None


def samples_of(value: object) -> Iterator[Sample | None]:
    """Yield the samples of a query's answer or an exported series; None for invalid ones."""
    if isinstance(value, list):
        for inner in value:
            yield from samples_of(inner)
        return
    found = value if isinstance(value, dict) else {}
    data = found.get("data")
    result = data.get("result") if isinstance(data, dict) else None
    for series in result if isinstance(result, list) else [found]:
        if isinstance(series, dict) and isinstance(series.get("metric"), dict):
            yield from _series(series)


def _series(series: Mapping[str, Any]) -> Iterator[Sample | None]:
    labels = {
        key: value for key, value in series["metric"].items()
        if isinstance(key, str) and isinstance(value, str)
    }  # fmt: skip
    name = labels.pop("__name__", "value")
    values, times = series.get("values"), series.get("timestamps")
    single = series.get("value")
    if isinstance(values, list) and isinstance(times, list):
        pairs: list[object] = list(zip(times, values, strict=False))
    else:
        pairs = values if isinstance(values, list) else [single] if single is not None else []
    for pair in pairs:
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2
        at, said = pair if isinstance(pair, list | tuple) and is_pair else (None, None)
        number = _number(str(said)) if isinstance(said, int | float | str) else None
        ts_ns = epoch_ns(at) if is_number(at) else None
        is_sample = number is not None and ts_ns is not None
        yield Sample(name, labels, number or 0.0, ts_ns) if is_sample else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _unescaped(value: str) -> str:
    return value.replace('\\"', '"').replace("\\n", " ").replace("\\\\", "\\")
