"""What `diff --fail-on` does: judges conditions on two runs, or on the runs of two folders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from stepscope.ingest.errors import TraceError

if TYPE_CHECKING:
    from stepscope.analyzers.check.run import CheckResult
    from stepscope.analyzers.gate.conditions import Condition
    from stepscope.analyzers.gate.judge import Judged, Run
    from stepscope.app.replay.compared import Compared
    from stepscope.ingest.progress import Progress
    from stepscope.ingest.trace import Trace

Open = Callable[[Path], "Trace"]


def traces_in(path: Path) -> list[Path]:
    """The traces that a folder holds, as of several seeds, by name; none of what is a trace itself,
    or a file. Raises `TraceError` of a folder with neither.
    """
    if not path.is_dir() or any(path.glob("manifest*.json")) or path.suffix == ".trace":
        return []
    found = sorted(each for each in path.iterdir() if any(each.glob("manifest*.json")))
    if not found:
        raise TraceError("there is no trace in this folder", where=str(path))
    return found


@dataclass(frozen=True)
class SeveralRuns:
    """The runs of two sides, where one of them has several, and what was judged of them."""

    a: Sequence[Run]
    b: Sequence[Run]
    judged: Sequence[Judged]

    @property
    def name(self) -> str:
        """What is compared with what."""
        return f"{len(self.a):,} runs against {len(self.b):,}"

    def lines(self) -> Iterator[str]:
        """What a terminal shows: the medians of both sides."""
        from stepscope.app.present.diff_text import totals_lines

        for side, runs in (("A", self.a), ("B", self.b)):
            yield f"{side}  {len(runs):,} runs: {', '.join(run.name for run in runs)}"
        yield ""
        yield from totals_lines(self.medians(), ("median of A", "median of B"))

    def as_dict(self) -> dict[str, Any]:
        """What `--format json` prints."""
        sides = {"a": self.a, "b": self.b}
        return {side: [asdict(run) for run in runs] for side, runs in sides.items()} | {
            "medians": self.medians(),
        }

    def medians(self) -> dict[str, tuple[Any, Any]]:
        """The median of each total in both sides; None where a run does not tell."""
        names = self.a[0].totals
        return {name: (_median(self.a, name), _median(self.b, name)) for name in names}


def _median(runs: Sequence[Run], name: str) -> Any:
    values = [run.totals[name] for run in runs]
    if None in values:
        return None
    middle = median(values)
    return round(middle) if all(isinstance(value, int) for value in values) else middle


def judged_of_two(both: Compared, asked: Sequence[Condition]) -> list[Judged]:
    """Judge conditions on the only two runs."""
    from stepscope.analyzers.gate.judge import judge, run_of

    pairs = both.found.outcomes.totals
    runs = [
        run_of(
            trace.name,
            {name: pair[place] for name, pair in pairs.items()},
            both.results[place] if both.results else None,
        )
        for place, trace in enumerate(both.traces)
    ]
    where = both.where_they_diverge()
    return [judge(each, runs[:1], runs[1:], where) for each in asked]


def judged_of_several(
    sides: tuple[Sequence[Path], Sequence[Path]], asked: Sequence[Condition], open_one: Open,
    *, rules: bool, report: Progress,
) -> SeveralRuns:  # fmt: skip
    """Sum up each run of both sides, one after the other, and judge conditions on them."""
    from stepscope.analyzers.gate.judge import judge

    a, b = ([_run(open_one(path), rules, report) for path in side] for side in sides)
    return SeveralRuns(a, b, [judge(each, a, b) for each in asked])


def _run(trace: Trace, rules: bool, report: Progress) -> Run:
    from stepscope.analyzers.check.run import check
    from stepscope.analyzers.diff.outcomes import totals
    from stepscope.analyzers.gate.judge import run_of

    checked: CheckResult | None = check(trace, progress=report) if rules else None
    return run_of(trace.name, totals(trace), checked)


def gate_lines(judged: Sequence[Judged]) -> Iterator[str]:
    """A line for each condition: whether it fails the build, and what was seen."""
    from stepscope.app.printable import plain

    if judged:
        yield ""
    for each in judged:
        word = {True: "FAIL", False: "ok", None: "not judged"}[each.failed]
        yield f"{word}  {each.condition.text}: {plain(each.said)}"


def gate_dicts(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """The same for programs; `failed` is null where the traces do not tell."""
    return [
        {"condition": each.condition.text, "failed": each.failed, "said": each.said}
        for each in judged
    ]
