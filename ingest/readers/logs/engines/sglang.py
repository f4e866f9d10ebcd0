"""Lines of SGLang's scheduler: prefill batches, decode batches, retractions.

[2025-07-18 15:32:52 TP0] Prefill batch[ [it]], #new-seq: 1, #new-token: 2192, #cached-token: 35,
    token usage: 0.00, #running-req: 0, #queue-req: 0, ...
[2025-07-18 15:32:54 DP0 TP0] Decode batch, #running-req: 1, #token: 2266, token usage: 0.00,
    cuda graph: True, gen throughput (token/s): 3.13, #queue-req: 0, ...
KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: 646,
    #new_token_ratio: 0.0980 -> 0.3487

Every prefill batch has a line; of decode batches only every 40th, by `--decode-log-interval`. Older
versions write `Prefill batch.`. The format: SGLang, `sglang/srt/managers/scheduler*.py`.
"""

from __future__ import annotations

import re

from stepscope.ingest.readers.text.collect import Line, LogRows, Source
from stepscope.ingest.readers.text.fields import LAST_COUNT, fields, number, samples

PREFILL, DECODE, RETRACT = (
    "SGLang Prefill batch lines", "SGLang Decode batch lines", "SGLang retractions",
)  # fmt: skip
SAMPLED = "SGLang writes a line for each prefill batch, but only for some decode batches"
UNNAMED = "preempted requests that the log does not name"
LIMIT_RETRACTED = 65_536
_RANKS = re.compile(r"\[[-\d :.,]{19,32}((?: [A-Z]{2}\d{1,5}){1,8})\]")
_RANK = re.compile(r"[A-Z]{2}(\d{1,5})")
_BATCH = re.compile(r"\b(Prefill|Decode) batch(?: \[(\d{1,15})\])?[.,] ")
_PATHS = {"True": "graph", "False": "eager"}
_GRAPH = " graph"
"""How the name of the field ends that says whether a graph ran: `cuda`, `cpu`, `npu` or `musa`."""
_IN_STEPS = ("#new-seq", "#new-token", "#running-req", "#queue-req")
_COUNTS = (*_IN_STEPS, "#retracted_reqs")
_NEEDS = {PREFILL: "#new-seq", DECODE: "#running-req", RETRACT: "#retracted_reqs"}


class SglangLines:
    """Reads batches as steps with counters, and a retraction as preemptions."""

    name = "SGLang"
    markers = ("Prefill batch", "Decode batch", "#retracted_reqs: ")

    def take(self, line: Line, rows: LogRows) -> str | None:
        """Read a batch or a retraction."""
        begin, kind = _BATCH.search(line.text), ""
        said: dict[str, str] = {}
        if begin:
            kind = PREFILL if begin[1] == "Prefill" else DECODE
            said = fields(line.text[begin.end() :], ": ", is_whole=line.is_whole)
        elif (at := line.text.find("#retracted_reqs: ")) >= 0:
            kind = RETRACT
            said = fields(line.text[at:], ": ", is_whole=line.is_whole)
        counts = {name: _count(said.get(name)) for name in _COUNTS}
        if not kind or counts[_NEEDS[kind]] is None:
            return None
        ranks = _RANKS.search(line.text)
        label = ranks[1].strip() if ranks else ""
        source = rows.source(self.name, line, label, _rank(label))
        if kind == RETRACT:
            _retracted(counts["#retracted_reqs"] or 0, said, source, line, rows)
        else:
            number = int(begin[2]) if begin and begin[2] else None
            _batch(kind, number, counts, said, source, line, rows)
        return kind

    def end(self, rows: LogRows) -> None:
        """Nothing stays open."""


def _batch(
    kind: str,
    iteration: int | None,
    counts: dict[str, int | None],
    said: dict[str, str],
    source: Source,
    line: Line,
    rows: LogRows,
) -> None:
    is_prefill = kind == PREFILL
    running = counts["#running-req"]
    # Under speculation a request decodes more than one token.
    decoded = None if "accept len" in said else running
    _, begins = rows.step(
        source,
        line,
        inferred=kind,
        number=iteration,
        kind="prefill" if is_prefill else "decode" if running else "idle",
        num_prefill_reqs=counts["#new-seq"] if is_prefill else 0,
        num_prefill_tokens=counts["#new-token"] if is_prefill else 0,
        num_decode_reqs=0 if is_prefill else running,
        num_decode_tokens=0 if is_prefill else decoded,
        num_running=running,
        num_waiting=counts["#queue-req"],
        executed_path=_path(said),
    )
    rest = {name: value for name, value in said.items() if name not in _IN_STEPS}
    rows.counters(source, begins, samples(rest))
    if not is_prefill:
        rows.notes[SAMPLED] = None


def _path(said: dict[str, str]) -> str | None:
    told = (_PATHS.get(value) for name, value in said.items() if name.endswith(_GRAPH))
    return next(told, None)


def _retracted(num: int, said: dict[str, str], source: Source, line: Line, rows: LogRows) -> None:
    ts_ns = rows.time(source, line).ns
    rows.inferred[UNNAMED] += min(num, LIMIT_RETRACTED)
    if num > LIMIT_RETRACTED:
        rows.skipped[f"retractions beyond {LIMIT_RETRACTED:,} in a line"] += num - LIMIT_RETRACTED
    for _ in range(min(num, LIMIT_RETRACTED)):
        rows.add("lifecycle", source, ts_ns, event="preempt", cause="KV cache pool is full")
    changed = {name: value.rpartition(" -> ")[2] for name, value in said.items()}
    rows.counters(source, ts_ns, samples(changed))


def _count(text: str | None) -> int | None:
    found = number(text) if text is not None else None
    return found.count if found and found.value <= LAST_COUNT else None


def _rank(label: str) -> int:
    match = _RANK.match(label)
    return int(match[1]) if match else 0
