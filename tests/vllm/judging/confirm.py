"""Counts again what `check` found in recorded runs: `python -m tests.vllm.judging.confirm RUN...`.

Each finding is counted twice more, by plain Python that shares nothing with its rule: from the rows
of the trace, and from what the witness saw of the scheduler, where that can tell.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from tests.random_configurations.count_requests import FEW_TOKENS, recomputed
from tests.random_configurations.tables import Tables
from tests.vllm.runs import Run

Row = dict[str, Any]
Figure = tuple[int, ...]
MS = 10**6


@dataclass(frozen=True)
class Confirmed:
    """A finding, its figure, and the same counted from rows and from the witness's lines."""

    run: str
    rule: str
    subject: str
    told: Figure | None
    own: Figure | None
    witness: Figure | None

    @property
    def is_confirmed(self) -> bool:
        """Whether it was counted, and everybody counts the same."""
        return self.own is not None and self.told == self.own and self.witness in (None, self.own)

    def __str__(self) -> str:
        """Give a line of the table."""
        figures = (self.told, self.own, self.witness)
        told = ["-" if each is None else "/".join(map(str, each)) for each in figures]
        sure = "confirmed" if self.is_confirmed else "NOT CONFIRMED"
        return " | ".join((self.run, self.rule, self.subject, *told, sure))


def confirm(run: Run) -> list[Confirmed]:
    """Count every finding of a run again."""
    found = []
    for trace in run.traces:
        tables = Tables(trace)
        for each in check(trace).findings:
            lines = run.truth.get(each.rank or 0, [])
            count = COUNTS.get(each.code, _uncounted)
            told, own, seen = count(each, tables, lines)
            subject = each.request or str(each.evidence.get("cause", "whole run"))
            found.append(Confirmed(run.folder.name, each.code, subject, told, own, seen))
    return found


Counted = tuple[Figure | None, Figure | None, Figure | None]


def _uncounted(_: Finding, __: Tables, ___: Sequence[Row]) -> Counted:
    return None, None, None


def _computed_again(found: Finding, tables: Tables, lines: Sequence[Row]) -> Counted:
    """Requests that computed more tokens again than anew, those tokens, and new ones."""
    told = found.evidence
    rows = [row for row in tables["batch_rows"] if row["rank"] == found.rank]
    tables = _Only(tables, batch_rows=rows)
    return (
        (int(found.count), int(told["recomputed_tokens"] or 0), int(told["new_tokens"] or 0)),
        _thrashing(*recomputed(tables)),
        _thrashing(*_seen_again(lines)),
    )


def _thrashing(again: Counter[str], anew: Counter[str]) -> Figure:
    names = [each for each in anew if again[each] > anew[each] and again[each] >= FEW_TOKENS]
    return len(names), sum(again[each] for each in names), sum(anew[each] for each in names)


def _seen_again(lines: Sequence[Row]) -> tuple[Counter[str], Counter[str]]:
    """The same from what the scheduler said it had computed, before and after each batch."""
    again, anew, reached = Counter[str](), Counter[str](), Counter[str]()
    overlaps = any(one["after"] == two["after"] == "schedule" for one, two in pairwise(lines))
    for line in lines:
        for name, end in line["computed"].items():
            num = line.get("batch", {}).get(name, 0)
            num_again = max(0, min(end, reached[name]) - (end - num))
            again[name] += num_again
            anew[name] += num - num_again
            if line["after"] == "update" or overlaps:  # refused drafts are taken back by then
                reached[name] = max(reached[name], end)
    return again, anew


def _ended_in_error(found: Finding, tables: Tables, lines: Sequence[Row]) -> Counted:
    """Requests that ended for this cause, of how many that ended."""
    ends = [row for row in tables["lifecycle"] if row["event"] in ("finish", "abort", "error")]
    ended = {row["request"]: row["cause"] for row in ends}
    own = (sum(cause == found.evidence["cause"] for cause in ended.values()), len(ended))
    told = (int(found.count), int(found.evidence["requests that ended"] or 0))
    reasons = [each for line in lines for each in line.get("ended", {}).values()]
    seen = reasons.count("error")
    return told, own, (seen, own[1]) if found.evidence["cause"] == "error" else None


