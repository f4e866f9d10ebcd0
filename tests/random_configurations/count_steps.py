"""What rules say of steps, counted again in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

from stepscope.analyzers.findings.finding import Finding
from tests.random_configurations.tables import Row, Tables, grouped


def path_is_slow(tables: Tables, found: Finding) -> bool:
    """BAT011: half of so many steps took as long; the other path less, where one is named."""
    told = found.evidence
    cells = grouped(_decodes(tables, found.rank), lambda row: (row["executed_path"], _width(row)))
    slow = cells.get((told["path"], told["width"]), [])
    if len(slow) != told["steps"] or _half(slow) != told["median_ns"]:
        return False
    if "declared" in told:
        return str(told["path"]) not in {
            f"decode: {name}" for name in tables.config["declared_paths"]["decode"]
        }
    other = cells[told["other path"], told["other width"]]
    num_other = -(-int(told["width"] or 0) // int(told["other width"] or 1))
    return _half(slow) > num_other * _half(other)


def _half(rows: list[Row]) -> float:
    return float(median([row["dur_ns"] for row in rows]))


def _decodes(tables: Tables, rank: int | None) -> list[Row]:
    return [
        row for row in tables["steps"]
        if row["rank"] == rank and row["num_decode_reqs"] and row["num_prefill_reqs"] == 0
    ]  # fmt: skip


def _width(row: Row) -> int:
    return int(row["num_decode_tokens"] or row["num_decode_reqs"])


def prompts_got_nothing(tables: Tables, found: Finding) -> bool:
    """STV005: so many steps in a row reserved the whole budget, with prompts waiting.

    So it is where more may run than the budget has tokens: then the decodes alone need it all.
    """
    longest = streak = 0
    for row in (row for row in tables["steps"] if row["rank"] == found.rank):
        is_all = row["reserved_tokens"] and row["reserved_tokens"] >= row["token_budget"]
        is_starved = is_all and row["num_waiting"] and not row["num_prefill_tokens"]
        streak = streak + 1 if is_starved else 0
        longest = max(longest, streak)
    return longest == found.evidence["longest run_steps"]


COUNTS: Mapping[str, Callable[[Tables, Finding], bool]] = {
    "BAT011": path_is_slow,
    "STV005": prompts_got_nothing,
}
