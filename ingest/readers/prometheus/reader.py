"""Reader of Prometheus metrics over time: samples become counters with the metric's name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.ingest.errors import LimitExceeded, UnknownFormat
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import blocks_of, inflated, whole_of
from stepscope.ingest.readers.prometheus.decode import (
    Sample,
    is_about,
    sample_of,
    samples_of,
    time_of,
)
from stepscope.ingest.readers.seam import HEAD_BYTES, OneFile
from stepscope.ingest.readers.text.collect import Line, LogRows, Source
from stepscope.ingest.readers.text.counter_rows import counter_trace
from stepscope.ingest.readers.text.fields import Number
from stepscope.ingest.readers.text.json_records import DAMAGED, json_values
from stepscope.ingest.readers.text.split import Lines
from stepscope.ingest.times import SECOND

NAME = "Prometheus"
SAMPLES, SCRAPES = "samples", "scrapes"
NO_END = "last line, which is cut off"
NO_SAMPLE = "lines that are not samples, or samples without a number"
HISTOGRAMS = "samples of histograms and summaries"
OTHERS = "samples of the process that serves the metrics (python_, process_, http_, ...)"
TIMELESS = "samples of scrapes without a time, left out because other scrapes have one"
RATES = "throughputs from totals of tokens at two scrapes"
NO_TIMES = (
    "no scrape has a time: their order is known, the time between them is not; write the time "
    "before each (date +%s)"
)
ONE_SCRAPE = "this is a single scrape of Prometheus metrics, which does not show what changed"
SCRAPE_OFTEN = (
    "scrape it over time into one file: while sleep 5; do date +%s; curl -s "
    "http://localhost:8000/metrics; done > metrics.txt; or ask Prometheus for "
    "/api/v1/query_range; or open the server's log"
)
NONE_READ = "these are metrics of Prometheus, and no sample of an engine is among them"
QUERY_AGAIN = (
    "ask /api/v1/query_range for metrics that the engine has, over the time of the run: "
    'query={__name__=~"vllm:.*"}, start, end and step=5s; or scrape the engine\'s /metrics'
)
THROUGHPUTS = {
    "vllm:prompt_tokens_total": "Avg prompt throughput",
    "vllm:prompt_tokens": "Avg prompt throughput",
    "sglang:prompt_tokens_total": "Avg prompt throughput",
    "llamacpp:prompt_tokens_total": "Avg prompt throughput",
    "vllm:generation_tokens_total": "Avg generation throughput",
    "vllm:generation_tokens": "Avg generation throughput",
    "sglang:generation_tokens_total": "Avg generation throughput",
    "llamacpp:tokens_predicted_total": "Avg generation throughput",
}
"""Totals of tokens, and the name of their rate in vLLM's log."""
_TEXT = re.compile(rb'(?m)^(?:# (?:HELP|TYPE) \w|\{__name__=")')
_JSON = re.compile(rb'\s*\[?\s*\{(?=[^}]{0,200}"(?:status|metric)")')
_JSON_MARKS = (b'"resultType"', b'"__name__"')
_HISTOGRAM = re.compile(r"_(?:bucket|sum|count|created)$")
_OTHERS = re.compile(r"(?:python|process|http|go|promhttp|scrape)_|up$")
_NUMBERS = ("engine", "dp_rank")
_PLACES = ("instance", "pod", "model_name")
_NO_NAMES = frozenset({
    *_NUMBERS, *_PLACES, "job", "namespace", "service", "endpoint", "container", "node",
    "tp_rank", "pp_rank", "moe_ep_rank", "engine_type", "cluster", "prometheus", "quantile",
})  # fmt: skip
"""Labels that say where a metric comes from, not what it measures."""
_LAST_RANK = 1 << 20
_POSITION_NS = 1_000
Series = tuple[str, tuple[tuple[str, str], ...]]


class PrometheusReader(OneFile):
    """Reads scrapes that follow each other, range queries and exported series."""

    name = "metrics of Prometheus over time (scrapes with times, range queries as JSON)"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell descriptions of metrics, dumped series, or JSON of series."""
        return _is_json(head) or _TEXT.search(head) is not None

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read the samples; raises `TraceError`."""
        blocks = blocks_of(path, progress, limits)
        metrics, ended = _Metrics(LogRows(limits)), None
        try:
            with path.open("rb") as file:
                head = inflated(file.read(HEAD_BYTES), HEAD_BYTES)
            if _is_json(head):
                ended = _read_json(metrics, whole_of(blocks, path, limits))
            else:
                _read_text(metrics, Lines(blocks, limits.line))
        except LimitExceeded as error:
            if error.where:
                raise
            ended = f"{error.what} ({error.todo})"
        clock = metrics.end()
        if clock is None:
            what, todo = (ONE_SCRAPE, SCRAPE_OFTEN) if metrics.has_samples else (
                NONE_READ + _listed(metrics.rows.skipped), QUERY_AGAIN
            )  # fmt: skip
            raise UnknownFormat(what, where=str(path), todo=todo)
        notes = [NO_TIMES] if clock == "none" else []
        return counter_trace(metrics.rows, NAME, clock, notes, ended or blocks.damage)


def _listed(skipped: Mapping[str, int]) -> str:
    counts = [f"{num:,} {what}" for what, num in skipped.items() if num]
    return f" ({'; '.join(counts)})" if counts else ""


