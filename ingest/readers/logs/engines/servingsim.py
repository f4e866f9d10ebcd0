"""Lines of LLMServingSim: a simulator's, so their times are simulated as well.

[1.0s] Avg prompt throughput: 8780.0 tokens/s, Avg generation throughput: 27.0 tokens/s
        ├─Running Instance[0]: 9 reqs, Waiting: 0 reqs, Total # 1 NPUs, Each NPU Memory Usage
        16462.51 MB (66.986 % Used), Prefix Cache Hit ratio 0.00 %, (0 / 9069)
        └─Node[0]: Total CPU Memory Usage 0.00 MB, 0.000 % Used

The memory is all of an NPU's, not the KV cache's.

The format: LLMServingSim, `serving/core/` (github.com/casys-kaist/LLMServingSim).
"""

from __future__ import annotations

import re

from stepscope.ingest.readers.text.collect import Line, LogRows
from stepscope.ingest.readers.text.fields import Number, fields, samples
from stepscope.ingest.times import SECOND

INTERVALS, INSTANCES, NODES = (
    "LLMServingSim interval lines", "LLMServingSim instance lines", "LLMServingSim node lines",
)  # fmt: skip
SIMULATED = "the log is of LLMServingSim, a simulator: its times are simulated, not measured"
_AT = re.compile(r"\[(\d{1,9}(?:\.\d{1,9})?)s\] (?=Avg prompt throughput: )")
_INSTANCE = re.compile(r"Running Instance\[(\d{1,6})\]: (?=\d)")
_NODE = re.compile(r"Node\[(\d{1,6})\]: (?=Total CPU Memory Usage )")
_NUMBER = r"(\d{1,12}(?:\.\d{1,9})?)"
_MEMORY = {
    "NPU memory": (re.compile(rf"Each NPU Memory Usage {_NUMBER} MB"), "MB"),
    "NPU memory used": (re.compile(rf"\({_NUMBER} % Used\)"), "%"),
    "Prefix Cache Hit ratio": (re.compile(rf"Prefix Cache Hit ratio {_NUMBER} %"), "%"),
    "CPU memory": (re.compile(rf"Total CPU Memory Usage {_NUMBER} MB"), "MB"),
}


class ServingSimLines:
    """Reads intervals, and what each instance and node says of them, as counters."""

    name = "LLMServingSim"
    markers = ("s] Avg prompt throughput: ", "Running Instance[", "Node[")

    def __init__(self) -> None:
        self._at_ns = 0

    def take(self, line: Line, rows: LogRows) -> str | None:
        """Read an interval line, or one of those below it."""
        if match := _AT.search(line.text):
            self._at_ns = round(float(match[1]) * SECOND)
            said = samples(fields(line.text[match.end() :], ": ", is_whole=line.is_whole))
            return self._add(INTERVALS, "", said, line, rows)
        if match := _INSTANCE.search(line.text):
            text = f"Running: {line.text[match.end() :]}"
            said = samples(fields(text, ": ", is_whole=line.is_whole))
            counts = {name: said[name] for name in ("Running", "Waiting") if name in said}
            return self._add(INSTANCES, match[1], counts | _memory(line), line, rows)
        if match := _NODE.search(line.text):
            return self._add(NODES, "", _memory(line), line, rows, f"Node {match[1]}")
        return None

    def end(self, rows: LogRows) -> None:
        """Nothing stays open."""

    def _add(
        self,
        kind: str,
        label: str,
        said: dict[str, Number],
        line: Line,
        rows: LogRows,
        track: str = "",
    ) -> str | None:
        if not said:
            return None
        rows.notes[SIMULATED] = None
        label = label or "0"
        source = rows.source(self.name, line, label, int(label))
        source.stamps["simulated"] += 1
        rows.counters(source, self._at_ns, said, track=track)
        return kind


def _memory(line: Line) -> dict[str, Number]:
    """What is told of memory; of a line that is cut off, what stands whole in it."""
    found = {name: (form.search(line.text), unit) for name, (form, unit) in _MEMORY.items()}
    return {name: Number(float(match[1]), unit) for name, (match, unit) in found.items() if match}
