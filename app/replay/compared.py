"""What two runs came to, side by side: as `diff` prints it, and `replay` of a run with changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.diff.compare import INCOMPARABLE, Difference, Divergence, diff
from stepscope.app.present.diff_knew import Knowledge, knowledge
from stepscope.app.present.diff_text import divergence_lines, outcome_lines, verdict, verdict_lines
from stepscope.ingest.progress import Progress
from stepscope.ingest.trace import Trace

Known = tuple[Knowledge | None, Knowledge | None]
Results = tuple[CheckResult, CheckResult]
MAX_ONLY = 100


@dataclass(frozen=True, slots=True)
class Compared:
    """Two traces, where they diverge, what each knew then, and what the rules say of each.

    `results` is None where no rules were run.
    """

    traces: tuple[Trace, Trace]
    found: Difference
    known: Known
    results: Results | None

    @property
    def name(self) -> str:
        """What is compared with what."""
        return f"{self.found.a} against {self.found.b}"

    @property
    def is_same(self) -> bool:
        """Tell whether both decided the same at every step, and neither is shorter."""
        return self.found.divergence is None and self.found.shorter is None

    def where_they_diverge(self) -> str | None:
        """Say in a line where they diverge, or that one ends first; "" where neither is so.

        None where they have nothing in common that could.
        """

        if self.is_same:
            return None if self.found.verdict == INCOMPARABLE else ""
        return next(verdict(self.found))

    def lines(self) -> list[str]:
        """What a terminal shows."""
        return _text(self.traces, self.found, self.known, self.results)

    def as_dict(self) -> dict[str, Any]:
        """What `--format json` prints."""
        return _as_dict(self.found, self.known, self.results)


def compared(traces: tuple[Trace, Trace], *, rules: bool, report: Progress) -> Compared:
    """Compare two traces, and run the rules on both where that is asked for."""
    report("comparing", 0, None)
    found = diff(*traces)
    known: Known = (None, None)
    if divergence := found.divergence:
        known = (
            knowledge(traces[0], divergence, divergence.row_a),
            knowledge(found.pairing.b, divergence, divergence.row_b),
        )
    return Compared(traces, found, known, _results(traces, report) if rules else None)


def _results(traces: tuple[Trace, Trace], report: Progress) -> Results:
    """What the rules say of each trace."""
    return check(traces[0], progress=report), check(traces[1], progress=report)


def _text(
    traces: tuple[Trace, Trace], found: Difference, known: Known, results: Results | None
) -> list[str]:
    lines = list(verdict_lines(found))
    if found.divergence is not None:
        starts = traces[0].start_ns(), traces[1].start_ns()
        lines += divergence_lines(found.divergence, known, starts)
    return [*lines, "", *outcome_lines(found, results)]


def _as_dict(found: Difference, known: Known, results: Results | None) -> dict[str, Any]:
    return {
        "a": found.a,
        "b": found.b,
        "verdict": found.verdict,
        "inputs": [asdict(each) for each in found.inputs],
        "divergence": None if found.divergence is None else _divergence(found.divergence),
        "knew": [None if each is None else _known(each) for each in known],
        "shorter": found.shorter,
        "first_steps": {name: _place(first) for name, first in found.firsts.items()},
        "first_other_duration": _place(found.slower),
        "not_compared": list(found.not_compared),
        "partial": _by_run(map(list, found.outcomes.partial)),
        "totals": found.outcomes.totals,
        "causes_ns": found.outcomes.causes,
        "requests": found.outcomes.requests.to_dicts(),
        "renumbered_kv_blocks": found.renumbered,
        "paired": {"by": dict(found.pairing.inferred), "a_by_b": dict(found.pairing.names)},
        "findings": None if results is None else _by_run(each.counts for each in results),
        "coverage": None if results is None else _by_run(each.coverage.share for each in results),
    }


def _divergence(divergence: Divergence) -> dict[str, Any]:
    """Whatever is different from here on to the end of the step: counted, and the first of it."""
    return {
        **asdict(divergence),
        "only_a": list(divergence.only_a[:MAX_ONLY]),
        "only_b": list(divergence.only_b[:MAX_ONLY]),
        "num_only_a": len(divergence.only_a),
        "num_only_b": len(divergence.only_b),
    }


def _by_run(each: Iterable[Any]) -> dict[str, Any]:
    return dict(zip("ab", each, strict=True))


def _place(first: tuple[int, int] | None) -> dict[str, int] | None:
    return None if first is None else {"rank": first[0], "step": first[1]}


def _known(known: Knowledge) -> dict[str, Any]:
    return {
        "ts_ns": known.ts_ns,
        "state": known.state.as_dict(),
        "step": dict(known.step),
        "decisions": list(known.decisions),
    }
