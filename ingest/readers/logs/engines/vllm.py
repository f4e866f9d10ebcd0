"""Lines of vLLM: iterations, and what it says of itself every few seconds.

Iteration(7): 2 context requests, 7957 context tokens, 43 generation requests, 43 generation
    tokens, iteration elapsed time: 1125.94 ms[, GPU KV cache usage: 37.1%]
Avg prompt throughput: 2.3 tokens/s, ..., Running: 2 reqs, Waiting: 1 reqs, GPU KV cache usage: ..%
SpecDecoding metrics: Mean acceptance length: 2.10, Accepted throughput: 1.00 tokens/s, ...
Sequence group cmpl-1 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV
    cache space. ... total_num_cumulative_preemption=51

vLLM V0 writes the last of every fiftieth preemption: it is a count, and not who was preempted.

Before them `Engine 000: ` or `(EngineCore_DP0 pid=1)`, older `(EngineCore_0 pid=1)`, names the
data-parallel rank. "Context" are requests that have no token yet, so what is computed again after a
preemption is a "generation".

The format: vLLM, `vllm/v1/engine/core.py` and `vllm/v1/metrics/loggers.py`.
"""

from __future__ import annotations

import re

from stepscope.ingest.derive.step_tags import kind_of
from stepscope.ingest.readers.text.collect import Line, LogRows, Source
from stepscope.ingest.readers.text.fields import Number, fields, millis, samples

ITERATION = "vLLM Iteration lines"
RUNNING = "Running"
"""What each interval line of vLLM says, and other programs' lines that begin alike do not."""
_ITERATION = re.compile(
    r"Iteration\((\d{1,15})\): (\d{1,9}) context requests, (\d{1,15}) context tokens, "
    r"(\d{1,9}) generation requests, (\d{1,15}) generation tokens, "
    r"iteration elapsed time: (\d{1,12}(?:\.\d{1,9})?) ms"
)
_ENGINE = re.compile(r"\bEngine (\d{1,6}): |\bEngineCore_(?:DP)?(\d{1,6})\b")
PREEMPTED = "vLLM preemption lines"
_PREEMPTED = re.compile(r"\b(total_num_cumulative_preemption)=(\d{1,15})\b")
_HEADS = {
    "Avg prompt throughput: ": ("vLLM interval lines", ""),
    "SpecDecoding metrics: ": ("vLLM SpecDecoding lines", "SpecDecoding"),
}


class VllmLines:
    """Reads iterations as steps, and interval lines as counters."""

    name = "vLLM"
    markers = ("Iteration(", "total_num_cumulative_preemption=", *_HEADS)

    def take(self, line: Line, rows: LogRows) -> str | None:
        """Read an iteration or an interval line."""
        engine = _ENGINE.search(line.text)
        label = str(int(engine[1] or engine[2])) if engine else "0"
        if match := _ITERATION.search(line.text):
            source = rows.source(self.name, line, label, int(label))
            return _iteration(match, source, line, rows)
        if match := _PREEMPTED.search(line.text):
            source = rows.source(self.name, line, label, int(label))
            count = {match[1]: Number(float(match[2]), None)}
            rows.counters(source, rows.time(source, line).ns, count)
            return PREEMPTED
        for head, (kind, track) in _HEADS.items():
            _, found, behind = line.text.partition(head)
            said = behind if track else head + behind
            numbers = samples(fields(said, ": ", is_whole=line.is_whole)) if found else {}
            if numbers and (track or RUNNING in numbers):
                source = rows.source(self.name, line, label, int(label))
                rows.counters(source, rows.time(source, line).ns, numbers, track=track)
                return kind
        return None

    def end(self, rows: LogRows) -> None:
        """Nothing stays open."""


def _iteration(match: re.Match[str], source: Source, line: Line, rows: LogRows) -> str:
    context, context_tokens, generation, generation_tokens = map(int, match.groups()[1:5])
    dur_ns = millis(float(match[6])) or 0
    _, begins = rows.step(
        source,
        line,
        inferred=ITERATION,
        number=int(match[1]),
        dur_ns=dur_ns,
        is_end=True,
        kind=kind_of(context, generation),
        num_prefill_reqs=context,
        num_prefill_tokens=context_tokens,
        num_decode_reqs=generation,
        num_decode_tokens=generation_tokens,
    )
    behind = fields(line.text[match.end() :].removeprefix(", "), ": ", is_whole=line.is_whole)
    rows.counters(source, begins + dur_ns, samples(behind))
    return ITERATION