def _stalled(found: Finding, tables: Tables, lines: Sequence[Row]) -> Counted:
    """The longest time between two of the request's tokens, in whole milliseconds."""
    name = found.request or ""
    rows = [row["ts_ns"] for row in tables["outputs"] if row["request"] == name]
    seen = [line["t"] for line in lines if line.get("tokens", {}).get(name)]
    told, own, true = int(found.evidence["gap_ns"] or 0), _longest(rows), _longest(seen)
    # The witness looks at its clock a little earlier.
    return (told // MS,), (own // MS,), (own // MS,) if abs(true - own) < 5 * MS else (true // MS,)


def _longest(times: Sequence[int]) -> int:
    return max((later - sooner for sooner, later in pairwise(sorted(times))), default=0)


def _blocked(found: Finding, tables: Tables, lines: Sequence[Row]) -> Counted:
    """For how many milliseconds a request that was never preempted stood behind a head that lacked
    KV blocks, with as many free as its own prompt needs; and how many that is."""
    name, size = found.request or "", tables.config["engine"]["block_size"]
    need = -(-tables.arrivals[name]["prompt_len"] // size)
    stood = sum(
        max(0, min(until, head_until) - max(since, head_since))
        for since, until, why in _left_out(tables, name) if why["resource"] == "queue"
        for head_since, head_until, lacks in _left_out(tables, why["holder"])
        if lacks["resource"] == "kv-block" and need <= lacks["available"] < lacks["needed"]
    )  # fmt: skip
    told = int(found.evidence["worst_blocked_ns"] or 0), int(found.evidence["needed"] or 0)
    own, seen = (stood // MS, need), (_seen_blocked(lines, name, need, tables) // MS, need)
    is_same = abs(seen[0] - own[0]) <= max(10, own[0] // 10)  # it looks once in a step
    return (told[0] // MS, told[1]), own, own if is_same else seen


def _left_out(tables: Tables, name: str) -> list[tuple[int, int, Row]]:
    """From when until when a decision held a request back: until anything else is told of it."""
    about = [row for row in tables["decisions"] if row["subject"] == name]
    moves = [row["ts_ns"] for row in tables.events.get(name, ()) if row["event"] != "deliver"]
    times = sorted({*moves, *(row["ts_ns"] for row in about)})
    return [
        (row["ts_ns"], next((each for each in times if each > row["ts_ns"]), row["ts_ns"]), row)
        for row in about if row["verdict"] == "deferred"
    ]  # fmt: skip


def _seen_blocked(lines: Sequence[Row], name: str, need: int, tables: Tables) -> int:
    """The same from the scheduler: one waits in front, a slot and the budget are left, and room.

    In a step in which it preempts somebody it lets nobody in.
    """
    engine, scheduler = tables.config["engine"], tables.config["scheduler"]
    schedules = [line for line in lines if line["after"] == "schedule"]
    return sum(
        int(later["t"] - line["t"])
        for before, line, later in zip(schedules, schedules[1:], schedules[2:], strict=False)
        if name in line["waiting"][1:]
        and not {*before["running"]} & {*line["waiting"]}
        and line["free"] >= need
        and len(line["running"]) < engine["max_num_seqs"]
        and sum(line["batch"].values()) < scheduler["max_num_scheduled_tokens"]
    )


def _not_closed(found: Finding, tables: Tables, _: Sequence[Row]) -> Counted:
    """Requests that had come and not ended."""
    came = {row["request"] for row in tables["lifecycle"]}
    ended = {row["request"] for row in tables["lifecycle"]
             if row["event"] in ("finish", "abort", "error", "reject")}  # fmt: skip
    return (int(found.evidence.get("requests open") or 0),), (len(came - ended),), None


class _Only(Tables):
    """Tables of which some have other rows."""

    def __init__(self, tables: Tables, **rows: list[Row]) -> None:
        super().__init__(tables._trace)
        self._rows = rows


COUNTS: dict[str, Callable[[Finding, Tables, Sequence[Row]], Counted]] = {
    "KVB004": _computed_again,
    "STV012": _ended_in_error,
    "STV004": _stalled,
    "STV006": _blocked,
    "TRC001": _not_closed,
}


def main(folders: Sequence[str]) -> None:
    """Print a table of every finding of these runs."""
    lines = ["run | rule | subject | the rule | from rows | from the witness |"]
    for folder in folders:
        run = Run(Path(folder))
        lines += [str(each) for each in confirm(run)] or [f"{run.folder.name} | no finding"]
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main(sys.argv[1:])
