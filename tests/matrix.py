"""The proof of the rules: every fault of the reference engine against every rule.

`make matrix` prints it. FIRES names, for each fault, the rules that are made for it. EXPECTED names
the errors of other rules that come with it, and why; any other error fails the test.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.finding import Severity
from stepscope.engine.faults import FAULTS, Fault
from stepscope.engine.scenarios import Options, scenario
from stepscope.ingest.trace import Trace

FIRES: dict[str, tuple[str, ...]] = {
    "completions-in-buckets": ("STV018",),
    "shortest-bucket": ("STV003",),
    "newest-first-oldest-preempted": ("STV002",),
    "bucket-preemption-with-free-blocks": ("KVB003",),
    "incompatible-requeued-on-drained-queue": ("STV007",),
    "one-victim-then-ignored": ("STV008",),
    "victim-popped-instead-of-admitted": ("KVB007",),
    "block-given-twice": ("KVB001",),
    "block-leaked": ("KVB002",),
    "nobody-gives-way": ("KVB008",),
    "too-long-is-held": ("STV014",),
    "ignored-told-as-finished": ("STV015",),
    "batch-full-latched": ("STV010",),
    "preempted-ends-in-error": ("STV012",),
    "executor-dies": ("TRC006",),
    "skip-mirror-refresh": ("BUF006",),
    "recycle-without-clearing": ("KVB005",),
    "masked-row-leak": ("BAT013",),
    "refill-when-drained": ("STV009",),
    "one-slot-used": ("STV006", "STV009"),
    "token-after-eos": ("BAT005",),
    "token-past-cap": ("BAT005",),
    "cap-before-eos": ("BAT005",),
    "prefill-eats-the-budget": ("BAT001", "STV004", "STV011"),
    "no-request-cap": ("BAT002",),
    "reserve-not-held": ("BAT003",),
    "reserve-for-max-num-seqs": ("STV005", "BAT015"),
    "placeholder-read-as-token": ("EQV002",),
    "token-of-partial-prefill": ("BAT005",),
    "scheduled-twice": ("BAT004",),
    "victim-in-batch": ("BAT004",),
    "mtp-with-mixed": ("BAT010",),
    "tbo-with-mixed": ("BAT010",),
    "peer-kind-from-queue": ("COL009",),
    "dealt-to-one-rank": ("COL010",),
    "decode-overwrites-shared-view": ("BUF002",),
    "pinned-buffer-overwritten": ("BUF001",),
    "plans-not-cloned": ("BUF002",),
    "decode-region-stale": ("BUF002",),
    "lengths-not-rebased": ("BAT007",),
    "input-ids-not-sliced": ("BAT008",),
    "slot-mapping-missing": ("BAT009",),
    "lengths-missing": ("BAT009",),
    "lengths-stale": ("BUF002",),
    "mixed-taken-for-prefill": ("BAT006", "BAT010"),
    "logits-per-token": ("BAT006",),
    "logits-per-batch": ("BAT006",),
    "empty-merge-nan": ("EQV004",),
    "history-seen-by-chunk-end": ("EQV003",),
    "mix-shift-wrap": ("COR002", "COR010", "COR011"),
    "lost-ring-advance": ("COR010",),
    "stale-reservation": ("COR001", "COR002"),
    "pop-returns-consumed-slot": ("COR007",),
    "deferred-completion-lost": ("COR010",),
    "predicate-of-the-one-before": ("COR012",),
    "left-over-mix-ignored": ("COR004",),
    "sync-start-in-part": ("COR008",),
    "late-part-overwrites-tile": ("COR013",),
    "late-part-hangs": ("COR010",),
    "preambles-up-front": ("COL001",),
    "every-row-samples-row-0": ("BUF004", "EQV001"),
    "copy-on-unordered-stream": ("BUF003",),
    "slot-order-differs": ("COL003",),
    "slot-order-refused": ("COL003",),
    "slots-not-allocated": ("COL002", "COL004"),
    "compaction-on-one-side": ("COL003",),
    "sentinel-as-slot": ("COL005",),
    "v1-head-v2-worker": ("COL006",),
    "v2-head-v1-worker": ("COL006",),
    "collective-at-world-size-1": ("COL007",),
    "state-not-cleared": ("EQV001",),
    "scratch-shared": ("BUF005",),
    "slow-worker": ("COL008",),
    "full-accept-not-trimmed": ("EQV001",),
    "path-never-reached": ("BAT012",),
    "prompts-always-first": ("STV011",),
    "full-since-the-last-chunk": ("STV009", "STV010"),
    "ready-not-looked-at": ("STV020",),
    "blocked-head-holds-all": ("STV006",),
    "passed-without-bound": ("STV002",),
    "half-the-pool-each": ("KVB008", "STV020"),
    "never-fits-and-waits": ("STV014",),
}
EXPECTED: dict[str, dict[str, str]] = {
    "bucket-preemption-with-free-blocks": {
        "STV001": "whoever is preempted in every other step does not get anywhere",
    },
    "too-long-is-held": {"STV001": "nobody behind the one that can never fit gets anything"},
    "one-victim-then-ignored": {
        "STV001": "nobody finishes any more: all that are left wait past their deadlines",
    },
    "reserve-not-held": {"STV011": "prompts leave the decodes nothing, as without a reserve"},
    "no-request-cap": {"STV011": "`before` reserves nothing for decodes"},
    "placeholder-read-as-token": {"STV011": "`before` reserves nothing for decodes"},
    "tbo-with-mixed": {
        "BAT007": "halves of rows of one length have other cumulative lengths than the rows",
        "BAT008": "halves of rows of one length have other tokens than the rows",
    },
    "token-of-partial-prefill": {"BAT006": "a chunk that samples has a row of logits for it"},
    "late-part-overwrites-tile": {
        "COR001": "the MIX was admitted to a group of which a vector core was held",
        "EQV001": "what was computed from an overwritten tile is wrong, up to the tokens",
    },
    "late-part-hangs": {"COR001": "the MIX was admitted to a group with a vector core held"},
    "mix-shift-wrap": {"COR001": "the part that wraps lands on a core that another block holds"},
    "copy-on-unordered-stream": {"EQV001": "every sequence samples what was in the row before"},
    "slot-order-differs": {
        "EQV001": "a worker's batched decode takes the head's numbers for slots of its own",
    },
    "slot-order-refused": {
        "COL002": "the worker leaves before it hears anything, and the head waits"
    },
    "compaction-on-one-side": {
        "EQV001": "the worker adds the experts of another request, or of none, to one that moved",
    },
    "sentinel-as-slot": {"COL002": "the worker refuses the slot and leaves, and the head waits"},
    "v1-head-v2-worker": {
        "COL001": "the head says a command, and the worker takes the word for a slot",
        "COL002": "the worker refuses that slot and leaves, and the head waits",
        "COL005": "the slot that the worker takes is the word of a command",
    },
    "v2-head-v1-worker": {
        "COL001": "the worker decodes a token, and the head is still saying the command",
    },
    "passed-without-bound": {"STV001": "whoever is passed again and again does not get anywhere"},
    "scratch-shared": {"EQV001": "all sequences but the last are computed from the last one's"},
}
CLEAN: tuple[tuple[str, str], ...] = (
    ("mix-admission", "after"),
    ("mix-admission", "barrier"),
    ("fcfs-preemption", "after"),
    ("slot-recycling", "after"),
    ("mixed-batches", "after"),
    ("mixed-batches", "deferred"),
    ("mixed-batches", "decode-first"),
    ("mixed-batches", "no-threshold"),
    ("mixed-batches", "data-parallel"),
    ("ep-multiplexing", "after"),
    ("ep-multiplexing", "v2-host-staging"),
    ("ep-multiplexing", "v2-device-staging"),
    ("waiting-queue", "after"),
)
"""Variants with nothing wrong in them; a `before` that a report is about is not one.