def _is_json(head: bytes) -> bool:
    return bool(_JSON.match(head)) and any(mark in head for mark in _JSON_MARKS)


def _read_json(metrics: _Metrics, content: bytes) -> str | None:
    for value in json_values(content.decode("utf-8-sig", "replace")):
        if value is DAMAGED:
            return "cut off or damaged"
        for sample in samples_of(value):
            if sample is None:
                metrics.rows.skipped[NO_SAMPLE] += 1
            else:
                metrics.add(sample)
    return None


def _read_text(metrics: _Metrics, lines: Lines) -> None:
    for line, is_whole in lines:
        text = line.decode("utf-8", "replace").strip()
        if not text or is_about(text):
            continue
        if not is_whole:  # its value may be half of one
            metrics.rows.skipped[NO_END] += 1
            continue
        if sample := sample_of(text):
            metrics.add(sample)
        elif (ts_ns := time_of(text)) is not None:
            metrics.begin_scrape(ts_ns)
        elif not text.startswith("#"):
            metrics.rows.skipped[NO_SAMPLE] += 1
    metrics.rows.skipped.update(lines.left_out())


@dataclass(slots=True)
class _Metrics:
    """Collected rows, and the state of the current scrape."""

    rows: LogRows
    scrape: int = 0
    scrape_ns: int | None = None
    times: set[int] = field(default_factory=set)
    """Up to two different times of samples."""
    _seen: set[Series] = field(default_factory=set)
    _untimed: list[tuple[int, Sample]] = field(default_factory=list)
    _totals: dict[tuple[int, str], tuple[int, float]] = field(default_factory=dict)

    def begin_scrape(self, ts_ns: int | None) -> None:
        """Begin a scrape: the following samples belong to it, at its time if that is known."""
        self.scrape += bool(self._seen)
        self.scrape_ns = ts_ns
        self._seen.clear()

    def add(self, sample: Sample) -> None:
        """Add a sample; without a time of its own it has that of the current scrape."""
        if _HISTOGRAM.search(sample.name) or "quantile" in sample.labels:
            self.rows.skipped[HISTOGRAMS] += 1
            return
        if _OTHERS.match(sample.name):
            self.rows.skipped[OTHERS] += 1
            return
        if not math.isfinite(sample.value):
            self.rows.skipped[NO_SAMPLE] += 1
            return
        if sample.ts_ns is not None:
            self._put(sample, sample.ts_ns)
            return
        series = sample.name, tuple(sorted(sample.labels.items()))
        if series in self._seen:
            self.begin_scrape(None)
        self._seen.add(series)
        if self.scrape_ns is not None:
            self._put(sample, self.scrape_ns)
        else:
            self.rows.num_rows += 1
            self._untimed.append((self.scrape, sample))

    @property
    def has_samples(self) -> bool:
        """Whether any sample was read."""
        return bool(self.times or self._untimed)

    def end(self) -> str | None:
        """Add the samples without a time, and return the clock; None for a single moment."""
        if self.times:
            self.rows.skipped[TIMELESS] += len(self._untimed)
            return "wall" if len(self.times) > 1 else None
        if not self._untimed or self._untimed[-1][0] == 0:
            return None
        self.rows.num_rows -= len(self._untimed)
        for scrape, sample in self._untimed:
            self._put(sample, (scrape + 1) * _POSITION_NS, has_time=False)
        return "none"

    def _put(self, sample: Sample, ts_ns: int, *, has_time: bool = True) -> None:
        if len(self.times) < 2 and has_time:
            self.times.add(ts_ns)
        source = self._source(sample)
        other = {key: value for key, value in sample.labels.items() if key not in _NO_NAMES}
        labels = ",".join(f'{key}="{value}"' for key, value in sorted(other.items()))
        name = f"{sample.name}{{{labels}}}" if labels else sample.name
        self.rows.counters(source, ts_ns, {name: Number(sample.value, None)})
        self.rows.read[SAMPLES] += 1
        if has_time and sample.name in THROUGHPUTS and not labels:
            self._throughput(source, sample, ts_ns)

    def _throughput(self, source: Source, sample: Sample, ts_ns: int) -> None:
        """Add the rate of a total of tokens since its last sample; it may have been reset."""
        key = source.rank, sample.name
        before = self._totals.get(key)
        if before is None or ts_ns > before[0]:
            self._totals[key] = ts_ns, sample.value
        if before is None or ts_ns <= before[0]:
            return
        grown = sample.value - before[1] if sample.value >= before[1] else sample.value
        rate = grown * SECOND / (ts_ns - before[0])
        self.rows.inferred[RATES] += 1
        number = Number(rate, "tokens/s")
        self.rows.counters(source, ts_ns, {THROUGHPUTS[sample.name]: number})

    def _source(self, sample: Sample) -> Source:
        """Return the engine of a sample: its number, and its server if a label names it."""
        label = next((sample.labels[key] for key in _NUMBERS if sample.labels.get(key)), "0")
        number = int(label) if label.isdecimal() and len(label) < 7 else 0
        place = " ".join(sample.labels[key] for key in _PLACES if sample.labels.get(key))
        return self.rows.source("engine", Line("", place), label, number)
