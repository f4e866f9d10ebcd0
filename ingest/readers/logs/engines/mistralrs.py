"""Interval lines of mistral.rs.

mistralrs_core::engine::logger: Throughput (T/s) 11.20[ (prefill 9.00, decode 2.20)], Prefix cache
    hitrate 0.00%[, ...], 2 running, 1 waiting

The format: mistral.rs, `mistralrs-core/src/engine/logger.rs`.
"""

from __future__ import annotations

from stepscope.ingest.readers.text.collect import Line, LogRows
from stepscope.ingest.readers.text.fields import Number, number

INTERVAL = "mistral.rs interval lines"
HEAD = "Throughput (T/s) "
_BACKWARDS = ("running", "waiting")
_SHARES = ("prefill", "decode")


class MistralrsLines:
    """Reads interval lines as counters."""

    name = "mistral.rs"
    markers = (HEAD,)

    def take(self, line: Line, rows: LogRows) -> str | None:
        """Read an interval line."""
        total, *parts = line.text.partition(HEAD)[2].replace(" (", ", ", 1).split(", ")
        told = {"Throughput": number(f"{total} T/s")}
        for part in parts:
            name, _, value = part.strip().rpartition(" ")
            name, value = (value, name) if value in _BACKWARDS else (name, value)
            if name in _SHARES:
                told[f"Throughput {name}"] = number(value.rstrip(")") + " T/s")
            else:
                told[name] = number(value)
        known: dict[str, Number] = {name: found for name, found in told.items() if name and found}
        if "Throughput" not in known or "waiting" not in known:
            return None
        source = rows.source(self.name, line)
        rows.counters(source, rows.time(source, line).ns, known)
        return INTERVAL

    def end(self, rows: LogRows) -> None:
        """Nothing stays open."""
