"""The difference of two traces as text: given, diverged, known, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from stepscope.analyzers.check.coverage import OF_THE_RECORDING
from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.diff.compare import EQUAL, INCOMPARABLE, PREFIX, Difference, Divergence
from stepscope.analyzers.diff.stages import STAGES
from stepscope.analyzers.findings.wording import times
from stepscope.app.present.blocks import Table
from stepscope.app.present.diff_knew import Knowledge, facts_of
from stepscope.app.present.plain_text import table_lines
from stepscope.app.printable import plain
from stepscope.app.units import duration, moment
from stepscope.app.widths import fit, width_of

MAX_INPUTS, MAX_ONLY, MAX_REQUESTS, LONGEST = 12, 4, 5, 300
OF_FINISHED = ("latency", "ttft")
Results = tuple[CheckResult, CheckResult]
Pair = tuple[Any, Any]


def verdict_lines(found: Difference) -> Iterator[str]:
    """Which traces these are, what they were given, and how they compare."""
    yield f"A  {plain(found.a)}"
    yield f"B  {plain(found.b)}"
    yield from _paired(found)
    if found.inputs:
        yield ""
        yield "given differently"
        for each in found.inputs[:MAX_INPUTS]:
            yield f"  {plain(each.what)}"
            yield f"    A  {_value(each.a)}"
            yield f"    B  {_value(each.b)}"
        if len(found.inputs) > MAX_INPUTS:
            yield f"  and {len(found.inputs) - MAX_INPUTS:,} more"
    yield ""
    yield from verdict(found)


def divergence_lines(
    divergence: Divergence,
    known: tuple[Knowledge | None, Knowledge | None],
    starts_ns: tuple[int, int],
) -> Iterator[str]:
    """The first rows that differ, and what each run knew then."""
    yield from (f"  {line}" for line in rows_told(divergence))
    yield ""
    yield "state of both at that step"
    whens = [
        "" if each is None else moment(each.ts_ns - start, 1_000)
        for each, start in zip(known, starts_ns, strict=True)
    ]
    yield from _both("at", (whens[0], whens[1]))
    facts = [facts_of(each) for each in known]
    for name in dict.fromkeys((*facts[0], *facts[1])):
        yield from _both(name, (facts[0].get(name, "-"), facts[1].get(name, "-")))
    for run, each in zip("AB", known, strict=True):
        for line in () if each is None else each.decisions:
            yield f"  {run} decided: {plain(line)}"


def rows_told(divergence: Divergence) -> Iterator[str]:
    """The first row of each run that differs, and what only one of them has in that step."""
    columns = next(stage.columns for stage in STAGES if stage.name == divergence.stage)
    for run, row in (("A", divergence.row_a), ("B", divergence.row_b)):
        yield f"{run}  {_row(row, columns)}"
    for run, only in (("A", divergence.only_a), ("B", divergence.only_b)):
        if len(only) > MAX_ONLY:
            yield f"in this step {len(only):,} rows are {run}'s alone"
        elif only:
            yield f"in this step only {run} has: {'; '.join(_row(row, columns) for row in only)}"


def outcome_lines(found: Difference, rules: Results | None) -> Iterator[str]:
    """What came of it: totals, where the time went, who gained and who lost, findings."""
    totals = totals_table(found)
    yield from table_lines(totals) if totals.rows else ("neither says what came of its run",)
    if causes := causes_table(found):
        yield ""
        yield from table_lines(causes)
    for run, lines in zip("AB", found.outcomes.partial, strict=True):
        yield from (f"{run} is partial: {line}" for line in lines)
    for change, those in who_told(found):
        yield ""
        yield change
        yield from (f"  {each}" for each in those)
    if rules is not None:
        yield ""
        table, told = findings_told(*rules)
        yield from table_lines(table) if table else ()
        yield from told


def totals_lines(totals: Mapping[str, Pair], header: tuple[str, str]) -> Iterator[str]:
    """The totals of two sides that one of them tells."""
    yield from table_lines(_totals(totals, header))


def totals_table(found: Difference) -> Table:
    """What each run came to; what neither trace tells is left out."""
    return _totals(found.outcomes.totals, ("A", "B"))


def _totals(totals: Mapping[str, Pair], header: tuple[str, str]) -> Table:
    rows = [
        (total_name(name), *(amount(name, number) for number in pair))
        for name, pair in totals.items()
        if pair != (None, None)
    ]
    return _table(("outcome", *header), rows)


def causes_table(found: Difference) -> Table | None:
    """What the time of requests, or of the run, went to, where that differs; None if nowhere."""
    causes = found.outcomes.causes.items()
    changed = [(name, *map(_spent, both)) for name, both in causes if both[0] != both[1]]
    return _table((f"time of {found.outcomes.whose}", "A", "B"), changed) if changed else None


def _spent(ns: int | None) -> str:
    return "not recorded" if ns is None else duration(ns)


def findings_told(ours: CheckResult, theirs: CheckResult) -> tuple[Table | None, tuple[str, ...]]:
    """Rules that find more in one run, if any; of those that could judge both, that they do not."""
    codes = sorted(ours.counts.keys() | theirs.counts.keys())
    counts = [(code, *(_count(run.counts.get(code)) for run in (ours, theirs))) for code in codes]
    # A rule that does not apply to one and finds nothing in the other says nothing of either.
    differing = [row for row in counts if row[1] != row[2] and {*row[1:]} != {"0", "n/a"}]
    table = _table(("findings of", "A", "B"), differing) if differing else None
    return table, tuple(_judged(ours, theirs, has_more=bool(differing)))


def _judged(ours: CheckResult, theirs: CheckResult, *, has_more: bool) -> Iterator[str]:
    both = (ours.counts.keys() & theirs.counts.keys()) - OF_THE_RECORDING
    if not both:
        yield "no rule could judge what ran in both"
    elif not has_more:
        yield f"{times(len(both), 'rule')} could judge what ran in both, and found as much in each"
    if not both or ours.counts.keys() != theirs.counts.keys():
        for run, result in (("A", ours), ("B", theirs)):
            yield f"  {run}: {result.coverage.share}"


def _paired(found: Difference) -> Iterator[str]:
    inferred = found.pairing.inferred
    if inferred:
        yield ""
        yield "requests of B have other ids, and are called as those of A that they seem to be"
        for how, number in inferred.items():
            yield f"  {times(number, 'pair')} inferred from {how}"
    if found.renumbered:
        yield ""
        blocks = times(found.renumbered, "KV block")
        yield f"{blocks} of B with another number, told apart by which was used first"


def inputs_table(found: Difference) -> Table | None:
    """What the runs were given differently; None where that is nothing."""
    rows = [(plain(each.what), _value(each.a), _value(each.b)) for each in found.inputs]
    more = max(len(rows) - MAX_INPUTS, 0)
    made = _table(("given differently", "A", "B"), rows[:MAX_INPUTS])
    return replace(made, to_right=(), num_more=more) if rows else None


def verdict(found: Difference) -> Iterator[str]:
    """Where they diverge, if they do, and when everything else differs for the first time."""
    if found.verdict == INCOMPARABLE:
        yield "they have no rows in common that say what an engine decided"
    elif found.verdict == EQUAL:
        yield f"they are the same in every step, of {', '.join(found.firsts)}"
    elif found.verdict == PREFIX:
        yield f"they are the same as far as {found.shorter} goes, which ends first"
    elif found.divergence is not None:
        where = f", rank {found.divergence.rank}" if found.divergence.rank else ""
        yield (
            f"they diverge in step {found.divergence.step:,}{where}: {found.divergence.stage}, "
            f"row {found.divergence.place:,}"
        )
    yield from _firsts(found)


def _firsts(found: Difference) -> Iterator[str]:
    """When everything else differs for the first time."""
    own = found.divergence.stage if found.divergence else None
    later = {name: first[1] for name, first in found.firsts.items() if first and name != own}
    if found.slower:
        later["durations"] = found.slower[1]
    if later:
        said = ", ".join(f"{name} {step:,}" for name, step in later.items())
        yield f"  first step that differs in: {said}"
    never = [name for name, first in found.firsts.items() if first is None]
    if never and later:
        yield f"  never differ: {', '.join(never)}"
    if found.not_compared:
        yield f"  only one trace has: {', '.join(found.not_compared)}"


def _row(row: Mapping[str, Any] | None, columns: Sequence[str]) -> str:
    if row is None:
        return "nothing more in this step"
    said = [f"{_label(name)} {row[name]}" for name in columns if row.get(name) is not None]
    return _short(", ".join(said)) or "a row without any value"


def _both(name: str, pair: Pair) -> Iterator[str]:
    if pair[0] == pair[1]:
        yield f"  {name}: {_short(pair[0])}"
        return
    yield f"  {name}"
    for run, value in zip("AB", pair, strict=True):
        yield f"    {run}  {_short(value)}"


def who_told(found: Difference) -> Iterator[tuple[str, tuple[str, ...]]]:
    """How many gained and how many lost, and what became of the first few of them in each run."""
    requests = found.outcomes.requests
    for change, by in (("gained", True), ("lost", False)):
        those = requests.filter(pl.col("change") == change)
        if those.is_empty():
            continue
        # Who finished in one run only comes first, then by how much.
        order = those.sort("gain_ns", descending=by, nulls_last=False)
        rows = order.head(MAX_REQUESTS).iter_rows(named=True)
        fates = [
            f"{plain(row['request'] or '')}: {fate_of(row, 'a')} → {fate_of(row, 'b')}"
            for row in rows
        ]
        yield f"{len(those):,} {change} by B", tuple(fates)


def fate_of(row: Mapping[str, Any], run: str) -> str:
    """What became of a request in a run: of a row of `Outcomes.requests`."""
    if row[f"latency_ns_{run}"] is None:
        return "not there"
    times = row[f"num_preempted_{run}"]
    preempted = f", preempted {times}x" if times else ""
    outcome = plain(row[f"outcome_{run}"] or "unfinished")
    return f"{outcome} after {duration(row[f'latency_ns_{run}'])}{preempted}"


def total_name(name: str) -> str:
    """What a total is called."""
    return f"{_label(name)} of finished" if name.startswith(OF_FINISHED) else _label(name)


def _label(name: str) -> str:
    return name.removesuffix("_ns").removeprefix("num_").replace("_", " ")


def amount(name: str, number: float | None) -> str:
    """A total of a run in words: times with a unit, a share with three digits, counts as such."""
    if number is None:
        return "-"
    if name.endswith("_ns"):
        return duration(int(number))
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:,.1f}" if name.endswith("_per_s") else f"{number:.3f}"


def _count(number: int | None) -> str:
    return "n/a" if number is None else f"{number:,}"


def _value(value: object) -> str:
    return "-" if value is None else _short(str(value))


def _short(text: str) -> str:
    safe = plain(text)
    return safe if width_of(safe) <= LONGEST else fit(safe, LONGEST)


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(header, tuple(rows), to_right=header[1:], is_ruled=False)