Nor is an alternative that is there to be compared: `reserve-group` leaves cores idle (COR006),
`uniform` starts parts apart (COR003), `flag-off` runs prompts before decodes (STV011),
`v2-grouped-gemm` is the slow path (BAT011).
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """What a fault came to: the codes that fired, by severity (notes: info), and the check."""

    fault: Fault
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    result: CheckResult


def of_fault(fault: Fault, folder: Path) -> Cell:
    """Record `fault` into `folder` on the variant that shows it, and check the trace."""
    out = folder / f"{fault.name}.trace"
    scenario(fault.scenario).record(fault.variant, out, Options(faults=frozenset({fault.name})))
    return of_trace(fault, Trace.open(out))


def of_trace(fault: Fault, trace: Trace) -> Cell:
    """Check the trace of a run with `fault`."""
    result = check(trace)
    errors, warnings, notes = (codes(result, each) for each in Severity)
    return Cell(fault, errors, warnings, notes, result)


def codes(result: CheckResult, severity: Severity) -> tuple[str, ...]:
    """Return the codes that fired with that severity, in order."""
    return tuple(sorted({each.code for each in result.findings if each.severity is severity}))


def table(cells: list[Cell]) -> str:
    """Return the matrix as a Markdown table."""
    lines = ["| scenario | fault | its rules | comes with it |", "|---|---|---|---|"]
    for cell in cells:
        own = FIRES.get(cell.fault.name, ())
        also = [code for code in (*cell.errors, *cell.warnings) if code not in own]
        lines.append(
            f"| {cell.fault.scenario} | {cell.fault.name} | {' '.join(own)} | {' '.join(also)} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Print the matrix, and what is expected beside a fault's own rules."""
    with tempfile.TemporaryDirectory() as folder:
        cells = [of_fault(fault, Path(folder)) for fault in FAULTS]
    sys.stdout.write(table(cells) + "\n\n")
    for name, why in EXPECTED.items():
        for code, reason in why.items():
            sys.stdout.write(f"{name}: {code} too, because {reason}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
